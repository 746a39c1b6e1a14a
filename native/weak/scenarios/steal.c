/* steal: a stealer takes an entry while its holder gives it back with an attempt. The attempt is charged to no other
 * message whose place was made in the slot meanwhile, and nobody's `unsettled` is touched by others. */
#include "small_ring.h"

#define MESSAGES 10u

static uint32_t attempts[MESSAGES];

static void set_up(void) {
    ring_set_up(0);
    for (int t = 0; t < WEAK_THREADS; t++) {
        ring_queues[t]->checksum = ring_queues[t]->crc_at_put = true; /* it tells one message from another */
        weak_keep(ring_queues[t], sizeof *ring_queues[t]);
    }
}

static void begin(void) {
    ring_begin();
    for (uint32_t i = 0; i < MESSAGES; i++) {
        attempts[i] = 0;
    }
}

static void give_back(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    if (!ring_receive(q, shmq_self(q), 0, &d)) {
        return;
    }
    WEAK_CHECK(shmq_load_seq(&ring_members[t]->process->unsettled) == 1);
    uint64_t body[BODY_WORDS];
    weak_copy_racing(body, d.bytes, sizeof body); /* it may be stolen under us */
    if (shmq_own_word(q, &d) != 0) {
        attempts[ring_number(body)]++;
        (void)shmq_release(q, &d, true);
    } else {
        WEAK_CHECK(shmq_release(q, &d, true) == SHMQ_SETTLED);
    }
    WEAK_CHECK(shmq_load_seq(&ring_members[t]->process->unsettled) == 0);
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t == 0) {
        for (uint64_t number = 0; number < MESSAGES; number++) {
            while (!ring_put(t, number, 0)) {
                weak_yield();
            }
        }
        return;
    }
    for (uint64_t position = 0; t == 1 && position < MESSAGES;) { /* the stealer, wherever it finds one */
        shmq_delivery d;
        if (shmq_steal(&q->first, position, false, &d) == SHMQ_OK) {
            uint64_t number = ring_read(&d);
            WEAK_CHECK(d.delivery <= attempts[number]);
            WEAK_CHECK(shmq_settle(q, &d) == SHMQ_OK);
            ring_note_got(number);
            position++;
        }
        weak_yield();
    }
    while (t > 1 && board.total < MESSAGES) {
        give_back(t);
        weak_yield();
    }
}

static void end(void) {
    ring_check_got(0, MESSAGES);
    ring_check_words();
}

const weak_scenario weak_steal = {
    "steal", "a stealer, and the attempts of those that it robs", 4, false, set_up, begin, thread, end};
