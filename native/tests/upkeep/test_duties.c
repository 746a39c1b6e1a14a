/* The list of duties: when each is due, and what one round does of it. */
#include "segment/alert_time.h"
#include "wake/watch.h"
#include "still_broker.h"

static shmq_member *dead_member(void) {
    shmq_member *m = scratch_attach();
    scratch_kill(m);
    return m;
}

static bool is_reaped(const shmq_member *m) {
    return shmq_row_state(shmq_load_seq(&m->process->word)) == SHMQ_ROW_FREE;
}

TEST(each_duty_has_a_name_and_a_question) {
    for (uint32_t i = 0; i < SHMQ_DUTIES; i++) {
        CHECK(shmq_duties[i].name != NULL && shmq_duties[i].is_due != NULL);
        CHECK((shmq_duties[i].step == NULL) == (i == SHMQ_DUTY_DEAD_LETTERS));
    }
    for (uint32_t i = 0; i < SHMQ_QUEUE_DUTIES; i++) {
        CHECK(shmq_queue_duties[i].name != NULL && shmq_queue_duties[i].due != NULL &&
              shmq_queue_duties[i].step != NULL);
    }
}

TEST(nothing_is_due_in_a_new_broker) {
    begin();
    for (uint32_t i = 0; i < SHMQ_DUTIES; i++) {
        CHECK(!is_due(i));
    }
    CHECK(!shmq_upkeep_round(a, SHMQ_EVERY_DUTY));
    end();
}

/* Duty "met". */
TEST(who_was_met_dead_is_reaped) {
    begin();
    shmq_member *dead = dead_member();
    shmq_met_dead(a, dead->row);
    CHECK(is_due(SHMQ_DUTY_MET));
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK); /* the next call does it, though this is not its 1,024th */
    CHECK(is_reaped(dead) && !is_due(SHMQ_DUTY_MET));
    shmq_member_free(dead);
    end();
}

/* Duty "deaths". */
TEST(a_round_reaps_one_of_the_dead) {
    begin();
    shmq_member *dead[3];
    for (int i = 0; i < 3; i++) {
        dead[i] = dead_member();
    }
    CHECK(!round_of(SHMQ_DUTY_DEATHS)); /* it has looked a moment ago */
    CHECK(!is_reaped(dead[0]));
    stands_at += SHMQ_TICK_NS;
    for (int i = 0; i < 3; i++) {
        CHECK(is_due(SHMQ_DUTY_DEATHS));
        CHECK_EQUAL(round_of(SHMQ_DUTY_DEATHS), i < 2);
        CHECK(is_reaped(dead[i]));
        CHECK(i == 2 || !is_reaped(dead[i + 1]));
    }
    CHECK(!is_due(SHMQ_DUTY_DEATHS));
    for (int i = 0; i < 3; i++) {
        shmq_member_free(dead[i]);
    }
    end();
}

/* Of who is busy: it is not to make a thousand calls for each of them. Shows G4. */
TEST(the_next_calls_reap_the_others) {
    begin();
    shmq_member *dead[3] = {dead_member(), dead_member(), dead_member()};
    stands_at += SHMQ_TICK_NS;
    shmq_store_relaxed(&a->ops, 1023);
    for (int i = 0; i < 3; i++) {
        CHECK(!is_reaped(dead[i]));
        CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
        CHECK(is_reaped(dead[i]));
        shmq_member_free(dead[i]);
    }
    end();
}

TEST(a_round_asks_so_many_rows) {
    begin();
    enum { LIVE = 2 * SHMQ_ROUND_BUDGET / SHMQ_PRICE_ROW };
    shmq_member *live[LIVE];
    for (uint32_t i = 0; i < LIVE; i++) {
        live[i] = scratch_attach();
    }
    shmq_member *dead = dead_member();
    stands_at += SHMQ_TICK_NS;
    uint32_t rounds = 1;
    while (round_of(SHMQ_DUTY_DEATHS)) {
        rounds++;
    }
    CHECK_EQUAL(rounds, 3); /* there are a few rows more than two rounds may ask */
    CHECK(is_reaped(dead));
    shmq_member_free(dead);
    for (uint32_t i = 0; i < LIVE; i++) {
        leave(live[i]);
    }
    end();
}

/* Duty "segment". */
TEST(a_deleted_broker_is_noticed) {
    begin();
    CHECK_EQUAL(shmq_member_delete(b, true), SHMQ_OK);
    shmq_store_seq(&a->header->state, SHMQ_SEGMENT_LIVE); /* whoever deleted it has not told yet */
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_OK);
    CHECK(!is_due(SHMQ_DUTY_SEGMENT));
    stands_at += SHMQ_TICK_NS;
    CHECK(is_due(SHMQ_DUTY_SEGMENT));
    CHECK(!round_of(SHMQ_DUTY_SEGMENT));
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_GONE);
    end();
}

/* Duty "alerts": the interpreter is told that it is time to look. */
TEST(alerts_are_looked_for_when_it_is_time) {
    begin();
    CHECK(!is_due(SHMQ_DUTY_ALERTS));
    shmq_alerts_begin(a);
    CHECK(!is_due(SHMQ_DUTY_ALERTS) && !shmq_is_upcall_due(a, SHMQ_UPCALL_ALERTS));
    stands_at += SHMQ_ALERT_LOOK_NS;
    CHECK(is_due(SHMQ_DUTY_ALERTS));
    CHECK(!round_of(SHMQ_DUTY_ALERTS));
    CHECK(shmq_upcall_take(a, SHMQ_UPCALL_ALERTS) && !is_due(SHMQ_DUTY_ALERTS));
    end();
}

/* Duty "dead letters": the interpreter's, and no round of the core takes it away. */
TEST(burials_are_left_to_the_interpreter) {
    begin();
    shmq_store_seq(&a->upcalls, SHMQ_UPCALL_DEAD_LETTERS);
    CHECK(is_due(SHMQ_DUTY_DEAD_LETTERS));
    CHECK(!shmq_upkeep_round(a, SHMQ_EVERY_DUTY));
    CHECK(is_due(SHMQ_DUTY_DEAD_LETTERS));
    end();
}

/* Queue duty "unused queue". */
TEST(a_round_ends_one_queue_that_nobody_uses) {
    begin();
    shmq_declaration d = {.create = true};
    shmq_declaration_give(&d, SHMQ_SET_EXPIRES, 10 * MS);
    shmq_queue *first = scratch_declare(b, "first", d, 0), *second = scratch_declare(b, "second", d, 0);
    stands_at += 11 * MS;
    CHECK(round_of(SHMQ_DUTY_TIMES));
    CHECK_EQUAL(shmq_queue_usable(first), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_usable(second), SHMQ_OK);
    (void)round_of(SHMQ_DUTY_TIMES);
    CHECK_EQUAL(shmq_queue_usable(second), SHMQ_NOT_FOUND);
    shmq_queue_unbind(first);
    shmq_queue_unbind(second);
    end();
}

/* Queue duty "deleted queue". */
TEST(what_came_back_to_a_deleted_queue_goes_by_a_round) {
    begin();
    shmq_queue *first = scratch_queue(b, "first", 64, true);
    CHECK_EQUAL(put_number(first, 1), SHMQ_OK);
    shmq_delivery d = receive(first, shmq_self(first));
    CHECK_EQUAL(shmq_queue_delete(first), SHMQ_OK);
    /* As if whoever gave it back had died before he looked whether it was deleted. */
    shmq_slot_shm *slot = shmq_slot_at(&first->first, d.position);
    uint64_t word = shmq_load_seq(&slot->word);
    shmq_store_relaxed(&first->page->state, SHMQ_QUEUE_LIVE);
    CHECK_EQUAL(shmq_release(first, &d, false), SHMQ_OK);
    shmq_store_seq(&first->page->state, SHMQ_QUEUE_DELETED);
    CHECK(shmq_load_seq(&slot->word) != word);
    shmq_store_seq(&a->header->due, 2);
    (void)round_of(SHMQ_DUTY_TIMES);
    CHECK_EQUAL(census_of(first).ready, 0);
    shmq_queue_unbind(first);
    end();
}

/* A dead process takes all of a round; what has its time has the next one. */
TEST(no_duty_waits_behind_another_for_ever) {
    begin();
    shmq_member *dead[2] = {dead_member(), dead_member()};
    put_until(qa, 1, stands_at + MS);
    stands_at += SHMQ_TICK_NS;
    CHECK(shmq_upkeep_round(a, SHMQ_EVERY_DUTY));
    CHECK(is_reaped(dead[0]) && held_in(qa) == 1);
    (void)shmq_upkeep_round(a, SHMQ_EVERY_DUTY);
    CHECK_EQUAL(held_in(qa), 0);
    (void)shmq_upkeep_round(a, SHMQ_EVERY_DUTY);
    CHECK(is_reaped(dead[1]));
    shmq_member_free(dead[0]);
    shmq_member_free(dead[1]);
    end();
}

TEST(one_thread_of_a_process_is_at_it) {
    begin();
    put_until(qa, 1, stands_at + MS);
    stands_at += MS;
    shmq_store_seq(&a->rounds.busy, 1);
    CHECK(!round_of(SHMQ_DUTY_TIMES));
    shmq_due_look(a);
    CHECK_EQUAL(held_in(qa), 1);
    shmq_store_seq(&a->rounds.busy, 0);
    CHECK(!round_of(SHMQ_DUTY_TIMES));
    CHECK_EQUAL(held_in(qa), 0);
    end();
}

TEST(a_question_starts_nothing) {
    begin();
    put_until(qa, 1, stands_at + MS);
    stands_at += SHMQ_TICK_NS;
    shmq_met_dead(a, b->row);
    size_t bytes = a->data;
    unsigned char *before = malloc(bytes);
    CHECK(before != NULL);
    memcpy(before, a->base, bytes);
    uint32_t ops = shmq_load_relaxed(&a->ops);
    for (int i = 0; i < 2000; i++) {
        CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_OK);
    }
    CHECK(memcmp(before, a->base, bytes) == 0);
    CHECK_EQUAL(shmq_load_relaxed(&a->ops), ops);
    CHECK(held_in(qa) == 1 && is_due(SHMQ_DUTY_MET));
    free(before);
    end();
}

int main(void) { return run_tests(); }
