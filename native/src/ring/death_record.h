/* Which processes died with a message in hand. */
#ifndef SHMQ_RING_DEATH_RECORD_H
#define SHMQ_RING_DEATH_RECORD_H

#include "segment/member.h"

/* A process that died with the message `id` in hand. */
typedef struct shmq_death_record {
    uint64_t at_ns;
    uint32_t pid;
    int32_t signal; /* 0: not known */
} shmq_death_record;

/* How many there are, oldest first. */
uint32_t shmq_death_records_of(const shmq_member *m, uint64_t id, shmq_death_record found[SHMQ_DEATH_RECORDS]);
/* The signal that ended a dead process: the caller knows it, since it has waited for the process. It goes into the
 * death records of the process's messages, and into one of the process itself, since those may come later. */
void shmq_death_record_signal(shmq_member *m, uint32_t pid, int32_t signal);

#endif
