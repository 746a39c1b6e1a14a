/* Live places of a queue with live_consumers: offered, taken up, and passed when nobody comes for them. A stopped one is a
 * consumer that does nothing. */
#include "consumers/ranks.h"
#include "scratch_queue.h"

#define MANY 5

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static shmq_queue *limited(shmq_member *m, uint32_t live) {
    shmq_declaration d = {.create = true};
    shmq_declaration_give(&d, SHMQ_SET_LIVE_CONSUMERS, live);
    return scratch_declare(m, "jobs", d, 0);
}

static void attach(uint32_t live) {
    a = scratch_attach();
    b = scratch_attach();
    qa = limited(a, live);
    qb = limited(b, live);
}

/* On no machine, however busy, is the patience over before a test says so. */
static void begin(uint32_t live) {
    scratch_create_patient();
    attach(live);
}

static void begin_in_real_time(uint32_t live) {
    scratch_create(false);
    attach(live);
}

static void leave(shmq_member *m, shmq_queue *q) {
    shmq_queue_unbind(q);
    if (m->lock_fd >= 0) {
        CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
    }
    shmq_member_free(m);
}

static void end(void) {
    check_ring(qa);
    CHECK(shmq_consumers_fault(qa) == NULL);
    leave(b, qb);
    leave(a, qa);
    scratch_remove();
}

static uint32_t open_row(shmq_queue *q, int32_t priority) {
    uint32_t row = 0;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority};
    CHECK_EQUAL(shmq_row_open_as(q, &terms, &row), SHMQ_OK);
    return row;
}

static void close_row(shmq_queue *q, uint32_t row) { CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK); }

static uint32_t place_of(uint32_t row) { return shmq_load_seq(&shmq_row_at(qa, row)->live); }

static uint32_t wakes(uint32_t row) { return shmq_load_seq(&shmq_row_at(qa, row)->wake); }

/* A look, of a consumer that is about. True: it was given what is there. */
static bool looks(shmq_queue *q, uint32_t row) {
    shmq_delivery d;
    shmq_status status = shmq_offer(q, row, &d);
    if (status == SHMQ_OK) {
        shmq_offer_cancel(q, &d);
    }
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY);
    return status == SHMQ_OK;
}

static uint32_t served(shmq_queue *q, const uint32_t *rows, uint32_t count) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        all |= (uint32_t)looks(q, rows[i]) << i;
    }
    return all;
}

/* Consumers that are waited for have been since that much earlier. */
static void let_the_patience_pass(void) {
    for (uint32_t row = 1; row < SHMQ_ROWS_A_CHUNK; row++) {
        shmq_a64 *awaited = &shmq_row_at(qa, row)->awaited;
        uint64_t word = shmq_load_seq(awaited), units = (a->patience_ns >> 20) + 2;
        if (word != 0) {
            shmq_store_seq(awaited, word - (units << 24));
        }
    }
}

TEST(a_place_is_offered_and_its_owner_takes_it_up) {
    begin(1);
    uint32_t live = open_row(qa, 0), heir = open_row(qb, 0), behind = open_row(qa, 0);
    CHECK_EQUAL(place_of(live), SHMQ_LIVE_TAKEN); /* who opens is about */
    CHECK_EQUAL(place_of(heir), SHMQ_LIVE_NONE);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    uint32_t woken = wakes(heir), other = wakes(behind);
    close_row(qa, live);
    CHECK_EQUAL(place_of(heir), SHMQ_LIVE_OFFERED);
    CHECK(wakes(heir) > woken);
    CHECK_EQUAL(wakes(behind), other);
    CHECK(shmq_is_served(qa, heir) && !shmq_is_served(qa, behind));
    CHECK(!looks(qa, behind)); /* not before the patience is over */
    CHECK(looks(qb, heir));
    CHECK_EQUAL(place_of(heir), SHMQ_LIVE_TAKEN);
    let_the_patience_pass(); /* and then it does nothing: it keeps what it has taken up */
    CHECK(!looks(qa, behind));
    let_the_patience_pass();
    CHECK(!looks(qa, behind) && looks(qb, heir));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* Shows G4. */
TEST(a_place_that_nobody_takes_up_goes_to_the_next) {
    begin_in_real_time(1);
    uint32_t live = open_row(qa, 0), stopped = open_row(qb, 9), next = open_row(qa, 0), last = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    uint64_t began = shmq_now_ns();
    close_row(qa, live);
    CHECK_EQUAL(place_of(stopped), SHMQ_LIVE_OFFERED);
    while (!looks(qa, next)) {
        CHECK(place_of(next) == SHMQ_LIVE_NONE);
    }
    uint64_t over = shmq_now_ns();
    CHECK(over - began >= a->patience_ns);
    CHECK_EQUAL(place_of(stopped), SHMQ_LIVE_NONE);
    CHECK_EQUAL(place_of(next), SHMQ_LIVE_TAKEN);
    CHECK(!looks(qb, stopped)); /* it goes on: in reserve again, and the first there */
    let_the_patience_pass();
    CHECK(!looks(qb, stopped) && !looks(qa, last));
    close_row(qa, next);
    CHECK(!looks(qa, last) && looks(qb, stopped));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* It is the first again, and so is waited for; the others look before it does. */
TEST(one_that_comes_back_before_it_is_passed_has_its_place) {
    begin(1);
    uint32_t live = open_row(qa, 0), heir = open_row(qb, 0), next = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    CHECK(!looks(qa, next));
    let_the_patience_pass();
    CHECK(looks(qb, heir)); /* nobody has passed it yet */
    CHECK(!looks(qa, next));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* Shows G4. */
TEST(many_that_are_stopped_cost_as_much_as_two) {
    begin(1);
    uint32_t live = open_row(qa, 0), stopped[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        stopped[i] = open_row(qb, (int32_t)(MANY - i));
    }
    uint32_t next = open_row(qa, 0), last = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    let_the_patience_pass();
    CHECK(!looks(qa, next)); /* the second one is waited for, and all others are called with it */
    CHECK_EQUAL(place_of(stopped[1]), SHMQ_LIVE_OFFERED);
    uint32_t woken = wakes(stopped[MANY - 1]);
    CHECK(woken != 0 && wakes(next) != 0);
    CHECK(!looks(qa, next) && !looks(qa, last)); /* they hear the call */
    let_the_patience_pass();
    CHECK(!looks(qa,
                 last)); /* the third one is not waited for; the next has made a step, and is the first of the living */
    CHECK_EQUAL(place_of(next), SHMQ_LIVE_OFFERED);
    CHECK(looks(qa, next) && !looks(qa, last));
    CHECK_EQUAL(served(qb, stopped, MANY), 0);
    close_row(qa, next);
    CHECK(!looks(qa, last));
    CHECK_EQUAL(served(qb, stopped, MANY), 1);
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* Nobody but who looks takes a place from one that does not: opening and closing is no reason. */
TEST(while_nobody_waits_a_place_is_kept) {
    begin(1);
    uint32_t live = open_row(qa, 0), away = open_row(qb, 0), also_away = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    let_the_patience_pass();
    close_row(qa, open_row(qa, 0));
    CHECK_EQUAL(place_of(away), SHMQ_LIVE_OFFERED);
    CHECK(looks(qb, away));
    close_row(qb, away);
    let_the_patience_pass();
    CHECK_EQUAL(place_of(also_away), SHMQ_LIVE_OFFERED);
    uint32_t newcomer = open_row(qa, 0);
    CHECK_EQUAL(place_of(also_away), SHMQ_LIVE_OFFERED);
    CHECK(looks(qa, newcomer)); /* and its first look is enough */
    CHECK(!looks(qa, also_away));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

TEST(the_next_live_one_is_one_that_was_called_and_came) {
    begin(1);
    uint32_t live = open_row(qa, 0), silent = open_row(qb, 0), next = open_row(qa, 0), last = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    let_the_patience_pass();
    CHECK(looks(qa, next));
    CHECK(!looks(qa, last));
    close_row(qa, next); /* the oldest of those who are left has been called, and has made no step since */
    CHECK_EQUAL(place_of(last), SHMQ_LIVE_OFFERED);
    CHECK(!looks(qb, silent) && looks(qa, last));
    close_row(qa, last);
    CHECK(looks(qb, silent));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

TEST(one_that_died_before_it_came_is_passed_at_once) {
    begin(1);
    uint32_t live = open_row(qa, 0), dead = open_row(qb, 0), next = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    CHECK_EQUAL(place_of(dead), SHMQ_LIVE_OFFERED);
    scratch_kill(b);
    CHECK(looks(qa, next));
    CHECK_EQUAL(place_of(dead), SHMQ_LIVE_NONE);
    reap_all(a, 1);
    CHECK(looks(qa, next));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

TEST(no_more_than_so_many_have_a_place) {
    begin(2);
    uint32_t first = open_row(qa, 0), second = open_row(qa, 0), stopped[2] = {open_row(qb, 5), open_row(qb, 4)};
    uint32_t next[2] = {open_row(qa, 0), open_row(qa, 0)};
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, first);
    close_row(qa, second);
    CHECK(place_of(stopped[0]) == SHMQ_LIVE_OFFERED && place_of(stopped[1]) == SHMQ_LIVE_OFFERED);
    CHECK_EQUAL(served(qa, next, 2), 0);
    let_the_patience_pass();
    (void)looks(qa, next[1]);
    CHECK_EQUAL(served(qa, next, 2), 3);
    CHECK_EQUAL(served(qb, stopped, 2), 0);
    let_the_patience_pass();
    CHECK_EQUAL(served(qb, stopped, 2), 0);
    close_row(qa, next[0]);
    CHECK_EQUAL(served(qb, stopped, 2), 1);
    CHECK(looks(qa, next[1]));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

static void live_consumers(uint32_t number) { scratch_alter(qa, SHMQ_SET_LIVE_CONSUMERS, number); }

/* While there is no limit all take something, without a word: so all have their place for good. */
TEST(without_a_limit_all_have_taken_up_their_place) {
    begin(1);
    uint32_t row[3] = {open_row(qa, 0), open_row(qb, 0), open_row(qa, 0)};
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, row[0]);
    CHECK_EQUAL(place_of(row[1]), SHMQ_LIVE_OFFERED);
    live_consumers(0);
    CHECK(place_of(row[1]) == SHMQ_LIVE_TAKEN && place_of(row[2]) == SHMQ_LIVE_TAKEN);
    live_consumers(1);
    uint32_t late = open_row(qa, 0);
    let_the_patience_pass();
    CHECK(!looks(qa, late));
    CHECK(looks(qb, row[1]) && looks(qa, row[2]));
    close_row(qb, row[1]);
    CHECK(!looks(qa, late));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* When the limit was lowered, one that is passed has no heir until there are fewer. */
TEST(beyond_a_lower_limit_nobody_is_passed) {
    begin(2);
    uint32_t live = open_row(qa, 0), gone = open_row(qa, 0), stopped = open_row(qb, 9), next = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, gone);
    live_consumers(1);
    let_the_patience_pass();
    CHECK(!looks(qa, next) && looks(qa, live));
    CHECK_EQUAL(place_of(stopped), SHMQ_LIVE_OFFERED);
    close_row(qa, live);
    CHECK(looks(qa, next));
    CHECK(!looks(qb, stopped));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* Neither a rescue nor a wait for the lock: one that was asleep comes to what is there by its own look. */
TEST(one_that_waits_passes_a_stopped_one_and_is_not_rescued) {
    begin_in_real_time(1);
    uint32_t live = open_row(qa, 0), stopped = open_row(qb, 0), next = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    shmq_delivery d;
    shmq_status status;
    do {
        status = shmq_offer_wait(qa, next, next, shmq_now_ns() + 5 * SECOND, &d);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 7);
    CHECK_EQUAL(shmq_offer_finish(qa, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&a->header->rescues), 0);
    CHECK_EQUAL(place_of(stopped), SHMQ_LIVE_NONE);
    end();
}

TEST(while_the_lock_is_held_nobody_is_passed_and_nobody_waits) {
    begin(1);
    uint32_t live = open_row(qa, 0), stopped = open_row(qb, 0), next = open_row(qa, 0);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    close_row(qa, live);
    let_the_patience_pass();
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    CHECK(!looks(qa, next));
    CHECK_EQUAL(place_of(stopped), SHMQ_LIVE_OFFERED);
    shmq_structure_unlock(b);
    CHECK(looks(qa, next));
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

int main(void) { return run_tests(); }
