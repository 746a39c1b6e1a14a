/* Steps of a walk that a queue which flows takes one by one; see ring_walk.c. */
#ifndef SHMQ_WALK_H
#define SHMQ_WALK_H

#include "shmq/ring.h"

enum shmq_offered { OFFER_OK, OFFER_CHANGED, OFFER_RELEASED, OFFER_LEFT };

/* One walk over this ring, as d->by and d->peek say. */
shmq_status shmq_walk(shmq_ring *r, shmq_delivery *d);
/* T9 of what such a walk has found, which is looked at anew. */
enum shmq_offered shmq_walk_offer(shmq_ring *r, uint64_t word, uint64_t p, uint64_t epoch, shmq_delivery *d);
/* The lowest position released in the epochs (from, to]; 0: any. */
uint64_t shmq_lowest_released(shmq_ring *r, uint64_t from, uint64_t to);
/* The same as a walk of a level that has flowed: what lies below `low` in both of its rings, and then what is on disk. SHMQ_EMPTY
 * with a flow word in d->flow_seen that is on: not all was to be had. *front_epoch: of the front ring, as d->epoch_seen. */
shmq_status shmq_walk_flowed(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch);

#endif
