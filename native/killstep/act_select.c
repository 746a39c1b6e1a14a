#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "queue/consumer_row.h"
#include "selectors/row_selector.h"
#include "take/offer.h"
#include "act_select.h"

#include <string.h>

#include "stage.h"
#include "virtual.h"

static shmq_subscription subscription;

/* A message for a moment that only the core knows: put by this process in another one's name. */
static struct {
    act by;
    unsigned queue;
    uint64_t value; /* 0: it has come, or nothing will */
} arrival;

static void arrive(void) {
    uint64_t value = arrival.value;
    if (value != 0) {
        arrival.value = 0;
        act_put(&arrival.by, arrival.queue, value, SMALL_BYTES, 0);
    }
}

static bool wants(void *context, const shmq_ring *level, const shmq_delivery *d) {
    uint64_t value;
    (void)context;
    if (d->body_len < sizeof(value)) {
        return false;
    }
    if (level->queue->levels > 1 && level->depth + 1 == level->queue->levels) {
        arrive();
    }
    memcpy(&value, d->bytes, sizeof(value));
    return value % 2 == 0;
}

#define IS_NULL 17u
#define IS_NOT_NULL 18u

/* A consumer of queue "a" with the selector `k IS NULL`, which is true for all that is put here, or its opposite. */
static void open_with(act *a, unsigned char operation) {
    unsigned char program[] = "\1\1\1\0\2\0\10\1\0k\1\0\0\0\0\0\0\0\0"; /* of one name, k, and two instructions */
    program[15] = operation;
    shmq_selector *selector;
    shmq_status status = shmq_selector_load(program, sizeof program, &selector);
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    if (status == SHMQ_OK) {
        const shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .selector = selector};
        status = shmq_row_open_as(a->q[QUEUE_A], &terms, &a->row);
        shmq_selector_free(selector);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}

void act_open_with_selector(act *a) { open_with(a, IS_NULL); }

shmq_a32 *act_lie_down_with_selector(act *a, bool wants_all) {
    shmq_queue *q = a->q[QUEUE_A];
    open_with(a, wants_all ? IS_NULL : IS_NOT_NULL);
    shmq_consumer_shm *consumer = shmq_row_at(q, a->row);
    shmq_subscription_begin(&subscription, wants, NULL); /* of what comes next it wants nothing; there is nothing yet */
    shmq_delivery d;
    (void)shmq_announce(q, a->row, false);
    if (shmq_offer_to(q, a->row, &subscription, &d) != SHMQ_EMPTY) {
        die("a sleeper finds something");
    }
    shmq_row_looked(q, consumer, &subscription);
    shmq_store_seq(&consumer->progress, d.seen.version);
    return &consumer->wake;
}

void act_as_selector(act *a) {
    act_row_open(a, QUEUE_A);
    shmq_subscription_begin(&subscription, wants, NULL);
}

void act_select_and_receive(act *a) {
    act_as_selector(a);
    act_receive_selected(a, QUEUE_A, 0);
}

static void expect(act *a, unsigned queue, uint64_t value) {
    arrival.by = *a;
    arrival.by.who = WHO_ACTOR;
    arrival.queue = queue;
    arrival.value = value;
}

void act_select_arrival(act *a, unsigned queue, uint64_t value) { expect(a, queue, value); }

void act_sleep_arrival(act *a, unsigned queue, uint64_t value) {
    expect(a, queue, value);
    virtual_before_sleep(arrive);
}

void act_receive_selected(act *a, unsigned queue, uint64_t until_ns) {
    act_receive_by(a, queue, &subscription, until_ns);
}
