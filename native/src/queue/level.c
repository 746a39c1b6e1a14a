#include "queue/level.h"
#include "layout/run.h"

#include <stdlib.h>
#include <string.h>

/* Each field is read once, checked, and kept as a copy: nothing reads the shared field afterwards. */
static const char *ring_look(shmq_ring *r, shmq_ring_shm *ring) {
    shmq_queue *q = r->queue;
    shmq_member *m = q->m;
    r->shm = ring;
    r->shift = shmq_copy_once(&ring->shift);
    r->slot_size = shmq_copy_once(&ring->slot_size);
    uint64_t slots = shmq_copy_once(&ring->slots), carried = shmq_copy_once(&ring->carried);
    if (r->shift >= 32 || (UINT64_C(1) << r->shift) > SHMQ_RING_MAX || r->slot_size < SHMQ_SLOT_MIN ||
        r->slot_size > SHMQ_SLOT_MAX || r->slot_size % 64 != 0) {
        return "the size of the queue's ring makes no sense";
    }
    uint64_t count = UINT64_C(1) << r->shift;
    if (slots % 64 != 0 || slots < m->data || !shmq_inside(m, slots, count * r->slot_size) || carried % 64 != 0 ||
        carried < m->data || !shmq_inside(m, carried, shmq_maps_bytes(count))) {
        return "the offset of the queue's ring makes no sense";
    }
    /* Every level's ring lies in the run of the first. */
    uint64_t first = shmq_copy_once(&q->page->ring.run), run = shmq_copy_once(&q->page->ring.run_granules);
    if (first % 64 != 0 || first < m->data || run > m->granule_count || carried < first + SHMQ_LINE_BYTES ||
        slots < carried + shmq_maps_bytes(count) || slots + count * r->slot_size > first + run * SHMQ_GRANULE_BYTES ||
        !shmq_inside(m, first, run * SHMQ_GRANULE_BYTES)) {
        return "the offset of the queue's ring makes no sense"; /* one is damaged, and may lead into another ring */
    }
    r->mask = count - 1;
    r->slots = shmq_at(m, slots);
    r->carried = shmq_at(m, carried);
    r->stretches = shmq_at(m, carried + shmq_bitmap_bytes(count));
    r->inline_bytes = r->slot_size - SHMQ_SLOT_HEADER;
    if (r == &q->first) {
        q->tickets = shmq_at(m, first);
    }
    uint64_t tail = shmq_load_seq(&ring->tail);
    shmq_store_relaxed(&r->nothing, 0);
    shmq_store_relaxed(&r->uncarried, 0);
    shmq_store_relaxed(&r->old[false], 0);
    shmq_store_relaxed(&r->old[true], 0);
    shmq_store_relaxed(&r->known, 0);
    shmq_store_relaxed(&r->sound_below, 0);
    shmq_store_relaxed(&r->near, tail > count ? tail - count : 0);
    return NULL;
}

/* A copy for one who looks, while other threads go on with the ring itself. */
static void copy_of(const shmq_ring *r, shmq_ring *copy) {
    *copy = (shmq_ring){.queue = r->queue,
                        .shm = r->shm,
                        .slots = r->slots,
                        .carried = r->carried,
                        .stretches = r->stretches,
                        .mask = r->mask,
                        .shift = r->shift,
                        .slot_size = r->slot_size,
                        .inline_bytes = r->inline_bytes,
                        .depth = r->depth,
                        .flow = r->flow};
    shmq_store_relaxed(&copy->near, shmq_load_relaxed(&r->near));
    shmq_store_relaxed(&copy->nothing, shmq_load_relaxed(&r->nothing));
    shmq_store_relaxed(&copy->sound_below, shmq_load_relaxed(&r->sound_below));
    shmq_store_relaxed(&copy->sound_terms, shmq_load_relaxed(&r->sound_terms));
    shmq_store_relaxed(&copy->found, shmq_load_relaxed(&r->found));
    shmq_store_relaxed(&copy->uncarried, shmq_load_relaxed(&r->uncarried));
    shmq_store_relaxed(&copy->old[false], shmq_load_relaxed(&r->old[false]));
    shmq_store_relaxed(&copy->old[true], shmq_load_relaxed(&r->old[true]));
}

const char *shmq_level_look(const shmq_queue *q, uint32_t depth, shmq_ring *ring) {
    if (depth == 0 && q->first.shm != NULL) {
        copy_of(&q->first, ring);
        return NULL;
    }
    *ring = (shmq_ring){.queue = (shmq_queue *)(uintptr_t)q, .depth = depth};
    ring->flow = &shmq_level_ring(q, shmq_depth_at(ring))->flow;
    return ring_look(ring, shmq_level_ring(q, depth));
}

shmq_status shmq_levels_bind(shmq_queue *q) {
    shmq_ring *lower = calloc(q->rings - 1, sizeof *lower);
    if (lower == NULL) {
        return shmq_fail_errno("no memory for a queue handle");
    }
    for (uint32_t depth = 1; depth < q->rings; depth++) {
        const char *wrong = shmq_level_look(q, depth, &lower[depth - 1]);
        if (wrong != NULL) {
            free(lower);
            return shmq_damage(q->m, wrong, shmq_place_at(depth, q->index));
        }
    }
    q->lower = lower;
    return SHMQ_OK;
}

void shmq_levels_rebind(shmq_queue *q) {
    for (uint32_t depth = 1; depth < q->rings; depth++) {
        shmq_ring *level = &q->lower[depth - 1];
        shmq_store_seq(&level->taking.busy, 0);
        shmq_store_seq(&level->browsing.busy, 0);
        shmq_store_seq(&level->putting.busy, 0);
    }
}
