/* The version of a queue: the number by which a consumer says that it has looked at all there is. */
#ifndef SHMQ_RING_VERSION_H
#define SHMQ_RING_VERSION_H

#include "queue/handle.h"

#define SHMQ_VERSIONED (UINT64_C(1) << 63) /* set in each version of a queue: 0 in a row says nothing */
#define SHMQ_STARVED (UINT64_C(1) << 62) /* in a version: it counts chances, too */
#define SHMQ_LOCKED_OUT (UINT64_C(1) << 61) /* in a version with chances: another process had the mover's lock */

/* The version of what there is to look at. A consumer that has looked at all of it publishes the version in its row,
 * and no notifier wakes it for that. */
uint64_t shmq_version(const shmq_queue *q);
/* The version of a starved taker. It could not reach rows that it has not looked at, or wants, since no slot of the
 * front ring is free, or another process has the mover's lock. `version`: the queue's, from before its look. `chances`:
 * from before it looked for a slot, or tried the lock. */
static inline uint64_t shmq_version_starved(uint64_t version, uint64_t chances) {
    return ((version + chances) & ~SHMQ_LOCKED_OUT) | SHMQ_STARVED;
}

#endif
