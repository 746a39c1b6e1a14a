/* A browser looks on while the ring turns: what it calls valid is one message, whole. */
#include "small_ring.h"

#define EACH 6u

static void set_up(void) { ring_set_up(0); }

static void browse(int t) {
    shmq_queue *q = ring_queues[t];
    uint64_t position = 0, last = 0;
    for (int looks = 0; looks < 12; looks++) {
        shmq_delivery d;
        uint64_t body[BODY_WORDS];
        if (shmq_browse(&q->first, &position, &d) != SHMQ_OK) {
            weak_yield();
            continue;
        }
        uint32_t length = d.body_len;
        weak_copy_racing(body, d.bytes, sizeof body);
        if (shmq_browse_valid(&q->first, &d)) {
            WEAK_CHECK(length == sizeof body);
            uint64_t number = ring_number(body);
            WEAK_CHECK(board.put_position[number] == 0 || board.put_position[number] == d.position + 1);
            WEAK_CHECK(last == 0 || position + 1 > last);
            last = position + 1;
        }
        position++;
    }
}

static void thread(int t) {
    switch (t) {
    case 0:
        for (uint64_t i = 0; i < 2 * EACH; i++) {
            while (!ring_put(t, i, 0)) {
                weak_yield();
            }
        }
        break;
    case 1:
    case 2:
        while (board.total < 2 * EACH) {
            if (ring_get(t) == UINT64_MAX) {
                weak_yield();
            }
        }
        break;
    default:
        browse(t);
        break;
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_browse = {
    "browse", "a sequence lock over the slot's word", 5, false, set_up, ring_begin, thread, end};
