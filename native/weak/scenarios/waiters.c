/* The count of blocked producers after a death amid joining or leaving: put right, and never too low for the living. */
#include "small_ring.h"

#define TIMES 4

static uint32_t joined; /* private to the simulator: those who surely are among the waiters */

static void set_up(void) { ring_set_up(1); }

static void begin(void) {
    ring_begin();
    joined = 0;
    weak_die_somewhere(2, ring_members[2]->row);
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t == 3) { /* the reaper; the structure lock is its own */
        while (!weak_is_dead(ring_members[2]->row)) {
            weak_yield();
        }
        shmq_room_waiters_recover(q, ring_queues[2]->counters);
        return;
    }
    shmq_waiters waiters = shmq_room_waiters(q, q->counters);
    for (int i = 0; i < TIMES || t == 2; i++) {
        shmq_join_count(&waiters);
        joined += t != 2;
        WEAK_CHECK(shmq_waiters_in(shmq_load_seq(&q->first.shm->waiters)) >= joined);
        weak_yield();
        joined -= t != 2;
        shmq_leave_count(&waiters);
    }
}

static void end(void) {
    shmq_queue *q = ring_queues[0];
    shmq_room_waiters_recover(q, ring_queues[2]->counters); /* somebody may have been in between all the time */
    WEAK_CHECK(shmq_waiters_in(shmq_load_seq(&q->first.shm->waiters)) == 0);
}

const weak_scenario weak_waiters = {"waiters", "the count of waiters after a death", 4, false, set_up, begin, thread,
                                    end};
