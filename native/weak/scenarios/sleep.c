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
        for (;;) {
            shmq_delivery d;
            shmq_status status = shmq_offer_wait(q, shmq_self(q), 0, SHMQ_FOR_EVER, &d);
            uint64_t body[BODY_WORDS];
            WEAK_CHECK(status == SHMQ_OK || status == SHMQ_INTERRUPTED);
            if (status != SHMQ_OK) {
                continue;
            }
            weak_copy_racing(body, d.bytes, sizeof body);
            if (shmq_offer_finish(q, &d) == SHMQ_OK) {
                ring_note_got(ring_number(body));
                break;
            }
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_sleep = {"sleep", "sleep, notify, the baton", 4, true, set_up, ring_begin, thread, end};
