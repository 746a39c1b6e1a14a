/* The header counts granules as their words change: under the structure lock, behind the word. A death in between leaves
 * `dirty`, and the rebuild counts anew. */
#include "segment/granule_counts.h"
#include "segment/structure.h"

void shmq_granule_count(shmq_granule_counts *counts, uint64_t word) {
    uint32_t kind = shmq_granule_kind(word);
    counts->used += kind != SHMQ_GRANULE_FREE;
    counts->ready += kind == SHMQ_GRANULE_FREE && (word & SHMQ_GRANULE_RESERVED) != 0;
    counts->solid += kind == SHMQ_GRANULE_SLAB ? shmq_granule_length(word) : kind == SHMQ_GRANULE_PAGES;
    counts->free_pages +=
        kind == SHMQ_GRANULE_PAGES ? SHMQ_PAGES_A_GRANULE - (uint32_t)__builtin_popcount(shmq_granule_pages(word)) : 0;
    counts->used_bytes += kind != SHMQ_GRANULE_FREE ? shmq_granule_reserved(word) : 0;
}

shmq_granule_counts shmq_granule_counts_of(const shmq_member *m) {
    const shmq_segment_shm *header = m->header;
    return (shmq_granule_counts){.used = shmq_load_relaxed(&header->granules_used),
                                 .ready = shmq_load_relaxed(&header->granules_ready),
                                 .solid = shmq_load_relaxed(&header->granules_solid),
                                 .free_pages = shmq_load_relaxed(&header->pages_free),
                                 .used_bytes = shmq_load_relaxed(&header->used_bytes)};
}

void shmq_granule_counts_store(shmq_member *m, const shmq_granule_counts *counts) {
    shmq_segment_shm *header = m->header;
    shmq_store_relaxed(&header->granules_used, (uint32_t)counts->used);
    shmq_store_relaxed(&header->granules_ready, (uint32_t)counts->ready);
    shmq_store_relaxed(&header->granules_solid, (uint32_t)counts->solid);
    shmq_store_relaxed(&header->pages_free, (uint32_t)counts->free_pages);
    shmq_store_relaxed(&header->used_bytes, counts->used_bytes);
}

void shmq_granule_set(shmq_member *m, uint32_t granule, uint64_t word) {
    SHMQ_ASSERT(m->structure_locked);
    shmq_granule_counts before = {0}, now = shmq_granule_counts_of(m);
    shmq_granule_count(&before, shmq_load_relaxed(&m->granules[granule]));
    shmq_store_seq(&m->granules[granule], word);
    shmq_granule_count(&now, word);
    now.used -= before.used;
    now.ready -= before.ready;
    now.solid -= before.solid;
    now.free_pages -= before.free_pages;
    now.used_bytes -= before.used_bytes;
    shmq_granule_counts_store(m, &now);
}

uint64_t shmq_granules_free(const shmq_member *m) {
    shmq_granule_counts counts = shmq_granule_counts_of(m);
    uint64_t used = counts.used + counts.ready, left = shmq_memory_left(m) >> SHMQ_GRANULE_SHIFT;
    uint64_t bare = used < m->granule_count ? m->granule_count - used : 0;
    return counts.ready + (bare < left ? bare : left);
}

uint64_t shmq_rings_bytes(const shmq_member *m) {
    shmq_granule_counts counts = shmq_granule_counts_of(m);
    uint64_t others = counts.solid << SHMQ_GRANULE_SHIFT;
    return counts.used_bytes > others ? counts.used_bytes - others : 0;
}
