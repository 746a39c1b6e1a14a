/* The duties of a process in a queue, done when their time has come. */
#include "consumers/unused.h"
#include "lifecycle/delete.h"
#include "queue/level.h"
#include "upkeep/duty.h"
#include "wake/due.h"

static bool is_in_service(const shmq_queue *q) { return shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE; }

/* The earliest time of its rings: levels and front rings. A ring that this process has looked at in part comes
 * first. */
static uint64_t messages_due(const shmq_queue *q, uint64_t now) {
    uint64_t earliest = SHMQ_DUE_NEVER;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        const shmq_ring_shm *r = shmq_level_ring(q, depth);
        uint64_t due = shmq_due_time(shmq_load_seq(&r->due));
        due = shmq_is_due(due, now) || shmq_is_half_looked_at(q, depth, &q->m->rounds) ? now : due;
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}

/* The ring that this process looks at first: the one that it has looked at in part, since a look at another one would
 * forget that. If another process has taken that look over, the ring behind it: else two that take over from each other
 * come to no other ring. */
static uint32_t first_ring(const shmq_queue *q, const shmq_rounds *u) {
    bool left = u->entries.mark != 0 && u->index == q->index && u->incarnation == q->incarnation;
    return shmq_is_half_looked_at(q, u->depth, u) ? u->depth : left ? u->depth + 1 : 0;
}

static uint64_t messages_step(shmq_queue *q, uint64_t now, shmq_budget *b) {
    shmq_rounds *u = &q->m->rounds;
    uint32_t first = first_ring(q, u);
    for (uint32_t i = 0; i < q->rings; i++) {
        uint32_t depth = (first + i) % q->rings;
        shmq_ring_time_step(shmq_level(q, depth), now, u, b);
        if (b->left == 0 || shmq_is_half_looked_at(q, depth, u)) {
            return now;
        }
    }
    return messages_due(q, now);
}

static uint64_t unused_due(const shmq_queue *q, uint64_t now) {
    (void)now;
    return is_in_service(q) ? shmq_unused_due(q) : SHMQ_DUE_NEVER;
}

static uint64_t unused_step(shmq_queue *q, uint64_t now, shmq_budget *b) {
    shmq_budget_spend_all(b); /* its entries are settled */
    return is_in_service(q) ? shmq_unused_end(q, now) : shmq_ending_due(q, now);
}

static uint64_t deleted_due(const shmq_queue *q, uint64_t now) {
    return is_in_service(q) ? SHMQ_DUE_NEVER : shmq_ending_due(q, now);
}

static uint64_t deleted_step(shmq_queue *q, uint64_t now, shmq_budget *b) {
    shmq_budget_spend_all(b); /* a look at all of its slots */
    return shmq_ending_look(q, now);
}

const shmq_queue_duty shmq_queue_duties[SHMQ_QUEUE_DUTIES] = {
    {"messages", messages_due, messages_step}, /* delays, lives, leases */
    {"rows", shmq_rows_due, shmq_rows_step}, /* lives that end on disk */
    {"waiting rows", shmq_waiting_due, shmq_waiting_step}, /* delays that end there */
    {"unused queue", unused_due, unused_step}, /* the option expires */
    {"deleted queue", deleted_due, deleted_step}, /* entries that were given back to it */
};
