/* Producers are stopped for longer than the patience: others pass their claims, and they put again. */
#include "small_ring.h"

#define EACH 4u

static void set_up(void) { ring_set_up(0); }

static void set_up_limited(void) { ring_set_up(2); } /* places stay taken while a put moves to another slot */

static void begin(void) {
    ring_begin();
    weak_let_time_pass(1500, ring_members[0]->patience_ns * 2);
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            while (!ring_put(t, (uint64_t)t * EACH + i, 0)) {
                weak_yield();
            }
        }
        return;
    }
    while (board.total < 2 * EACH) {
        (void)ring_get_until(q, weak_now() + q->m->patience_ns * 3, NULL);
        weak_yield();
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
    shmq_census census = census_of(ring_queues[0]);
    WEAK_CHECK(census.claimed == 0 && census.holes == 0);
}

const weak_scenario weak_hole = {"hole", "claims of stopped producers", 4, false, set_up, begin, thread, end};
const weak_scenario weak_moved = {"moved", "the same with a maxsize", 4, false, set_up_limited, begin, thread, end};
