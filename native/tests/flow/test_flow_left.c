/* Takers that leave messages of a queue that has flowed to other consumers: of higher rank, or with a live place.
 * Shows G5. */
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "consumers/ranks.h"
#include "ring/ring.h"
#include "flow_select.h"

static uint32_t first, last; /* consumers: the first is of higher rank */
static shmq_subscription by; /* of the last */
static uint64_t bound;

static void begin_patient(void) {
    begin();
    m->patience_ns = other->patience_ns = 20 * SECOND; /* nobody is passed */
}

static void begin_ranked(shmq_wants wants) {
    begin_patient();
    CHECK_EQUAL(shmq_row_open_as(q, &(shmq_row_terms){.kind = SHMQ_CONSUMER, .priority = 1}, &first), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &last), SHMQ_OK);
    shmq_subscription_begin(&by, wants, &bound);
}

static void end_ranked(void) {
    CHECK_EQUAL(shmq_row_close(q, first), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(theirs, last), SHMQ_OK);
    shmq_subscription_end(&by);
    end();
}

static shmq_status poll_as(uint32_t row, shmq_delivery *d) {
    return shmq_receive(theirs, &(shmq_taking){.owner = row, .row = row}, d);
}

/* It would wait as for a mover. */
static void is_told_at_once(uint32_t row) {
    shmq_delivery d;
    uint64_t start = shmq_now_ns();
    CHECK_EQUAL(poll_as(row, &d), SHMQ_EMPTY);
    CHECK(shmq_now_ns() - start < 10 * SECOND);
}

/* The heir of a live place may be stopped: the next one gets the place after the patience. */
TEST(a_taker_that_does_not_wait_does_not_wait_for_an_heir) {
    begin_patient();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, shmq_load_seq(&q->first.shm->low)); /* the rest is on disk */
    shmq_delivery d;
    uint32_t live, heir;
    scratch_alter(q, SHMQ_SET_LIVE_CONSUMERS, 1);
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &live), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &heir), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &last), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, live), SHMQ_OK);
    is_told_at_once(last);
    CHECK_EQUAL(shmq_row_close(q, heir), SHMQ_OK);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(theirs, last), SHMQ_OK);
    get_numbers(q, number_of(&d) + 1, MANY - number_of(&d) - 1);
    end();
}

TEST(a_taker_that_does_not_wait_does_not_wait_for_one_of_higher_rank) {
    begin_ranked(is_any);
    put_numbers(q, 0, MANY);
    shmq_delivery d;
    shmq_want(q, first);
    is_told_at_once(last);
    shmq_want_end(q, first);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    get_numbers(q, 1, MANY - 1);
    end_ranked();
}

static bool is_below(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    return number_of(d) < *(uint64_t *)context;
}

/* It would have to be woken for them when the other one goes without them. */
TEST(what_is_left_in_the_front_ring_is_not_looked_at) {
    begin_ranked(is_below);
    put_numbers(q, 0, MANY);
    uint64_t next = shmq_load_seq(&q->first.shm->low);
    get_numbers(q, 0, next);
    shmq_delivery held = receive(q, shmq_self(q)), d;
    bound = number_of(&held) + 1;
    for (next = bound; shmq_flow_is_on(shmq_load_seq(&q->first.shm->flow)); next++) {
        get_numbers(q, next, 1);
    }
    CHECK_EQUAL(shmq_release(q, &held, false), SHMQ_OK); /* then it is alone in the front ring */
    shmq_want(q, first);
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(d.seen.why, SHMQ_LEFT_TO_OTHER);
    CHECK_EQUAL(d.seen.version, 0);
    shmq_want_end(q, first);
    get_numbers(q, bound - 1, 1);
    get_numbers(q, next, MANY - next);
    end_ranked();
}

#define LATER 100u /* numbers of messages that are asked for in the front ring */

static bool ends_the_want(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)context, (void)level;
    if (number_of(d) >= LATER) {
        shmq_want_end(q, first);
    }
    return true;
}

/* A message has come back, and is left to the other one, which takes none just when the taker looks at a later one. */
TEST(no_later_message_of_the_front_ring_is_taken_before_one_that_was_left) {
    begin_ranked(ends_the_want);
    put_numbers(q, 0, 1);
    shmq_delivery held = receive(q, shmq_self(q)), d; /* so it stays in the back ring */
    put_numbers(q, 1, MANY - 1);
    get_numbers(q, 1, LATER - 1);
    CHECK(shmq_load_seq(&shmq_front_of(&q->first)->shm->tail) > LATER);
    CHECK_EQUAL(shmq_release(q, &held, false), SHMQ_OK);
    shmq_want(q, first);
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(d.seen.why, SHMQ_LEFT_TO_OTHER);
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_place_of(theirs, &d), 0);
    shmq_offer_cancel(theirs, &d);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    end_ranked();
}

typedef struct waiter {
    pthread_t thread;
    shmq_queue *of;
    uint32_t row;
    shmq_subscription *by;
    shmq_delivery d;
    shmq_status status;
} waiter;

static void *wait_for_one(void *argument) {
    waiter *w = argument;
    const shmq_taking t = {.owner = w->row, .row = w->row, .by = w->by, .until_ns = shmq_now_ns() + 600 * SECOND};
    do {
        w->status = shmq_receive(w->of, &t, &w->d);
    } while (w->status == SHMQ_INTERRUPTED);
    return NULL;
}

static void start(waiter *w) { CHECK(pthread_create(&w->thread, NULL, wait_for_one, w) == 0); }

static void falls_asleep(const waiter *w) {
    for (;;) {
        bool idle = shmq_load_seq(&q->page->sleepers[w->row / 64].idle) >> w->row % 64 & 1;
        if (idle && shmq_load_seq(&shmq_row_at(q, w->row)->sleeps) != 0 && shmq_has_looked(q, w->row)) {
            return;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void gets(waiter *w, uint64_t number) {
    CHECK(pthread_join(w->thread, NULL) == 0);
    CHECK_EQUAL(w->status, SHMQ_OK);
    CHECK_EQUAL(number_of(&w->d), number);
    CHECK_EQUAL(shmq_settle(w->of, &w->d), SHMQ_OK);
}

static bool is_wanted(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    return number_of(d) == *(uint64_t *)context;
}

/* It sleeps, and need not be woken before that lock is free. It has not looked, though. */
TEST(a_message_is_left_to_one_that_found_the_lock_taken) {
    begin_ranked(is_wanted);
    bound = MANY - 1; /* in memory, behind all rows: who looks for it has to look at those */
    put_numbers(q, 0, MANY);
    shmq_subscription of_first;
    shmq_subscription_begin(&of_first, is_wanted, &bound);
    waiter higher = {.of = q, .row = first, .by = &of_first};
    hold_mover_lock(other, q, F_WRLCK);
    start(&higher);
    falls_asleep(&higher);
    hold_mover_lock(other, q, F_UNLCK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(d.seen.why, SHMQ_LEFT_TO_OTHER);
    gets(&higher, bound);
    shmq_subscription_end(&of_first);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    end_ranked();
}

/* ---- also in memory ------------------------------------------------------------------------------------------------- */

static bool puts_the_second(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level, (void)d;
    if (!*(bool *)context) {
        *(bool *)context = true;
        put_numbers(q, 1, 1);
    }
    return false;
}

/* As it was put, the other one was awake, and might have wanted it. */
TEST(a_consumer_that_goes_to_sleep_tells_others_of_what_it_does_not_want) {
    begin_ranked(is_wanted);
    bound = 1;
    shmq_subscription of_first;
    bool was_put = false;
    shmq_subscription_begin(&of_first, puts_the_second, &was_put);
    put_numbers(q, 0, 1);
    waiter lower = {.of = theirs, .row = last, .by = &by}, higher = {.of = q, .row = first, .by = &of_first};
    start(&lower);
    falls_asleep(&lower);
    start(&higher);
    gets(&lower, 1);
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    shmq_row_closing(q, first);
    CHECK(pthread_join(higher.thread, NULL) == 0);
    shmq_subscription_end(&of_first);
    get_numbers(q, 0, 1);
    end_ranked();
}

/* It may want nothing of what is left. Then the taker is the last one that could have it. */
TEST(what_was_left_is_not_the_end_of_a_queue_that_was_shut_down) {
    begin_ranked(is_any);
    put_numbers(q, 0, 1);
    shmq_delivery d;
    shmq_want(q, first);
    shmq_store_seq(&q->page->shut_down, SHMQ_DRAINING);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_EMPTY);
    shmq_want_end(q, first);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    shmq_want(q, first);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_SHUT_DOWN);
    shmq_want_end(q, first);
    end_ranked();
}

int main(void) { return run_tests(); }
