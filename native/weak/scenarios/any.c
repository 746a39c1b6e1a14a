/* One wait for two queues: whoever sleeps while one of them has a message is woken, and when both are shut down each is told
 * so behind the last message. All asleep is a failure. Shows S65, R4. */
#include "small_ring.h"

#define EACH 3u

static void set_up(void) { ring_set_up_two(); }

static shmq_queue *queue_of(int t, uint32_t which) { return which == 0 ? ring_queues[t] : ring_others[t]; }

static void put(int t, uint64_t number) {
    uint64_t body[BODY_WORDS];
    ring_body(body, number);
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    shmq_status status;
    while ((status = shmq_put(queue_of(t, weak_chance(128)), &o, 0)) == SHMQ_FULL_RING) {
        weak_yield();
    }
    WEAK_CHECK(status == SHMQ_OK);
}

static bool take_one(int t, uint32_t first) {
    const shmq_taking taking = {.until_ns = SHMQ_FOR_EVER};
    shmq_queue_wait of[2] = {0};
    uint32_t from = 0;
    shmq_delivery d;
    for (uint32_t i = 0; i < 2; i++) {
        of[i].q = queue_of(t, i);
        of[i].owner = shmq_self(of[i].q);
    }
    shmq_status status = shmq_receive_any(of, 2, first, &taking, &from, &d);
    WEAK_CHECK(status == SHMQ_OK || status == SHMQ_SHUT_DOWN);
    if (status != SHMQ_OK) {
        return false;
    }
    uint64_t number = ring_read(&d);
    WEAK_CHECK(shmq_settle(of[from].q, &d) == SHMQ_OK);
    ring_note_got(number);
    return true;
}

static void thread(int t) {
    if (t < 2) {
        for (uint32_t i = 0; i < EACH; i++) {
            put(t, (uint64_t)t * EACH + i);
        }
        board.total++;
        for (uint32_t which = 0; which < 2 && board.total == 2; which++) {
            (void)shmq_queue_shut_down(queue_of(t, which),
                                       SHMQ_DRAINING); /* one of us two, when the other has put its last */
        }
        return;
    }
    for (uint32_t i = 0; take_one(t, i); i++) {
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_any = {"any", "one wait for two queues", 4, true, set_up, ring_begin, thread, end};
