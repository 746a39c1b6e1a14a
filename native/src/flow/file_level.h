/* A process's knowledge of the files of one level, for the holder of the mover's lock. */
#ifndef SHMQ_FILE_LEVEL_H
#define SHMQ_FILE_LEVEL_H

#include <limits.h>
#include <sys/stat.h>

#include "flow/known_files.h"
#include "flow/row_file.h"

typedef struct shmq_file_level {
    shmq_backing calls;
    shmq_member *m;
    char path[PATH_MAX]; /* see rows_base.h */
    char place[128]; /* segment, queue and level: encrypted rows are bound to it */
    shmq_row_file loaded; /* the file that was read last */
    shmq_row_file picked; /* rows of one that were read by themselves */
    uint64_t erased;      /* the level's number of erased rows at that time */
    shmq_known_files files;
    struct stat broker; /* the broker's directory: its group and mode are those of all files */
    bool swept; /* directories of earlier queues of this index are deleted */
} shmq_file_level;

static inline shmq_row_cipher shmq_file_level_cipher(const shmq_file_level *b) {
    return (shmq_row_cipher){.wanted = b->m->encrypts, .cipher = b->m->cipher, .place = b->place};
}

/* Opens the file that begins with this key. Negative: errno says why that failed. */
int shmq_file_open(const shmq_file_level *b, uint64_t first, int how);
/* Implement the calls of shmq_backing for some rows of a file. */
shmq_status shmq_file_pick(void *context, const shmq_row_life *lives, shmq_row *rows, uint32_t count);
shmq_status shmq_file_drop(void *context, const shmq_row_life *lives, uint32_t count);

/* Tells why a call has failed, by errno, with the path. */
shmq_status shmq_file_failed(const shmq_file_level *b, const char *what);
/* Tells that the broker has a key that this process does not have. */
shmq_status shmq_file_no_key(const shmq_file_level *b);
/* Tells that the directory of an anonymous broker is not this user's alone. */
shmq_status shmq_file_not_private(const shmq_file_level *b);

#endif
