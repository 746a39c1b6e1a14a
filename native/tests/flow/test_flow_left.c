/* Takers that leave messages of a queue that has flowed to other consumers: of higher rank, or with a live place. */
#include <pthread.h>
#include <time.h>

#include "flow_select.h"
#include "shmq/ranks.h"

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
static void a_taker_that_does_not_wait_does_not_wait_for_an_heir(void) {
    begin_patient();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, shmq_load_seq(&q->first.shm->low)); /* the rest is on disk */
    shmq_delivery d;
    uint32_t live, heir;
    shmq_declaration limit = {0};
    int differs = -1;
    shmq_declaration_give(&limit, SHMQ_SET_LIVE_CONSUMERS, 1);
    CHECK_EQUAL(shmq_queue_alter(q, &limit, &differs), SHMQ_OK);
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

static void a_taker_that_does_not_wait_does_not_wait_for_one_of_higher_rank(void) {
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
static void what_is_left_in_the_front_ring_is_not_looked_at(void) {
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
    CHECK(d.left);
    CHECK_EQUAL(d.version, 0);
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
static void no_later_message_of_the_front_ring_is_taken_before_one_that_was_left(void) {
    begin_ranked(ends_the_want);
    put_numbers(q, 0, MANY);
    shmq_delivery held = receive(q, shmq_self(q)), d;
    for (uint64_t next = 1; shmq_load_seq(&q->first.shm->pulled) == 0; next++) {
        get_numbers(q, next, 1);
    }
    CHECK_EQUAL(shmq_release(q, &held, false), SHMQ_OK);
    shmq_want(q, first);
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_EMPTY);
    CHECK(d.left);
    CHECK_EQUAL(shmq_offer_to(theirs, last, &by, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_place_of(theirs, &d), 0);
    shmq_offer_cancel(theirs, &d);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    end_ranked();
}

/* ---- also in memory ------------------------------------------------------------------------------------------------- */

static shmq_delivery got;
static shmq_status status_of_last;

static void *wait_as_last(void *argument) {
    (void)argument;
    const shmq_taking t = {.owner = last, .row = last, .by = &by, .until_ns = shmq_now_ns() + 600 * SECOND};
    do {
        status_of_last = shmq_receive(theirs, &t, &got);
    } while (status_of_last == SHMQ_INTERRUPTED);
    return NULL;
}

static bool last_sleeps(void) {
    bool idle = shmq_load_seq(&q->page->sleepers[last / 64].idle) >> last % 64 & 1;
    return idle && shmq_load_seq(&shmq_row_at(q, last)->sleeps) != 0 && shmq_has_looked(q, last);
}

static bool wants_the_second(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)context, (void)level;
    return number_of(d) == 1;
}

static bool puts_the_second(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level, (void)d;
    if (!*(bool *)context) {
        *(bool *)context = true;
        put_numbers(q, 1, 1);
    }
    return false;
}

static void *wait_as_first(void *argument) {
    shmq_delivery d;
    const shmq_taking t = {.owner = first, .row = first, .by = argument, .until_ns = shmq_now_ns() + 600 * SECOND};
    while (shmq_receive(q, &t, &d) == SHMQ_INTERRUPTED) {
    }
    return NULL;
}

/* As it was put, the other one was awake, and might have wanted it. */
static void a_consumer_that_goes_to_sleep_tells_others_of_what_it_does_not_want(void) {
    begin_ranked(wants_the_second);
    shmq_subscription of_first;
    bool was_put = false;
    shmq_subscription_begin(&of_first, puts_the_second, &was_put);
    put_numbers(q, 0, 1);
    pthread_t sleeper, higher;
    CHECK(pthread_create(&sleeper, NULL, wait_as_last, NULL) == 0);
    while (!last_sleeps()) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    CHECK(pthread_create(&higher, NULL, wait_as_first, &of_first) == 0);
    CHECK(pthread_join(sleeper, NULL) == 0);
    CHECK_EQUAL(status_of_last, SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &got), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    shmq_row_closing(q, first);
    CHECK(pthread_join(higher, NULL) == 0);
    shmq_subscription_end(&of_first);
    get_numbers(q, 0, 1);
    end_ranked();
}

/* It may want nothing of what is left. Then the taker is the last one that could have it. */
static void what_was_left_is_not_the_end_of_a_queue_that_was_shut_down(void) {
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

int main(void) {
    a_taker_that_does_not_wait_does_not_wait_for_an_heir();
    a_taker_that_does_not_wait_does_not_wait_for_one_of_higher_rank();
    what_is_left_in_the_front_ring_is_not_looked_at();
    no_later_message_of_the_front_ring_is_taken_before_one_that_was_left();
    a_consumer_that_goes_to_sleep_tells_others_of_what_it_does_not_want();
    what_was_left_is_not_the_end_of_a_queue_that_was_shut_down();
    return 0;
}
