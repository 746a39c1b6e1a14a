/* Levels of priority: a queue with several is an ordered list of rings, the most important first.
 *
 * Depth 0 is the most important level; its ring lies in the queue's page, those of the others behind the first one's slots.
 *
 * A place is where an entry stands in the queue's order: its depth above its position. So places of one level grow with
 * time, and a lower place is always offered first. */
#ifndef SHMQ_LEVEL_H
#define SHMQ_LEVEL_H

#include "shmq/handle.h"

#define SHMQ_PLACE_BITS 48u
#define SHMQ_FLOWED UINT64_C(1) /* of a flow word: rows come before all that lies at its place, or above */

static inline bool shmq_flow_is_on(uint64_t flow) { return (flow & SHMQ_FLOWED) != 0; }

static inline uint64_t shmq_flow_place(uint64_t flow) { return flow >> 1; }

static inline uint64_t shmq_place_at(uint32_t depth, uint64_t position) {
    return ((uint64_t)depth << SHMQ_PLACE_BITS) + position;
}

/* The ring of a level; of a handle, not of a view. */
static inline shmq_ring *shmq_level(const shmq_queue *q, uint32_t depth) {
    return SHMQ_LIKELY(depth == 0) ? (shmq_ring *)(uintptr_t)&q->first : &q->lower[depth - 1];
}

static inline shmq_ring_shm *shmq_level_ring(const shmq_queue *q, uint32_t depth) {
    return depth == 0 ? &q->page->ring : &q->level_rings[depth - 1];
}

static inline bool shmq_is_front(const shmq_ring *r) { return r->depth >= r->queue->levels; }

/* The level of a ring, back or front. */
static inline uint32_t shmq_depth_at(const shmq_ring *r) {
    return shmq_is_front(r) ? r->depth - r->queue->levels : r->depth;
}

/* The back ring of the level of this ring; of a handle, not of a view. */
static inline shmq_ring *shmq_back_of(const shmq_ring *r) { return shmq_level(r->queue, shmq_depth_at(r)); }

/* The front ring of a level, of a handle. */
static inline shmq_ring *shmq_front_of(const shmq_ring *back) {
    return shmq_level(back->queue, back->queue->levels + back->depth);
}

/* The word that says what of a level is on disk; 0: nothing was yet. Of either of its rings. */
static inline uint64_t shmq_flow_at(const shmq_ring *r) { return shmq_load_seq((shmq_a64 *)(uintptr_t)r->flow); }

/* Is something of any level on disk, or has it just been? */
static inline bool shmq_flows(const shmq_queue *q) {
    uint64_t flow = shmq_load_seq(&q->page->ring.flow);
    for (uint32_t depth = 1; SHMQ_UNLIKELY(depth < q->levels); depth++) {
        flow |= shmq_load_seq(&shmq_level_ring(q, depth)->flow) & SHMQ_FLOWED;
    }
    return SHMQ_UNLIKELY(shmq_flow_is_on(flow));
}

/* Has any level ever flowed? Of a view, too. */
static inline bool shmq_has_flowed(const shmq_queue *q) {
    uint64_t flow = shmq_load_seq(&q->page->ring.flow);
    for (uint32_t depth = 1; SHMQ_UNLIKELY(depth < q->levels); depth++) {
        flow |= shmq_load_seq(&shmq_level_ring(q, depth)->flow);
    }
    return SHMQ_UNLIKELY(flow != 0);
}

/* The level of a place, and the position in it. */
static inline shmq_ring *shmq_level_of_place(const shmq_queue *q, uint64_t place, uint64_t *position) {
    uint64_t depth = q->levels > 1 ? place >> SHMQ_PLACE_BITS : 0;
    if (depth >= q->levels) {
        return NULL;
    }
    *position = place - shmq_place_at((uint32_t)depth, 0);
    return shmq_level(q, (uint32_t)depth);
}

/* The same from a page that was not checked; NULL: there is none, or it lies nowhere. */
static inline shmq_ring_shm *shmq_page_ring(const shmq_member *m, const shmq_queue_shm *page, uint32_t depth) {
    uint64_t rings = shmq_copy_once(&page->level_rings), at = rings + (uint64_t)(depth - 1) * sizeof(shmq_ring_shm);
    if (depth == 0) {
        return (shmq_ring_shm *)(uintptr_t)&page->ring;
    }
    bool there = depth < SHMQ_RINGS_MAX && depth < 2 * shmq_copy_once(&page->levels) && rings % 64 == 0;
    return there && at >= m->data && shmq_inside(m, at, sizeof(shmq_ring_shm)) ? shmq_at(m, at) : NULL;
}

/* AMQP 0-10's mapping, which serves JMS: with ten levels one to one, with two 0 to 4 low and 5 to 9 high (S32). */
static inline uint32_t shmq_depth_of(const shmq_queue *q, uint32_t priority) {
    uint32_t offset = 5 - (q->levels + 1) / 2;
    uint32_t level = priority < offset ? 0 : priority - offset;
    level = level < q->levels ? level : q->levels - 1;
    return q->levels - 1 - level;
}

/* The level that a message of this priority goes to. */
static inline shmq_ring *shmq_level_for(shmq_queue *q, uint32_t priority) {
    return SHMQ_LIKELY(q->levels == 1) ? &q->first : shmq_level(q, shmq_depth_of(q, priority));
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

/* The ring of one level with private copies of its constants, checked: NULL, or what is wrong. The queue may be a view. */
const char *shmq_level_look(const shmq_queue *q, uint32_t depth, shmq_ring *ring);
/* The rings of all levels but the first, for a queue's handle that stays. SHMQ_CORRUPT, SHMQ_OS. */
shmq_status shmq_levels_bind(shmq_queue *q);
/* They follow their queue's handle to another process. */
void shmq_levels_rebind(shmq_queue *q);

#endif
