/* Claims to be first that nobody uses: of a watcher, its deputy, a volunteer, consumers of higher priority, in reserve. A
 * stopped process is a member of this process that does nothing. */
#include "consumers/ranks.h"
#include "wake/due.h"
#include "wake/watch.h"
#include "scratch_queue.h"

#define MANY 5

static shmq_member *a, *b, *c;
static shmq_queue *qa, *qb, *qc;

static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    c = scratch_attach();
    qa = scratch_queue(a, "jobs", 0, false);
    qb = scratch_queue(b, "jobs", 0, false);
    qc = scratch_queue(c, "jobs", 0, false);
}

static void end(void) {
    check_ring(qa);
    CHECK(shmq_watch_fault(a) == NULL);
    scratch_close_unless_dead(c, qc);
    scratch_close_unless_dead(b, qb);
    scratch_close_unless_dead(a, qa);
    scratch_remove();
}

/* ---- the watch --------------------------------------------------------------------------------------------------- */

static shmq_a32 *word_of(shmq_member *m) { return &m->process->wake_words[0]; }

static void enter(shmq_watcher *w, shmq_member *m) { shmq_watch_enter(w, m, word_of(m)); }

static uint64_t place(int number) { return shmq_load_seq(&a->header->watch[number]); }

static uint64_t looked(int number) { return shmq_load_seq(&a->header->watch_looked[number]); }

static void let_the_patience_pass(void) {
    uint64_t until = shmq_now_ns() + a->patience_ns + SECOND / 500; /* times in rows are rounded up */
    while (shmq_now_ns() <= until) {
        shmq_pause();
    }
}

/* A fourth one: those that sleep are `a` to `c`. */
static shmq_member *holder;
static shmq_queue *held_from;

static void somebody_holds(void) {
    holder = scratch_attach();
    held_from = scratch_queue(holder, "jobs", 0, false);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    (void)receive(held_from, shmq_self(held_from));
}

static void it_is_killed(void) { scratch_kill(holder); }

static void forget_the_holder(void) {
    shmq_queue_unbind(held_from);
    shmq_member_free(holder);
}

/* Shows G4. */
TEST(a_watcher_that_does_not_look_loses_its_place) {
    begin();
    shmq_watcher stopped, next;
    enter(&stopped, a);
    CHECK_EQUAL(stopped.index, 0);
    somebody_holds();
    it_is_killed();
    let_the_patience_pass();
    enter(&next, b);
    CHECK_EQUAL(next.index, 0);
    CHECK_EQUAL(get_number(qc), 7); /* with others at once, and not a tick later */
    uint64_t taken = place(0), since = looked(0);
    CHECK_EQUAL(shmq_watch_slice(&stopped, SECOND), SECOND); /* it goes on: as one of those who sleep */
    CHECK_EQUAL(stopped.index, -1);
    shmq_watch_tick(&stopped);
    shmq_watch_leave(&stopped);
    CHECK_EQUAL(place(0), taken);
    CHECK_EQUAL(looked(0), since);
    shmq_watch_leave(&next);
    forget_the_holder();
    end();
}

/* Nor if it goes on as another thread of the process that has the place now. */
TEST(another_thread_of_the_same_process_may_have_the_place) {
    begin();
    shmq_watcher stopped, next;
    enter(&stopped, a);
    somebody_holds();
    let_the_patience_pass();
    shmq_watch_enter(&next, a, &a->process->wake_words[1]);
    CHECK_EQUAL(next.index, 0);
    CHECK_EQUAL(shmq_watch_slice(&stopped, SECOND), SECOND);
    CHECK_EQUAL(stopped.index, -1);
    shmq_watch_leave(&stopped);
    CHECK(place(0) != 0);
    CHECK_EQUAL(shmq_watch_slice(&next, SECOND), SHMQ_TICK_NS);
    shmq_watch_leave(&next);
    CHECK_EQUAL(place(0), 0);
    it_is_killed();
    reap_all(a, 1);
    CHECK_EQUAL(get_number(qc), 7);
    forget_the_holder();
    end();
}

TEST(who_looks_keeps_its_place_and_so_does_one_that_has_nothing_to_look_at) {
    begin();
    shmq_watcher watcher, other;
    enter(&watcher, a);
    let_the_patience_pass();
    enter(&other, b);
    CHECK_EQUAL(watcher.index, 0);
    CHECK_EQUAL(other.index, 1);
    CHECK_EQUAL(shmq_watch_slice(&other, SECOND), SECOND);
    CHECK_EQUAL(other.index, 1);
    let_the_patience_pass();
    somebody_holds();
    CHECK_EQUAL(shmq_watch_slice(&watcher, SECOND), SHMQ_TICK_NS);
    shmq_watch_tick(&watcher);
    CHECK_EQUAL(shmq_watch_slice(&other, SECOND), SHMQ_TICK_NS);
    CHECK_EQUAL(other.index, 1);
    CHECK(looked(0) + a->patience_ns > shmq_now_ns() || other.index == 0);
    shmq_watch_leave(&other);
    shmq_watch_leave(&watcher);
    it_is_killed();
    reap_all(a, 1);
    CHECK_EQUAL(get_number(qc), 7);
    forget_the_holder();
    end();
}

TEST(the_deputy_takes_the_place_of_one_that_does_not_look) {
    begin();
    shmq_watcher stopped, deputy;
    enter(&stopped, a);
    enter(&deputy, b);
    CHECK_EQUAL(deputy.index, 1);
    somebody_holds();
    CHECK_EQUAL(shmq_watch_slice(&stopped, SECOND), SHMQ_TICK_NS);
    it_is_killed();
    let_the_patience_pass();
    (void)shmq_watch_slice(&deputy, SECOND);
    CHECK_EQUAL(deputy.index, 0);
    CHECK_EQUAL(place(1), 0);
    CHECK_EQUAL(get_number(qc), 7);
    shmq_watch_leave(&deputy);
    shmq_watch_leave(&stopped);
    forget_the_holder();
    end();
}

/* Shows G4. */
TEST(a_deputy_that_does_not_look_loses_its_place) {
    begin();
    shmq_watcher watcher, stopped, next;
    enter(&watcher, a);
    enter(&stopped, b);
    CHECK_EQUAL(stopped.index, 1);
    somebody_holds();
    CHECK_EQUAL(shmq_watch_slice(&watcher, SECOND), SHMQ_TICK_NS);
    let_the_patience_pass();
    shmq_watch_tick(&watcher);
    enter(&next, c);
    CHECK_EQUAL(next.index, 1);
    CHECK_EQUAL(shmq_watch_slice(&stopped, SECOND), SECOND);
    CHECK_EQUAL(stopped.index, -1);
    shmq_watch_leave(&stopped);
    CHECK(place(1) != 0);
    shmq_watch_leave(&next);
    shmq_watch_leave(&watcher);
    it_is_killed();
    reap_all(a, 1);
    CHECK_EQUAL(get_number(qc), 7);
    forget_the_holder();
    end();
}

TEST(who_was_called_once_is_not_called_again_before_it_comes) {
    begin();
    shmq_watcher watcher, deputy, stopped;
    enter(&watcher, a);
    enter(&deputy, b);
    enter(&stopped, c);
    CHECK_EQUAL(stopped.volunteer, 0);
    somebody_holds();
    uint32_t calls = shmq_load_seq(word_of(c));
    shmq_watch_leave(&watcher); /* while something is held: nobody sleeps as its deputy, so a volunteer is called */
    CHECK_EQUAL(shmq_load_seq(word_of(c)), calls + 1);
    CHECK_EQUAL(shmq_load_seq(&a->header->volunteers[0]), 0);
    shmq_watch_leave(&deputy);
    CHECK_EQUAL(shmq_load_seq(word_of(c)), calls + 1);
    shmq_watch_leave(&stopped);
    it_is_killed();
    reap_all(a, 1);
    CHECK_EQUAL(get_number(qc), 7);
    forget_the_holder();
    end();
}

TEST(who_finds_what_was_due_long_ago_takes_the_watch) {
    begin();
    shmq_watcher stopped, deputy, next;
    enter(&stopped, a);
    enter(&deputy, b);
    enter(&next, c);
    CHECK_EQUAL(next.index, -1);
    (void)shmq_due_at(&a->header->due, shmq_now_ns());
    let_the_patience_pass();
    let_the_patience_pass();
    shmq_watch_tick(&next);
    CHECK_EQUAL(next.index, 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    shmq_watch_leave(&next);
    shmq_watch_leave(&deputy);
    shmq_watch_leave(&stopped);
    end();
}

TEST(a_look_at_a_time_that_has_not_been_yet_is_mended) {
    begin();
    shmq_watcher watcher;
    shmq_store_seq(&a->header->watch_looked[0], UINT64_MAX);
    CHECK(shmq_watch_fault(a) != NULL);
    enter(&watcher, a);
    CHECK(shmq_watch_fault(a) == NULL);
    shmq_watch_leave(&watcher);
    end();
}

/* ---- priority ---------------------------------------------------------------------------------------------------- */

static uint32_t open_row(shmq_queue *q, int32_t priority) {
    uint32_t row = 0;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority};
    CHECK_EQUAL(shmq_row_open_as(q, &terms, &row), SHMQ_OK);
    return row;
}

static shmq_status offer_and_cancel(shmq_queue *q, uint32_t owner) {
    shmq_delivery d;
    shmq_status status = shmq_offer(q, owner, &d);
    if (status == SHMQ_OK) {
        shmq_offer_cancel(q, &d);
    }
    return status;
}

/* Shows G4. */
TEST(many_of_higher_priority_that_are_stopped_cost_one_patience_together) {
    begin();
    uint32_t low = open_row(qa, 0), high[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        high[i] = open_row(qb, 1 + (int32_t)i);
        shmq_want(qb, high[i]);
    }
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    uint64_t began = shmq_now_ns();
    CHECK_EQUAL(offer_and_cancel(qa, low), SHMQ_EMPTY);
    uint64_t noted = shmq_now_ns();
    while (offer_and_cancel(qa, low) != SHMQ_OK) {
        shmq_pause();
    }
    uint64_t over = shmq_now_ns();
    CHECK(over - began >= a->patience_ns);
    /* Others who come are not kept again, each for a patience. */
    CHECK_EQUAL(offer_and_cancel(qc, shmq_self(qc)), SHMQ_OK);
    CHECK_EQUAL(offer_and_cancel(qc, shmq_self(qc)), SHMQ_OK);
    for (uint32_t i = 0; i < MANY; i++) { /* all of them since the same look */
        CHECK(shmq_load_seq(&shmq_row_at(qa, high[i])->awaited) >> 24 <= (noted >> 20) + 1);
    }
    /* Each is first again with its next step. */
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(offer_and_cancel(qa, low), SHMQ_OK);
        shmq_ranks_step(qb, high[i]);
        CHECK_EQUAL(offer_and_cancel(qa, low), SHMQ_EMPTY);
        shmq_want_end(qb, high[i]);
    }
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* Its last round: word of it from a time when it was in the way counts for nothing in the next one. */
TEST(who_has_looked_has_its_patience_anew) {
    begin();
    uint32_t low = open_row(qa, 0), high = open_row(qb, 1);
    shmq_want(qb, high);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    CHECK_EQUAL(offer_and_cancel(qa, low), SHMQ_EMPTY);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(qb, high, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_finish(qb, &d), SHMQ_OK);
    shmq_ranks_step(qb, high); /* it sleeps */
    let_the_patience_pass();
    CHECK_EQUAL(put_number(qa, 8), SHMQ_OK);
    CHECK_EQUAL(offer_and_cancel(qa, low), SHMQ_EMPTY);
    shmq_want_end(qb, high);
    CHECK_EQUAL(get_number(qa), 8);
    end();
}

TEST(who_was_passed_is_woken_and_so_is_the_next) {
    begin();
    uint32_t low = open_row(qa, 0), high = open_row(qb, 1);
    shmq_want(qb, high);
    (void)shmq_announce(qb, high, false);
    (void)shmq_announce(qa, low, false);
    shmq_a64 *idle = &qa->page->sleepers[0].idle;
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK); /* the higher one is woken, and does not come */
    CHECK_EQUAL(shmq_load_seq(idle), UINT64_C(1) << low);
    CHECK_EQUAL(put_number(qa, 8), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(idle), UINT64_C(1) << low);
    let_the_patience_pass();
    (void)shmq_announce(qb, high, false);
    CHECK_EQUAL(put_number(qa, 9), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(idle), 0);
    (void)shmq_withdraw(qa, low, false);
    shmq_want_end(qb, high);
    for (int number = 7; number < 10; number++) {
        CHECK_EQUAL(get_number(qa), number);
    }
    end();
}

TEST(one_that_may_take_nothing_is_in_nobodys_way) {
    begin();
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    shmq_store_seq(&qa->page->settings.live_consumers, 1);
    shmq_structure_unlock(a);
    uint32_t live = open_row(qa, 0), reserve[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        reserve[i] = open_row(qb, 9);
        shmq_want(qb, reserve[i]);
        CHECK(!shmq_is_served(qa, reserve[i]));
    }
    (void)shmq_announce(qa, live, false);
    CHECK_EQUAL(put_number(qc, 7), SHMQ_OK); /* awake they are, but nobody leaves the wake to them */
    CHECK_EQUAL(shmq_load_seq(&qa->page->sleepers[0].idle), 0);
    (void)shmq_withdraw(qa, live, false);
    CHECK_EQUAL(offer_and_cancel(qa, live), SHMQ_OK);
    CHECK_EQUAL(offer_and_cancel(qc, shmq_self(qc)), SHMQ_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        shmq_want_end(qb, reserve[i]);
    }
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

int main(void) { return run_tests(); }
