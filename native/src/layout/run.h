/* Where the parts of a queue's memory lie: its run of granules, and that of its cold records. */
#ifndef SHMQ_LAYOUT_RUN_H
#define SHMQ_LAYOUT_RUN_H

#include "layout/queue.h"
#include "layout/slot.h"

/* Granules that the records of a ring of 1 << shift slots take. */
static inline uint32_t shmq_cold_granules(uint32_t shift) {
    uint64_t bytes = (UINT64_C(1) << (shift & 31)) * sizeof(shmq_cold_shm);
    return (uint32_t)((bytes + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT);
}

/* The run of a queue: the tickets of its line, the rings of all levels but the first, the bitmap and the stretches of each level, and the slots
 * of the first; then the slots of each other level, and of the front rings, from the next granule on. So what every level needs at once lies together,
 * and the slots of each grow where they lie. */
typedef struct shmq_run {
    uint64_t count;       /* slots of a level */
    uint64_t slot_size;
    uint64_t rings;       /* from the run's begin on: of the second level's ring, */
    uint64_t carried;     /* of the first bitmap, */
    uint64_t bitmap;      /* (bytes of each, with its stretches) */
    uint64_t slots;       /* of the first level's slots, */
    uint64_t lower;       /* of the second level's, */
    uint64_t apart;       /* (bytes from the slots of one lower level to those of the next) */
    uint64_t levels;
    uint64_t front_count; /* slots of a front ring; they lie behind the last level */
    uint64_t front_bitmap, front_apart; /* the same of them */
    uint64_t granules;    /* all of it */
} shmq_run;

#ifndef SHMQ_FRONT_SHIFT /* tools/test --flow makes front rings of four slots, of which one is for what is fetched */
#define SHMQ_FRONT_SHIFT 12u /* of a front ring's slots, at most: so many entries from disk can be in hand at once */
#endif

static inline uint32_t shmq_front_shift(uint32_t shift) {
    return shift < 3 ? 1 : shift - 2 < SHMQ_FRONT_SHIFT ? shift - 2 : SHMQ_FRONT_SHIFT;
}

static inline uint64_t shmq_granules_of(uint64_t bytes) {
    return (bytes + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT;
}

/* Slots whose counts a process keeps together; see stretch.h. */
#define SHMQ_STRETCH_SHIFT 10u
static inline uint64_t shmq_stretches_of(uint64_t slots) {
    return (slots + (UINT64_C(1) << SHMQ_STRETCH_SHIFT) - 1) >> SHMQ_STRETCH_SHIFT;
}

/* Bytes of a ring's bitmap, and with the words of its stretches, which lie behind it. */
static inline uint64_t shmq_bitmap_bytes(uint64_t slots) { return (slots + 511) / 512 * 64; }
static inline uint64_t shmq_maps_bytes(uint64_t slots) {
    return shmq_bitmap_bytes(slots) + (shmq_stretches_of(slots) + 15) / 16 * 64;
}

static inline shmq_run shmq_run_of(uint32_t shift, uint32_t slot_size, uint32_t levels) {
    shmq_run run = {.count = UINT64_C(1) << shift, .slot_size = slot_size, .rings = SHMQ_LINE_BYTES, .levels = levels};
    run.front_count = UINT64_C(1) << shmq_front_shift(shift);
    run.carried = run.rings + (2 * levels - 1) * sizeof(shmq_ring_shm);
    run.bitmap = shmq_maps_bytes(run.count);
    run.front_bitmap = shmq_maps_bytes(run.front_count);
    run.slots = run.carried + levels * (run.bitmap + run.front_bitmap);
    run.apart = shmq_granules_of(run.count * slot_size) << SHMQ_GRANULE_SHIFT;
    run.lower = shmq_granules_of(run.slots + run.count * slot_size) << SHMQ_GRANULE_SHIFT;
    run.front_apart = shmq_granules_of(run.front_count * slot_size) << SHMQ_GRANULE_SHIFT;
    run.granules = (run.lower + (levels - 1) * run.apart + levels * run.front_apart) >> SHMQ_GRANULE_SHIFT;
    return run;
}

static inline uint64_t shmq_run_carried(const shmq_run *run, uint32_t depth) {
    uint64_t levels = depth < run->levels ? depth : run->levels;
    return run->carried + levels * run->bitmap + (depth - levels) * run->front_bitmap;
}

static inline uint64_t shmq_run_slots(const shmq_run *run, uint32_t depth) {
    uint64_t levels = depth < run->levels ? depth : run->levels;
    return depth == 0 ? run->slots : run->lower + (levels - 1) * run->apart + (depth - levels) * run->front_apart;
}

static inline uint64_t shmq_run_count(const shmq_run *run, uint32_t depth) {
    return depth < run->levels ? run->count : run->front_count;
}

#endif
