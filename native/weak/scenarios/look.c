/* A look at what changes under the structure lock, without it: what a moment that lasted has shown was all there at once. */
#include "small_ring.h"

#define EACH 3

static void set_up(void) { ring_set_up(0); }

/* Two words that are equal whenever nobody is inside. */
static shmq_a64 *pair(int t) { return &ring_members[t]->header->volunteers[8]; }

static void change(int t, uint64_t value) {
    shmq_member *m = ring_members[t];
    while (shmq_structure_lock(m) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
    shmq_store_relaxed(&pair(t)[0], value);
    shmq_store_relaxed(&pair(t)[1], value);
    shmq_structure_unlock(m);
}

static void look(int t) {
    shmq_member *m = ring_members[t];
    shmq_moment moment = shmq_moment_begin(m);
    uint64_t one = shmq_load_relaxed(&pair(t)[0]), other = shmq_load_relaxed(&pair(t)[1]);
    if (shmq_moment_lasts(m, &moment)) {
        WEAK_CHECK(moment.calm == SHMQ_CALM); /* nobody dies here */
        WEAK_CHECK(one == other);
        board.total++;
    }
}

static void thread(int t) {
    for (uint64_t i = 0; i < EACH; i++) {
        if (t < 2) {
            change(t, 8 * ((uint64_t)t * EACH + i + 1));
        } else {
            look(t);
        }
    }
}

static void end(void) {
    look(0);
    WEAK_CHECK(board.total >= 1); /* at rest each look counts */
}

const weak_scenario weak_look = {"look", "a look without the structure lock", 4, false, set_up, ring_begin, thread,
                                 end};
