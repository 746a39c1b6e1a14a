/* Which of several consumers is served: worked out from their rows, and in force for every look. */
#include "consumers/ranks.h"
#include "ring/version.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(uint32_t live) {
    shmq_declaration d = {.create = true};
    int differs = -1;
    scratch_create(false);
    m = scratch_attach();
    if (live != 0) {
        shmq_declaration_give(&d, SHMQ_SET_LIVE_CONSUMERS, live);
    }
    CHECK_EQUAL(shmq_queue_declare(m, "jobs", 4, &d, &q, &differs), SHMQ_OK);
}

static void end(void) {
    check_ring(q);
    scratch_close(m, q);
    scratch_remove();
}

static uint32_t open_row(int32_t priority, bool exclusive) {
    uint32_t row = 0;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority, .exclusive = exclusive};
    CHECK_EQUAL(shmq_row_open_as(q, &terms, &row), SHMQ_OK);
    return row;
}

static uint32_t terms_now(void) { return shmq_load_seq(&q->page->terms); }

TEST(test_terms_follow_the_rows) {
    begin(0);
    uint32_t plain = open_row(0, false);
    CHECK_EQUAL(terms_now(), 0);
    uint32_t high = open_row(3, false);
    CHECK_EQUAL(terms_now(), SHMQ_TERM_RANKED);
    CHECK_EQUAL(shmq_row_close(q, high), SHMQ_OK);
    CHECK_EQUAL(terms_now(), 0);
    shmq_row_terms alone = {.kind = SHMQ_CONSUMER, .exclusive = true};
    uint32_t row;
    CHECK_EQUAL(shmq_row_open_as(q, &alone, &row), SHMQ_REFUSED);
    CHECK_EQUAL(shmq_row_close(q, plain), SHMQ_OK);
    uint32_t exclusive = open_row(0, true);
    CHECK_EQUAL(terms_now(), SHMQ_TERM_EXCLUSIVE);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_REFUSED);
    CHECK_EQUAL(shmq_offer(q, exclusive, &d), SHMQ_OK);
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(shmq_row_close(q, exclusive), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

TEST(test_so_many_are_live_by_priority_and_age) {
    begin(2);
    uint32_t row[4] = {open_row(0, false), open_row(0, false), open_row(0, false), open_row(5, false)};
    CHECK_EQUAL(terms_now(), SHMQ_TERM_RANKED | SHMQ_TERM_LIMITED);
    CHECK(shmq_is_served(q, row[0]) && shmq_is_served(q, row[1]));
    CHECK(!shmq_is_served(q, row[2]) && !shmq_is_served(q, row[3]));
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, row[2], &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_row_close(q, row[0]), SHMQ_OK);
    CHECK(shmq_is_served(q, row[3]) && !shmq_is_served(q, row[2]));
    CHECK_EQUAL(shmq_row_close(q, row[3]), SHMQ_OK);
    CHECK(shmq_is_served(q, row[2]));
    CHECK_EQUAL(shmq_row_close(q, row[1]), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, row[2]), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

TEST(test_what_a_higher_one_wants_is_left_to_it) {
    begin(0);
    uint32_t low = open_row(-1, false), high = open_row(1, false);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, low, &d), SHMQ_OK);
    shmq_offer_cancel(q, &d);
    shmq_want(q, high);
    CHECK_EQUAL(shmq_offer(q, low, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_offer(q, high, &d), SHMQ_OK);
    shmq_offer_cancel(q, &d);
    shmq_store_seq(&shmq_row_at(q, high)->progress, shmq_version(q)); /* it has looked, and wants none of it */
    CHECK_EQUAL(shmq_offer(q, low, &d), SHMQ_OK);
    shmq_offer_cancel(q, &d);
    shmq_store_seq(&shmq_row_at(q, high)->progress, 0);
    CHECK_EQUAL(shmq_offer(q, low, &d), SHMQ_EMPTY);
    shmq_want_end(q, high);
    CHECK_EQUAL(shmq_offer(q, low, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, low), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, high), SHMQ_OK);
    end();
}

/* ---- who goes before whom ---------------------------------------------------------------------------------------- */

static shmq_status offer_and_cancel(shmq_queue *queue, uint32_t owner) {
    shmq_delivery d;
    shmq_status status = shmq_offer(queue, owner, &d);
    if (status == SHMQ_OK) {
        shmq_offer_cancel(queue, &d);
    }
    return status;
}

/* Until it has been seen for the patience; answers how often it was looked. */
static uint32_t offer_until_given(uint32_t owner) {
    for (uint32_t looks = 1;; looks++) {
        if (offer_and_cancel(q, owner) == SHMQ_OK) {
            return looks;
        }
        shmq_pause();
    }
}

TEST(test_one_that_is_stopped_is_in_the_way_for_the_patience_only) {
    begin(0);
    uint32_t low = open_row(0, false), high = open_row(1, false);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_want(q, high);
    uint64_t began = shmq_now_ns();
    CHECK(offer_until_given(low) > 1);
    CHECK(shmq_now_ns() - began >= m->patience_ns);
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_OK); /* and from now on it is in nobody's way */
    shmq_want(q, high);                             /* until it makes a step */
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_EMPTY);
    shmq_want_end(q, high);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

TEST(test_who_has_no_consumer_stands_at_zero) {
    begin(0);
    uint32_t low = open_row(-1, false), same = open_row(0, false), high = open_row(1, false);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_want(q, low);
    shmq_want(q, same);
    CHECK_EQUAL(offer_and_cancel(q, shmq_self(q)), SHMQ_OK);
    CHECK_EQUAL(offer_and_cancel(q, same), SHMQ_OK); /* nobody is in his own way */
    shmq_want(q, high);
    CHECK_EQUAL(offer_and_cancel(q, shmq_self(q)), SHMQ_EMPTY);
    CHECK_EQUAL(offer_and_cancel(q, high), SHMQ_OK);
    shmq_want_end(q, low);
    shmq_want_end(q, same);
    shmq_want_end(q, high);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

/* A dead one, one that has left, a row that there is not: what they want counts for nothing. */
TEST(test_what_nobody_wants_any_more_is_for_others) {
    begin(0);
    shmq_member *other = scratch_attach();
    shmq_queue *others = scratch_queue(other, "jobs", 0, true);
    uint32_t low = open_row(-1, false), dead = 0, getter = 0;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = 7};
    CHECK_EQUAL(shmq_row_open_as(others, &terms, &dead), SHMQ_OK);
    terms.kind = SHMQ_GETTER;
    CHECK_EQUAL(shmq_row_open_as(q, &terms, &getter), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_want(q, getter);
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_OK);
    shmq_want_end(q, getter);
    shmq_want(others, dead);
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_EMPTY);
    scratch_kill(other);
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_OK);
    reap_all(m, 1);
    shmq_or_seq(&q->page->sleepers[dead / 64].want, UINT64_C(1) << dead % 64);
    shmq_or_seq(&q->page->sleepers[SHMQ_CHUNKS - 1].want, 1);
    shmq_want(q, SHMQ_CONSUMER_ROWS - 1); /* of a chunk that nobody has made */
    CHECK_EQUAL(offer_and_cancel(q, low), SHMQ_OK);
    shmq_want_end(q, dead);
    shmq_want_end(q, (SHMQ_CHUNKS - 1) * 64);
    CHECK_EQUAL(get_number(q), 1);
    shmq_queue_unbind(others);
    shmq_member_free(other);
    end();
}

/* ---- who is woken ------------------------------------------------------------------------------------------------ */

static uint32_t wakes(uint32_t row) { return shmq_load_seq(&shmq_row_at(q, row)->wake); }

static bool is_idle(uint32_t row) { return shmq_load_seq(&q->page->sleepers[row / 64].idle) >> row % 64 & 1; }

static void sleep_on(uint32_t row) { (void)shmq_announce(q, row, false); }

TEST(test_the_highest_that_sleeps_is_woken) {
    begin(0);
    uint32_t low = open_row(-3, false), high = open_row(3, false), middle = open_row(0, false);
    shmq_notify(q); /* with nobody to wake */
    CHECK_EQUAL(wakes(low) + wakes(middle) + wakes(high), 0);
    sleep_on(low);
    sleep_on(high);
    sleep_on(middle);
    shmq_notify(q);
    CHECK(is_idle(low) && is_idle(middle) && !is_idle(high));
    shmq_store_seq(&shmq_row_at(q, middle)->progress, shmq_version(q)); /* it has looked at all that there is */
    shmq_notify(q);
    CHECK(!is_idle(low) && is_idle(middle));
    shmq_notify(q);
    CHECK(is_idle(middle));
    shmq_store_seq(&shmq_row_at(q, middle)->progress, 0);
    shmq_notify(q);
    CHECK_EQUAL(wakes(low), 1);
    CHECK_EQUAL(wakes(middle), 1);
    CHECK_EQUAL(wakes(high), 1);
    end();
}

/* One that is awake looks by itself; and wakes another when it has taken nothing. */
TEST(test_for_one_of_higher_priority_that_is_awake_nobody_is_woken) {
    begin(0);
    uint32_t low = open_row(-1, false), high = open_row(1, false), least = open_row(-2, false);
    sleep_on(low);
    shmq_want(q, high);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(is_idle(low));
    shmq_want_end(q, high);
    CHECK(!is_idle(low));
    CHECK_EQUAL(get_number(q), 1);
    sleep_on(low);
    shmq_want(q, high);
    shmq_want_end(q, high); /* nothing is left */
    CHECK(is_idle(low));
    shmq_want(q, least); /* awake, but behind it */
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK(!is_idle(low));
    shmq_want_end(q, least);
    CHECK_EQUAL(get_number(q), 2);
    end();
}

TEST(test_a_dead_sleeper_does_not_keep_a_wake) {
    begin(0);
    shmq_member *other = scratch_attach();
    shmq_queue *others = scratch_queue(other, "jobs", 0, true);
    uint32_t low = open_row(-1, false), dead = 0;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = 7};
    CHECK_EQUAL(shmq_row_open_as(others, &terms, &dead), SHMQ_OK);
    (void)shmq_announce(others, dead, false);
    sleep_on(low);
    scratch_kill(other);
    shmq_notify(q);
    CHECK(!is_idle(dead) && !is_idle(low));
    CHECK_EQUAL(wakes(low), 1);
    shmq_or_seq(&q->page->sleepers[SHMQ_CHUNKS - 1].idle, 1); /* a row that there is not */
    shmq_notify(q);
    shmq_and_seq(&q->page->sleepers[SHMQ_CHUNKS - 1].idle, 0);
    reap_all(m, 1);
    shmq_queue_unbind(others);
    shmq_member_free(other);
    end();
}

/* Asleep in its call, or awake between two looks: there is nobody that would look by itself. Shows G4. */
TEST(test_for_one_that_died_amid_its_wait_the_next_is_woken) {
    for (uint32_t asleep = 0; asleep < 2; asleep++) {
        begin(0);
        shmq_member *other = scratch_attach();
        shmq_queue *others = scratch_queue(other, "jobs", 0, true);
        uint32_t low = open_row(0, false), dead = 0;
        shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = 1};
        CHECK_EQUAL(shmq_row_open_as(others, &terms, &dead), SHMQ_OK);
        shmq_want(others, dead);
        if (asleep != 0) {
            (void)shmq_announce(others, dead, false);
        }
        sleep_on(low);
        shmq_notify(q);
        CHECK(!is_idle(dead) && is_idle(low)); /* while it lives it looks by itself */
        if (asleep != 0) {
            (void)shmq_announce(others, dead, false);
        }
        scratch_kill(other);
        shmq_notify(q);
        CHECK(!is_idle(dead) && !is_idle(low));
        CHECK_EQUAL(wakes(low), 1);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK); /* and whoever has met it reaps it */
        CHECK_EQUAL(shmq_row_state(shmq_load_seq(&m->rows[other->row].word)), SHMQ_ROW_FREE);
        (void)shmq_withdraw(q, low, false);
        CHECK_EQUAL(get_number(q), 1);
        shmq_queue_unbind(others);
        shmq_member_free(other);
        end();
    }
}

/* ---- live and exclusive ------------------------------------------------------------------------------------------ */

static void live_consumers(uint32_t live) { scratch_alter(q, SHMQ_SET_LIVE_CONSUMERS, live); }

/* Which of the five are served, the first one's bit the lowest. */
static uint32_t served(const uint32_t row[5]) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < 5; i++) {
        all |= (uint32_t)shmq_is_served(q, row[i]) << i;
    }
    return all;
}

static uint32_t privileges(void) { return shmq_load_seq(&m->process->privileges); }

/* A live consumer has a privilege, so that the watch looks after its process. Shows G4. */
TEST(test_who_keeps_others_waiting_has_a_privilege) {
    begin(1);
    uint32_t first = open_row(0, false);
    CHECK_EQUAL(privileges(), 1); /* before it receives anything */
    uint32_t second = open_row(0, false);
    CHECK_EQUAL(offer_and_cancel(q, second), SHMQ_EMPTY);
    CHECK_EQUAL(privileges(), 1);
    CHECK_EQUAL(shmq_row_close(q, first), SHMQ_OK);
    CHECK_EQUAL(privileges(), 0);
    CHECK_EQUAL(offer_and_cancel(q, second), SHMQ_EMPTY); /* live now, and the queue is empty */
    CHECK_EQUAL(offer_and_cancel(q, second), SHMQ_EMPTY);
    CHECK_EQUAL(privileges(), 1);
    live_consumers(0);
    uint32_t plain = open_row(0, false);
    CHECK_EQUAL(privileges(), 1);
    CHECK_EQUAL(shmq_row_close(q, second), SHMQ_OK);
    CHECK_EQUAL(privileges(), 0);
    live_consumers(1); /* it finds out at its next look */
    CHECK_EQUAL(privileges(), 0);
    CHECK_EQUAL(offer_and_cancel(q, plain), SHMQ_EMPTY);
    CHECK_EQUAL(privileges(), 1);
    CHECK_EQUAL(shmq_row_close(q, plain), SHMQ_OK);
    CHECK_EQUAL(privileges(), 0);
    end();
}

/* Else it would get what stands behind that before it. */
TEST(test_nobody_follows_a_dead_one_before_its_messages_are_back) {
    begin(1);
    shmq_member *other = scratch_attach();
    shmq_queue *others = scratch_queue(other, "jobs", 0, true);
    uint32_t dead;
    shmq_delivery d;
    CHECK_EQUAL(shmq_row_open(others, SHMQ_CONSUMER, &dead), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(others, dead, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(others, &d), SHMQ_OK);
    uint32_t next = open_row(0, false), late = open_row(0, false);
    scratch_kill(other);
    CHECK_EQUAL(shmq_row_close(q, late), SHMQ_OK); /* who is live is worked out anew */
    CHECK_EQUAL(offer_and_cancel(q, next), SHMQ_EMPTY);
    late = open_row(0, false); /* reaps first */
    CHECK_EQUAL(shmq_offer(q, next, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 1);
    shmq_offer_cancel(q, &d);
    reap_all(m, 0);
    CHECK_EQUAL(offer_and_cancel(q, late), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_row_close(q, late), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, next), SHMQ_OK);
    shmq_queue_unbind(others);
    shmq_member_free(other);
    end();
}

TEST(test_a_limit_may_be_lowered_raised_and_taken_away) {
    begin(4);
    uint32_t row[5] = {open_row(2, false), open_row(0, false), open_row(1, false), open_row(1, false),
                       open_row(2, false)};
    CHECK_EQUAL(served(row), 1 + 2 + 4 + 8);
    live_consumers(2);
    CHECK_EQUAL(served(row), 1 + 2 + 4 + 8); /* who is live stays so */
    uint32_t woken = wakes(row[4]);
    CHECK_EQUAL(shmq_row_close(q, row[0]), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, row[1]), SHMQ_OK);
    CHECK_EQUAL(served(row) & 28, 4 + 8); /* nobody follows while there are enough */
    CHECK_EQUAL(wakes(row[4]), woken);
    CHECK_EQUAL(shmq_row_close(q, row[2]), SHMQ_OK);
    CHECK_EQUAL(served(row) & 24, 8 + 16);
    CHECK(wakes(row[4]) > woken);
    uint32_t last = open_row(9, false), more = open_row(0, false);
    CHECK(!shmq_is_served(q, last) && !shmq_is_served(q, more));
    live_consumers(3);
    CHECK(shmq_is_served(q, last) && !shmq_is_served(q, more));
    live_consumers(1);
    CHECK(shmq_is_served(q, last) && !shmq_is_served(q, more));
    CHECK(shmq_is_served(q, shmq_self(q))); /* who has no consumer is not counted */
    CHECK(shmq_is_served(q, 0));
    live_consumers(0);
    CHECK(shmq_is_served(q, more));
    CHECK_EQUAL(terms_now(), SHMQ_TERM_RANKED);
    live_consumers(1);
    CHECK_EQUAL(served(row) & 24, 8 + 16);
    CHECK(shmq_is_served(q, last) && shmq_is_served(q, more));
    CHECK(!shmq_is_served(q, open_row(9, false)));
    end();
}

TEST(test_a_dead_exclusive_one_is_in_nobodys_way) {
    begin(0);
    shmq_member *other = scratch_attach();
    shmq_queue *others = scratch_queue(other, "jobs", 0, true);
    shmq_row_terms alone = {.kind = SHMQ_CONSUMER, .exclusive = true}, plain = {.kind = SHMQ_CONSUMER};
    uint32_t dead = 0, row = 0;
    CHECK_EQUAL(shmq_row_open_as(others, &alone, &dead), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open_as(q, &plain, &row), SHMQ_REFUSED);
    CHECK(strstr(shmq_trail(), "it has an exclusive consumer") != NULL);
    CHECK_EQUAL(shmq_row_open_as(q, &alone, &row), SHMQ_REFUSED);
    CHECK_EQUAL(offer_and_cancel(q, shmq_self(q)), SHMQ_REFUSED);
    uint32_t getter = 0;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_GETTER, &getter), SHMQ_OK); /* it may wait; and is told when it looks */
    CHECK_EQUAL(offer_and_cancel(q, getter), SHMQ_REFUSED);
    CHECK_EQUAL(offer_and_cancel(others, dead), SHMQ_OK);
    scratch_kill(other);
    CHECK_EQUAL(terms_now(), SHMQ_TERM_EXCLUSIVE); /* nobody has buried it yet */
    CHECK_EQUAL(offer_and_cancel(q, shmq_self(q)), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open_as(q, &plain, &row), SHMQ_OK);
    CHECK_EQUAL(terms_now(), 0);
    CHECK_EQUAL(shmq_row_open_as(q, &alone, &row), SHMQ_REFUSED);
    CHECK(strstr(shmq_trail(), "it has another consumer") != NULL);
    reap_all(m, 0); /* who opened had what it held put back first */
    CHECK_EQUAL(get_number(q), 1);
    shmq_queue_unbind(others);
    shmq_member_free(other);
    end();
}

TEST(test_one_that_stands_by_waits_and_takes_nothing) {
    begin(1);
    uint32_t live = open_row(0, false), by = open_row(0, false);
    shmq_delivery d;
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_wait(q, by, by, shmq_now_ns() + 2000000, &d), SHMQ_EMPTY);
    CHECK(!is_idle(by)); /* and never said that it could be woken for a message */
    CHECK_EQUAL(shmq_offer_wait(q, live, live, shmq_now_ns() + 2000000, &d), SHMQ_OK);
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(shmq_row_close(q, live), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_wait(q, by, by, shmq_now_ns() + 2000000, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    end();
}

/* A put that finds the higher one awake wakes nobody: it looks by itself, or tells the others when it goes. */
TEST(test_who_wants_no_more_wakes_those_who_wait) {
    begin(0);
    uint32_t low = open_row(0, false), high = open_row(3, false);
    shmq_want(q, high);
    (void)shmq_announce(q, low, false);
    uint32_t seen = shmq_load_seq(&shmq_row_at(q, low)->wake);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(shmq_anybody_idle(q));
    CHECK_EQUAL(shmq_load_seq(&shmq_row_at(q, low)->wake), seen);
    shmq_want_end(q, high);
    CHECK(!shmq_anybody_idle(q));
    CHECK_EQUAL(shmq_load_seq(&shmq_row_at(q, low)->wake), seen + 1);
    (void)shmq_withdraw(q, low, false);
    CHECK_EQUAL(shmq_row_close(q, high), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, low), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

int main(void) { return run_tests(); }
