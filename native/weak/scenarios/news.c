/* A consumer of two queues looks only where there is news, and never sleeps: what was put before a call that finds nothing
 * was found. */
#include "take/news.h"
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

static void consume(int t) {
    const shmq_taking taking = {0};
    shmq_queue_wait of[2] = {0};
    shmq_news news[2];
    for (uint32_t i = 0; i < 2; i++) {
        of[i].q = queue_of(t, i);
        of[i].owner = shmq_self(of[i].q);
    }
    shmq_news_begin(news, of, 2);
    for (uint32_t turn = 0;; turn++) {
        bool last = board.total == 2;
        uint32_t from = 0;
        shmq_delivery d;
        shmq_status status = shmq_receive_news(of, news, 2, turn, &taking, &from, &d);
        if (status == SHMQ_OK) {
            uint64_t number = ring_read(&d);
            WEAK_CHECK(shmq_settle(of[from].q, &d) == SHMQ_OK);
            ring_note_got(number);
            continue;
        }
        WEAK_CHECK(status == SHMQ_EMPTY);
        if (last) {
            return;
        }
        weak_yield();
    }
}

static void thread(int t) {
    if (t == 2) {
        consume(t);
        return;
    }
    for (uint32_t i = 0; i < EACH; i++) {
        put(t, (uint64_t)t * EACH + i);
    }
    board.total++;
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_news = {"news", "looks only where there is news", 3, false, set_up, ring_begin, thread, end};
