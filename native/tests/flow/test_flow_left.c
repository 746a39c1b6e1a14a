/* Takers that leave messages of a queue that has flowed to other consumers: of higher rank, or with a live place. */
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

/* The heir of a live place may be stopped: the next one gets the place after the patience. A taker that does not wait
 * would wait for that. */
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
    CHECK_EQUAL(poll_as(last, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_row_close(q, heir), SHMQ_OK);
    CHECK_EQUAL(poll_as(last, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(theirs, last), SHMQ_OK);
    get_numbers(q, number_of(&d) + 1, MANY - number_of(&d) - 1);
    end();
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

int main(void) {
    a_taker_that_does_not_wait_does_not_wait_for_an_heir();
    what_is_left_in_the_front_ring_is_not_looked_at();
    no_later_message_of_the_front_ring_is_taken_before_one_that_was_left();
    return 0;
}
