/* due: messages become due while others look after what is due. A message that is still held when all have gone has a
 * due word, and the next look finds it. Shows R11. */
#include "queue/cold.h"
#include "upkeep/duty.h"
#include "small_ring.h"

#define MESSAGES 4u
#define LOOKS 8

static void set_up(void) {
    ring_set_up(0);
    CHECK_EQUAL(shmq_cold_need(&ring_queues[0]->first), SHMQ_OK);
}

static void begin(void) { ring_begin(); }

static void put_until(int t, uint64_t number, uint64_t until_ns) {
    uint64_t body[BODY_WORDS];
    ring_body(body, number);
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body, .not_before_ns = until_ns};
    WEAK_CHECK(shmq_put(ring_queues[t], &o, 0) == SHMQ_OK);
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t < 2) {
        for (uint64_t i = 0; i < MESSAGES / 2; i++) {
            put_until(t, (uint64_t)t * MESSAGES / 2 + i, weak_chance(128) ? 1 : weak_now() + 1);
        }
        return;
    }
    for (int i = 0; i < LOOKS; i++) {
        shmq_ring_time(&q->first, weak_now());
        weak_yield();
    }
}

static void end(void) {
    shmq_queue *q = ring_queues[0];
    bool held = false;
    for (uint64_t i = 0; i < RING_SLOTS; i++) {
        held = held || shmq_word_state(shmq_load_seq(&shmq_slot_at(&q->first, i)->word)) == SHMQ_HELD;
    }
    WEAK_CHECK(!held || shmq_load_seq(&q->first.shm->due) != 0);
    for (uint64_t later = 1; later < 4; later++) {
        shmq_ring_time(&q->first, shmq_now_ns() + later * SECOND);
    }
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, MESSAGES);
    ring_check_words();
}

const weak_scenario weak_due = {"due", "what becomes due while others look", 4, false, set_up, begin, thread, end};
