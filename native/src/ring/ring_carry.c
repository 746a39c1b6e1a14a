/* Carrying: an old entry under the tail stays in its slot, and the producer moves the tail past it. */
#include "queue/level.h"
#include "ring/ring.h"

/* May the tail pass the slot at position p, which has this word, on its way to a FREE slot? */
static bool can_step_over(uint64_t word, int32_t ahead) {
    uint32_t state = shmq_word_state(word);
    if (ahead >= 0) {
        return true; /* used at its lap or later (the caller asks for FREE itself) */
    }
    return ahead == -1 &&
           (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED || state == SHMQ_QUARANTINED || state == SHMQ_BROKEN);
}

/* How far the producer looks from t on: half of the ring. So entries that could go to disk go there, and are not turned
 * lap after lap. While the level flows it looks at slots of places that have gone to disk: no taker empties the others.
 * Where nothing can go (`far`) it looks at the whole ring, and in a queue with maxsize, too: the producer must find
 * each slot that the count grants. */
static uint64_t reach_of(shmq_ring *r, uint64_t t, bool far) {
    uint64_t flow = shmq_flow_at(r), slots = shmq_slot_count(r), reach = slots / 2;
    if (far || shmq_load_relaxed(&r->queue->page->maxsize) != 0) {
        return r->mask;
    }
    if (!shmq_is_front(r) && shmq_flow_is_on(flow) && shmq_flow_place(flow) + slots < t + reach) {
        reach = shmq_flow_place(flow) + slots > t ? shmq_flow_place(flow) + slots - t : 0;
    }
    return reach;
}

/* How many slots from t on the producer would have to pass to reach a FREE one; 0: none is in reach. */
static uint64_t room(shmq_ring *r, uint64_t t, bool far) {
    uint64_t reach = reach_of(r, t, far);
    /* SYNC ring.free; seq: this is a blocked producer's last look, as in claim(). */
    uint64_t first = shmq_load_seq(&shmq_slot_at(r, t)->word);
    int32_t behind = shmq_lap_ahead(first, shmq_lap_of(r, t));
    if (behind == -1 && !can_step_over(first, behind)) {
        return 0; /* a claim of the lap before: its producer may be stopped, and the caller decides how long to wait */
    }
    for (uint64_t k = 1; k <= reach; k++) {
        uint64_t word = shmq_load_seq(&shmq_slot_at(r, t + k)->word); /* SYNC ring.free */
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, t + k));
        if (ahead == 0 && shmq_word_state(word) == SHMQ_FREE) {
            return k;
        }
        if (!can_step_over(word, ahead)) {
            return 0;
        }
    }
    return 0;
}

bool shmq_carry(shmq_ring *r, uint64_t t, bool far) {
    uint64_t reach = room(r, t, far);
    for (uint64_t k = 0; k < reach; k++) {
        uint64_t p = t + k;
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.free */
        uint32_t state = shmq_word_state(word);
        uint32_t lap = shmq_lap_of(r, p);
        if (shmq_lap_ahead(word, lap) == -1) {
            uint64_t bumped = word + (UINT64_C(1) << 32);
            if (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) {
                /* The bit is set first: the bitmap may have a bit too many, never one too few. */
                shmq_or_seq(&r->carried[(p & r->mask) >> 6], shmq_carried_bit(r, p));
                bumped |= SHMQ_FLAG_CARRIED; /* T17 */
            } else if (state != SHMQ_QUARANTINED && state != SHMQ_BROKEN) {
                break;
            }
            if (!shmq_cas_seq(&slot->word, word, bumped)) { /* T5, T17 */
                break;
            }
        } else if (shmq_lap_ahead(word, lap) == 0 && state == SHMQ_FREE) {
            break;
        }
        shmq_cas_seq(&r->shm->tail, p, p + 1); /* SYNC ring.tail: p is used at its lap before the tail passes it */
        shmq_tail_passed(r, p);
    }
    return reach != 0;
}
