/* put and get: a message is got whole, once, and a slot is written only when its last reader has done. Shows E1, E2. */
#include "small_ring.h"

#define EACH 5u

static void set_up(void) { ring_set_up(0); }

static void thread(int t) {
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            while (!ring_put(t, (uint64_t)t * EACH + i, 0)) {
                weak_yield();
            }
        }
        return;
    }
    while (board.got[0] + board.got[1] < 2 && board.total < 2 * EACH) {
        if (ring_get(t) == UINT64_MAX) {
            weak_yield();
        }
    }
    for (int idle = 0; idle < 3;) {
        idle = ring_get(t) == UINT64_MAX ? idle + (board.total == 2 * EACH) : 0;
        weak_yield();
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_publish = {"publish", "put and get", 4, false, set_up, ring_begin, thread, end};
