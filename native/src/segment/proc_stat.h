/* A process as /proc describes it. */
#ifndef SHMQ_PROC_STAT_H
#define SHMQ_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct shmq_proc_stat {
    char state; /* as ps shows it: 'Z' is a zombie */
    uint64_t flags; /* of its first thread, PF_* of the kernel */
    uint64_t start_time; /* clock ticks since boot */
} shmq_proc_stat;

/* Of a process of our namespace; 0: of this one. False: there is none, or it cannot be read. */
bool shmq_proc_stat_of(uint32_t pid, shmq_proc_stat *stat);
/* 0: it cannot be read. */
uint64_t shmq_own_pid_namespace(void);
/* Reads a small file as text, "" where it cannot. */
ssize_t shmq_read_small(const char *path, char *text, size_t bytes);

#endif
