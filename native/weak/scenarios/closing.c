/* A thread waits for a consumer's message while another one closes the consumer: it is told so. All asleep is a failure. */
#include "small_ring.h"

static uint32_t row;

static void set_up(void) {
    ring_set_up(0);
    CHECK_EQUAL(shmq_row_open(ring_queues[0], SHMQ_CONSUMER, &row), SHMQ_OK);
}

static void thread(int t) {
    shmq_queue *q = ring_queues[0]; /* two threads of one process */
    if (t == 1) {
        weak_yield();
        shmq_row_closing(q, row);
        return;
    }
    shmq_delivery d;
    const shmq_taking taking = {.owner = row, .row = row, .until_ns = SHMQ_FOR_EVER};
    WEAK_CHECK(shmq_receive(q, &taking, &d) == SHMQ_CLOSED);
}

static void end(void) { ring_check_words(); }

const weak_scenario weak_closing = {"closing", "a consumer is closed under a wait", 2, true, set_up, ring_begin, thread,
                                    end};
