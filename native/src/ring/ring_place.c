/* The places of entries that have been on disk: they lie in a front ring, and their cold records name their places. */
#include "queue/cold.h"
#include "queue/level.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"

uint64_t shmq_front_place(const shmq_ring *front, const shmq_slot_shm *slot) {
    shmq_cold_shm *cold = shmq_cold_at(front, slot);
    return cold != NULL ? shmq_read_once(&cold->back) : UINT64_MAX;
}

uint64_t shmq_slot_place(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t position) {
    return SHMQ_LIKELY(!shmq_is_front(r)) ? position : shmq_front_place(r, slot);
}

uint64_t shmq_place_of(const shmq_queue *q, const shmq_delivery *d) {
    if (SHMQ_LIKELY(d->depth < q->levels)) {
        return shmq_place_at(d->depth, d->position);
    }
    const shmq_ring *front = shmq_level(q, d->depth);
    uint64_t place = shmq_front_place(front, shmq_slot_at(front, d->position));
    return shmq_place_at(shmq_depth_at(front), place);
}

static bool is_at(const shmq_ring *front, const shmq_slot_shm *slot, uint64_t place) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
    return shmq_state_is_entry(shmq_word_state(word)) && shmq_front_place(front, slot) == place;
}

#define NEXT 8u /* slots behind the one that was found last: those who look for places mostly go up */

bool shmq_front_find(const shmq_ring *front, uint64_t place, uint64_t *position) {
    uint64_t laid = shmq_slots_laid(front), next = shmq_load_relaxed(&front->found) & front->mask;
    for (uint64_t i = 0; i < laid + NEXT; i++) {
        uint64_t index = i < NEXT ? (next + i) & front->mask : i - NEXT;
        const shmq_slot_shm *slot = shmq_slot_at(front, index);
        if (index < laid && is_at(front, slot, place)) {
            *position = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position); /* SYNC ring.publish */
            return shmq_slot_at(front, *position) == slot;
        }
    }
    return false;
}
