/* The words that say how many rows a queue has on disk, and what room they take. Reads are for views as well; only the
 * mover writes. */
#include "flow/row_counts.h"
#include "flow/flow.h"
#include "limits/count.h"

static uint64_t peek_at(const shmq_a64 *word) { return shmq_load_seq((shmq_a64 *)(uintptr_t)word); }

/* Counts the rows of one level: those that were flushed and not pulled, without those that were fetched. */
shmq_ordinal shmq_rows_of(const shmq_ring_shm *ring, const shmq_ring_shm *front) {
    uint64_t pulled = peek_at(&ring->pulled), pulled_bytes = peek_at(&ring->pulled_bytes);
    uint64_t passed = peek_at(&front->passed), passed_bytes = peek_at(&front->passed_bytes);
    uint64_t erased = shmq_left_of(peek_at(&front->fetched), passed),
             erased_bytes = shmq_left_of(peek_at(&front->fetched_bytes), passed_bytes);
    uint64_t count = shmq_left_of(peek_at(&ring->flushed), pulled),
             bytes = shmq_left_of(peek_at(&ring->flushed_bytes), pulled_bytes);
    return (shmq_ordinal){.count = shmq_left_of(count, erased), .bytes = shmq_left_of(bytes, erased_bytes)};
}

shmq_ordinal shmq_waiting_of(const shmq_ring_shm *ring) {
    uint64_t came = peek_at(&ring->came), bytes = peek_at(&ring->came_bytes);
    return (shmq_ordinal){.count = shmq_left_of(peek_at(&ring->waiting), came),
                          .bytes = shmq_left_of(peek_at(&ring->waiting_bytes), bytes)};
}

static shmq_ordinal all_rows(const shmq_queue *q, bool waiting) {
    shmq_ordinal all = {.count = 0};
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        const shmq_ring_shm *ring = shmq_level_ring(q, depth), *front = shmq_level_ring(q, q->levels + depth);
        shmq_ordinal rows = waiting ? shmq_waiting_of(ring) : shmq_rows_of(ring, front);
        all.count += rows.count;
        all.bytes += rows.bytes;
    }
    return all;
}

uint64_t shmq_flow_rows(const shmq_queue *q) { return all_rows(q, false).count; }

uint64_t shmq_flow_bytes(const shmq_queue *q) { return all_rows(q, false).bytes; }

shmq_ordinal shmq_waiting_rows(const shmq_queue *q) { return all_rows(q, true); }

static uint64_t size_of(const shmq_queue *q, const shmq_a64 *rows, const shmq_a64 *bytes, const shmq_a64 *freed,
                        const shmq_a64 *freed_bytes) {
    uint64_t less = peek_at(freed), less_bytes = peek_at(freed_bytes);
    return shmq_rows_size(q->m, shmq_left_of(peek_at(rows), less), shmq_left_of(peek_at(bytes), less_bytes));
}

uint64_t shmq_flow_size(const shmq_queue *q) {
    uint64_t bytes = 0;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        const shmq_ring_shm *r = shmq_level_ring(q, depth);
        bytes += size_of(q, &r->flushed, &r->flushed_bytes, &r->freed, &r->freed_bytes);
        bytes += size_of(q, &r->waiting, &r->waiting_bytes, &r->waiting_freed, &r->waiting_freed_bytes);
        bytes += peek_at(&shmq_level_ring(q, q->levels + depth)->writing_bytes);
    }
    return bytes;
}

bool shmq_waiting_is_row(const shmq_ring_shm *back) {
    uint64_t from = peek_at(&back->waiting_from);
    return from != 0 && peek_at(&back->waiting) >= from;
}

void shmq_flushing_say(shmq_ring_shm *ring, uint64_t place, uint64_t flushed, uint64_t bytes) {
    shmq_store_seq(&ring->flushing_at, UINT64_MAX); /* no place: the flow word may still hold the last one */
    shmq_store_seq(&ring->flushing_count, flushed);
    shmq_store_seq(&ring->flushing_bytes, bytes);
    shmq_store_seq(&ring->flushing_at, place);
}

shmq_ordinal shmq_last_pulled(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    return (shmq_ordinal){shmq_load_relaxed(&ring->pulled), shmq_load_relaxed(&ring->pulled_bytes),
                          shmq_load_relaxed(&front->passed), shmq_load_relaxed(&front->passed_bytes)};
}

void shmq_pulled_say(shmq_ring *back, const shmq_ordinal *as) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    shmq_store_seq(&front->passed, as->erased); /* first: a reader never sees more fetched rows than rows */
    shmq_store_seq(&front->passed_bytes, as->erased_bytes);
    shmq_store_seq(&ring->pulled, as->count);
    shmq_store_seq(&ring->pulled_bytes, as->bytes);
}

/* Sets the words that follow from the decision to drop rows. The next mover repeats this after a death. */
void shmq_drop_end(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    uint64_t below = shmq_load_relaxed(&ring->dropping_at);
    if (below == 0) {
        return;
    }
    shmq_pulled_say(back, &(shmq_ordinal){.count = shmq_load_relaxed(&ring->dropping_count),
                                          .bytes = shmq_load_relaxed(&ring->dropping_bytes),
                                          .erased = shmq_load_relaxed(&front->dropping_count),
                                          .erased_bytes = shmq_load_relaxed(&front->dropping_bytes)});
    shmq_store_seq(&ring->low, below);
    shmq_store_seq(&ring->dropping_at, 0);
}

void shmq_rows_gone(shmq_queue *q, uint64_t rows, uint64_t bytes) {
    uint32_t limited = shmq_load_seq(&q->page->limited) & (SHMQ_LIMITED_COUNT | SHMQ_LIMITED_BYTES);
    if (rows != 0 && limited != 0) {
        shmq_room_give(q, limited, rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX, bytes);
        shmq_wake_waiters(q);
    }
}

shmq_ordinal shmq_rows_end(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    shmq_ordinal rows = shmq_rows_of(ring, front);
    shmq_pulled_say(back, &(shmq_ordinal){.count = shmq_load_relaxed(&ring->flushed),
                                          .bytes = shmq_load_relaxed(&ring->flushed_bytes),
                                          .erased = shmq_load_relaxed(&front->fetched),
                                          .erased_bytes = shmq_load_relaxed(&front->fetched_bytes)});
    shmq_rows_gone(back->queue, rows.count, rows.bytes);
    return rows;
}

shmq_ordinal shmq_waiting_end(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm;
    const shmq_ordinal rows = shmq_waiting_of(ring);
    shmq_store_seq(&ring->waiting_low, shmq_load_relaxed(&ring->waiting)); /* the decision */
    shmq_store_seq(&ring->came_bytes, shmq_load_relaxed(&ring->waiting_bytes));
    shmq_store_seq(&ring->came, shmq_load_relaxed(&ring->waiting));
    shmq_rows_gone(back->queue, rows.count, rows.bytes);
    return rows;
}
