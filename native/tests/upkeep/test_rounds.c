/* Due duties are done in rounds: how much one of them does, where the next goes on, and what comes in between. */
#include "wake/due.h"
#include "still_broker.h"

#define MANY 100u

static shmq_queue *queues[MANY];

static uint32_t held_in_all(void) {
    uint32_t held = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        held += (uint32_t)held_in(queues[i]);
    }
    return held;
}

/* In each a message that is due now. */
static void begin_with_many(void) {
    begin();
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "q%u", i);
        queues[i] = scratch_queue(a, name, 64, true);
        put_until(queues[i], i, stands_at + 10 * MS);
    }
    stands_at += 10 * MS;
    CHECK_EQUAL(held_in_all(), MANY);
}

static void end_with_many(void) {
    for (uint32_t i = 0; i < MANY; i++) {
        check_ring(queues[i]);
        shmq_queue_unbind(queues[i]);
    }
    end();
}

#define PRICE_OF_A_DUE_QUEUE (SHMQ_PRICE_QUEUE + SHMQ_PRICE_ENTRY + SHMQ_PRICE_CHANGE)
#define DUE_QUEUES_A_ROUND (SHMQ_ROUND_BUDGET / PRICE_OF_A_DUE_QUEUE + 1)

/* Duty "times", queue duty "messages". Two puts that find many queues due pay for a part of them each. Shows G4. */
TEST(a_call_pays_for_a_part_of_many_due_queues) {
    begin_with_many();
    uint32_t before = MANY, calls = 0;
    while (before != 0) {
        CHECK_EQUAL(put_number(qa, calls++), SHMQ_OK);
        uint32_t left = held_in_all();
        CHECK(left < before && before - left <= DUE_QUEUES_A_ROUND);
        before = left;
    }
    CHECK(calls >= MANY / DUE_QUEUES_A_ROUND && calls <= 2 * MANY / DUE_QUEUES_A_ROUND + 1);
    while (shmq_upkeep_round(a, SHMQ_EVERY_DUTY)) {
    }
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    end_with_many();
}

TEST(who_sleeps_or_counts_goes_on_to_the_end) {
    begin_with_many();
    CHECK(round_of(SHMQ_DUTY_TIMES));
    CHECK(held_in_all() != 0);
    shmq_due_look(a);
    CHECK_EQUAL(held_in_all(), 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    end_with_many();
}

/* The first of them is idle now, or stopped, or dead. Shows G4. */
TEST(another_process_goes_on_after_a_moment) {
    begin_with_many();
    CHECK(round_of(SHMQ_DUTY_TIMES));
    uint32_t left = held_in_all();
    shmq_due_look(b);
    CHECK_EQUAL(held_in_all(), left);
    stands_at += SHMQ_SHORT_SLEEP_NS + 2;
    shmq_due_look(b);
    CHECK_EQUAL(held_in_all(), 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    CHECK(!round_of(SHMQ_DUTY_TIMES)); /* and the first has nothing left */
    end_with_many();
}

TEST(a_queue_that_becomes_due_between_two_rounds_is_not_forgotten) {
    begin_with_many();
    uint64_t at = stands_at + 5 * MS;
    CHECK(round_of(SHMQ_DUTY_TIMES));
    put_until(queues[0], 1000, at); /* which was looked at already */
    while (round_of(SHMQ_DUTY_TIMES)) {
    }
    CHECK_EQUAL(held_in_all(), 1);
    CHECK(shmq_due_time(shmq_load_seq(&a->header->due)) <= at);
    stands_at = at + 2;
    while (round_of(SHMQ_DUTY_TIMES)) {
    }
    CHECK_EQUAL(held_in_all(), 0);
    end_with_many();
}

#define ENTRIES 600u

static void begin_with_a_long_ring(void) {
    begin();
    for (uint32_t i = 0; i < ENTRIES; i++) {
        put_until(qa, i, stands_at + 10 * MS);
    }
    stands_at += 10 * MS;
}

TEST(a_round_looks_at_a_part_of_a_ring) {
    begin_with_a_long_ring();
    uint64_t before = ENTRIES, most = SHMQ_ROUND_BUDGET / (SHMQ_PRICE_ENTRY + SHMQ_PRICE_CHANGE) + 1;
    uint32_t rounds = 0;
    for (bool more = true; more; rounds++) {
        more = round_of(SHMQ_DUTY_TIMES);
        uint64_t left = held_in(qa);
        CHECK(before - left <= most);
        before = left;
    }
    CHECK_EQUAL(before, 0);
    CHECK(rounds >= ENTRIES / most && rounds <= ENTRIES / most + 3);
    CHECK_EQUAL(shmq_load_seq(&qa->first.shm->due), 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    end();
}

/* The same of one that the ring has gone round meanwhile: it is looked at after all others, or, in every second circle, before them. */
TEST(traffic_that_is_delayed_starves_nothing_that_is_carried) {
    begin();
    put_until(qa, 0, stands_at + 10 * MS);
    for (uint64_t i = 1; i <= 1100; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), i);
    }
    uint64_t later = stands_at + 3600 * SECOND;
    for (uint64_t i = 0; i < SHMQ_ROUND_BUDGET + 100; i++) {
        put_until(qa, i, later);
    }
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    stands_at += 10 * MS;
    for (uint32_t rounds = 0; rounds < 4; rounds++) {
        put_until(qa, rounds, later);
        (void)round_of(SHMQ_DUTY_TIMES);
    }
    CHECK_EQUAL(held_in(qa), SHMQ_ROUND_BUDGET + 104);
    CHECK_EQUAL(state_at(qa, 0), SHMQ_AVAILABLE);
    end();
}

/* Each put takes the mark away, so no circle comes to its end; yet each entry has its turn. */
TEST(traffic_that_is_delayed_starves_none_of_the_due) {
    begin_with_a_long_ring();
    uint64_t later = stands_at + 3600 * SECOND;
    for (uint32_t rounds = 0; rounds < 2 * ENTRIES / (SHMQ_ROUND_BUDGET / (SHMQ_PRICE_ENTRY + SHMQ_PRICE_CHANGE));
         rounds++) {
        put_until(qa, ENTRIES + rounds, later);
        (void)round_of(SHMQ_DUTY_TIMES);
    }
    for (uint64_t p = 0; p < ENTRIES; p++) {
        CHECK_EQUAL(state_at(qa, p), SHMQ_AVAILABLE);
    }
    while (round_of(SHMQ_DUTY_TIMES)) {
    }
    uint64_t due = shmq_due_time(shmq_load_seq(&a->header->due));
    CHECK(due > stands_at && due <= later);
    end();
}

TEST(an_entry_that_becomes_due_between_two_rounds_is_not_forgotten) {
    begin_with_a_long_ring();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK); /* the first round is this call's */
    CHECK(held_in(qa) != 0 && held_in(qa) != ENTRIES);
    shmq_delivery d = receive(qa, shmq_self(qa));
    CHECK_EQUAL(d.position, 0);
    uint64_t at = stands_at + 7 * MS;
    CHECK_EQUAL(shmq_release_until(qa, &d, false, at), SHMQ_OK); /* behind the place of the look */
    while (round_of(SHMQ_DUTY_TIMES)) {
    }
    CHECK_EQUAL(held_in(qa), 1);
    CHECK(shmq_due_time(shmq_load_seq(&a->header->due)) <= at);
    stands_at = at + 2;
    shmq_due_look(a);
    CHECK_EQUAL(held_in(qa), 0);
    end();
}

TEST(another_process_goes_on_with_a_ring_after_a_moment) {
    begin_with_a_long_ring();
    CHECK(round_of(SHMQ_DUTY_TIMES));
    uint64_t left = held_in(qa);
    shmq_ring_time(&qa->first, stands_at); /* as who scans into it: it is somebody's */
    CHECK_EQUAL(held_in(qa), left);
    stands_at += SHMQ_SHORT_SLEEP_NS + 2;
    shmq_due_look(b);
    CHECK_EQUAL(held_in(qa), 0);
    CHECK(!round_of(SHMQ_DUTY_TIMES));
    CHECK_EQUAL(shmq_load_seq(&qa->first.shm->due), 0);
    end();
}

/* The half that has been looked at stays so, though a level before it is due by now. */
TEST(a_level_that_is_half_looked_at_comes_first) {
    begin();
    shmq_queue *levels = scratch_levels(a, "levels", 1000, 3);
    for (uint32_t i = 0; i < 100; i++) {
        uint64_t number = i;
        struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
        shmq_outgoing o = {
            .pieces = &piece, .piece_count = 1, .body_len = sizeof number, .not_before_ns = stands_at + MS};
        CHECK_EQUAL(shmq_put(levels, &o, 0), SHMQ_OK);
    }
    shmq_ring *usual = shmq_level_for(levels, 0);
    CHECK(usual->depth != 0);
    stands_at += MS;
    CHECK(round_of(SHMQ_DUTY_TIMES));
    CHECK(shmq_is_half_looked_at(levels, usual->depth, &a->rounds));
    shmq_make_due(&levels->first, 1);
    CHECK(!round_of(SHMQ_DUTY_TIMES));
    CHECK_EQUAL(census_of(levels).delayed, 0);
    shmq_queue_unbind(levels);
    end();
}

/* Takers go by entries that wait for their time, and look at later ones from then on. */
static void pass_by(shmq_queue *q) {
    CHECK_EQUAL(put_number(q, 1000000), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 1000000);
}

/* Its queue is one of those at which the round has not come: it does all that is due before it says that there is nothing.
 * Shows G4. */
TEST(a_poll_finds_what_is_due_behind_a_round) {
    begin();
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "q%u", i);
        queues[i] = scratch_queue(a, name, 64, true);
        put_until(queues[i], i, stands_at + 10 * MS);
    }
    pass_by(queues[MANY - 1]);
    stands_at += 10 * MS;
    CHECK_EQUAL(get_number(queues[MANY - 1]), MANY - 1);
    CHECK_EQUAL(held_in_all(), 0);
    end_with_many();
}

/* Faster than rests between rounds end. */
TEST(polls_take_all_that_is_due_one_after_the_other) {
    begin_with_a_long_ring();
    stands_at -= 10 * MS;
    pass_by(qa);
    uint64_t due = __real_shmq_now_ns() + 20 * MS;
    stands_at = 0;
    while (__real_shmq_now_ns() < due) {
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    end();
}

/* The message that has the place of the queue's only one has expired, in a queue at which the round has not come.
 * Shows G4. */
TEST(a_put_finds_room_that_is_due_behind_a_round) {
    begin_with_many();
    shmq_declaration d = {.create = true};
    shmq_declaration_give(&d, SHMQ_SET_MAXSIZE, 1);
    shmq_queue *limited = scratch_declare(a, "limited", d, 0);
    uint64_t number = 1;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .expires_ns = stands_at + MS};
    CHECK_EQUAL(shmq_put(limited, &o, 0), SHMQ_OK);
    CHECK_EQUAL(put_number(limited, 2), SHMQ_FULL_COUNT);
    for (uint32_t i = 0; i < MANY; i++) {
        put_until(queues[i], i, stands_at + MS);
    }
    stands_at += 2 * MS;
    CHECK_EQUAL(put_number(limited, 3), SHMQ_OK);
    CHECK_EQUAL(get_number(limited), 3);
    shmq_queue_unbind(limited);
    end_with_many();
}

int main(void) { return run_tests(); }
