/* drop_oldest: a producer makes room for the newest message by dropping the oldest. */
#include "shmq/overflow.h"

#include "shmq/flow.h"
#include "shmq/ring_memory.h"
#include "shmq/wait.h"

static bool can_be_dropped(uint64_t word) {
    uint32_t state = shmq_word_state(word);
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED || state == SHMQ_ACQUIRED;
}

/* An entry: its slot, its word as it was read, and its position. */
typedef struct found {
    shmq_slot_shm *slot;
    uint64_t word, position;
} found;

/* The oldest carried entry; carried entries are older than all in their turn. Only the tail makes entries carried, when
 * it passes them. So where a producer found none below a tail, the next look begins at what the tail has passed
 * since. */
static bool oldest_carried(shmq_ring *r, found *f) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), from = shmq_load_relaxed(&r->uncarried);
    uint64_t words = (shmq_slot_count(r) + 63) / 64, first = from / 64;
    bool all = tail < from || tail / 64 - first >= words, any = false; /* positions may have begun anew */
    f->position = UINT64_MAX;
    for (uint64_t i = 0; i < (all ? words : tail / 64 - first + 1); i++) {
        uint64_t w = (first + i) % words;
        for (uint64_t bits = shmq_load_seq(&r->carried[w]); bits != 0; bits &= bits - 1) {
            shmq_slot_shm *slot = shmq_slot_at(r, w * 64 + (uint64_t)__builtin_ctzll(bits));
            uint64_t word = shmq_load_acquire(&slot->word);         /* SYNC ring.publish */
            uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
            any = any || (shmq_word_carried(word) && shmq_word_state(word) != SHMQ_FREE);
            if (shmq_word_carried(word) && can_be_dropped(word) && position < f->position) {
                *f = (found){slot, word, position};
            }
        }
    }
    if (!any) {
        shmq_store_relaxed(&r->uncarried, tail);
    }
    return f->position != UINT64_MAX;
}

/* The oldest entry that is not carried, from the floor on. The producer raises the floor to it, so that the next one
 * does not look at the same slots. */
static bool oldest_in_turn(shmq_ring *r, found *f) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), p = shmq_load_seq(&r->shm->floor);
    uint64_t settled = p = tail > count && p < tail - count ? tail - count : p;
    for (; p < tail; p++) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        bool in_turn = shmq_lap_ahead(word, shmq_turn(r, p)) == 0 && !shmq_word_carried(word);
        if (in_turn && can_be_dropped(word)) {
            *f = (found){slot, word, p};
            break;
        }
        settled += settled == p && !in_turn;
    }
    shmq_raise_seq(&r->shm->floor, settled);
    return p < tail;
}

static bool oldest_by_position(shmq_ring *r, found *f) { return oldest_carried(r, f) || oldest_in_turn(r, f); }

/* Is the slot under the tail claimed? Then only patience helps: to take others out would make no room. */
static bool claim_under_the_tail(const shmq_ring *r) {
    uint64_t t = shmq_load_seq(&r->shm->tail);
    return shmq_word_state(shmq_load_seq(&shmq_slot_at(r, t)->word)) == SHMQ_CLAIMED;
}

static bool drop_of_level(shmq_ring *r) {
    found f = {0};
    while (oldest_by_position(r, &f)) {
        shmq_delivery d = {0};
        if (shmq_seize(r, f.slot, f.word, f.position, &d) && shmq_ring_settle(r, &d) == SHMQ_OK) { /* T13, T14 */
            shmq_add_relaxed(&r->queue->counters->dropped, 1);
            return true;
        }
    }
    return false;
}

/* The entry of the front ring with the lowest place. Entries that came back in order lie in this order. An entry that
 * was fetched by itself lies behind them, above `low`. If there are such, or a damaged record, each slot is looked
 * at. */
static uint64_t oldest_in_front(shmq_ring *front, found *f) {
    uint64_t lowest = UINT64_MAX;
    if (SHMQ_LIKELY(shmq_load_seq(&front->shm->low) == 0)) {
        if (!oldest_by_position(front, f)) {
            return UINT64_MAX;
        }
        if (SHMQ_LIKELY((lowest = shmq_front_place(front, f->slot)) != UINT64_MAX)) {
            return lowest;
        }
    }
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (can_be_dropped(word) && shmq_front_place(front, slot) < lowest) {
            lowest = shmq_front_place(front, slot);
            *f = (found){slot, word, shmq_load_acquire(&slot->position)}; /* SYNC ring.publish */
        }
    }
    return lowest;
}

/* The oldest entry of a level that has flowed: in the front ring, in the back ring below the rows, or the first row,
 * which comes back. Where that fails it is a newer one, but for a row that only another mover keeps from coming
 * (*in_use, if the caller waits for that one). */
static shmq_ring *oldest_of_flowed(shmq_ring *back, found *f, bool *in_use) {
    for (;;) {
        found in_front = {0};
        uint64_t flow = shmq_flow_at(back), low = shmq_load_seq(&back->shm->low);
        bool in_back = oldest_by_position(back, f), on = shmq_flow_is_on(flow);
        uint64_t lowest = oldest_in_front(shmq_front_of(back), &in_front);
        lowest = on && lowest >= low ? UINT64_MAX : lowest; /* it came back before entries that lie below it */
        if (lowest != UINT64_MAX && (!in_back || lowest < f->position)) {
            *f = in_front;
            return shmq_front_of(back);
        }
        if (in_back && (!on || f->position < low)) {
            return back;
        }
        shmq_status brought = on && shmq_may_flow(back->queue) ? shmq_flow_bring(back) : SHMQ_EMPTY;
        if (brought == SHMQ_IN_USE && in_use != NULL) {
            *in_use = true;
            return NULL;
        }
        if (brought != SHMQ_OK) {
            return in_back ? back : NULL;
        }
    }
}

static bool drop_of_flowed(shmq_ring *back, bool *in_use) {
    found f = {0};
    shmq_ring *r;
    while ((r = oldest_of_flowed(back, &f, in_use)) != NULL) {
        shmq_delivery d = {0};
        if (shmq_seize(r, f.slot, f.word, f.position, &d) && shmq_ring_settle(r, &d) == SHMQ_OK) { /* T13, T14 */
            shmq_add_relaxed(&r->queue->counters->dropped, 1);
            return true;
        }
    }
    return false;
}

bool shmq_drop_oldest(shmq_queue *q, uint32_t depth, shmq_status why, bool *in_use) {
    if (in_use != NULL) {
        *in_use = false;
    }
    if (why == SHMQ_FULL_RING) {
        shmq_ring *level = shmq_level(q, depth);
        return !claim_under_the_tail(level) && drop_of_level(level);
    }
    for (uint32_t i = q->levels; i-- > 0;) { /* the least important first */
        shmq_ring *level = shmq_level(q, i);
        if (SHMQ_UNLIKELY(shmq_flow_at(level) != 0) ? drop_of_flowed(level, in_use) : drop_of_level(level)) {
            return true;
        }
        if (SHMQ_UNLIKELY(in_use != NULL && *in_use)) {
            return false; /* what is more important comes later */
        }
    }
    return false;
}

uint64_t shmq_overflow_until(const shmq_queue *q, uint64_t until_ns) {
    if (shmq_overflow_of(q) != SHMQ_OVERFLOW_DROP_OLDEST) {
        return until_ns;
    }
    uint64_t soon = shmq_now_ns() + 2 * q->m->patience_ns;
    return until_ns > soon ? until_ns : soon;
}
