/* Sleepers and notifiers: whoever sleeps while a message is there is woken. All asleep is a failure. Shows S65, R4. */
#include "small_ring.h"

#define EACH 2u

static void set_up(void) { ring_set_up(0); }

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    for (uint64_t i = 0; i < EACH; i++) {
        if (t < 2) {
            WEAK_CHECK(ring_put(t, (uint64_t)t * EACH + i, 0));
            continue;
        }
        WEAK_CHECK(ring_get_until(q, SHMQ_FOR_EVER, NULL) != UINT64_MAX);
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_sleep = {"sleep", "sleep, notify, the baton", 4, true, set_up, ring_begin, thread, end};
