/* Takers that want some messages only, each by its own cursor: what a look at a message's bytes has refused stays
 * refused, so it has to be of this message. Shows S23. */
#include "small_ring.h"

#define EACH 4u
#define TAKERS 2

static shmq_subscription takers[TAKERS]; /* of even numbers, of odd ones */
static uint64_t parities[TAKERS] = {0, 1};

/* The entry may be taken and its slot used again meanwhile, so the bytes are read as a browser reads them. */
static bool is_wanted(void *context, const shmq_ring *level, const shmq_delivery *d) {
    const uint64_t *parity = context;
    uint64_t number;
    (void)level;
    weak_copy_racing(&number, d->bytes, sizeof number);
    return number % 2 == *parity;
}

static void set_up(void) { ring_set_up(0); }

static void begin(void) {
    ring_begin();
    for (int i = 0; i < TAKERS; i++) {
        shmq_subscription_begin(&takers[i], is_wanted, &parities[i]);
    }
}

static bool take_one(int t, int taker, bool may_release) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    const shmq_taking taking = {.owner = shmq_self(q), .by = &takers[taker]};
    shmq_status status = shmq_receive(q, &taking, &d);
    WEAK_CHECK(status == SHMQ_OK || status == SHMQ_POISONED || status == SHMQ_EMPTY);
    if (status == SHMQ_EMPTY) {
        return false;
    }
    uint64_t number = ring_read(&d);
    WEAK_CHECK(number % 2 == parities[taker]);
    if (may_release && weak_chance(48)) {
        WEAK_CHECK(shmq_release(q, &d, false) == SHMQ_OK);
    } else if (shmq_settle(q, &d) == SHMQ_OK) {
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
        idle = take_one(t, t - 2, true) ? 0 : idle + (board.total == 2 * EACH);
        weak_yield();
    }
}

static void end(void) {
    for (int i = 0; i < TAKERS; i++) {
        while (take_one(0, i, false)) {
        }
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_select = {
    "select", "takers of some messages, by their own cursors", 4, false, set_up, begin, thread, end};
