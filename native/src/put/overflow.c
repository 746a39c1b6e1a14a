/* drop_oldest: a producer makes room for the newest message by dropping the oldest. */
#include "put/overflow.h"
#include "base/clock.h"
#include "flow/waiting.h"
#include "settle/settle.h"

static bool can_be_dropped(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    (void)r;
    (void)slot;
    uint32_t state = shmq_word_state(word);
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED || state == SHMQ_ACQUIRED;
}

/* Says whether the slot under the tail is claimed: then only waiting helps, for other slots make no room. */
static bool claim_under_the_tail(const shmq_ring *r) {
    uint64_t t = shmq_load_seq(&r->shm->tail);
    return shmq_word_state(shmq_load_seq(&shmq_slot_at(r, t)->word)) == SHMQ_CLAIMED;
}

static bool drop(const shmq_met *e) {
    shmq_delivery d = {0};
    return shmq_seize(e->ring, e->slot, e->word, e->position, &d) && /* T13, T14 */
           shmq_entry_ends(e->ring, &d, SHMQ_END_DROPPED) == SHMQ_OK;
}

static bool drop_of_level(shmq_ring *r) {
    shmq_met oldest;
    while (shmq_first_by_position(r, can_be_dropped, &oldest)) {
        if (drop(&oldest)) {
            return true;
        }
    }
    return false;
}

/* Finds the place of the oldest delayed message on disk. */
static shmq_status oldest_waiting(shmq_ring *back, uint64_t *place) {
    shmq_delivery d;
    return shmq_may_flow(back->queue) ? shmq_waiting_peek(back, NULL, place, &d) : SHMQ_EMPTY;
}

/* The oldest entry of a level that has flowed: in the front ring, in the back ring below the rows, or the first row,
 * which comes back. Where that fails it is a newer one, but for a row that only another mover keeps from coming
 * (*in_use, if the caller waits for that one). */
static bool oldest_of_flowed(shmq_ring *back, shmq_met *oldest, bool *in_use) {
    for (;;) {
        shmq_met in_front;
        uint64_t place = 0;
        uint64_t flow = shmq_flow_at(back), low = shmq_load_seq(&back->shm->low);
        bool in_back = shmq_first_by_position(back, can_be_dropped, oldest), on = shmq_flow_is_on(flow);
        uint64_t lowest =
            shmq_first_in_front(shmq_front_of(back), can_be_dropped, &in_front) ? in_front.place : UINT64_MAX;
        lowest = on && lowest >= low ? UINT64_MAX : lowest; /* it came back before entries that lie below it */
        shmq_status waits = oldest_waiting(back, &place);
        bool before = place < lowest && !(in_back && oldest->place < place) && !(on && place >= low);
        if (SHMQ_UNLIKELY(waits == SHMQ_OK) && before) {
            waits = shmq_waiting_fetch_at(back, place);
            if (waits == SHMQ_OK || waits == SHMQ_NOT_FOUND) {
                continue; /* it is in the front ring, or gone */
            }
        }
        if (SHMQ_UNLIKELY(waits == SHMQ_IN_USE) && in_use != NULL) {
            *in_use = true;
            return false;
        }
        if (lowest != UINT64_MAX && (!in_back || lowest < oldest->place)) {
            *oldest = in_front;
            return true;
        }
        if (in_back && (!on || oldest->place < low)) {
            return true;
        }
        shmq_status brought = on && shmq_may_flow(back->queue) ? shmq_inhaler_bring(back) : SHMQ_EMPTY;
        if (brought == SHMQ_IN_USE && in_use != NULL) {
            *in_use = true;
            return false;
        }
        if (brought != SHMQ_OK) {
            return in_back;
        }
    }
}

static bool drop_of_flowed(shmq_ring *back, bool *in_use) {
    shmq_met oldest;
    while (oldest_of_flowed(back, &oldest, in_use)) {
        if (drop(&oldest)) {
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
        uint64_t flow = shmq_flow_at(level);
        if (claim_under_the_tail(level)) {
            return false;
        }
        /* Entries that were handed over are older; where they make way, entries of this ring are handed over. */
        bool rows = shmq_flow_is_on(flow) && shmq_load_seq(&level->shm->low) < shmq_flow_place(flow);
        return flow != 0 && !rows && shmq_may_flow(q) ? drop_of_flowed(level, NULL) : drop_of_level(level);
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
