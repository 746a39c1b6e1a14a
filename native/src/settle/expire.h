/* Entries whose life is over, or that have failed too often. */
#ifndef SHMQ_SETTLE_EXPIRE_H
#define SHMQ_SETTLE_EXPIRE_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* Drops an expired entry that was AVAILABLE, seen as `word`, and may expire. True: it was past its time, and is gone,
 * or the word has changed. Where the expired go to the dead, it is offered all the same: its taker gets SHMQ_POISONED,
 * and moves it to the dead letters. */
bool shmq_drop_expired(shmq_ring *r, shmq_slot_shm *slot, uint64_t word);
/* Settles a message that has expired, and counts it. */
shmq_status shmq_expire(shmq_queue *q, shmq_delivery *d);
/* Locks the first message that has expired and waits for its move to the dead letters. SHMQ_EMPTY: none does. */
shmq_status shmq_steal_expired(shmq_queue *q, shmq_delivery *d);
/* Locks the first message that is available and has failed, or died with its takers, as often as its queue allows; also
 * of one on disk. SHMQ_EMPTY: none was found within the patience. SHMQ_OS, SHMQ_DENIED, SHMQ_CORRUPT: of what cannot be
 * brought back. */
shmq_status shmq_steal_poisoned(shmq_queue *q, shmq_delivery *d);

#endif
