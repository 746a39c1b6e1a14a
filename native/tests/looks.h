/* All calls that look at many roots of a segment. Their answers do not matter; that they come back does. */
#ifndef SHMQ_TESTS_LOOKS_H
#define SHMQ_TESTS_LOOKS_H

#include "check/check.h"
#include "check/memory_use.h"
#include "scratch_queue.h"

static inline bool looks_row_dead(void *context, uint32_t row) { return row == *(uint32_t *)context; }

static inline uint32_t looks_none_named(void *context, uint64_t offset, uint32_t generation) {
    (void)context, (void)offset, (void)generation;
    return 0;
}

static inline void look_under_the_lock(shmq_member *m, shmq_queue *q) {
    shmq_memory_use use;
    (void)shmq_pins_fault(m);
    (void)shmq_processes_fault(m);
    (void)shmq_counters_fault(m);
    (void)shmq_count_fault(q);
    (void)shmq_consumers_fault(q);
    (void)shmq_directory_fault(m);
    (void)shmq_references_fault(m);
    (void)shmq_watch_fault(m);
    (void)shmq_segment_fault(m);
    (void)shmq_structure_fault(m);
    (void)shmq_memory_use_of(m, q->index, &use);
    shmq_queues_release(m);
    (void)shmq_blocks_reclaim(m);
}

/* `row`: of another process, which counts as dead for blocks that are about to be used. */
static inline void look_at_everything(shmq_member *m, shmq_queue *q, uint32_t row) {
    uint64_t where;
    shmq_block_usage usage;
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation, reaped;
    (void)shmq_ring_fault(&q->first, &where);
    (void)shmq_blocks_fault(m);
    shmq_blocks_usage(m, &usage);
    shmq_queue *again;
    if (shmq_queue_bind(m, q->index, 0, &again) == SHMQ_OK) {
        shmq_queue_unbind(again);
    }
    (void)shmq_reap_dead(m, &reaped);
    (void)shmq_queue_named(m, q->index, name, &incarnation);
    (void)shmq_queue_ending(m, q->index, name, &incarnation);
    (void)shmq_blocks_sweep(m, looks_row_dead, looks_none_named, &row);
    for (uint32_t index = 0; index < 3; index++) {
        (void)shmq_counters_at(m, row, index);
    }
    if (shmq_structure_lock(m) == SHMQ_OK) {
        look_under_the_lock(m, q);
        shmq_structure_unlock(m);
    }
}

#endif
