#include "look/browse.h"
#include "settle/settle.h"
#include "take/claim.h"
#include "act_claim.h"

#define MOST 8u /* entries in a queue that is claimed from, or into */

/* The values in the one ring of a queue, in their order. */
static uint32_t values_in(shmq_queue *q, uint64_t *values) {
    shmq_delivery seen;
    uint32_t count = 0;
    for (uint64_t at = 0; count < MOST && shmq_browse(&q->first, &at, &seen) == SHMQ_OK; at++) {
        values[count++] = act_value_of(&seen);
    }
    return count;
}

static bool is_among(uint64_t value, const uint64_t *values, uint32_t count) {
    while (count != 0 && values[count - 1] != value) {
        count--;
    }
    return count != 0;
}

/* Of those that are in the target, or of those that are not. */
static void end_moves(act *a, const uint64_t *values, uint32_t count, shmq_status status, const uint64_t *moved,
                      uint32_t moved_count, bool are_moved) {
    for (uint32_t i = 0; i < count; i++) {
        if (is_among(values[i], moved, moved_count) == are_moved) {
            act_end(a, CALL_MOVE, QUEUE_LIMITED, values[i], status);
        }
    }
}

/* In the history a move of each that is there before, and that may be moved at any moment of the call. */
static void claim(act *a, const shmq_claim_limits *limits) {
    shmq_queue *from = a->q[QUEUE_A], *to = a->q[QUEUE_LIMITED];
    uint64_t before[MOST], after[MOST];
    uint32_t count = values_in(from, before);
    for (uint32_t i = 0; i < count; i++) {
        act_begin(a, CALL_MOVE, QUEUE_LIMITED, before[i]);
    }
    shmq_claimed result = {0};
    shmq_subscription by;
    shmq_subscription_begin(&by, NULL, NULL);
    shmq_status status;
    do {
        status = shmq_claim(from, to, limits, &by, &result);
    } while (status == SHMQ_INTERRUPTED);
    shmq_subscription_end(&by);
    uint32_t there = values_in(to, after);
    end_moves(a, before, count, status == SHMQ_OK ? SHMQ_EMPTY : status, after, there, false);
    end_moves(a, before, count, SHMQ_OK, after, there, true);
    a->last = status;
}

void act_claim_all(act *a) { claim(a, &(shmq_claim_limits){.entries = MOST, .bytes = UINT64_MAX}); }

void act_claim_two(act *a) { claim(a, &(shmq_claim_limits){.entries = MOST, .bytes = 2 * SMALL_BYTES}); }

static shmq_status discard_below(act *a, uint64_t place) {
    shmq_queue *q = a->q[QUEUE_A];
    uint64_t discarded = 0;
    act_begin(a, CALL_PURGE, QUEUE_A, 0);
    shmq_status status = shmq_discard_below(&q->first, place, &discarded);
    shmq_add_relaxed(&q->counters->purged, discarded);
    return status;
}

/* In the history a purge. */
void act_discard(act *a) {
    act_end(a, CALL_PURGE, QUEUE_A, 0, discard_below(a, shmq_load_seq(&a->q[QUEUE_A]->first.shm->tail)));
}

/* In the history a purge that has failed: some are gone. */
void act_discard_two_rows(act *a) {
    shmq_status status = discard_below(a, shmq_load_seq(&a->q[QUEUE_A]->first.shm->low) + 2);
    act_end(a, CALL_PURGE, QUEUE_A, 0, status == SHMQ_OK ? SHMQ_EMPTY : status);
}
