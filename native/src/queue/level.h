/* Levels of priority: a queue with several is an ordered list of rings, the most important first.
 *
 * Depth 0 is the most important level; its ring lies in the queue's page, those of the others behind the first one's slots.
 *
 * A place is where an entry stands in the queue's order: its depth above its position. So places of one level grow with
 * time, and a lower place is always offered first. */
#ifndef SHMQ_QUEUE_LEVEL_H
#define SHMQ_QUEUE_LEVEL_H

#include "queue/handle.h"

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

/* The ring of one level with private copies of its constants, checked: NULL, or what is wrong. The queue may be a view. */
const char *shmq_level_look(const shmq_queue *q, uint32_t depth, shmq_ring *ring);
/* The rings of all levels but the first, for a queue's handle that stays. SHMQ_CORRUPT, SHMQ_OS. */
shmq_status shmq_levels_bind(shmq_queue *q);
/* They follow their queue's handle to another process. */
void shmq_levels_rebind(shmq_queue *q);

#endif
