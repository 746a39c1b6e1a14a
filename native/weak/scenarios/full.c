/* Blocked producers: whoever sleeps while there is room is woken. */
#include "small_ring.h"

#define EACH 3u

static void set_up(void) { ring_set_up(1); }

static void thread(int t) {
    for (uint64_t i = 0; i < EACH; i++) {
        if (t < 2) {
            WEAK_CHECK(ring_put(t, (uint64_t)t * EACH + i, SHMQ_FOR_EVER));
        } else {
            while (ring_get(t) == UINT64_MAX) {
                weak_yield();
            }
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
    WEAK_CHECK((uint32_t)shmq_load_seq(&ring_queues[0]->page->count) == 0);
}

const weak_scenario weak_full = {"full", "blocked producers and who makes room", 4, true, set_up, ring_begin, thread,
                                 end};
