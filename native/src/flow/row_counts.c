/* How many rows a queue has on disk, and what room they take: from words alone, for views as well. */
#include "shmq/flow.h"
#include "shmq/level.h"
#include "shmq/waiting.h"

static uint64_t peek_at(const shmq_a64 *word) { return shmq_load_seq((shmq_a64 *)(uintptr_t)word); }

static uint64_t less(uint64_t all, uint64_t part) { return all > part ? all - part : 0; }

/* Rows of one level: those that were flushed and not pulled, without those that were fetched. */
shmq_ordinal shmq_rows_of(const shmq_ring_shm *ring, const shmq_ring_shm *front) {
    uint64_t pulled = peek_at(&ring->pulled), pulled_bytes = peek_at(&ring->pulled_bytes);
    uint64_t passed = peek_at(&front->pulled), passed_bytes = peek_at(&front->pulled_bytes);
    uint64_t erased = less(peek_at(&front->flushed), passed),
             erased_bytes = less(peek_at(&front->flushed_bytes), passed_bytes);
    uint64_t count = less(peek_at(&ring->flushed), pulled), bytes = less(peek_at(&ring->flushed_bytes), pulled_bytes);
    return (shmq_ordinal){.count = less(count, erased), .bytes = less(bytes, erased_bytes)};
}

static shmq_ordinal all_rows(const shmq_queue *q) {
    shmq_ordinal all = {.count = 0};
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ordinal rows = shmq_rows_of(shmq_level_ring(q, depth), shmq_level_ring(q, q->levels + depth));
        all.count += rows.count;
        all.bytes += rows.bytes;
    }
    return all;
}

uint64_t shmq_flow_rows(const shmq_queue *q) { return all_rows(q).count; }

uint64_t shmq_flow_bytes(const shmq_queue *q) { return all_rows(q).bytes; }

uint64_t shmq_flow_size(const shmq_queue *q) {
    uint64_t bytes = 0;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        const shmq_ring_shm *ring = shmq_level_ring(q, depth);
        uint64_t freed = peek_at(&ring->freed), freed_bytes = peek_at(&ring->freed_bytes);
        bytes += shmq_rows_size(q->m, less(peek_at(&ring->flushed), freed),
                                less(peek_at(&ring->flushed_bytes), freed_bytes));
        bytes += peek_at(&shmq_level_ring(q, q->levels + depth)->flushing_bytes);
    }
    return bytes + shmq_waiting_size(q);
}
