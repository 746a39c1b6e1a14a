/* A producer dies anywhere: nobody waits for it, and all that others put is got, once. */
#include "small_ring.h"

#define EACH 4u

static void set_up(void) { ring_set_up(0); }

static void begin(void) {
    ring_begin();
    weak_die_somewhere(0, ring_members[0]->row);
}

static void thread(int t) {
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            while (!ring_put(t, (uint64_t)t * EACH + i, 0)) {
                weak_yield();
            }
        }
        return;
    }
    while (board.got[EACH] + board.got[EACH + 1] + board.got[EACH + 2] + board.got[EACH + 3] < EACH) {
        (void)ring_get(t);
        weak_yield();
    }
}

static void end(void) {
    ring_check_got(EACH, EACH);
    ring_check_words();
}

const weak_scenario weak_tombstone = {"tombstone", "a dead producer's claim", 4, false, set_up, begin, thread, end};
