/* join: who waits until all is settled is told so by whoever settles the last, and does not find it when his sleep ends by
 * itself. */
#include "small_ring.h"

#define EACH 2u

static void set_up(void) { ring_set_up(0); }

/* A message takes its consumer about as long as the first sleep of who waits. */
static void consume(int t) {
    shmq_a32 nobody = 0;
    while (ring_get(t) == UINT64_MAX) {
        weak_yield();
    }
    (void)shmq_sleep(ring_members[t], &nobody, 0, weak_now() + 2000000);
}

static void join(int t) {
    shmq_status status;
    uint64_t start = weak_now();
    while ((status = shmq_ring_join(ring_queues[t], SHMQ_FOR_EVER)) == SHMQ_INTERRUPTED) {
    }
    WEAK_CHECK(status == SHMQ_OK);
    WEAK_CHECK(weak_now() - start <
               ring_members[t]->patience_ns / 2); /* one of the first sleeps may: nobody is asked */
}

static void thread(int t) {
    if (t == 0) {
        for (uint64_t i = 0; i < 2 * EACH; i++) {
            WEAK_CHECK(ring_put(t, i, 0));
        }
        join(t);
    } else if (t == 3) {
        join(t);
    } else {
        for (uint64_t i = 0; i < EACH; i++) {
            consume(t);
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_join = {"join", "waiting until all is settled", 4, false, set_up, ring_begin, thread, end};
