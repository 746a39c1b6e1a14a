/* A ring as messages leave it that came and went: for what happens only after more of them than any test can send. */
#ifndef SHMQ_RING_PLACE_H
#define SHMQ_RING_PLACE_H

#include "ring/ring_memory.h"

static inline uint64_t epoch_and_position(uint64_t epoch, uint64_t position) {
    return (epoch & SHMQ_EPOCH_MASK) << SHMQ_POSITION_BITS | (position & SHMQ_POSITION_MASK);
}

/* An unused ring: every slot is free for its next position from `position` on, and the last epochs' cells say what was
 * released in them. */
static inline void ring_place(shmq_ring *level, uint64_t position, uint64_t epoch) {
    SHMQ_ASSERT(shmq_ring_lay(level, level->mask) == SHMQ_OK); /* the tail has passed all of them */
    for (uint64_t p = position; p < position + shmq_slot_count(level); p++) {
        shmq_a64 *word = &shmq_slot_at(level, p)->word;
        shmq_cas_seq(word, shmq_load_seq(word), shmq_word(shmq_lap_of(level, p), 0, 0, 0, SHMQ_FREE));
    }
    for (uint64_t e = epoch; e != 0 && e + SHMQ_CELLS != epoch; e--) {
        shmq_store_seq(&level->shm->cells[e % SHMQ_CELLS], epoch_and_position(e, position - 1));
    }
    shmq_store_seq(&level->shm->epoch, epoch);
    shmq_store_seq(&level->shm->tail, position);
    shmq_store_seq(&level->shm->floor, position);
    shmq_store_seq(&level->shm->head, epoch_and_position(epoch, position));
    shmq_store_relaxed(&level->near, position);
}

#endif
