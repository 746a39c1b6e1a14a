/* The queue duty "rows": lives that end on disk. */
#include "wake/due.h"
#include "mortal_rows.h"

/* A flush says when the first life among its rows ends, and leaves it as it is for what ends later. */
TEST(the_word_says_when_the_first_life_ends) {
    begin_still();
    uint64_t first = (stands_at + 1000 * MS) & ~UINT64_C(1), second = first + 10 * MS;
    put_many(0, MANY, 0);
    CHECK(flows());
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), 0);
    put_many(MANY, 2 * MANY, first);
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), first);
    CHECK(shmq_due_time(shmq_load_seq(&m->header->due)) <= first);
    put_many(2 * MANY, 3 * MANY, second);
    put_many(3 * MANY, 4 * MANY, 0);
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), first);
    stands_at = first + MS;
    look();
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), second);
    CHECK_EQUAL(expired(), MANY);
    stands_at = second;
    look();
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), 0);
    CHECK_EQUAL(expired(), 2 * MANY);
    get_numbers(q, 0, MANY);
    get_numbers(theirs, 3 * MANY, MANY);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Nobody reads: the disk is free, and the flow ends. */
TEST(when_all_are_over_nothing_is_left_on_disk) {
    begin_still();
    put_many(0, MANY, stands_at + MS);
    CHECK(flows() && scratch_spill_files(false) > 4);
    stands_at += 2 * MS;
    look();
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(expired(), MANY);
    CHECK(!flows() && scratch_spill_files(false) == 0);
    CHECK(shmq_flow_rows(q) == 0 && shmq_flow_bytes(q) == 0);
    put_many(0, MANY, 0);
    get_numbers(theirs, 0, MANY);
    end();
}

/* Rows before them stay: each of them comes in by itself, and is dropped there. */
TEST(those_in_the_middle_go_and_the_others_stay_in_order) {
    begin_still();
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(q, i, i % 3 == 0 ? 0 : stands_at + (i % 3) * 10 * MS);
    }
    stands_at += 10 * MS;
    look();
    CHECK_EQUAL(expired(), MANY / 3);
    CHECK_EQUAL(census_of(q).ready, MANY - MANY / 3);
    stands_at += 10 * MS;
    look();
    CHECK_EQUAL(expired(), MANY / 3 * 2);
    CHECK_EQUAL(census_of(q).ready, MANY / 3);
    for (uint64_t i = 0; i < MANY; i += 3) {
        get_numbers(i % 2 == 0 ? q : theirs, i, 1);
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK(!flows());
    end();
}

/* As many as have slots come in, and the next ones when these are buried; then the disk is free. */
TEST(what_is_to_be_buried_comes_in_and_frees_the_disk) {
    begin_still();
    dead_letter_the_expired(true);
    put_many(0, MANY, stands_at + MS);
    stands_at += 2 * MS;
    uint64_t buried = 0, looks = 0;
    static bool seen[MANY];
    while (buried < MANY) {
        shmq_delivery d;
        look();
        shmq_mover t = {.front = shmq_front_of(&q->first)};
        CHECK(shmq_fetched_room(&t, 4) != 0); /* others that want some have slots, too */
        CHECK(shmq_is_upcall_due(m, SHMQ_UPCALL_DEAD_LETTERS));
        while (shmq_steal_expired(q, &d) == SHMQ_OK) {
            uint64_t number = number_of(&d);
            CHECK(number < MANY && !seen[number]);
            seen[number] = true;
            buried++;
            CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        }
        shmq_rows_hurry(q);
        CHECK(++looks < MANY); /* the clock stands still: nothing waits for a time */
    }
    look();
    CHECK(!flows() && scratch_spill_files(false) == 0);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(expired(), 0); /* whoever buries counts */
    dead_letter_the_expired(false);
    end();
}

/* A round drops the rows of a file, and no more: some thousand bytes of words, whatever is due. */
TEST(a_round_does_a_piece_and_the_next_one_goes_on) {
    begin_still();
    put_many(0, MANY, stands_at + MS);
    stands_at += 2 * MS;
    uint64_t before = shmq_flow_rows(q), rounds = 0;
    while (flows()) {
        (void)shmq_upkeep_round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
        uint64_t now = shmq_flow_rows(q);
        CHECK(before - now <= SHMQ_TURN_ENTRIES);
        before = now;
        CHECK(++rounds < 1000);
    }
    CHECK(rounds > MANY / 2 / SHMQ_TURN_ENTRIES);
    look();
    CHECK_EQUAL(expired(), MANY);
    end();
}

TEST(a_round_fetches_no_more_than_it_may_spend) {
    begin_still();
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(q, i, i % 2 == 0 ? 0 : stands_at + MS);
    }
    stands_at += 2 * MS;
    for (uint64_t left = shmq_flow_rows(q), rounds = 0; expired() < MANY / 2; rounds++) {
        (void)shmq_upkeep_round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
        CHECK(left - shmq_flow_rows(q) <= SHMQ_ROUND_BUDGET / SHMQ_PRICE_FETCH);
        left = shmq_flow_rows(q);
        CHECK(rounds < MANY);
    }
    CHECK_EQUAL(census_of(q).ready, MANY / 2);
    end();
}

/* Each has its turn, and there is an end, whatever is due beside it, and however little may be spent at once. */
TEST(the_smallest_pieces_come_to_an_end) {
    begin_still();
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(q, i, i % 100 == 0 ? stands_at + MS : 0);
    }
    stands_at += 2 * MS;
    for (uint64_t pieces = 0, left = true; left || expired() < MANY / 100; pieces++) {
        shmq_budget budget = {.left = 2 * SHMQ_PRICE_QUEUE};
        left = shmq_times_step(m, stands_at, &budget);
        stands_at += MS;
        CHECK(pieces < 8 * MANY);
    }
    end();
}

/* Two of a mind: each goes over the rows for itself, a piece at a time. */
TEST(two_processes_share_the_work) {
    begin_still();
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(q, i, i % 2 == 0 ? 0 : stands_at + MS);
    }
    for (uint64_t turn = 0; expired() < MANY / 2; turn++) {
        stands_at += 2 * MS; /* so that what the other one has left half done is anybody's */
        (void)shmq_upkeep_round(turn % 2 == 0 ? m : other, SHMQ_DUTY(SHMQ_DUTY_TIMES));
        CHECK(turn < 2 * MANY);
    }
    CHECK_EQUAL(expired(), MANY / 2);
    for (uint64_t i = 0; i < MANY; i += 2) {
        get_numbers(q, i, 1);
    }
    end();
}

/* The lock is tried, and whoever has it delays us: then it is done a tick later. */
TEST(a_mover_at_work_only_delays_it) {
    begin_still();
    put_many(0, MANY, stands_at + MS);
    stands_at += 2 * MS;
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
    uint64_t rows = shmq_flow_rows(q);
    shmq_due_look(m);
    CHECK_EQUAL(shmq_flow_rows(q), rows);
    CHECK(shmq_due_time(shmq_load_seq(&m->header->due)) <= stands_at + SHMQ_TICK_NS);
    shmq_turn_end(&t);
    stands_at += SHMQ_TICK_NS;
    look();
    CHECK_EQUAL(expired(), MANY);
    end();
}

/* Its mover is stopped, say, in the middle of a pass or before it. */
TEST(a_queue_whose_mover_does_not_end_keeps_no_other_waiting) {
    begin_still();
    shmq_queue *second = scratch_flowing(m, "second", MEMORY);
    put_many(0, MANY, stands_at + MS);
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(second, i, stands_at + MS);
    }
    stands_at += 2 * MS;
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
    for (uint64_t looks = 0; shmq_flow_rows(second) != 0; looks++) {
        shmq_due_look(m);
        stands_at += SHMQ_TICK_NS;
        CHECK(looks < MANY);
    }
    shmq_turn_end(&t);
    look();
    CHECK_EQUAL(expired(), MANY);
    shmq_queue_unbind(second);
    end();
}

/* The producer does all that is due, so that max_bytes lets its message in, and finds then that max_memory is reached. */
TEST(a_put_that_a_limit_kept_out_goes_on_to_disk) {
    begin_still();
    put_many(0, 100, 0);
    put_timed(q, 1000, stands_at + MS);
    scratch_alter(q, SHMQ_SET_MAX_BYTES, 101 * sizeof(uint64_t));
    scratch_alter(q, SHMQ_SET_MAX_MEMORY, 1);
    CHECK(!flows());
    stands_at += 2 * MS;
    put_timed(q, 100, 0);
    CHECK(expired() == 1 && flows());
    get_numbers(q, 0, 101);
    scratch_alter(q, SHMQ_SET_MAX_BYTES, 0);
    scratch_alter(q, SHMQ_SET_MAX_MEMORY, MEMORY);
    end();
}

/* All slots of the front ring are in hands. */
TEST(without_a_slot_it_waits_for_one) {
    static shmq_delivery held[MANY];
    begin_still();
    put_many(0, MANY - 1, 0);
    const uint64_t end_of_life = stands_at + 3600 * SECOND;
    put_timed(q, MANY - 1, end_of_life);
    put_many(MANY, MANY + 8000, 0);
    uint64_t count = 0;
    const shmq_taking all = {.owner = shmq_self(q)};
    stands_at = 0; /* a receive may sleep */
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count < MANY - 1);
    stands_at = end_of_life;
    look();
    CHECK_EQUAL(expired(), 0);
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_settle(q, &held[i]), SHMQ_OK);
    }
    stands_at += SHMQ_DEAD_LETTER_NS;
    look();
    CHECK_EQUAL(expired(), 1);
    get_numbers(theirs, count, MANY - 1 - count);
    get_numbers(theirs, MANY, 8000);
    end();
}

/* Also of what was on disk before the option was given; and without it nothing is over. */
TEST(max_ttl_holds_on_disk) {
    begin_still();
    uint64_t first = stands_at;
    put_many(0, MANY / 2, 0);
    stands_at += 100 * MS;
    put_many(MANY / 2, MANY, 0);
    look();
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), 0);
    set_max_ttl(200 * MS);
    look();
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), (first + 200 * MS) & ~UINT64_C(1));
    set_max_ttl(SHMQ_NEVER);
    stands_at = first + 250 * MS;
    look();
    CHECK_EQUAL(expired(), 0);
    set_max_ttl(200 * MS);
    look();
    CHECK_EQUAL(expired(), MANY / 2);
    stands_at = first + 300 * MS;
    look();
    CHECK_EQUAL(expired(), MANY);
    CHECK(!flows());
    end();
}

/* Entries that come back in order are due in the front ring, too. */
TEST(what_came_back_is_over_in_its_time_by_max_ttl) {
    begin_still();
    set_max_ttl(100 * MS);
    put_many(0, MANY, 0);
    shmq_delivery d;
    while (shmq_load_seq(&shmq_front_of(&q->first)->shm->tail) == 0) {
        CHECK(get_number(q) != UINT64_MAX);
    }
    CHECK(shmq_load_seq(&shmq_front_of(&q->first)->shm->due) != 0);
    uint64_t left = census_of(q).ready;
    stands_at += 101 * MS;
    look();
    CHECK_EQUAL(expired(), left);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_EMPTY);
    end();
}

TEST(each_level_has_its_own_word) {
    begin_still();
    shmq_queue *levels = scratch_levels(m, "levels", 0, 3);
    for (uint64_t i = 0; i < MANY; i++) {
        struct iovec piece = {.iov_base = &i, .iov_len = sizeof i};
        shmq_outgoing o = timed(&piece, i % 3 == 1 ? 0 : stands_at + (i % 3 + 1) * MS);
        o.priority = (uint8_t)(i % 3 * 4);
        CHECK_EQUAL(shmq_put(levels, &o, 0), SHMQ_OK);
    }
    for (uint32_t depth = 0; depth < 3; depth++) {
        CHECK_EQUAL(shmq_purger_make_room(levels, shmq_level(levels, depth)), SHMQ_OK);
        CHECK_EQUAL(shmq_load_seq(&shmq_level_ring(levels, depth)->rows_due) == 0, depth == 1);
    }
    stands_at += MS;
    shmq_due_look(m);
    CHECK_EQUAL(census_of(levels).ready, MANY - MANY / 3);
    stands_at += 2 * MS;
    shmq_due_look(m);
    CHECK_EQUAL(census_of(levels).ready, MANY / 3);
    for (uint64_t i = 1; i < MANY; i += 3) {
        CHECK_EQUAL(get_number(levels), i);
    }
    CHECK_EQUAL(get_number(levels), UINT64_MAX);
    shmq_queue_unbind(levels);
    end();
}

/* Given while a pass is unfinished: the word stays due. */
TEST(a_max_ttl_that_comes_amid_a_pass_is_not_forgotten) {
    begin_still();
    put_many(0, 4 * MANY, 0);
    set_max_ttl(3600 * SECOND);
    (void)shmq_upkeep_round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
    while (!m->rounds.rows.unfinished) {
        stands_at += MS;
        (void)shmq_upkeep_round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
    }
    set_max_ttl(1800 * SECOND);
    stands_at += 1800 * SECOND;
    look();
    look();
    CHECK_EQUAL(expired(), 4 * MANY);
    end();
}

/* A queue that is deleted amid a pass hinders nobody. */
TEST(a_queue_that_is_deleted_amid_a_pass_is_left) {
    begin_still();
    put_many(0, 4 * MANY, 0);
    set_max_ttl(3600 * SECOND);
    for (int i = 0; i < 1000 && !m->rounds.rows.unfinished; i++) {
        stands_at += MS;
        (void)shmq_upkeep_round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
    }
    CHECK(m->rounds.rows.unfinished);
    shmq_queue *second = scratch_queue(other, "second", 0, true);
    put_timed(second, 1, stands_at + MS);
    CHECK_EQUAL(shmq_queue_delete(theirs), SHMQ_OK);
    stands_at += 2 * MS;
    shmq_due_look(m);
    stands_at += SHMQ_DEAD_LETTER_NS;
    shmq_due_look(m);
    CHECK_EQUAL(census_of(second).ready, 0);
    shmq_queue_unbind(second);
    shmq_queue_unbind(q);
    shmq_queue_unbind(theirs);
    q = scratch_flowing(m, "jobs", MEMORY);
    theirs = scratch_flowing(other, "jobs", MEMORY);
    end();
}

/* A word that nobody writes is looked at at once, and put right. */
TEST(a_damaged_word_is_put_right) {
    begin_still();
    uint64_t at = (stands_at + 10 * MS) & ~UINT64_C(1);
    put_many(0, MANY, at);
    shmq_store_seq(&words()->rows_due, UINT64_MAX - 1);
    CHECK(shmq_flow_fault(&q->first) != NULL);
    (void)shmq_due_at(&m->header->due, 1);
    look();
    CHECK_EQUAL(shmq_load_seq(&words()->rows_due), at);
    stands_at += 20 * MS;
    look();
    CHECK_EQUAL(expired(), MANY);
    end();
}

int main(void) { return run_tests(); }
