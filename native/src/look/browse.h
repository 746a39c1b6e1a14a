/* Browsing: entries in order, untouched. */
#ifndef SHMQ_LOOK_BROWSE_H
#define SHMQ_LOOK_BROWSE_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* The browser's next entry of this level at or after *position, in order, untouched. SHMQ_EMPTY: the end, *position is where a
 * newcomer will be. The browser copies d->head and d->bytes, then asks whether the copy is good (shmq_browse_valid). */
shmq_status shmq_browse(shmq_ring *r, uint64_t *position, shmq_delivery *d);
/* The same. *moving: behind the last one that was passed because it was on its way to disk just then; 0: there was none. */
shmq_status shmq_browse_past(shmq_ring *r, uint64_t *position, shmq_delivery *d, uint64_t *moving);
/* The same by the place in the level, of a queue that may have flowed: d->depth says in which ring it is, or that it is on disk. */
shmq_status shmq_browse_place(shmq_ring *level, uint64_t *place, shmq_delivery *d);
/* Behind all positions from this one on whose entries are in a consumer's hand, or have gone: without a look at what they say. It passes
 * in one step all that it passed before, as long as nothing has come back. */
uint64_t shmq_pass_held(shmq_ring *r, uint64_t position);
bool shmq_browse_valid(const shmq_ring *r, const shmq_delivery *d);
shmq_status shmq_browse_wait(shmq_queue *q, const uint64_t *positions, uint64_t until_ns);

#endif
