/* Entries that are held until a time, and leases. */
#ifndef SHMQ_SETTLE_HOLD_H
#define SHMQ_SETTLE_HOLD_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* Ends the hold of an entry seen as `word`, if it is due. True: it is available, or the word changed: look again. */
bool shmq_hold_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t now);
/* Ends the hold whatever its time. False: the word has changed. */
bool shmq_hold_end_now(shmq_ring *r, shmq_slot_shm *slot, uint64_t word);
/* Back in its place, but no consumer gets it before `until_ns`. Without memory for the ring's cold records it is released at once.
 * SHMQ_INTERRUPTED: still ours, call again. */
shmq_status shmq_release_until(shmq_queue *q, shmq_delivery *d, bool attempt, uint64_t until_ns);
/* Begins the lease of an entry that this consumer has LOCKED (or notes that it has none): then it is ACQUIRED. */
shmq_status shmq_lease_begin(shmq_ring *r, const shmq_delivery *d);
/* Begins the lease anew. SHMQ_SETTLED: the consumer has lost the message. Without a lease it only checks this. */
shmq_status shmq_touch(shmq_queue *q, shmq_delivery *d);

#endif
