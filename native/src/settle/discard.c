/* Discards entries that a reader by positions has done with: no ready entry below a position stays. */
#include "flow/flow.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "settle/settle.h"

#define PIECE 4096u /* entries: less than a millisecond */

/* Discards one entry. An entry that a consumer holds, or that a dead mover has left, is not ready, and stays. */
static shmq_status discard(shmq_ring *r, uint64_t position, uint64_t *discarded) {
    shmq_delivery d;
    shmq_status status = shmq_steal(r, position, true, &d);
    if (status == SHMQ_OK && shmq_entry_ends(r, &d, SHMQ_END_PURGED) == SHMQ_OK) {
        ++*discarded;
    }
    return status == SHMQ_EMPTY ? SHMQ_OK : status;
}

static bool is_ready(uint64_t word) {
    uint32_t state = shmq_word_state(word);
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD;
}

/* Discards entries below tail - N, all of which are carried. */
static shmq_status discard_carried(shmq_ring *r, uint64_t end, uint64_t *discarded) {
    uint64_t index = 0;
    for (shmq_met e; shmq_walk_old(r, &index, shmq_slot_count(r), &e);) {
        if (is_ready(e.word) && e.position < end && shmq_slot_at(r, e.position) == e.slot) {
            SHMQ_TRY(discard(r, e.position, discarded));
        }
    }
    return SHMQ_OK;
}

static shmq_status discard_back(shmq_ring *r, uint64_t position, uint64_t *discarded) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), until = *discarded + PIECE;
    uint64_t end = position < tail ? position : tail, p = shmq_load_seq(&r->shm->floor);
    if (tail > count) {
        SHMQ_TRY(discard_carried(r, position, discarded));
        p = p < tail - count ? tail - count : p;
    }
    uint64_t settled = p; /* the floor is raised to it, so that the next call does not look at the same slots */
    for (; p < end && *discarded < until; p++) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (is_ready(word)) {
            SHMQ_TRY(discard(r, p, discarded)); /* also where a producer's tail has just passed over it */
            word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        }
        settled += settled == p && (shmq_lap_ahead(word, shmq_lap_of(r, p)) != 0 || shmq_word_carried(word));
    }
    shmq_raise_seq(&r->shm->floor, settled);
    return p < end ? SHMQ_INTERRUPTED : SHMQ_OK;
}

/* Discards in both rings; the caller has the mover's lock. */
static shmq_status discard_rings(shmq_ring *back, uint64_t place, uint64_t *discarded) {
    shmq_ring *front = shmq_front_of(back);
    shmq_status status;
    while ((status = discard_back(back, place, discarded)) == SHMQ_INTERRUPTED) {
    }
    for (uint64_t i = 0; status == SHMQ_OK && i < shmq_slots_laid(front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (is_ready(word) && shmq_front_place(front, slot) < place) {
            status = discard(front, shmq_load_acquire(&slot->position), discarded); /* SYNC ring.publish */
        }
    }
    return status;
}

shmq_status shmq_discard_below(shmq_ring *r, uint64_t place, uint64_t *discarded) {
    if (SHMQ_LIKELY(shmq_flow_at(r) == 0)) {
        shmq_status status = discard_back(r, place, discarded);
        if (status != SHMQ_OK || SHMQ_LIKELY(shmq_flow_at(r) == 0)) {
            return status;
        }
    }
    shmq_status status = shmq_flow_discard(r, place, discard_rings, discarded);
    return status == SHMQ_IN_USE ? SHMQ_INTERRUPTED : status;
}
