/* Scans a queue that has flowed: the taker takes the first entry of the two rings, and brings rows when both have none.
 *
 * A taker takes no entry at or above `low` while the level is FLOWED: rows may come before it. Its second look is at
 * the flow word first, and at the epochs then. A flow may begin, fail and end between its scan and that look, and leave
 * the flow word as it was. Entries that the taker has passed as MOVING are available again then. Only an epoch says so,
 * which was raised before the flow word. */
#include "flow/flow.h"
#include "ring/ring.h"
#include "ring/version.h"
#include "take/offer.h"
#include "take/scan.h"

/* Says whether positions of this front ring are out of the order of places. */
static bool is_scattered(const shmq_ring *r) {
    return shmq_is_front(r) && SHMQ_UNLIKELY(shmq_load_seq(&((shmq_ring *)(uintptr_t)r)->shm->fetched_end) != 0);
}

/* The version of a back ring by which a taker knows, without a scan, that the ring has nothing below P (the place of
 * the flow word). An entry that comes back there raises the epoch, and entries that a flush leaves there were above P
 * before. Both words only grow while the level is FLOWED, so equal sums mean equal words. */
static uint64_t version_of(uint64_t epoch, uint64_t flow) { return epoch + flow; }

/* Does this taker go by the head? Others have cursors. */
static bool goes_by_head(const shmq_ring *r, const shmq_delivery *asked, uint64_t limit) {
    return limit != UINT64_MAX && !shmq_is_front(r) && asked->as.by == NULL && !asked->as.ranked;
}

/* Says whether this process knows that the back ring has no entry below P. The newest messages in memory are above P:
 * without this each scan would pass all carried entries to find the first of those. */
static bool has_nothing(shmq_ring *r, const shmq_delivery *asked, shmq_found *f) {
    uint64_t known = shmq_load_seq(&r->nothing); /* before the epoch, as in shmq_look_scattered */
    f->d.seen.epoch = shmq_load_seq(&r->shm->epoch);
    if (known != version_of(f->d.seen.epoch, asked->seen.flow)) {
        return false;
    }
    f->d.depth = r->depth;
    f->d.position = f->d.word = 0;
    f->d.seen.in_turn = f->claim = false;
    f->status = SHMQ_EMPTY;
    return true;
}

static void note_nothing(shmq_ring *r, const shmq_delivery *asked, const shmq_found *f, uint64_t place) {
    bool found = f->status == SHMQ_OK || f->claim;
    if ((!found || place >= shmq_flow_place(asked->seen.flow)) && !shmq_is_left(f)) {
        shmq_store_seq(&r->nothing, version_of(f->d.seen.epoch, asked->seen.flow));
    }
}

shmq_status shmq_look_flowed(shmq_ring *r, const shmq_delivery *asked, uint64_t limit, shmq_found *f) {
    if (is_scattered(r)) {
        return shmq_look_scattered(r, asked, limit, f);
    }
    bool by_head = goes_by_head(r, asked, limit);
    f->d = *asked;
    f->d.as.peek = true;
    f->place = UINT64_MAX;
    if (by_head && has_nothing(r, asked, f)) {
        return SHMQ_OK;
    }
    do {
        f->status = shmq_scan(r, &f->d, shmq_is_front(r) ? UINT64_MAX : limit);
    } while (f->status == SHMQ_INTERRUPTED);
    f->claim = f->status == SHMQ_EMPTY && f->d.word != 0;
    if (f->status != SHMQ_OK && f->status != SHMQ_EMPTY) {
        return f->status;
    }
    uint64_t place = UINT64_MAX;
    if (f->status == SHMQ_OK || f->claim) {
        shmq_slot_shm *slot = shmq_slot_at(r, f->d.position);
        place = shmq_slot_place(r, slot, f->d.position);
        if (shmq_load_seq(&slot->word) != f->d.word) {
            return SHMQ_INTERRUPTED; /* the place may be that of the slot's next entry */
        }
        f->place = place < limit ? place : UINT64_MAX;
        if (f->status == SHMQ_OK && f->d.as.by == NULL && f->d.seen.in_turn &&
            ((f->d.seen.head ^ f->d.position) & SHMQ_POSITION_MASK) != 0) {
            shmq_head_advance(r, f->d.seen.head, f->d.position); /* later scans need not pass what this one has */
        }
    }
    if (by_head) {
        note_nothing(r, asked, f, place);
    }
    return SHMQ_OK;
}

/* Looks a second time at the ring without the offer: says whether it is unchanged. */
static bool is_unchanged(shmq_ring *r, const shmq_found *f, uint64_t place) {
    uint64_t now = shmq_load_seq(&r->shm->epoch);
    if (SHMQ_LIKELY(now == f->d.seen.epoch)) {
        return true;
    }
    return !shmq_is_front(r) && shmq_lowest_released(r, f->d.seen.epoch, now) > place;
}

/* Offers the first of the two. SHMQ_INTERRUPTED: scan again. */
static shmq_status offer_first(shmq_queue *q, shmq_ring *r, shmq_ring *other, const shmq_found *first,
                               const shmq_found *second, shmq_delivery *d) {
    bool peek = d->as.peek;
    uint64_t flow = d->seen.flow;
    *d = first->d;
    d->as.peek = peek;
    d->seen.flow = flow;
    if (peek) {
        return SHMQ_OK;
    }
    switch (shmq_scan_offer(r, first->d.word, first->d.position, first->d.seen.epoch, d)) {
    case OFFER_OK:
        break;
    case OFFER_LEFT:
        return shmq_leave(d);
    default:
        return SHMQ_INTERRUPTED;
    }
    bool same = !is_scattered(r) || shmq_load_seq(&r->shm->epoch) == first->d.seen.epoch;
    if (same && is_unchanged(other, second, first->place)) {
        return SHMQ_OK;
    }
    shmq_offer_cancel(q, d);
    return SHMQ_INTERRUPTED;
}

/* Offers the entry that these two looks have found. SHMQ_EMPTY: they have found none, or a claim. */
shmq_status shmq_offer_found(shmq_ring *back, const shmq_found *b, const shmq_found *f, shmq_delivery *d) {
    shmq_ring *front = shmq_front_of(back);
    if (f->place < b->place) {
        return offer_first(back->queue, front, back, f, b, d);
    }
    if (b->place != UINT64_MAX && !b->claim) {
        return offer_first(back->queue, back, front, b, f, d);
    }
    if (!b->claim && !(is_unchanged(back, b, 0) && is_unchanged(front, f, 0))) {
        return SHMQ_INTERRUPTED; /* an empty look needs its second look, too */
    }
    bool peek = d->as.peek;
    uint64_t flow = d->seen.flow;
    *d = b->d; /* all that lies behind a claim waits for it */
    d->as.peek = peek;
    d->seen.flow = flow;
    d->word = b->claim ? b->d.word : 0;
    d->seen.why = b->place == UINT64_MAX ? SHMQ_AT_END : shmq_flow_is_on(flow) ? SHMQ_MORE_TO_COME : SHMQ_BEHIND_CLAIM;
    return SHMQ_EMPTY;
}

/* Neither ring has anything below `low`: the taker brings rows, or searches them for one that it wants. */
static shmq_status reach_rows(shmq_ring *back, shmq_delivery *d, uint64_t chances, uint64_t *front_epoch) {
    bool able = back->queue->m->backing_of != NULL, some = able && d->as.by != NULL && d->as.by->wants != NULL;
    shmq_status status = able && !some ? shmq_inhaler_bring(back) : SHMQ_EMPTY;
    if (able && (status == SHMQ_EMPTY || status == SHMQ_FULL_MEMORY) && back->queue->book != NULL) {
        some = true; /* other consumers' groups fill the front ring */
    }
    if (some) {
        status = shmq_search_flowed(back, d, chances, front_epoch);
    }
    if (some && (status == SHMQ_OK || (status == SHMQ_EMPTY && d->seen.why == SHMQ_AT_END))) {
        return status;
    }
    if (status == SHMQ_OK || status == SHMQ_INTERRUPTED) {
        return SHMQ_INTERRUPTED;
    }
    if (!some || status != SHMQ_EMPTY) {
        d->word = 0;
        d->seen.why = status == SHMQ_EMPTY    ? SHMQ_NO_FREE_SLOT
                      : status == SHMQ_IN_USE ? SHMQ_LOCK_TAKEN
                                              : SHMQ_MORE_TO_COME;
    }
    if (!some && able && status == SHMQ_EMPTY && d->seen.version != 0) {
        d->seen.version = shmq_version_starved(d->seen.version, chances);
    } else if (!some || (status != SHMQ_EMPTY && status != SHMQ_IN_USE)) {
        d->seen.version = 0; /* rows are left: the taker has not looked at everything */
    }
    return status == SHMQ_IN_USE || status == SHMQ_FULL_MEMORY ? SHMQ_EMPTY : status;
}

/* Ends a look that has found no entry in either ring, and no rows. */
static shmq_status nothing(shmq_ring *r, const shmq_found *back, const shmq_found *front, shmq_delivery *d,
                           uint64_t *front_epoch) {
    uint64_t flow = d->seen.flow;
    bool same =
        shmq_load_seq(&r->shm->flow) == flow && is_unchanged(r, back, 0) && is_unchanged(shmq_front_of(r), front, 0);
    *d = back->d;
    d->seen.flow = flow;
    d->seen.why = SHMQ_AT_END;
    d->word = 0;
    *front_epoch = front->d.seen.epoch;
    return same ? SHMQ_EMPTY : SHMQ_INTERRUPTED;
}

shmq_status shmq_scan_flowed(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch) {
    bool peek = d->as.peek;
    /* A taker without a subscription has a version here, too: it may be starved. With levels that was read before all. */
    d->seen.version = d->seen.version == 0 && back->queue->levels == 1 ? shmq_version(back->queue) : d->seen.version;
    const uint64_t version = d->seen.version;
    for (;;) {
        shmq_found b, f;
        d->seen.why = SHMQ_AT_END;
        d->seen.version = version;
        uint64_t chances = shmq_load_seq(&back->queue->page->chances); /* slots freed later are new chances */
        d->seen.flow = shmq_load_seq(&back->shm->flow);
        uint64_t limit = shmq_flow_is_on(d->seen.flow) ? shmq_load_seq(&back->shm->low) : UINT64_MAX;
        shmq_status status = shmq_look_flowed(back, d, limit, &b);
        status = status == SHMQ_OK ? shmq_look_flowed(shmq_front_of(back), d, limit, &f) : status;
        if (status == SHMQ_INTERRUPTED) {
            continue;
        }
        if (status != SHMQ_OK) {
            return status;
        }
        if (SHMQ_UNLIKELY(shmq_is_left(&b) || shmq_is_left(&f))) {
            status = shmq_leave(d); /* the look did not go on behind it, and what the other ring has may be later */
        } else if (b.place == UINT64_MAX && f.place == UINT64_MAX) {
            status = shmq_flow_is_on(d->seen.flow) ? reach_rows(back, d, chances, front_epoch)
                                                   : nothing(back, &b, &f, d, front_epoch);
        } else {
            *front_epoch = f.d.seen.epoch;
            status = shmq_offer_found(back, &b, &f, d);
        }
        d->as.peek = peek;
        if (status != SHMQ_INTERRUPTED) {
            return status;
        }
    }
}
