/* The first entry of a level, in the order of places, that a stealer may take as it stands: of the back ring, or of the
 * front ring. Rows on disk are not looked at. */
#include "shmq/flow.h"
#include "shmq/ring_memory.h"

/* Among the carried entries, which are in no order: one pass over all of them. */
static bool first_of_carried(shmq_ring *r, uint64_t limit, shmq_may_steal *may, shmq_first *f) {
    bool any = false;
    for (uint64_t w = 0; w < (shmq_slot_count(r) + 63) / 64; w++) {
        for (uint64_t bits = shmq_load_seq(&r->carried[w]); bits != 0; bits &= bits - 1) {
            shmq_slot_shm *slot = shmq_slot_at(r, w * 64 + (uint64_t)__builtin_ctzll(bits));
            uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
            uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
            if (shmq_slot_at(r, p) == slot && shmq_word_carried(word) && p < limit && (!any || p < f->place) &&
                may(r, slot, word)) {
                *f = (shmq_first){.ring = r, .slot = slot, .word = word, .position = p, .place = p};
                any = true;
            }
        }
    }
    return any;
}

/* Once the ring has turned, slots are not in the order of their entries: the carried entries come first, then the last
 * turn. */
static bool first_of_back(shmq_ring *r, shmq_may_steal *may, shmq_first *f) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), laid = shmq_slots_laid(r);
    uint64_t last_turn = tail > count ? tail - count : 0;
    if (first_of_carried(r, last_turn, may, f)) {
        return true;
    }
    for (uint64_t p = last_turn; p <= tail; p++) {
        if ((p & r->mask) >= laid) {
            continue; /* a damaged tail leads to a slot without memory */
        }
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (shmq_is_here(slot, word, shmq_lap_ahead(word, shmq_turn(r, p)), p) && may(r, slot, word)) {
            *f = (shmq_first){.ring = r, .slot = slot, .word = word, .position = p, .place = p};
            return true;
        }
    }
    return false;
}

/* Positions of a front ring may be in no order. An entry whose place is damaged comes last; *any: there is one before
 * these. */
static void first_of_front(shmq_ring *front, shmq_may_steal *may, bool *any, shmq_first *f) {
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        if (!may(front, slot, word)) {
            continue;
        }
        uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
        uint64_t place = shmq_front_place(front, slot); /* all of this is of `word`: the CAS from it says so */
        if (shmq_slot_at(front, position) == slot && (!*any || place < f->place)) {
            *f = (shmq_first){.ring = front, .slot = slot, .word = word, .position = position, .place = place};
            *any = true;
        }
    }
}

bool shmq_first_of(shmq_ring *level, shmq_may_steal *may, shmq_first *f) {
    bool any = first_of_back(level, may, f);
    if (level->queue->rings > level->queue->levels) {
        first_of_front(shmq_front_of(level), may, &any, f);
    }
    return any;
}

shmq_status shmq_steal_first(shmq_ring *level, shmq_may_steal *may, shmq_delivery *d) {
    shmq_first f;
    while (shmq_first_of(level, may, &f)) {
        if (shmq_seize(f.ring, f.slot, f.word, f.position, d)) { /* either another process's CAS wins or this one */
            return SHMQ_OK;
        }
    }
    return SHMQ_EMPTY;
}
