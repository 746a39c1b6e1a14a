#include "act_select.h"

#include <string.h>

#include "shmq/subscription.h"
#include "virtual.h"

static shmq_subscription subscription;

/* What comes at a moment that only the core knows: put by this process in another one's name. */
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
