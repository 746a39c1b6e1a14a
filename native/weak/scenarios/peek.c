/* Waiting until there is something, without taking it: who is told and finds it taken waits again; whoever sleeps while a
 * message is there is woken. All asleep is a failure. Shows S65. */
#include "shmq/ring_wait.h"
#include "small_ring.h"

#define EACH 2u

static void set_up(void) { ring_set_up(0); }

static bool wait_for(shmq_queue *q, bool peeks, shmq_delivery *d) {
    if (!peeks) {
        return shmq_offer_wait(q, shmq_self(q), 0, SHMQ_FOR_EVER, d) == SHMQ_OK;
    }
    shmq_waiter of = {.q = q, .owner = shmq_self(q)};
    uint32_t from;
    shmq_status status = shmq_peek_wait_any(&of, 1, SHMQ_FOR_EVER, &from);
    WEAK_CHECK(status == SHMQ_OK || status == SHMQ_INTERRUPTED);
    return status == SHMQ_OK && shmq_offer(q, shmq_self(q), d) == SHMQ_OK;
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    for (uint64_t i = 0; i < EACH;) {
        uint64_t body[BODY_WORDS];
        shmq_delivery d;
        if (t < 2) {
            WEAK_CHECK(ring_put(t, (uint64_t)t * EACH + i++, 0));
        } else if (wait_for(q, t == 2, &d)) {
            weak_copy_racing(body, d.bytes, sizeof body);
            if (shmq_offer_finish(q, &d) == SHMQ_OK) {
                ring_note_got(ring_number(body));
                i++;
            }
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_peek = {"peek", "peek beside a taker that sleeps", 4, true, set_up, ring_begin, thread, end};
