/* The ring's head: where scans begin. Takers advance it over entries that no taker can have, and a release turns it
 * back. */
#include "queue/level.h"
#include "ring/ring.h"
#include "ring/version.h"

void shmq_head_follow(shmq_ring *r) {
    uint64_t head = shmq_load_seq(&r->shm->head);
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    uint64_t below = tail - count - 1;
    if (tail > count && (int64_t)(shmq_position_near(tail, head) - below) < 0) {
        shmq_head_advance(r, head, below);
    }
}

/* R2 and R3. Returns the new epoch. Its cell is not written yet; until it is, a taker reads it as "from the
 * beginning". */
static uint64_t rewind_head(shmq_ring *r, uint64_t p) {
    shmq_ring_shm *ring = r->shm;
    uint64_t head, wanted, count = shmq_slot_count(r);
    do { /* R2: the epoch rises even if the position stays, so that a late advance over p fails */
        head = shmq_load_seq(&ring->head);
        uint64_t tail = shmq_load_seq(&ring->tail);
        if (tail > count && p < tail - count) {
            p = tail - count - 1; /* takers look at the old region whenever the head lies below tail - N */
        }
        uint64_t position = shmq_position_near(tail, head); /* this process may have read the tail long ago */
        uint64_t epoch = ((head >> SHMQ_POSITION_BITS) + 1) & SHMQ_EPOCH_MASK;
        wanted = (epoch << SHMQ_POSITION_BITS) | ((position < p ? position : p) & SHMQ_POSITION_MASK);
    } while (!shmq_cas_seq(&ring->head, head, wanted)); /* SYNC ring.head */
    return shmq_add_seq(&ring->epoch, 1) + 1; /* R3 */
}

/* R2 to R4. A taker whose scan begins after this starts at or before p, or looks at p's cell before it takes a later
 * entry. The cell has p itself, also where p lies in the old region: entries there have an order, too. A p so far back
 * that 44 bits cannot say it gets no cell, which takers read as "from the beginning". */
void shmq_rewind(shmq_ring *r, uint64_t p) {
    uint64_t e = rewind_head(r, p);
    if ((int64_t)(shmq_load_seq(&r->shm->tail) - p) < SHMQ_POSITION_FAR) {
        uint64_t cell = (e & SHMQ_EPOCH_MASK) << SHMQ_POSITION_BITS | (p & SHMQ_POSITION_MASK);
        shmq_store_release(&r->shm->cells[e % SHMQ_CELLS], cell); /* R4, SYNC ring.cell */
    }
}

uint64_t shmq_lowest_released(shmq_ring *r, uint64_t from, uint64_t to) {
    uint64_t lowest = UINT64_MAX;
    if (to - from > SHMQ_CELLS) {
        return 0;
    }
    for (uint64_t e = from + 1; e != to + 1; e++) {
        uint64_t cell = shmq_load_acquire(&r->shm->cells[e % SHMQ_CELLS]); /* SYNC ring.cell */
        if (cell >> SHMQ_POSITION_BITS != (e & SHMQ_EPOCH_MASK)) {
            return 0; /* not written yet, or written over */
        }
        uint64_t position = shmq_head_position(r, cell);
        lowest = position < lowest ? position : lowest;
    }
    return lowest;
}

/* No R4: the released entries may lie anywhere, and takers read a cell that was not written as "from the beginning". */
void shmq_rewind_all(shmq_ring *r) { (void)rewind_head(r, 0); }

/* The version of a queue. It grows with each claim, and with each entry that becomes available out of turn: a taker that
 * has looked at a version need not look again before it grows. */
uint64_t shmq_version(const shmq_queue *q) {
    uint64_t version = 0;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        shmq_ring_shm *ring = shmq_level_ring(q, depth);
        version += shmq_load_seq(&ring->tail) + shmq_load_seq(&ring->epoch);
    }
    return version | SHMQ_VERSIONED;
}
