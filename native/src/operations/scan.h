/* Steps of a scan that a queue which flows takes one by one; see ring_scan.c. */
#ifndef SHMQ_SCAN_H
#define SHMQ_SCAN_H

#include "shmq/ring.h"

enum shmq_offered { OFFER_OK, OFFER_CHANGED, OFFER_RELEASED, OFFER_LEFT };

/* One scan over this ring, as d->by and d->peek say; it may end at `limit`, a position. */
shmq_status shmq_scan(shmq_ring *r, shmq_delivery *d, uint64_t limit);
/* T9 of what such a scan has found, which is looked at anew. */
enum shmq_offered shmq_scan_offer(shmq_ring *r, uint64_t word, uint64_t p, uint64_t epoch, shmq_delivery *d);
/* Entries older than a lap, from `from` on, below `limit`, which is tail - N. Every one of them is carried already, and its bit is set.
 * SHMQ_TIMEOUT: the lowest is left to another taker. */
shmq_status shmq_offer_old(shmq_ring *r, uint64_t from, uint64_t limit, uint64_t epoch, shmq_delivery *d);
/* The lowest position released in the epochs (from, to]; 0: any. */
uint64_t shmq_lowest_released(shmq_ring *r, uint64_t from, uint64_t to);
/* Is it for d's taker? */
bool shmq_scan_considers(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, uint64_t p, const shmq_delivery *d);

/* What a look at one ring of a queue that has flowed has found, without an offer. */
typedef struct shmq_found {
    shmq_delivery d;
    shmq_status status;
    uint64_t place; /* of the entry, or claim; UINT64_MAX: there is none below the limit */
    bool claim;
} shmq_found;
/* SHMQ_INTERRUPTED: it has changed, look at both again. */
shmq_status shmq_look_flowed(shmq_ring *r, const shmq_delivery *as, uint64_t limit, shmq_found *f);
/* The same of a front ring to which some have come before others that lie below them. */
shmq_status shmq_look_scattered(shmq_ring *front, const shmq_delivery *as, uint64_t limit, shmq_found *f);
/* The lower one is offered, if neither ring has changed in what lies below. SHMQ_EMPTY: there is nothing, or a claim. */
shmq_status shmq_offer_found(shmq_ring *back, const shmq_found *b, const shmq_found *f, shmq_delivery *d);
/* By who wants some only, and has found nothing below `low`: SHMQ_OK, offered. SHMQ_EMPTY: nothing in all of the level (d->searched), a
 * claim (d->word), or it is not done yet (d->left). SHMQ_INTERRUPTED: scan again. SHMQ_IN_USE as shmq_flow_bring. */
shmq_status shmq_search_flowed(shmq_ring *back, shmq_delivery *d, uint64_t chances, uint64_t *front_epoch);
/* The same as a scan of a level that has flowed: what lies below `low` in both of its rings, and then what is on disk.
 * SHMQ_EMPTY with a flow word in d->flow_seen that is on: not all was to be had. *front_epoch: of the front ring, as
 * d->epoch_seen. */
shmq_status shmq_scan_flowed(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch);

#endif
