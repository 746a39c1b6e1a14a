/* Steps of a scan that takers of a queue that has flowed make one by one; see take/scan.c. */
#ifndef SHMQ_SCAN_H
#define SHMQ_SCAN_H

#include "queue/handle.h"
#include "ring/delivery.h"

enum shmq_offered { OFFER_OK, OFFER_CHANGED, OFFER_RELEASED, OFFER_LEFT };

/* Scans this ring once, as d->by and d->peek say. The scan may end at `limit`, a position. */
shmq_status shmq_scan(shmq_ring *r, shmq_delivery *d, uint64_t limit);
/* Offers (T9) what such a scan has found, after another look at it. */
enum shmq_offered shmq_scan_offer(shmq_ring *r, uint64_t word, uint64_t p, uint64_t epoch, shmq_delivery *d);
/* Offers the lowest entry older than a lap, from `from` on, below `limit`, which is tail - N. Each of them is carried
 * already, with its bit set. SHMQ_TIMEOUT: the lowest one is left to another taker. */
shmq_status shmq_offer_old(shmq_ring *r, uint64_t from, uint64_t limit, uint64_t epoch, shmq_delivery *d);
/* Says whether the entry is for d's taker. */
bool shmq_scan_considers(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, uint64_t p, const shmq_delivery *d);

/* The result of a look at one ring of a queue that has flowed; nothing is offered. */
typedef struct shmq_found {
    shmq_delivery d;
    shmq_status status;
    uint64_t place; /* of the entry, or claim; UINT64_MAX: there is none below the limit */
    bool claim;
} shmq_found;
/* Says whether the look left an entry to another consumer. */
static inline bool shmq_is_left(const shmq_found *f) { return f->d.seen.why == SHMQ_LEFT_TO_OTHER; }
/* Leaves the entries that there are to another consumer. Returns SHMQ_EMPTY. */
static inline shmq_status shmq_leave(shmq_delivery *d) {
    d->seen.why = SHMQ_LEFT_TO_OTHER;
    d->word = d->seen.version = 0;
    return SHMQ_EMPTY;
}
/* Looks at one ring below the limit. SHMQ_INTERRUPTED: the entry has changed; look at both rings again. */
shmq_status shmq_look_flowed(shmq_ring *r, const shmq_delivery *as, uint64_t limit, shmq_found *f);
/* Looks at a front ring whose entries do not lie in the order of their places. */
shmq_status shmq_look_scattered(shmq_ring *front, const shmq_delivery *as, uint64_t limit, shmq_found *f);
/* Offers the lower of the two, if neither ring has changed in what lies below it. SHMQ_EMPTY: there is nothing, or a
 * claim. */
shmq_status shmq_offer_found(shmq_ring *back, const shmq_found *b, const shmq_found *f, shmq_delivery *d);
/* The search of a taker that wants some entries only, and has found none below `low`. SHMQ_OK: offered. SHMQ_EMPTY:
 * d->seen.why says why.
 * SHMQ_INTERRUPTED: scan again. SHMQ_IN_USE as shmq_inhaler_bring. */
shmq_status shmq_search_flowed(shmq_ring *back, shmq_delivery *d, uint64_t chances, uint64_t *front_epoch);
/* Scans a level that has flowed: first what lies below `low` in both of its rings, then what is on disk. SHMQ_EMPTY:
 * d->seen.why says whether entries are left that this taker could not get now. *front_epoch: the
 * epoch of the front ring, as d->seen.epoch is that of the back ring. */
shmq_status shmq_scan_flowed(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch);

#endif
