/* Which queue has how much of the broker's memory, for the text of an error and for statistics. */
#ifndef SHMQ_CHECK_MEMORY_USE_H
#define SHMQ_CHECK_MEMORY_USE_H

#include "segment/member.h"

typedef struct shmq_memory_use {
    char name[SHMQ_NAME_MAX + 1]; /* "": the queue was deleted, and a process still uses it */
    uint64_t slots;               /* bytes reserved for its page, rings and cold records */
    uint64_t bodies;              /* bytes of the blocks that its slots name */
} shmq_memory_use;

/* False: none does. Under the structure lock: else the queue's memory may go meanwhile. */
bool shmq_memory_use_of(shmq_member *m, uint32_t index, shmq_memory_use *use);

#endif
