/* A queue that has flowed, as one sees it who wants some entries only: what lies below `low` is looked at by the scan;
 * then, under the mover's lock, all the rest in the order of places. A row that it wants comes in by itself, and is
 * then the entry that it is offered.
 *
 * The lock is held from the look at the rows to the offer: meanwhile nothing is MOVING, and no row comes or goes. What is released
 * in between raises an epoch, as ever. Rows that were looked at once are never wanted later, but for those of a group
 * that has become free since: so each is looked at once, or from what was released on. */
#include <stdlib.h>

#include "operations/scan.h"
#include "shmq/cold.h"
#include "shmq/flow.h"
#include "shmq/group.h"
#include "shmq/ring_memory.h"
#include "shmq/ring_time.h"
#include "shmq/sleepers.h"

typedef struct seeker {
    shmq_ring *level;
    const shmq_delivery *as;
    shmq_search *search;
} seeker;

/* What is looked at once more from this place on may be another's again, or not. False: there is no memory to remember that. */
static bool forget_passed(shmq_search *search, uint64_t place, uint64_t low) {
    if (search->passed == NULL) {
        search->passed = calloc(SHMQ_GROUPS, sizeof *search->passed);
    }
    for (uint32_t i = 0; i < SHMQ_GROUPS && search->passed != NULL; i++) {
        uint64_t from = search->passed[i] > low ? search->passed[i] : low + 1; /* what was below has come in */
        search->passed[i] = search->passed[i] != 0 && from <= place ? from : 0;
    }
    return search->passed != NULL;
}

/* As shmq_scan_considers. A group that has become free since an earlier row of it was passed: that one is next. This one would have a slot
 * until its turn came, and in the end those before it none to come in. */
static shmq_row_use considers(void *context, const shmq_delivery *row) {
    const seeker *s = context;
    if (!shmq_is_wanted(s->as->by, s->level, row)) {
        return SHMQ_ROW_PASSED;
    }
    uint32_t group = s->level->queue->book != NULL ? shmq_group_of_headers(row->headers, row->headers_len) : 0;
    if (SHMQ_LIKELY(group == 0)) {
        return SHMQ_ROW_WANTED;
    }
    uint64_t *passed = &s->search->passed[group - 1];
    if (!shmq_group_open(s->level, group, s->as->owner, row->position)) {
        *passed = *passed != 0 ? *passed : row->position + 1;
        return SHMQ_ROW_PASSED;
    }
    if (*passed != 0) {
        s->search->place = *passed - 1;
        return SHMQ_ROW_AGAIN;
    }
    return SHMQ_ROW_WANTED;
}

/* What a look at all slots has seen beside the best one. */
typedef struct others {
    bool above; /* something to be had lies at or above the limit */
    bool fetched; /* an entry came in by itself */
} others;

/* The one of the lowest place that is for this taker. SHMQ_INTERRUPTED: it has changed. */
static shmq_status best_of(shmq_ring *r, const shmq_delivery *as, uint64_t limit, shmq_found *f, others *seen) {
    uint64_t word_of_best = 0, position_of_best = 0;
    f->place = UINT64_MAX;
    *seen = (others){false, false};
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        if (state == SHMQ_HELD && shmq_hold_end(r, slot, word)) {
            return SHMQ_INTERRUPTED;
        }
        seen->fetched = seen->fetched || (shmq_state_is_entry(state) && shmq_is_fetched(slot));
        if (state != SHMQ_AVAILABLE && state != SHMQ_OFFERED) {
            continue;
        }
        uint64_t position = shmq_load_acquire(&slot->position),
                 place = shmq_front_place(r, slot); /* SYNC ring.publish */
        if (shmq_load_seq(&slot->word) != word) {
            return SHMQ_INTERRUPTED; /* the place may be of the next entry of this slot */
        }
        seen->above = seen->above || place >= limit;
        if (place < limit && place < f->place && shmq_slot_at(r, position) == slot &&
            shmq_scan_considers(r, slot, word, position, as)) {
            f->place = place;
            word_of_best = word;
            position_of_best = position;
        }
    }
    f->d.word = word_of_best;
    f->d.position = position_of_best;
    return SHMQ_OK;
}

/* Grows with whatever may become available in this front ring. */
static uint64_t version_of(const shmq_ring *front, uint64_t epoch) { return epoch + shmq_load_seq(&front->shm->tail); }

/* The version of the front ring in which this taker has found nothing at all; 0: none. */
static shmq_a64 *nothing_in(shmq_ring *front, const shmq_delivery *as) {
    return as->by != NULL ? &as->by->nothing_in[shmq_depth_at(front)] : &front->nothing;
}

shmq_status shmq_look_scattered(shmq_ring *front, const shmq_delivery *as, uint64_t limit, shmq_found *f) {
    shmq_a64 *nothing = nothing_in(front, as);
    f->d = *as;
    f->d.peek = true;
    f->d.in_turn = false; /* neither head nor cursor say anything of what lies in no order */
    f->d.cursor = (shmq_cursor){.turns = UINT64_MAX};
    f->d.depth = front->depth;
    f->claim = false;
    for (;;) {
        uint64_t known = shmq_load_seq(nothing); /* before the version, which only grows */
        f->d.epoch_seen = shmq_load_seq(&front->shm->epoch);
        f->status = SHMQ_EMPTY;
        f->place = UINT64_MAX;
        uint64_t version = version_of(front, f->d.epoch_seen);
        if (known == version) {
            return SHMQ_OK;
        }
        others seen;
        if (best_of(front, as, limit, f, &seen) != SHMQ_OK) {
            continue;
        }
        if (SHMQ_UNLIKELY(!seen.fetched) && !shmq_flow_is_on(as->flow_seen)) {
            shmq_front_order(front);
        }
        if (f->place == UINT64_MAX) {
            if (!seen.above) {
                shmq_store_seq(nothing, version);
            }
            return SHMQ_OK;
        }
        switch (shmq_scan_offer(front, f->d.word, f->d.position, f->d.epoch_seen, &f->d)) {
        case OFFER_OK:
            f->status = SHMQ_OK;
            return SHMQ_OK;
        case OFFER_LEFT:
            f->place = UINT64_MAX;
            f->d.left = true;
            f->d.version = 0;
            return SHMQ_OK;
        default:
            break;
        }
    }
}

/* Where to begin: rows that were looked at are not looked at again, unless a group was freed whose messages were refused there. */
static uint64_t first_to_search(shmq_ring *back, const shmq_search *last, uint64_t epoch) {
    uint64_t at = last->place, low = shmq_load_seq(&back->shm->low);
    if (SHMQ_UNLIKELY(back->queue->book != NULL) && epoch != last->epoch) {
        uint64_t released = shmq_lowest_released(back, last->epoch, epoch);
        at = released < at ? released : at;
    }
    return at > low ? at : low;
}

/* A match among the rows below `end` comes in. SHMQ_NOT_FOUND: there is none. SHMQ_TIMEOUT: not all were looked at. `epoch`: of the back
 * ring, before the look. */
static shmq_status search_rows(shmq_mover *t, const shmq_delivery *d, uint64_t end, uint64_t epoch) {
    shmq_search *last = &d->by->searches[t->back->depth];
    seeker s = {.level = t->back, .as = d, .search = last};
    uint64_t at = first_to_search(t->back, last, epoch);
    if (at >= end) {
        return SHMQ_NOT_FOUND;
    }
    if (SHMQ_UNLIKELY(t->q->book != NULL) && !forget_passed(last, at, shmq_load_relaxed(&t->back->shm->low))) {
        return SHMQ_EMPTY; /* as if there were no memory for the row */
    }
    t->fetched_as = shmq_load_seq(&d->by->choosy) == 0 ? SHMQ_PROP_NEXT : 0; /* else it may have left an earlier one */
    shmq_status status = shmq_fetch(t, &at, end, considers, &s);
    if (status == SHMQ_OK || status == SHMQ_NOT_FOUND) {
        last->place = at + (status == SHMQ_OK);
        last->epoch = epoch;
    }
    return status == SHMQ_NOT_FOUND && at < end ? SHMQ_TIMEOUT : status;
}

/* Below this place. What comes back meanwhile raises an epoch. */
static bool is_of_group_in_back(shmq_ring *back, uint32_t group, uint64_t place) {
    for (uint64_t i = 0; i < shmq_slots_laid(back); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(back, i);
        uint64_t word = shmq_load_seq((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
        bool there = shmq_word_state(word) == SHMQ_AVAILABLE || shmq_word_state(word) == SHMQ_OFFERED;
        if (there && shmq_group_of(back, slot, shmq_props(slot)) == group &&
            shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position) < place) { /* SYNC ring.publish */
            return true;
        }
    }
    return false;
}

/* There is no slot for the row that is next. What was fetched before, and has come back, may have them all, for its group was free
 * when that of the row was not: then it is taken first, for groups have no order among them. Else nobody could have anything. */
static bool may_overtake(const shmq_mover *t, const shmq_found *b, const shmq_found *f) {
    const shmq_slot_shm *slot = f->place != UINT64_MAX ? shmq_slot_at(t->front, f->d.position) : NULL;
    if (slot == NULL || !shmq_is_next_of_group(slot)) {
        return false;
    }
    uint32_t group = shmq_group_of(t->front, slot, shmq_props(slot));
    return b->place > f->place || !is_of_group_in_back(t->back, group, f->place);
}

static shmq_status search(shmq_mover *t, shmq_delivery *d, uint64_t *front_epoch) {
    shmq_ring *back = t->back;
    const uint64_t version = d->version, until = shmq_now_ns() + SHMQ_SEARCH_NS;
    for (;;) {
        shmq_found b, f;
        d->version = version;
        d->flow_seen = shmq_load_seq(&back->shm->flow);
        if (!shmq_flow_is_on(d->flow_seen)) {
            return SHMQ_INTERRUPTED;
        }
        shmq_status status = shmq_look_flowed(back, d, UINT64_MAX, &b);
        status = status == SHMQ_OK ? shmq_look_flowed(t->front, d, UINT64_MAX, &f) : status;
        if (status == SHMQ_INTERRUPTED) {
            continue;
        }
        SHMQ_TRY(status);
        if (SHMQ_UNLIKELY(b.d.left || f.d.left)) { /* to one of higher rank: what is behind it is not looked at */
            d->left = true;
            d->word = d->version = 0;
            return SHMQ_EMPTY;
        }
        uint64_t place = shmq_flow_place(d->flow_seen), first = b.place < f.place ? b.place : f.place;
        status = search_rows(t, d, first < place ? first : place, b.d.epoch_seen);
        if ((status == SHMQ_OK && !t->unmarked) || (status == SHMQ_INTERRUPTED && shmq_now_ns() < until)) {
            continue;
        }
        /* Groups come and go: others are to have the lock, too. */
        status = status == SHMQ_INTERRUPTED ? SHMQ_TIMEOUT : status;
        if (status == SHMQ_EMPTY && may_overtake(t, &b, &f)) {
            b.place = UINT64_MAX;
            status = SHMQ_NOT_FOUND;
        }
        if (status == SHMQ_OK) {
            return SHMQ_INTERRUPTED;
        }
        d->word = 0;
        d->version = 0;
        if (status != SHMQ_NOT_FOUND) {
            return status;
        }
        *front_epoch = f.d.epoch_seen;
        if (shmq_flow_rows(t->q) == 0 && ((status = shmq_pull(t)) == SHMQ_OK || status == SHMQ_CORRUPT)) {
            return status == SHMQ_OK ? SHMQ_INTERRUPTED : status; /* all of them have been fetched: the flow ends */
        }
        status = shmq_offer_found(back, &b, &f, d);
        if (status != SHMQ_INTERRUPTED) {
            return status;
        }
    }
}

/* One slice. What was found in that time, in d->version: what it need not be woken for. `chances`: of before all looks. */
static shmq_status search_a_while(shmq_ring *back, shmq_delivery *d, uint64_t version, uint64_t chances,
                                  uint64_t *front_epoch) {
    shmq_mover t;
    d->version = version;
    shmq_status status = shmq_turn_begin(&t, back);
    if (status == SHMQ_OK) {
        status = search(&t, d, front_epoch);
        shmq_turn_end(&t);
    }
    bool no_slot = status == SHMQ_EMPTY && !d->searched && d->word == 0;
    if ((no_slot || status == SHMQ_IN_USE) && !d->left) {
        d->version = shmq_version_starved(version, chances);
    } else if (status != SHMQ_EMPTY || !d->searched) {
        d->version = 0;
    }
    return status;
}

shmq_status shmq_search_flowed(shmq_ring *back, shmq_delivery *d, uint64_t chances, uint64_t *front_epoch) {
    const uint64_t version = d->version;
    uint64_t until = 0; /* what is not found by then is looked for once more, a moment later */
    shmq_status status;
    do {
        status = search_a_while(back, d, version, chances, front_epoch);
        uint64_t now = status == SHMQ_TIMEOUT ? shmq_now_ns() : 0;
        until = until != 0 ? until : now + back->queue->m->patience_ns;
        if (status == SHMQ_TIMEOUT && now >= until) {
            d->left = true;
            return SHMQ_EMPTY;
        }
    } while (status == SHMQ_TIMEOUT);
    return status;
}
