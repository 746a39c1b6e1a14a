#include "ring/ring_walk.h"
#include "queue/level.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"

/* Only the tail makes entries old, when it passes them. So where a walk found none below a tail, the next one begins at
 * what the tail has passed since. */
bool shmq_first_old(shmq_ring *r, uint64_t from, uint64_t below, shmq_wanted *wanted, shmq_met *met) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), known = shmq_load_relaxed(&r->uncarried);
    uint64_t words = (shmq_slot_count(r) + 63) / 64, first = known / 64;
    bool all = tail < known || tail / 64 - first >= words; /* positions may have begun anew */
    bool any = false, found = false;
    for (uint64_t i = 0; i < (all ? words : tail / 64 - first + 1); i++) {
        uint64_t index = (first + i) % words * 64, end = index + 64;
        for (shmq_met e; shmq_walk_old(r, &index, end, &e);) {
            any = any || shmq_word_state(e.word) != SHMQ_FREE;
            if (e.position >= from && e.position < below && (!found || e.position < met->position) &&
                wanted(r, e.slot, e.word)) {
                *met = e;
                found = true;
            }
        }
    }
    if (!any) {
        shmq_store_relaxed(&r->uncarried, tail);
    }
    return found;
}

/* The first one at or above the floor, and not older than a lap when the walk began. */
static bool first_in_turn(shmq_ring *r, shmq_wanted *wanted, shmq_met *met) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), p = shmq_load_seq(&r->shm->floor);
    uint64_t laid = shmq_slots_laid(r), settled = p = tail > count && p < tail - count ? tail - count : p;
    for (; p < tail; p++) {
        if ((p & r->mask) >= laid) {
            p = tail; /* a damaged tail leads to a slot without memory */
            break;
        }
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
        if (shmq_is_here(slot, word, ahead, p) && wanted(r, slot, word)) {
            *met = (shmq_met){.ring = r, .slot = slot, .word = word, .position = p, .place = p};
            break;
        }
        settled += settled == p && (ahead != 0 || shmq_word_carried(word));
    }
    shmq_raise_seq(&r->shm->floor, settled);
    return p < tail;
}

bool shmq_first_by_position(shmq_ring *r, shmq_wanted *wanted, shmq_met *met) {
    return shmq_first_old(r, 0, UINT64_MAX, wanted, met) || first_in_turn(r, wanted, met);
}

/* Entries that came back in order lie in this order; one that was fetched by itself lies behind them, above `low`. If there
 * are such, or a damaged record, the walk looks at each slot. */
bool shmq_first_in_front(shmq_ring *front, shmq_wanted *wanted, shmq_met *met) {
    if (SHMQ_LIKELY(shmq_load_seq(&front->shm->fetched_end) == 0)) {
        if (!shmq_first_by_position(front, wanted, met)) {
            return false;
        }
        met->place = shmq_front_place(front, met->slot);
        if (SHMQ_LIKELY(met->place != UINT64_MAX)) {
            return true;
        }
    }
    bool found = false;
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (!wanted(front, slot, word)) {
            continue;
        }
        uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
        uint64_t place = shmq_front_place(front, slot); /* all of this is of `word`: the CAS from it says so */
        if (shmq_slot_at(front, position) == slot && (!found || place < met->place)) {
            *met = (shmq_met){.ring = front, .slot = slot, .word = word, .position = position, .place = place};
            found = true;
        }
    }
    return found;
}

bool shmq_first_of(shmq_ring *level, shmq_wanted *wanted, shmq_met *met) {
    bool found = shmq_first_by_position(level, wanted, met);
    shmq_met in_front;
    if (level->queue->rings > level->queue->levels && shmq_first_in_front(shmq_front_of(level), wanted, &in_front) &&
        (!found || in_front.place < met->place)) {
        *met = in_front;
        found = true;
    }
    return found;
}
