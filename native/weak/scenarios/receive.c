/* receive, read in place, settle: the bytes are ours from the acquisition to the settlement. */
#include "small_ring.h"

#define EACH 5u

static void set_up(void) { ring_set_up(0); }

static bool take_one(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    if (!ring_receive(q, shmq_self(q), 0, &d)) {
        return false;
    }
    uint64_t number = ring_read(&d);
    if (shmq_settle(q, &d) == SHMQ_OK) {
        ring_note_got(number);
    }
    return true;
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
    for (int idle = 0; idle < 3;) {
        idle = take_one(t) ? 0 : idle + (board.total == 2 * EACH);
        weak_yield();
    }
}

static void end(void) {
    while (take_one(0)) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_receive = {"receive", "receive, read in place, settle", 4, false, set_up, ring_begin, thread,
                                    end};
