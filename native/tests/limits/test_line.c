/* The line of blocked producers: who is served, what the dead and the stopped leave. Members of this process whose steps are made
 * by hand stand in for others. */
#include "scratch_queue.h"

#define MS UINT64_C(1000000)
#define STOPPED 4

static shmq_member *a, *b, *c;
static shmq_queue *qa, *qb, *qc;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    c = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, false);
    qb = scratch_queue(b, "jobs", maxsize, false);
    qc = scratch_queue(c, "jobs", maxsize, false);
}

static void check_line(void) {
    check_no_fault(shmq_line_fault(qa));
    CHECK(!shmq_line_stands(qa));
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&qa->page->ring.waiters)), 0);
}

static void end(void) {
    check_ring(qa);
    shmq_queue_unbind(qa);
    shmq_queue_unbind(qb);
    shmq_queue_unbind(qc);
    shmq_member_leave(c, true);
    shmq_member_leave(b, true);
    shmq_member_leave(a, true);
    scratch_remove();
}

static void fill(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
}

static shmq_ticket stand(shmq_queue *q) {
    shmq_ticket t = {0};
    CHECK(shmq_line_enter(q, &t, 8));
    return t;
}

static uint32_t state_of(const shmq_ticket *t) {
    return shmq_ticket_state(shmq_load_seq(&qa->tickets[t->number % SHMQ_TICKETS].word));
}

static bool may_go(shmq_queue *q, shmq_ticket *t) {
    shmq_room theirs;
    return shmq_line_admit(q, t, &theirs);
}

TEST(those_in_line_are_called_one_after_the_other) {
    begin(2);
    fill(2);
    shmq_ticket first = stand(qa), second = stand(qb), third = stand(qc);
    CHECK(may_go(qa, &first) && !may_go(qb, &second) && !may_go(qc, &third));
    CHECK_EQUAL(state_of(&first), SHMQ_TICKET_WAITING); /* there is nothing that it could take */
    CHECK_EQUAL(get_number(qc), 0);
    CHECK_EQUAL(state_of(&first), SHMQ_TICKET_CALLED);
    CHECK_EQUAL(state_of(&second), SHMQ_TICKET_WAITING);
    CHECK_EQUAL(put_number(qc, 9), SHMQ_FULL_COUNT); /* the place is another's */
    shmq_line_leave(qa, &first);
    CHECK_EQUAL(state_of(&second), SHMQ_TICKET_CALLED);
    CHECK(may_go(qb, &second) && !may_go(qc, &third));
    shmq_line_leave(qc, &third); /* its time is over */
    shmq_line_leave(qb, &second);
    CHECK_EQUAL(put_number(qc, 9), SHMQ_OK);
    check_line();
    end();
}

TEST(a_call_that_nobody_made_is_made_by_whoever_comes_by) {
    begin(1);
    fill(1);
    shmq_ticket first = stand(qb);
    uint32_t seen = 0;
    CHECK(shmq_line_answer(qb, &first, &seen));
    shmq_leave_count(&(shmq_waiters){&qb->page->ring.waiters, &qb->counters->waiting, &qb->counters->changing});
    CHECK_EQUAL(get_number(qc), 0); /* as one who is stopped before its call: nobody waits, it has seen */
    CHECK_EQUAL(state_of(&first), SHMQ_TICKET_WAITING);
    shmq_join_count(&(shmq_waiters){&qb->page->ring.waiters, &qb->counters->waiting, &qb->counters->changing});
    CHECK_EQUAL(put_number(qa, 1), SHMQ_FULL_COUNT);
    CHECK_EQUAL(state_of(&first), SHMQ_TICKET_CALLED);
    CHECK_EQUAL(shmq_line_sleep(qb, &first, seen, shmq_now_ns() + 5 * SECOND), SHMQ_OK); /* does not sleep */
    shmq_line_leave(qb, &first);
    check_line();
    end();
}

TEST(who_comes_later_has_what_is_left_when_all_in_line_are_served) {
    begin(8);
    fill(8);
    shmq_ticket first = stand(qb), second = stand(qb);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_EQUAL(get_number(qc), i);
        CHECK_EQUAL(put_number(qa, 8), SHMQ_FULL_COUNT);
    }
    CHECK_EQUAL(get_number(qc), 2);
    CHECK_EQUAL(put_number(qa, 8), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 9), SHMQ_FULL_COUNT);
    shmq_line_leave(qb, &first);
    shmq_line_leave(qb, &second);
    shmq_ticket batch = {0};
    CHECK(shmq_line_enter(qb, &batch, SHMQ_WANTS_ALL)); /* several messages want whatever there is */
    CHECK_EQUAL(put_number(qa, 9), SHMQ_FULL_COUNT);
    shmq_line_leave(qb, &batch);
    CHECK_EQUAL(put_number(qa, 9), SHMQ_OK);
    check_line();
    end();
}

TEST(bytes_are_left_to_those_in_line_too) {
    begin(0);
    scratch_alter(qa, SHMQ_SET_MAX_BYTES, 100);
    fill(12);
    shmq_ticket first = {0};
    CHECK(shmq_line_enter(qb, &first, 20));
    CHECK_EQUAL(put_number(qa, 12), SHMQ_FULL_BYTES);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_EQUAL(get_number(qc), i);
        CHECK_EQUAL(put_number(qa, 12), SHMQ_FULL_BYTES); /* 20 of 100 bytes are free in the end */
    }
    CHECK_EQUAL(get_number(qc), 2);
    CHECK_EQUAL(put_number(qa, 12), SHMQ_OK); /* 28 were */
    shmq_line_leave(qb, &first);
    check_line();
    end();
}

TEST(the_dead_in_line_keep_nobody_out) {
    begin(1);
    fill(1);
    shmq_ticket dead = stand(qb), other = stand(qb), living = stand(qc);
    (void)dead, (void)other;
    scratch_kill(b);
    CHECK_EQUAL(get_number(qc), 0); /* the caller finds both of them dead */
    CHECK_EQUAL(state_of(&living), SHMQ_TICKET_CALLED);
    CHECK(may_go(qc, &living));
    shmq_line_leave(qc, &living);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    reap_all(a, 1);
    check_line();
    end();
}

TEST(one_that_was_called_and_died_is_found_by_the_second_and_by_the_reaper) {
    begin(1);
    fill(1);
    shmq_ticket dead = stand(qb), living = stand(qc);
    CHECK_EQUAL(get_number(qc), 0);
    CHECK_EQUAL(state_of(&dead), SHMQ_TICKET_CALLED);
    scratch_kill(b);
    CHECK(may_go(qc, &living));
    CHECK_EQUAL(state_of(&dead), SHMQ_TICKET_FREE);
    reap_all(a, 1);
    CHECK_EQUAL(state_of(&living), SHMQ_TICKET_CALLED); /* the reaper has everybody look */
    shmq_line_leave(qc, &living);
    check_line();
    end();

    begin(1);
    fill(1);
    (void)stand(qb);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(get_number(qc), 0);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    check_line();
    end();
}

/* Death right after the CAS that takes a ticket: the end of the line lags. */
TEST(a_ticket_that_its_dead_holder_has_not_shown_is_in_nobodys_way) {
    begin(1);
    fill(1);
    shmq_store_seq(&qa->tickets[0].word, shmq_ticket_word(0, b->row, SHMQ_TICKET_WAITING));
    scratch_kill(b);
    shmq_ticket living = stand(qc);
    CHECK_EQUAL(living.number, 1);
    CHECK_EQUAL(get_number(qc), 0);
    CHECK_EQUAL(state_of(&living), SHMQ_TICKET_CALLED);
    CHECK(may_go(qc, &living));
    shmq_line_leave(qc, &living);
    reap_all(a, 1);
    check_line();
    end();
}

/* Shows G1. */
TEST(a_stopped_process_is_passed_after_one_patience_and_keeps_its_place) {
    begin(2);
    fill(2);
    shmq_ticket one = stand(qb), two = stand(qb), living = stand(qc);
    CHECK_EQUAL(get_number(qc), 0);
    uint64_t from = shmq_now_ns();
    while (!may_go(qc, &living)) {
    }
    uint64_t taken = shmq_now_ns() - from;
    CHECK(taken >= 100 * MS && taken < 5 * SECOND);
    CHECK_EQUAL(state_of(&one), SHMQ_TICKET_PASSED);
    CHECK_EQUAL(state_of(&two), SHMQ_TICKET_PASSED);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_FULL_COUNT); /* the living one's */
    uint32_t seen;
    CHECK(shmq_line_answer(qb, &two, &seen)); /* it goes on */
    CHECK(may_go(qb, &two));
    CHECK(!may_go(qc, &living));
    CHECK(shmq_line_answer(qb, &one, &seen));
    CHECK(!may_go(qb, &two));
    shmq_line_leave(qb, &two);
    shmq_line_leave(qb, &one);
    shmq_line_leave(qc, &living);
    check_line();
    end();
}

/* Of one process each. The first one costs a patience; then all that are in the way are called, and have one together.
 * Shows G1. */
TEST(many_that_are_stopped_in_a_row_cost_two_patiences) {
    begin(2);
    fill(2);
    shmq_member *others[STOPPED];
    shmq_queue *queues[STOPPED];
    shmq_ticket stopped[STOPPED], living, late;
    for (uint32_t i = 0; i < STOPPED; i++) {
        others[i] = scratch_attach();
        queues[i] = scratch_queue(others[i], "jobs", 2, false);
        stopped[i] = stand(queues[i]);
    }
    living = stand(qb);
    late = stand(qc);
    CHECK_EQUAL(get_number(qc), 0);
    uint64_t called = 0;
    while (state_of(&stopped[0]) != SHMQ_TICKET_PASSED) {
        called = shmq_now_ns();
        CHECK(!may_go(qc, &late));
    }
    for (uint32_t i = 1; i < STOPPED; i++) {
        CHECK_EQUAL(state_of(&stopped[i]), SHMQ_TICKET_CALLED);
    }
    uint32_t seen, looks = 0;
    CHECK_EQUAL(state_of(&living), SHMQ_TICKET_CALLED);
    CHECK(shmq_line_answer(qb, &living, &seen)); /* it is about */
    do {
        CHECK(!may_go(qc, &late));
        looks++;
    } while (state_of(&stopped[1]) != SHMQ_TICKET_PASSED);
    CHECK(looks > 1 && shmq_now_ns() - called >= 99 * MS);
    for (uint32_t i = 1; i < STOPPED; i++) {
        CHECK_EQUAL(state_of(&stopped[i]), SHMQ_TICKET_PASSED);
    }
    CHECK(state_of(&living) != SHMQ_TICKET_PASSED);
    CHECK(may_go(qb, &living));
    CHECK(shmq_line_answer(queues[0], &stopped[0], &seen)); /* the first one goes on */
    CHECK(!may_go(qb, &living));
    shmq_line_leave(qc, &late);
    shmq_line_leave(qb, &living);
    for (uint32_t i = 0; i < STOPPED; i++) {
        shmq_line_leave(queues[i], &stopped[i]);
        shmq_queue_unbind(queues[i]);
        shmq_member_leave(others[i], true);
        shmq_member_free(others[i]);
    }
    check_line();
    end();
}

TEST(who_only_polls_passes_the_stopped_too) {
    begin(1);
    fill(1);
    shmq_ticket stopped = stand(qb);
    CHECK_EQUAL(get_number(qc), 0);
    uint64_t from = shmq_now_ns();
    while (put_number(qa, 1) != SHMQ_OK) {
        CHECK(shmq_now_ns() - from < 5 * SECOND);
    }
    CHECK(shmq_now_ns() - from >= 100 * MS);
    CHECK_EQUAL(get_number(qc), 1);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK); /* nobody waits for it a second time */
    shmq_line_leave(qb, &stopped);
    check_line();
    end();
}

TEST(a_full_line_takes_no_more_until_its_first_is_gone) {
    begin(1);
    fill(1);
    shmq_ticket tickets[SHMQ_TICKETS], late = {0};
    for (uint32_t i = 0; i < SHMQ_TICKETS; i++) {
        tickets[i] = stand(i == 0 ? qb : qc);
    }
    CHECK(!shmq_line_enter(qa, &late, 8));
    CHECK_EQUAL(put_patiently(qa, "x", 1, shmq_now_ns() + 10 * MS), SHMQ_FULL_COUNT); /* beside the line */
    shmq_store_seq(&qa->tickets[0].word, shmq_ticket_word(0, b->row, SHMQ_TICKET_PASSED));
    CHECK(shmq_line_enter(qa, &late, 8)); /* who was passed has lost its ticket to one who needs it */
    CHECK_EQUAL(late.number, SHMQ_TICKETS);
    uint32_t seen;
    CHECK(!shmq_line_answer(qb, &tickets[0], &seen));
    CHECK(!tickets[0].in_line);
    for (uint32_t i = 1; i < SHMQ_TICKETS; i++) {
        shmq_line_leave(qc, &tickets[i]);
    }
    CHECK(may_go(qa, &late));
    shmq_line_leave(qa, &late);
    check_line();
    end();
}

/* 2^32 tickets later the numbers begin anew. */
TEST(numbers_begin_anew_after_the_last_one) {
    begin(1);
    fill(1);
    uint32_t number = UINT32_MAX - 1;
    shmq_store_seq(&qa->page->line, (uint64_t)number << 32 | number);
    for (uint32_t i = 0; i < SHMQ_TICKETS; i++) {
        uint32_t lap = (i < number % SHMQ_TICKETS ? number / SHMQ_TICKETS + 1 : number / SHMQ_TICKETS) & 0xffffff;
        shmq_store_seq(&qa->tickets[i].word, shmq_ticket_word(lap, 0, SHMQ_TICKET_FREE));
    }
    shmq_ticket t[4] = {stand(qa), stand(qb), stand(qb), stand(qc)};
    CHECK_EQUAL(t[3].number, 1);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(may_go(qa, &t[i]));
        shmq_line_leave(i == 0 ? qa : i == 3 ? qc : qb, &t[i]);
    }
    check_line();
    end();
}

TEST(damage_in_the_line_hangs_nobody) {
    static const uint64_t lines[] = {UINT64_C(5) << 32 | 3, UINT64_C(0x7fffffff00000000), UINT64_C(1) << 32, 0x1000,
                                     UINT64_C(0x00000000ffffffff)};
    for (uint32_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        begin(1);
        fill(1);
        shmq_store_seq(&qa->page->line, lines[i]);
        shmq_store_seq(&qa->tickets[lines[i] % SHMQ_TICKETS].word, i * UINT64_C(0x3fffff4007fff02));
        CHECK_EQUAL(put_patiently(qa, "x", 1, shmq_now_ns() + 20 * MS), SHMQ_FULL_COUNT);
        CHECK_EQUAL(get_number(qc), 0);
        CHECK_EQUAL(put_patiently(qa, "12345678", 8, shmq_now_ns() + 10 * SECOND), SHMQ_OK);
        CHECK(get_number(qb) != UINT64_MAX);
        end();
    }
}

TEST(a_ticket_that_makes_no_sense_is_told) {
    begin(2);
    shmq_a64 *word = &qa->tickets[7].word;
    uint64_t before = shmq_load_seq(word);
    uint64_t wrong[] = {shmq_ticket_word(1, a->row, SHMQ_TICKET_PASSED + 1),
                        shmq_ticket_word(1, SHMQ_PROCESS_ROWS, SHMQ_TICKET_WAITING),
                        shmq_ticket_word(UINT32_MAX, a->row, SHMQ_TICKET_CALLED),
                        shmq_ticket_word(1, 5, SHMQ_TICKET_FREE)};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        shmq_store_seq(word, wrong[i]);
        CHECK(shmq_line_fault(qa) != NULL);
        CHECK(strstr(shmq_line_fault(qa), "has a value that no process writes") != NULL);
    }
    shmq_store_seq(word, shmq_ticket_word(1, 60, SHMQ_TICKET_WAITING));
    CHECK(strstr(shmq_line_fault(qa), "is taken, but no process owns it") != NULL);
    shmq_store_seq(word, before);
    end();
}

int main(void) { return run_tests(); }
