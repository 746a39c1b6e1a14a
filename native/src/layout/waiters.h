/* The word that counts producers that wait (limits/waiters.h), and its parts. */
#ifndef SHMQ_LAYOUT_WAITERS_H
#define SHMQ_LAYOUT_WAITERS_H

#include "base/atomic.h"

typedef struct shmq_waiters {
    shmq_a64 *sum; /* of all */
    shmq_a32 *part, *changing; /* of one process */
} shmq_waiters;

static inline uint32_t shmq_waiters_in(uint64_t sum) { return (uint32_t)sum; }

#endif
