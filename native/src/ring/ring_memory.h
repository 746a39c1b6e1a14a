/* The memory of a queue's rings: room for all slots when the queue is made, memory for those that its tail has come to.
 *
 * The room is a run of granules of the map. Memory comes in whole granules, but for the beginnings: the first pieces of the run,
 * and one piece for each lower level. `ring.laid` says how many slots have memory; only positions of the first lap can be
 * beyond, since the tail never stands where it has none. A scan goes up to the tail, so none but a producer
 * asks. */
#ifndef SHMQ_RING_RING_MEMORY_H
#define SHMQ_RING_RING_MEMORY_H

#include "layout/run.h"
#include "queue/handle.h"

#define SHMQ_RUN_BEGUN \
    UINT64_C(16384) /* bytes of a run that are reserved at once, if tickets and bitmaps do not need more */

/* Bytes from the run's begin up to which this level has memory before its first message: its first slot, at least. */
static inline uint64_t shmq_run_first(const shmq_run *run, uint32_t depth) {
    uint64_t end = shmq_run_slots(run, depth) + run->slot_size;
    end = (end + SHMQ_PIECE_BYTES - 1) / SHMQ_PIECE_BYTES * SHMQ_PIECE_BYTES;
    return depth == 0 && end < SHMQ_RUN_BEGUN ? SHMQ_RUN_BEGUN : end;
}

/* Slots of this level that have memory when the run has it up to `end`, as `ring.laid` says it. */
static inline uint64_t shmq_laid_at(const shmq_run *run, uint32_t depth, uint64_t end) {
    uint64_t slots = (end - shmq_run_slots(run, depth)) / run->slot_size;
    return slots < shmq_run_count(run, depth) ? slots : SHMQ_LAID_ALL;
}

static inline uint64_t shmq_laid_first(const shmq_run *run, uint32_t depth) {
    return shmq_laid_at(run, depth, shmq_run_first(run, depth));
}

/* Slots of the ring that have memory: whatever goes over all slots goes over these. The others are FREE at lap 0. */
static inline uint64_t shmq_slots_laid(const shmq_ring *r) {
    uint64_t laid = shmq_load_acquire(&r->shm->laid); /* SYNC ring.laid */
    return laid < shmq_slot_count(r) ? laid : shmq_slot_count(r);
}

/* Granules that memory can ever hold. */
uint64_t shmq_rings_most(const shmq_member *m);
/* Under the structure lock. Room for a queue's rings, without memory but what is there from before, which is zero then.
 * `wanted` of it are to get memory, the rest when the queue flows. SHMQ_FULL_MEMORY: more than the budget, or no room. */
shmq_status shmq_rings_take(shmq_member *m, uint32_t granules, uint32_t wanted, uint64_t *offset);
/* Memory for [offset, offset + bytes) of it; pieces of a granule at its beginning only. SHMQ_FULL_MEMORY, SHMQ_NO_SPACE. */
shmq_status shmq_rings_reserve(shmq_member *m, uint64_t offset, uint64_t bytes);
/* Room and memory go back, the memory to the system. No process may look at it any more. */
void shmq_rings_give(shmq_member *m, uint64_t offset);
/* Bytes of memory of a queue: of its page, its rings and its cold records. For a process that uses it, or holds the structure lock. */
uint64_t shmq_queue_reserved(const shmq_queue *q);
/* Bytes that a run has memory for. */
uint64_t shmq_rings_reserved(const shmq_member *m, uint64_t offset, uint64_t granules);

/* Memory for the slots up to the one behind position `last`, and to the end of that granule. Takes the structure lock:
 * SHMQ_INTERRUPTED as there. */
shmq_status shmq_ring_lay(shmq_ring *r, uint64_t last);

#endif
