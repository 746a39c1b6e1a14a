/* A walk over a queue that has flowed: the first of two rings, and rows that are brought when both have nothing.
 *
 * A taker has nothing at or above `low`, while the level is FLOWED: rows may come before it. Its second look is at the flow word
 * first and at the epochs then: a flow may begin, fail and end while it stands between its walk and that look, and the word is
 * what it was; what it has passed as MOVING is available again, and only an epoch says so, which was raised before the word. */
#include "operations/walk.h"
#include "shmq/flow.h"

/* What a walk without an offer has found in one ring. */
typedef struct found {
    shmq_delivery d;
    shmq_status status;
    uint64_t place; /* of the entry, or claim; UINT64_MAX: there is none below the limit */
    bool claim;
} found;

static shmq_status look(shmq_ring *r, const shmq_delivery *as, uint64_t limit, found *f) {
    f->d = *as;
    f->d.peek = true;
    f->place = UINT64_MAX;
    do {
        f->status = shmq_walk(r, &f->d);
    } while (f->status == SHMQ_INTERRUPTED);
    f->claim = f->status == SHMQ_EMPTY && f->d.word != 0;
    if (f->status != SHMQ_OK && f->status != SHMQ_EMPTY) {
        return f->status;
    }
    if (f->status == SHMQ_OK || f->claim) {
        shmq_slot_shm *slot = shmq_slot_at(r, f->d.position);
        uint64_t place = shmq_is_front(r) ? shmq_front_place(r, slot) : f->d.position;
        if (shmq_load_seq(&slot->word) != f->d.word) {
            return SHMQ_INTERRUPTED; /* the place may be of the next entry of this slot */
        }
        f->place = place < limit ? place : UINT64_MAX;
        if (f->place == UINT64_MAX && f->status == SHMQ_OK && f->d.by == NULL && f->d.in_turn) {
            shmq_head_advance(r, f->d.head_seen, f->d.position); /* what went to disk is not passed once more */
        }
    }
    return SHMQ_OK;
}

/* The second look at the ring that the offer is not of. */
static bool is_unchanged(shmq_ring *r, const found *f, uint64_t place) {
    uint64_t now = shmq_load_seq(&r->shm->epoch);
    if (SHMQ_LIKELY(now == f->d.epoch_seen)) {
        return true;
    }
    return !shmq_is_front(r) && shmq_lowest_released(r, f->d.epoch_seen, now) > place;
}

/* SHMQ_INTERRUPTED: walk again. */
static shmq_status offer_first(shmq_queue *q, shmq_ring *r, shmq_ring *other, const found *first, const found *second,
                               shmq_delivery *d) {
    bool peek = d->peek;
    uint64_t flow = d->flow_seen;
    *d = first->d;
    d->peek = peek;
    d->flow_seen = flow;
    if (peek) {
        return SHMQ_OK;
    }
    switch (shmq_walk_offer(r, first->d.word, first->d.position, first->d.epoch_seen, d)) {
    case OFFER_OK:
        break;
    case OFFER_LEFT:
        d->version = 0;
        d->left = true;
        d->word = 0;
        return SHMQ_EMPTY;
    default:
        return SHMQ_INTERRUPTED;
    }
    if (is_unchanged(other, second, first->place)) {
        return SHMQ_OK;
    }
    shmq_offer_cancel(q, d);
    return SHMQ_INTERRUPTED;
}

/* Neither ring has anything below the limit. */
static shmq_status nothing(shmq_ring *r, const found *back, const found *front, shmq_delivery *d) {
    if (shmq_flow_is_on(d->flow_seen)) {
        shmq_status status = r->queue->m->backing_of != NULL ? shmq_flow_bring(r) : SHMQ_EMPTY;
        if (status == SHMQ_OK) {
            return SHMQ_INTERRUPTED;
        }
        d->word = 0;
        d->version = 0; /* rows are left: it has not looked at everything */
        return status == SHMQ_IN_USE ? SHMQ_EMPTY : status;
    }
    uint64_t flow = d->flow_seen;
    bool same =
        shmq_load_seq(&r->shm->flow) == flow && is_unchanged(r, back, 0) && is_unchanged(shmq_front_of(r), front, 0);
    *d = back->d;
    d->flow_seen = flow;
    d->word = 0;
    return same ? SHMQ_EMPTY : SHMQ_INTERRUPTED;
}

shmq_status shmq_walk_flowed(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch) {
    shmq_queue *q = back->queue;
    shmq_ring *front = shmq_front_of(back);
    bool peek = d->peek;
    for (;;) {
        found b, f;
        d->flow_seen = shmq_load_seq(&back->shm->flow);
        uint64_t limit = shmq_flow_is_on(d->flow_seen) ? shmq_load_seq(&back->shm->low) : UINT64_MAX;
        shmq_status status = look(back, d, limit, &b);
        status = status == SHMQ_OK ? look(front, d, limit, &f) : status;
        if (status == SHMQ_INTERRUPTED) {
            continue;
        }
        if (status != SHMQ_OK) {
            return status;
        }
        if (b.place == UINT64_MAX && f.place == UINT64_MAX) {
            status = nothing(back, &b, &f, d);
        } else if (f.place < b.place) {
            status = offer_first(q, front, back, &f, &b, d);
        } else if (b.claim) {
            uint64_t flow = d->flow_seen;
            *d = b.d; /* what is behind it waits for it */
            d->flow_seen = flow;
            d->peek = peek;
            *front_epoch = f.d.epoch_seen;
            return SHMQ_EMPTY;
        } else {
            status = offer_first(q, back, front, &b, &f, d);
        }
        d->peek = peek;
        if (status != SHMQ_INTERRUPTED) {
            *front_epoch = f.d.epoch_seen;
            return status;
        }
    }
}
