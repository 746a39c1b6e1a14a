/* Waiting until there is something, without taking it: who is told and finds it taken waits again; whoever sleeps while a
 * message is there is woken. All asleep is a failure. Shows S65. */
#include "small_ring.h"

#define EACH 2u

static void set_up(void) { ring_set_up(0); }

static bool take_one(shmq_queue *q, bool peeks) {
    if (!peeks) {
        return ring_get_until(q, SHMQ_FOR_EVER, NULL) != UINT64_MAX;
    }
    shmq_queue_wait of = {.q = q, .owner = shmq_self(q)};
    uint32_t from;
    shmq_status status = shmq_peek_wait_any(&of, 1, SHMQ_FOR_EVER, &from);
    WEAK_CHECK(status == SHMQ_OK || status == SHMQ_INTERRUPTED);
    return status == SHMQ_OK && ring_get_until(q, 0, NULL) != UINT64_MAX;
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    for (uint64_t i = 0; i < EACH;) {
        if (t < 2) {
            WEAK_CHECK(ring_put(t, (uint64_t)t * EACH + i++, 0));
        } else {
            i += take_one(q, t == 2);
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_peek = {"peek", "peek beside a taker that sleeps", 4, true, set_up, ring_begin, thread, end};
