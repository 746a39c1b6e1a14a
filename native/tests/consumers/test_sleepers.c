/* Wakes, consumer rows, and the watch for deaths; with members that die by losing their lock. */
#include <signal.h>

#include "consumers/ranks.h"
#include "wake/watch.h"
#include "scratch_queue.h"

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
    scratch_close_unless_dead(c, qc);
    scratch_close_unless_dead(b, qb);
    scratch_close_unless_dead(a, qa);
    scratch_remove();
}

static uint32_t open_row(shmq_queue *q) {
    uint32_t row = 0;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_GETTER, &row), SHMQ_OK);
    CHECK(row != 0);
    return row;
}

static uint32_t wakes(shmq_queue *q, uint32_t row) { return shmq_load_seq(&shmq_row_at(q, row)->wake); }

static bool idle(shmq_queue *q, uint32_t row) {
    return shmq_load_seq(&q->page->sleepers[row / 64].idle) >> (row % 64) & 1;
}

/* Shows S43, S66, S67, S70, S98, C2, C4. */
static void a_notify_claims_one_sleeper_and_a_browser_hears_of_all(void) {
    begin();
    uint32_t first = open_row(qa), second = open_row(qb), browser = open_row(qc);
    uint32_t before = shmq_announce(qa, first, false);
    shmq_announce(qb, second, false);
    uint32_t quiet = shmq_announce(qc, browser, true);
    CHECK(shmq_anybody_idle(qa));
    shmq_notify(qa);
    CHECK_EQUAL(idle(qa, first) + idle(qa, second), 1);
    CHECK_EQUAL((wakes(qa, first) - before) + wakes(qa, second), 1);
    CHECK_EQUAL(wakes(qa, browser) - quiet, 1);
    shmq_notify(qb);
    CHECK_EQUAL(idle(qa, first) + idle(qa, second), 0);
    CHECK_EQUAL((wakes(qa, first) - before) + wakes(qa, second), 2);
    shmq_notify(qb); /* nobody left: nothing happens */
    CHECK_EQUAL((wakes(qa, first) - before) + wakes(qa, second), 2);
    CHECK(shmq_withdraw(qa, first, false));
    CHECK(shmq_withdraw(qb, second, false));
    shmq_announce(qa, first, false);
    CHECK(!shmq_withdraw(qa, first, false)); /* nobody had claimed it */
    end();
}

/* Each has slept again before the next message comes; over two chunks of rows. With a priority it is the same among
 * equals. Shows S10, S73, S74. */
static void sleepers_are_woken_in_turn(int32_t priority) {
    enum { SLEEPERS = 70, ROUNDS = 3 };
    begin();
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority};
    uint32_t rows[SLEEPERS], told[SLEEPERS];
    for (int sleeper = 0; sleeper < SLEEPERS; sleeper++) {
        CHECK_EQUAL(shmq_row_open_as(qb, &terms, &rows[sleeper]), SHMQ_OK);
        told[sleeper] = shmq_announce(qb, rows[sleeper], false);
    }
    for (int number = 0; number < ROUNDS * SLEEPERS; number++) {
        int turn = number % SLEEPERS;
        shmq_notify(qa);
        CHECK(!idle(qa, rows[turn]));
        CHECK_EQUAL(wakes(qa, rows[turn]), told[turn] + 1);
        told[turn] = shmq_announce(qb, rows[turn], false);
    }
    for (int sleeper = 0; sleeper < SLEEPERS; sleeper++) {
        CHECK(!shmq_withdraw(qb, rows[sleeper], false)); /* nobody was told out of turn */
        CHECK_EQUAL(wakes(qa, rows[sleeper]), told[sleeper]);
        CHECK_EQUAL(shmq_row_close(qb, rows[sleeper]), SHMQ_OK);
    }
    end();
}

static uint32_t lists_of(uint32_t row) {
    const shmq_sleepers_shm *chunk = &qa->page->sleepers[row / 64];
    uint64_t used = shmq_load_seq(&chunk->used), asleep = shmq_load_seq(&chunk->idle);
    uint64_t browsing = shmq_load_seq(&chunk->browse);
    return (uint32_t)((used >> row % 64 & 1) | (asleep >> row % 64 & 1) << 1 | (browsing >> row % 64 & 1) << 2);
}

/* Of all, and besides of one at most: interested is the idle bit, told is to have lost it. Shows S58, S63, S64, C5, C6. */
static void a_row_is_in_one_list_at_a_time(void) {
    enum { ALL = 1, INTERESTED = 2, BROWSING = 4 };
    begin();
    uint32_t row = open_row(qa);
    CHECK_EQUAL(lists_of(row), ALL);
    shmq_announce(qa, row, false); /* before it looks */
    CHECK_EQUAL(lists_of(row), ALL | INTERESTED);
    CHECK_EQUAL(put_number(qb, 1), SHMQ_OK);
    CHECK_EQUAL(lists_of(row), ALL); /* told */
    CHECK_EQUAL(put_number(qb, 2), SHMQ_OK);
    CHECK_EQUAL(wakes(qa, row), 1); /* and not once more, while it is at work */
    CHECK(shmq_withdraw(qa, row, false));
    CHECK_EQUAL(get_number(qa), 1);
    CHECK_EQUAL(get_number(qa), 2);
    shmq_announce(qa, row, false);
    CHECK(!shmq_withdraw(qa, row, false));
    CHECK_EQUAL(lists_of(row), ALL);
    shmq_announce(qa, row, true);
    CHECK_EQUAL(lists_of(row), ALL | BROWSING);
    CHECK(!shmq_withdraw(qa, row, true));
    CHECK_EQUAL(shmq_row_close(qa, row), SHMQ_OK);
    CHECK_EQUAL(lists_of(row), 0);
    end();
}

/* All together look as often as four do, each after twenty seconds at the latest. */
static void many_sleepers_have_longer_pieces(void) {
    enum { MANY = 400 };
    static uint32_t rows[MANY];
    begin();
    uint64_t usual = shmq_slice_of(a);
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(shmq_sleep_slice(qb), i <= 4 ? usual : usual * i / 4 < 20 * SECOND ? usual * i / 4 : 20 * SECOND);
        rows[i] = open_row(qa);
        shmq_announce(qa, rows[i], false);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        (void)shmq_withdraw(qa, rows[i], false);
        CHECK_EQUAL(shmq_row_close(qa, rows[i]), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_sleep_slice(qb), usual);
    end();
}

/* It looks after the others, and does what is due. */
static void a_watcher_has_a_piece_of_the_usual_length(void) {
    shmq_a32 word = 0;
    begin();
    uint64_t begun = shmq_now_ns(), piece = begun + 600 * SECOND;
    CHECK_EQUAL(shmq_sleep_long(a, &word, 0, SHMQ_FOR_EVER, &piece), SHMQ_TIMEOUT);
    CHECK(piece >= begun + shmq_slice_of(a) && piece <= shmq_now_ns());
    end();
}

/* Somebody has the one lock that there is, and messages come and go all the same. Shows S50. */
static void messages_come_and_go_while_somebody_holds_the_lock(void) {
    begin();
    uint32_t row = open_row(qa);
    uint32_t before = shmq_announce(qa, row, false);
    CHECK_EQUAL(shmq_structure_lock(c), SHMQ_OK);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQUAL(put_number(qb, i), SHMQ_OK);
    }
    CHECK_EQUAL(wakes(qa, row), before + 1);
    (void)shmq_withdraw(qa, row, false);
    shmq_delivery first = receive(qa, row), second = receive(qb, shmq_self(qb)), seen;
    CHECK_EQUAL(shmq_release(qa, &first, true), SHMQ_OK);
    CHECK_EQUAL(get_number(qb), 0);
    CHECK_EQUAL(shmq_settle(qb, &second), SHMQ_OK);
    uint64_t position = 0;
    CHECK_EQUAL(shmq_browse(&qa->first, &position, &seen), SHMQ_OK);
    CHECK_EQUAL(number_of(&seen), 2);
    CHECK_EQUAL(get_number(qa), 2);
    shmq_structure_unlock(c);
    CHECK_EQUAL(shmq_row_close(qa, row), SHMQ_OK);
    end();
}

/* Shows S55, R4. */
static void a_dead_sleeper_is_passed_over(void) {
    begin();
    uint32_t dead = open_row(qb), live = open_row(qa);
    CHECK(dead < live); /* it is found first */
    shmq_announce(qb, dead, false);
    uint32_t before = shmq_announce(qa, live, false);
    scratch_kill(b);
    shmq_notify(qc);
    CHECK_EQUAL(wakes(qa, live), before + 1);
    CHECK(!idle(qa, live));
    CHECK(!idle(qa, dead));
    (void)shmq_withdraw(qa, live, false);
    reap_all(a, 1);
    end();
}

static void a_batch_tells_a_browser_when_nobody_else_sleeps(void) {
    begin();
    uint32_t browser = open_row(qa), done = 0;
    uint32_t before = shmq_announce(qa, browser, true);
    uint64_t numbers[3] = {1, 2, 3};
    struct iovec pieces[3];
    shmq_outgoing out[3] = {0};
    for (int i = 0; i < 3; i++) {
        pieces[i] = (struct iovec){.iov_base = &numbers[i], .iov_len = 8};
        out[i] = (shmq_outgoing){.pieces = &pieces[i], .piece_count = 1, .body_len = 8};
        CHECK_EQUAL(shmq_prepare(qb, &out[i], 0), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_put_some(qb, out, 3, &done), SHMQ_OK);
    CHECK(wakes(qa, browser) != before);
    end();
}

/* A consumer that takes an entry wakes another sleeper for the next one, also behind what somebody holds. Shows S45,
 * S55, C7. */
static void the_baton_is_passed_over_holes(void) {
    begin();
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_delivery first = receive(qa, shmq_self(qa)), second = receive(qa, shmq_self(qa));
    CHECK_EQUAL(get_number(qa), 2); /* a hole at 2, and 1 is held */
    CHECK_EQUAL(shmq_release(qa, &first, false), SHMQ_OK);
    uint32_t row = open_row(qb), before = shmq_announce(qb, row, false);
    CHECK_EQUAL(get_number(qa), 0);
    CHECK_EQUAL(wakes(qb, row), before + 1); /* for number 3 */
    (void)shmq_withdraw(qb, row, false);
    before = shmq_announce(qb, row, false);
    CHECK_EQUAL(get_number(qa), 3);
    CHECK_EQUAL(wakes(qb, row), before); /* nothing is left but what is held */
    (void)shmq_withdraw(qb, row, false);
    CHECK_EQUAL(shmq_settle(qa, &second), SHMQ_OK);
    end();
}

/* A notifier that died between claiming a bit and waking its owner leaves a sleeper that nobody would wake. Shows S55, R4. */
static void the_reaper_wakes_whom_a_dead_notifier_forgot(void) {
    begin();
    uint32_t row = open_row(qa);
    CHECK_EQUAL(put_number(qb, 1), SHMQ_OK);
    uint32_t before = shmq_announce(qa, row, false);
    shmq_and_seq(&qa->page->sleepers[row / 64].idle, ~(UINT64_C(1) << row)); /* claimed, and then it dies */
    scratch_kill(b);
    reap_all(c, 1);
    CHECK(wakes(qa, row) != before);
    CHECK(shmq_withdraw(qa, row, false));
    CHECK_EQUAL(get_number(qa), 1);
    end();
}

/* It died between saying so and waking those who sleep, who would go on until their time limits. */
static void the_reaper_tells_all_of_a_queue_that_was_shut_down(void) {
    begin();
    uint32_t first = open_row(qa), second = open_row(qa), browser = open_row(qc);
    uint32_t before[3] = {shmq_announce(qa, first, false), shmq_announce(qa, second, false),
                          shmq_announce(qc, browser, true)};
    shmq_store_seq(&qb->page->shut_down, SHMQ_STOPPED);
    scratch_kill(b);
    reap_all(c, 1);
    CHECK(wakes(qa, first) != before[0]);
    CHECK(wakes(qa, second) != before[1]);
    CHECK(wakes(qc, browser) != before[2]);
    (void)shmq_withdraw(qa, first, false);
    (void)shmq_withdraw(qa, second, false);
    (void)shmq_withdraw(qc, browser, true);
    end();
}

/* Shows S64, R21. */
static void rows_are_not_lost_by_deaths_at_their_opening_or_closing(void) {
    begin();
    uint32_t row = open_row(qb);
    shmq_a64 *used = &qa->page->sleepers[0].used;
    /* Died at opening: the word says whose the row is, the bit is not set yet. Or at closing, the bit is gone already. */
    shmq_and_seq(used, ~(UINT64_C(1) << row));
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(open_row(qa), row);
    CHECK_EQUAL(shmq_row_inner(shmq_load_seq(&shmq_row_at(qa, row)->word)), a->row);
    CHECK_EQUAL(shmq_row_close(qa, row), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(used), 0);
    /* Without a death: as many rows as there are, all of them given back. */
    for (uint32_t i = 1; i < 200; i++) {
        CHECK_EQUAL(open_row(qa), i);
    }
    for (uint32_t i = 1; i < 200; i++) {
        CHECK_EQUAL(shmq_row_close(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_load_seq(used), 0);
    end();
}

static void leaving_gives_back_rows_that_nobody_closed(void) {
    begin();
    uint32_t row = open_row(qb);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    (void)receive(qb, row);
    CHECK_EQUAL(shmq_sweep_own(b), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&qa->page->sleepers[0].used), 0);
    CHECK_EQUAL(get_number(qa), 7);
    end();
}

/* ---- the watch --------------------------------------------------------------------------------------------------- */

static uint64_t place(int number) { return shmq_load_seq(&a->header->watch[number]); }

static void the_first_sleeper_watches_and_another_process_watches_it(void) {
    begin();
    shmq_watcher wa, again, wb;
    shmq_watch_enter(&wa, a, &a->header->memory_full);
    CHECK_EQUAL(wa.index, 0);
    shmq_watch_enter(&again, a, &a->header->memory_full);
    CHECK_EQUAL(again.index, -1); /* the same process cannot watch itself */
    shmq_watch_enter(&wb, b, &a->header->memory_full);
    CHECK_EQUAL(wb.index, 1);
    uint64_t limit = 10 * SECOND;
    CHECK_EQUAL(shmq_watch_slice(&wa, limit), limit); /* nothing is held: nobody ticks */
    CHECK_EQUAL(shmq_watch_slice(&wb, limit), limit);
    CHECK_EQUAL(put_number(qc, 1), SHMQ_OK);
    shmq_delivery d = receive(qc, shmq_self(qc));
    CHECK_EQUAL(shmq_watch_slice(&wa, limit), SHMQ_TICK_NS);
    CHECK_EQUAL(shmq_watch_slice(&wb, limit), SHMQ_TICK_NS); /* what the first one watches is worth watching it */
    CHECK_EQUAL(shmq_settle(qc, &d), SHMQ_OK);
    shmq_watch_leave(&again);
    shmq_watch_leave(&wb);
    shmq_watch_leave(&wa);
    CHECK_EQUAL(place(0) | place(1), 0);
    end();
}

static void the_second_watcher_takes_over_and_reaps(void) {
    begin();
    shmq_watcher wa, wb;
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    (void)receive(qb, shmq_self(qb));
    shmq_watch_enter(&wb, b, &a->header->memory_full);
    shmq_watch_enter(&wa, a, &a->header->memory_full);
    CHECK_EQUAL(wb.index, 0);
    CHECK_EQUAL(wa.index, 1);
    CHECK_EQUAL(shmq_watch_slice(&wa, SECOND), SHMQ_TICK_NS); /* the first one holds something itself */
    scratch_kill(b);
    (void)shmq_watch_slice(&wa, SECOND);
    CHECK_EQUAL(wa.index, 0);
    CHECK_EQUAL(get_number(qc), 1);
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&a->rows[b->row].word)), SHMQ_ROW_FREE);
    shmq_watch_leave(&wa);
    end();
}

static void a_watch_word_of_an_earlier_owner_of_the_row_is_vacant(void) {
    begin();
    shmq_watcher wb;
    shmq_watch_enter(&wb, b, &a->header->memory_full);
    uint64_t stale = place(0);
    uint32_t row = b->row;
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(place(0), 0); /* the reaper takes it away */
    shmq_store_seq(&a->header->watch[0], stale); /* a late write, by whatever way */
    shmq_member *next = scratch_attach();
    CHECK_EQUAL(next->row, row);
    shmq_watcher wn, wc;
    shmq_watch_enter(&wc, c, &a->header->memory_full);
    CHECK_EQUAL(wc.index, 0);
    shmq_watch_leave(&wc);
    shmq_store_seq(&a->header->watch[0], stale);
    shmq_watch_enter(&wn, next, &a->header->memory_full); /* nor does the row's next owner take it for its own */
    CHECK_EQUAL(wn.index, 0);
    CHECK(place(0) != stale);
    shmq_watch_leave(&wn);
    scratch_detach(next);
    end();
}

static void who_begins_to_hold_gets_rid_of_a_dead_watcher(void) {
    begin();
    shmq_watcher wb;
    shmq_watch_enter(&wb, b, &a->header->memory_full);
    CHECK_EQUAL(shmq_watch_slice(&wb, SECOND), SECOND);
    scratch_kill(b); /* it held nothing, so nobody notices */
    CHECK(place(0) != 0);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_delivery d = receive(qa, shmq_self(qa));
    CHECK_EQUAL(place(0), 0);
    CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    reap_all(a, 1);
    end();
}

/* A sleeper must not wait for the structure lock on behalf of a dead one: what that held is back all the same. */
static void a_reaper_that_sleeps_does_not_wait_for_the_structure_lock(void) {
    begin();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    (void)receive(qb, shmq_self(qb));
    scratch_kill(b);
    CHECK_EQUAL(shmq_structure_lock(c), SHMQ_OK);
    CHECK_EQUAL(shmq_reap_row(a, b->row), SHMQ_INTERRUPTED);
    CHECK_EQUAL(get_number(qa), 1);
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&a->rows[b->row].word)), SHMQ_ROW_REAPING);
    shmq_structure_unlock(c);
    CHECK_EQUAL(shmq_reap_row(a, b->row), SHMQ_OK);
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&a->rows[b->row].word)), SHMQ_ROW_FREE);
    end();
}

/* Late, and nobody ended the sleep: somebody was stopped who owed the wake, or died with it. Shows G4. */
static void a_wake_that_a_dying_one_got_is_no_rescue(void) {
    begin();
    shmq_delivery d = {.enqueued_ns = shmq_now_ns() - a->patience_ns};
    shmq_rescue_count(qa, &d);
    CHECK_EQUAL(shmq_load_seq(&a->header->rescues), 1);
    scratch_kill(b);
    shmq_rescue_count(qa, &d);
    CHECK_EQUAL(shmq_load_seq(&a->header->rescues), 1);
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&a->rows[b->row].word)), SHMQ_ROW_FREE);
    d.enqueued_ns = shmq_now_ns();
    shmq_rescue_count(qa, &d);
    CHECK_EQUAL(shmq_load_seq(&a->header->rescues), 1);
    end();
}

int main(void) {
    a_row_is_in_one_list_at_a_time();
    many_sleepers_have_longer_pieces();
    a_watcher_has_a_piece_of_the_usual_length();
    messages_come_and_go_while_somebody_holds_the_lock();
    a_notify_claims_one_sleeper_and_a_browser_hears_of_all();
    sleepers_are_woken_in_turn(0);
    sleepers_are_woken_in_turn(7);
    a_dead_sleeper_is_passed_over();
    a_batch_tells_a_browser_when_nobody_else_sleeps();
    the_baton_is_passed_over_holes();
    the_reaper_wakes_whom_a_dead_notifier_forgot();
    the_reaper_tells_all_of_a_queue_that_was_shut_down();
    rows_are_not_lost_by_deaths_at_their_opening_or_closing();
    leaving_gives_back_rows_that_nobody_closed();
    the_first_sleeper_watches_and_another_process_watches_it();
    the_second_watcher_takes_over_and_reaps();
    a_watch_word_of_an_earlier_owner_of_the_row_is_vacant();
    who_begins_to_hold_gets_rid_of_a_dead_watcher();
    a_reaper_that_sleeps_does_not_wait_for_the_structure_lock();
    a_wake_that_a_dying_one_got_is_no_rescue();
    return 0;
}
