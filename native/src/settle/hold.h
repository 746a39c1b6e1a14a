/* Entries that are held until a time, and leases. */
#ifndef SHMQ_SETTLE_HOLD_H
#define SHMQ_SETTLE_HOLD_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* HELD, seen as `word`. True: it is available now, or the word has changed: look again. */
bool shmq_hold_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t now);
/* The same whatever its time. False: the word has changed. */
bool shmq_hold_end_now(shmq_ring *r, shmq_slot_shm *slot, uint64_t word);
/* Back in its place, but no consumer gets it before `until_ns`. Without memory for the ring's cold records it is released at once.
 * SHMQ_INTERRUPTED: still ours, call again. */
shmq_status shmq_release_until(shmq_queue *q, shmq_delivery *d, bool attempt, uint64_t until_ns);
/* LOCKED and ours: its lease begins (or its record says that there is none), and it is ACQUIRED. */
shmq_status shmq_lease_begin(shmq_ring *r, const shmq_delivery *d);
/* The lease begins anew. SHMQ_SETTLED: not ours any more. Without a lease this asks only whether it is ours. */
shmq_status shmq_touch(shmq_queue *q, shmq_delivery *d);

#endif
