/* The search of a taker that wants only some entries of a queue that has flowed. The scan looks at what lies below
 * `low`; then the taker, which has the mover's lock, looks at all the rest in the order of places. A row that it wants
 * comes in by itself, and is then the entry that it offers.
 *
 * It holds the lock from the look at the rows to the offer: meanwhile nothing is MOVING, and no row comes or goes. A
 * release in between raises an epoch, as ever. A row that the taker did not want it does not want later either, unless
 * it is of a group that has become free since. So it looks at each row once, or from the lowest released place on. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/wait_time.h"
#include "flow/flow.h"
#include "groups/group.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "ring/ring_scattered.h"
#include "ring/version.h"
#include "settle/hold.h"
#include "take/scan.h"

typedef struct seeker {
    shmq_ring *level;
    const shmq_delivery *asked;
    shmq_search *search;
} seeker;

/* From this place on the taker looks at rows once more, so it forgets which groups it refused there. False: there is no
 * memory to remember groups. */
static bool forget_passed(shmq_search *search, uint32_t places, uint64_t place, uint64_t low) {
    if (search->passed == NULL) {
        search->passed = calloc(places, sizeof *search->passed + sizeof *search->groups);
        search->groups = (uint32_t *)(void *)(search->passed + (search->passed != NULL ? places : 0));
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < search->group_count; i++) {
        uint64_t *passed = &search->passed[search->groups[i] - 1];
        uint64_t from = *passed > low ? *passed : low + 1; /* rows below have come in */
        *passed = from <= place ? from : 0;
        if (*passed != 0) {
            search->groups[kept++] = search->groups[i];
        }
    }
    search->group_count = kept;
    return search->passed != NULL;
}

/* As shmq_scan_considers. If a group has become free since the taker passed an earlier row of it, that earlier row is
 * next. This row would take a slot before its turn, and in the end the rows before it would have none to come in. */
static shmq_row_use considers(void *context, const shmq_delivery *row) {
    const seeker *s = context;
    if (!shmq_is_wanted(s->asked->as.by, s->level, row)) {
        return SHMQ_ROW_PASSED;
    }
    uint32_t group =
        s->level->queue->book != NULL ? shmq_group_of_headers(s->level->queue, row->headers, row->headers_len) : 0;
    if (SHMQ_LIKELY(group == 0)) {
        return SHMQ_ROW_WANTED;
    }
    uint64_t *passed = &s->search->passed[group - 1];
    if (!shmq_group_open(s->level, group, s->asked->owner, row->position)) {
        if (*passed == 0) {
            *passed = row->position + 1;
            s->search->groups[s->search->group_count++] = group;
        }
        return SHMQ_ROW_PASSED;
    }
    if (*passed != 0) {
        s->search->place = *passed - 1;
        return SHMQ_ROW_AGAIN;
    }
    return SHMQ_ROW_WANTED;
}

/* The entries beside the best one that a look at all slots has found. */
typedef struct others {
    bool above; /* an available entry lies at or above the limit */
    bool fetched; /* an entry came in by itself */
} others;

/* Finds the entry of the lowest place that is for this taker, at or above the limit perhaps. False: none is known, which
 * only a look at all slots shows. */
static bool best_of_known(shmq_ring *r, const shmq_delivery *asked, uint64_t limit, shmq_found *f, others *seen) {
    shmq_scattered *s = shmq_scattered_begin(r, f->d.seen.epoch);
    shmq_scattered_entry e;
    uint64_t word;
    bool found = false;
    *seen = (others){.fetched = true};
    f->place = UINT64_MAX;
    for (uint32_t at = 0; s != NULL && !found && shmq_scattered_next(r, s, &at, &e, &word); at++) {
        seen->above = found = e.place >= limit;
        if (!found && shmq_scan_considers(r, shmq_slot_at(r, e.position), word, e.position, asked)) {
            f->place = e.place;
            f->d.word = word;
            f->d.position = e.position;
            found = true;
        }
    }
    if (s != NULL) {
        shmq_scattered_end(s);
    }
    return found;
}

/* Finds the best entry by a look at all slots. SHMQ_INTERRUPTED: the entry has changed meanwhile. */
static shmq_status best_of(shmq_ring *r, const shmq_delivery *asked, uint64_t limit, shmq_found *f, others *seen) {
    uint64_t word_of_best = 0, position_of_best = 0, now = shmq_now_ns();
    f->place = UINT64_MAX;
    *seen = (others){false, false};
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        if (state == SHMQ_HELD && shmq_hold_end(r, slot, word, now)) {
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
            shmq_scan_considers(r, slot, word, position, asked)) {
            f->place = place;
            word_of_best = word;
            position_of_best = position;
        }
    }
    f->d.word = word_of_best;
    f->d.position = position_of_best;
    return SHMQ_OK;
}

/* Grows with everything that becomes available in this front ring. */
static uint64_t version_of(const shmq_ring *front, uint64_t epoch) { return epoch + shmq_load_seq(&front->shm->tail); }

/* The version of the front ring in which this taker has found no entry at all; 0: there is no such version. */
static shmq_a64 *nothing_in(shmq_ring *front, const shmq_delivery *asked) {
    return asked->as.by != NULL ? &asked->as.by->nothing_in[shmq_depth_at(front)] : &front->nothing;
}

shmq_status shmq_look_scattered(shmq_ring *front, const shmq_delivery *asked, uint64_t limit, shmq_found *f) {
    shmq_a64 *nothing = nothing_in(front, asked);
    f->d = *asked;
    f->d.as.peek = true;
    f->d.seen.in_turn = false; /* neither head nor cursor is of use without an order */
    f->d.seen.cursor = (shmq_cursor){.turns = UINT64_MAX};
    f->d.depth = front->depth;
    f->claim = false;
    for (;;) {
        uint64_t known = shmq_load_seq(nothing); /* before the version, which only grows */
        f->d.seen.epoch = shmq_load_seq(&front->shm->epoch);
        f->status = SHMQ_EMPTY;
        f->place = UINT64_MAX;
        uint64_t version = version_of(front, f->d.seen.epoch);
        if (known == version) {
            return SHMQ_OK;
        }
        others seen;
        if (!best_of_known(front, asked, limit, f, &seen) && best_of(front, asked, limit, f, &seen) != SHMQ_OK) {
            continue;
        }
        if (SHMQ_UNLIKELY(!seen.fetched) && !shmq_flow_is_on(asked->seen.flow)) {
            shmq_front_order(front);
        }
        if (f->place == UINT64_MAX) {
            if (!seen.above) {
                shmq_store_seq(nothing, version);
            }
            return SHMQ_OK;
        }
        switch (shmq_scan_offer(front, f->d.word, f->d.position, f->d.seen.epoch, &f->d)) {
        case OFFER_OK:
            f->status = SHMQ_OK;
            return SHMQ_OK;
        case OFFER_LEFT:
            f->place = UINT64_MAX;
            (void)shmq_leave(&f->d);
            return SHMQ_OK;
        default:
            break;
        }
    }
}

/* Returns where the search begins: after the rows that the taker has looked at, or earlier where a group was freed of
 * which it refused messages. */
static uint64_t first_to_search(shmq_ring *back, const shmq_search *last, uint64_t epoch) {
    uint64_t at = last->place, low = shmq_load_seq(&back->shm->low);
    if (SHMQ_UNLIKELY(back->queue->book != NULL) && epoch != last->epoch) {
        uint64_t released = shmq_lowest_released(back, last->epoch, epoch);
        at = released < at ? released : at;
    }
    return at > low ? at : low;
}

/* Brings in the first row below `end` that the taker wants. SHMQ_NOT_FOUND: there is none. SHMQ_TIMEOUT: not all rows
 * were looked at. `epoch`: of the back ring, before the look. */
static shmq_status search_rows(shmq_mover *t, const shmq_delivery *d, uint64_t end, uint64_t epoch) {
    shmq_search *last = &d->as.by->searches[t->back->depth];
    seeker s = {.level = t->back, .asked = d, .search = last};
    uint64_t at = first_to_search(t->back, last, epoch);
    if (at >= end) {
        return SHMQ_NOT_FOUND;
    }
    if (SHMQ_UNLIKELY(t->q->book != NULL) &&
        !forget_passed(last, shmq_group_places(t->q), at, shmq_load_relaxed(&t->back->shm->low))) {
        return SHMQ_EMPTY; /* no memory to remember passed groups: as if the row had no slot, so the taker comes again */
    }
    t->fetched_as =
        shmq_load_seq(&d->as.by->choosy) == 0 ? SHMQ_PROP_NEXT : 0; /* else it may have left an earlier one */
    shmq_status status = shmq_fetch(t, &at, end, considers, &s);
    if (status == SHMQ_OK || status == SHMQ_NOT_FOUND) {
        last->place = at + (status == SHMQ_OK);
        last->epoch = epoch;
    }
    return status == SHMQ_NOT_FOUND && at < end ? SHMQ_TIMEOUT : status;
}

/* Has the back ring an entry of this group below this place? One that comes back meanwhile raises an epoch. */
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

/* Says whether the taker may take an entry before the next row, for which there is no slot. Rows that were fetched
 * before, and have come back, may have all slots, since their groups were free when that of the next row was not.
 * Groups have no order among them, so such an entry, `f`, goes first; or `b`, if it is an earlier one of the same
 * group, of which then no other is on disk before `f`. Otherwise no taker could have anything. The one that stays is
 * not found. */
static bool overtakes(const shmq_mover *t, shmq_found *b, shmq_found *f) {
    const shmq_slot_shm *slot = f->place != UINT64_MAX ? shmq_slot_at(t->front, f->d.position) : NULL;
    if (slot == NULL || !shmq_is_next_of_group(slot)) {
        return false;
    }
    uint32_t group = shmq_group_of(t->front, slot, shmq_props(slot));
    if (b->place > f->place || !is_of_group_in_back(t->back, group, f->place)) {
        b->place = UINT64_MAX;
        return true;
    }
    slot = shmq_slot_at(t->back, b->d.position);
    bool is_earlier = !b->claim && shmq_group_of(t->back, slot, shmq_props(slot)) == group;
    f->place = is_earlier ? UINT64_MAX : f->place;
    return is_earlier;
}

static shmq_status search(shmq_mover *t, shmq_delivery *d, uint64_t *front_epoch) {
    shmq_ring *back = t->back;
    const uint64_t version = d->seen.version, until = shmq_now_ns() + SHMQ_SEARCH_NS;
    for (;;) {
        shmq_found b, f;
        d->seen.version = version;
        d->seen.why = SHMQ_AT_END;
        d->seen.flow = shmq_load_seq(&back->shm->flow);
        if (!shmq_flow_is_on(d->seen.flow)) {
            return SHMQ_INTERRUPTED;
        }
        shmq_status status = shmq_look_flowed(back, d, UINT64_MAX, &b);
        status = status == SHMQ_OK ? shmq_look_flowed(t->front, d, UINT64_MAX, &f) : status;
        if (status == SHMQ_INTERRUPTED) {
            continue;
        }
        SHMQ_TRY(status);
        if (SHMQ_UNLIKELY(shmq_is_left(&b) || shmq_is_left(&f))) {
            return shmq_leave(d);
        }
        uint64_t place = shmq_flow_place(d->seen.flow), first = b.place < f.place ? b.place : f.place;
        status = search_rows(t, d, first < place ? first : place, b.d.seen.epoch);
        if ((status == SHMQ_OK && !t->unmarked) || (status == SHMQ_INTERRUPTED && shmq_now_ns() < until)) {
            continue;
        }
        status = status == SHMQ_INTERRUPTED ? SHMQ_TIMEOUT : status; /* groups come and go: others need the lock, too */
        if (status == SHMQ_EMPTY && overtakes(t, &b, &f)) {
            status = SHMQ_NOT_FOUND;
        }
        if (status == SHMQ_OK) {
            return SHMQ_INTERRUPTED;
        }
        d->word = 0;
        d->seen.version = 0;
        d->seen.why = SHMQ_NO_FREE_SLOT;
        if (status != SHMQ_NOT_FOUND) {
            return status;
        }
        *front_epoch = f.d.seen.epoch;
        if (shmq_flow_rows(t->q) == 0 && ((status = shmq_pull(t)) == SHMQ_OK || status == SHMQ_CORRUPT)) {
            return status == SHMQ_OK ? SHMQ_INTERRUPTED : status; /* all rows have been fetched: the flow ends */
        }
        status = shmq_offer_found(back, &b, &f, d);
        if (status != SHMQ_INTERRUPTED) {
            return status;
        }
    }
}

/* Searches for one slice. d->seen.version: for what the taker need not be woken, by what it found. `chances`: as read before
 * all looks. */
static shmq_status search_a_while(shmq_ring *back, shmq_delivery *d, uint64_t version, uint64_t chances,
                                  uint64_t *front_epoch) {
    shmq_mover t;
    d->seen.version = version;
    shmq_status status = shmq_turn_begin(&t, back);
    if (status == SHMQ_OK) {
        status = search(&t, d, front_epoch);
        shmq_turn_end(&t);
    }
    bool no_slot = status == SHMQ_EMPTY && d->seen.why == SHMQ_NO_FREE_SLOT;
    if (no_slot || status == SHMQ_IN_USE) {
        d->seen.version = shmq_version_starved(version, chances) | (status == SHMQ_IN_USE ? SHMQ_LOCKED_OUT : 0);
    } else if (status != SHMQ_EMPTY || d->seen.why != SHMQ_AT_END) {
        d->seen.version = 0;
    }
    return status;
}

shmq_status shmq_search_flowed(shmq_ring *back, shmq_delivery *d, uint64_t chances, uint64_t *front_epoch) {
    const uint64_t version = d->seen.version;
    uint64_t until = 0; /* after this time the taker gives up for a moment, then searches again */
    shmq_status status;
    do {
        status = search_a_while(back, d, version, chances, front_epoch);
        uint64_t now = status == SHMQ_TIMEOUT ? shmq_now_ns() : 0;
        until = until != 0 ? until : now + back->queue->m->patience_ns;
        if (status == SHMQ_TIMEOUT && now >= until) {
            return shmq_leave(d);
        }
    } while (status == SHMQ_TIMEOUT);
    return status;
}
