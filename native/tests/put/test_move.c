/* A message goes from one queue to another as one step. The "dead" are other memberships of this process. */
#include "put/move.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "wake/watch.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *from_a, *to_a, *from_b, *to_b;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    from_a = scratch_queue(a, "from", 0, true);
    to_a = scratch_queue(a, "to", maxsize, true);
    from_b = scratch_queue(b, "from", 0, true);
    to_b = scratch_queue(b, "to", maxsize, true);
}

static void check_all(void) {
    check_segment(a);
    check_ring(from_a);
    check_ring(to_a);
}

static void end(bool b_lives) {
    check_all();
    if (b_lives) {
        shmq_queue_unbind(from_b);
        scratch_close(b, to_b);
    }
    shmq_queue_unbind(from_a);
    scratch_close(a, to_a);
    scratch_remove();
}

/* A message whose body is this number, of so many bytes. */
typedef struct letter {
    unsigned char body[400];
    struct iovec piece;
    shmq_outgoing o;
} letter;

static shmq_outgoing *write_letter(letter *l, uint64_t number, uint32_t bytes) {
    *l = (letter){0};
    memcpy(l->body, &number, sizeof(number));
    l->piece = (struct iovec){.iov_base = l->body, .iov_len = bytes};
    l->o = (shmq_outgoing){.pieces = &l->piece, .piece_count = 1, .body_len = bytes, .priority = 4};
    return &l->o;
}

static void put_letter(shmq_queue *q, uint64_t number, uint32_t bytes) {
    letter l;
    CHECK_EQUAL(shmq_put(q, write_letter(&l, number, bytes), 0), SHMQ_OK);
}

static uint64_t take_letter(shmq_queue *q) {
    shmq_delivery d = receive(q, shmq_self(q));
    uint64_t number;
    CHECK(shmq_delivery_intact(q, &d));
    memcpy(&number, d.bytes, sizeof(number));
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    return number;
}

static shmq_status move_letter(shmq_queue *from, shmq_delivery *d, shmq_queue *to, uint64_t number, uint32_t bytes) {
    letter l;
    shmq_status status = shmq_move(from, d, to, write_letter(&l, number, bytes));
    shmq_unprepare(to, &l.o);
    return status;
}

/* A move up to its decision. Answers the position of what is PENDING. */
static uint64_t half_move(shmq_queue *from, shmq_delivery *d, shmq_queue *to, uint64_t number, uint32_t bytes) {
    letter l;
    shmq_outgoing *o = write_letter(&l, number, bytes);
    CHECK_EQUAL(shmq_lock(from, d), SHMQ_OK);
    o->intent = shmq_intent(from->index, from->incarnation, d->depth, d->tag);
    o->source = d->position;
    shmq_add_unsettled(from->m, 1);
    CHECK_EQUAL(shmq_put(to, o, 0), SHMQ_OK);
    CHECK_EQUAL(state_at(to, o->made.position), SHMQ_PENDING);
    return o->made.position;
}

static void bury_b(void) {
    scratch_kill(b);
    reap_all(a, 1);
}

TEST(test_a_message_is_moved_and_is_there_once) {
    begin(4);
    const uint32_t sizes[] = {8, 400};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        put_letter(from_a, 7, sizes[i]);
        shmq_delivery d = receive(from_a, shmq_self(from_a));
        CHECK_EQUAL(move_letter(from_a, &d, to_a, 7, sizes[i]), SHMQ_OK);
        CHECK_EQUAL(get_number(from_a), UINT64_MAX);
        CHECK_EQUAL(census_of(to_a).ready, 1);
        check_all();
        CHECK_EQUAL(take_letter(to_a), 7);
        CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
        CHECK_EQUAL(move_letter(from_a, &d, to_a, 7, sizes[i]), SHMQ_SETTLED);
        CHECK_EQUAL(census_of(to_a).ready, 0);
    }
    end(true);
}

TEST(test_what_a_consumer_has_is_moved_in_the_name_of_the_process) {
    begin(0);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(from_a, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK_EQUAL(put_number(from_a, 1), SHMQ_OK);
    shmq_delivery d = receive(from_a, row), before = d;
    CHECK_EQUAL(shmq_queue_shut_down(to_a, SHMQ_DRAINING), SHMQ_OK);
    CHECK_EQUAL(move_letter(from_a, &d, to_a, 1, 8), SHMQ_SHUT_DOWN);
    CHECK_EQUAL(d.owner, shmq_self(from_a));
    CHECK_EQUAL(state_at(from_a, d.position), SHMQ_LOCKED);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 1);
    before.counted = false;
    CHECK_EQUAL(shmq_settle(from_a, &before), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_queue_shut_down(to_a, SHMQ_OPEN), SHMQ_OK);
    CHECK_EQUAL(move_letter(from_a, &d, to_a, 1, 8), SHMQ_OK);
    CHECK_EQUAL(get_number(to_a), 1);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    CHECK_EQUAL(shmq_row_close(from_a, row), SHMQ_OK);
    end(true);
}

/* Takers and browsers pass it, counts do not know it as ready, join() waits for it; and a stop blocks nobody. */
TEST(test_what_is_pending_is_passed_and_waited_for) {
    begin(0);
    CHECK_EQUAL(put_number(from_b, 1), SHMQ_OK);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    uint64_t p = half_move(from_b, &d, to_b, 1, 8);
    check_all();
    CHECK_EQUAL(get_number(to_a), UINT64_MAX);
    CHECK_EQUAL(put_number(to_a, 2), SHMQ_OK);
    uint64_t at = 0;
    shmq_delivery seen;
    CHECK_EQUAL(shmq_browse(&to_a->first, &at, &seen), SHMQ_OK);
    CHECK_EQUAL(number_of(&seen), 2);
    CHECK_EQUAL(shmq_steal(&to_a->first, p, false, &seen), SHMQ_EMPTY);
    CHECK_EQUAL(get_number(to_a), 2);
    shmq_census c = census_of(to_a);
    CHECK(c.ready == 0 && c.unsettled == 0 && c.claimed == 1);
    CHECK_EQUAL(shmq_ring_join(to_a, shmq_now_ns() + 1000000), SHMQ_TIMEOUT);
    check_all();
    bury_b();
    CHECK_EQUAL(get_number(from_a), 1);
    CHECK_EQUAL(shmq_ring_join(to_a, shmq_now_ns() + SECOND), SHMQ_OK);
    end(false);
}

/* Shows G2. */
TEST(test_a_mover_that_died_before_the_decision_has_moved_nothing) {
    const uint32_t sizes[] = {8, 400};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        begin(2);
        put_letter(from_b, 1, sizes[i]);
        put_letter(from_b, 2, sizes[i]);
        shmq_delivery d = receive(from_b, shmq_self(from_b));
        uint64_t p = half_move(from_b, &d, to_b, 1, sizes[i]);
        bury_b();
        CHECK_EQUAL(state_at(to_a, p), SHMQ_FREE);
        check_all();
        CHECK_EQUAL(take_letter(from_a), 1);
        CHECK_EQUAL(take_letter(from_a), 2);
        CHECK_EQUAL(get_number(to_a), UINT64_MAX);
        CHECK_EQUAL(put_number(to_a, 3), SHMQ_OK);
        CHECK_EQUAL(put_number(to_a, 4), SHMQ_OK);
        end(false);
    }
}

/* Shows G2. */
TEST(test_a_mover_that_died_after_the_decision_has_moved_it) {
    const uint32_t sizes[] = {8, 400};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        begin(0);
        put_letter(from_b, 1, sizes[i]);
        shmq_delivery d = receive(from_b, shmq_self(from_b));
        uint64_t p = half_move(from_b, &d, to_b, 1, sizes[i]);
        CHECK_EQUAL(shmq_settle(from_b, &d), SHMQ_OK);
        put_letter(to_a, 2, 8);
        CHECK_EQUAL(take_letter(to_a), 2); /* the head is behind it now */
        put_letter(to_a, 3, 8);
        bury_b();
        CHECK_EQUAL(state_at(to_a, p), SHMQ_AVAILABLE);
        check_all();
        CHECK_EQUAL(take_letter(to_a), 1);
        CHECK_EQUAL(take_letter(to_a), 3);
        CHECK_EQUAL(get_number(from_a), UINT64_MAX);
        end(false);
    }
}

/* The ring goes round under what is pending. */
TEST(test_what_is_pending_is_carried) {
    for (int decided = 0; decided < 2; decided++) {
        begin(0);
        put_letter(from_b, 1, 400);
        shmq_delivery d = receive(from_b, shmq_self(from_b));
        uint64_t p = half_move(from_b, &d, to_b, 1, 400);
        for (uint64_t i = 0; i <= to_a->first.mask + 5; i++) {
            CHECK_EQUAL(put_number(to_a, 100 + i), SHMQ_OK);
            CHECK_EQUAL(get_number(to_a), 100 + i);
        }
        CHECK(shmq_word_carried(shmq_load_seq(&shmq_slot_at(&to_a->first, p)->word)));
        check_all();
        if (decided) {
            CHECK_EQUAL(shmq_settle(from_b, &d), SHMQ_OK);
        }
        bury_b();
        check_all();
        CHECK_EQUAL(take_letter(decided ? to_a : from_a), 1);
        CHECK_EQUAL(census_of(to_a).ready + census_of(from_a).ready, 0);
        end(false);
    }
}

TEST(test_without_room_nothing_is_changed) {
    begin(1);
    CHECK_EQUAL(put_number(to_a, 9), SHMQ_OK);
    CHECK_EQUAL(put_number(from_a, 1), SHMQ_OK);
    shmq_delivery d = receive(from_a, shmq_self(from_a));
    CHECK_EQUAL(move_letter(from_a, &d, to_a, 1, 8), SHMQ_FULL_COUNT);
    CHECK_EQUAL(state_at(from_a, d.position), SHMQ_LOCKED);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 1);
    check_all();
    CHECK_EQUAL(get_number(to_a), 9);
    CHECK_EQUAL(move_letter(from_a, &d, to_a, 1, 8), SHMQ_OK);
    CHECK_EQUAL(get_number(to_a), 1);
    end(true);
}

TEST(test_to_a_queue_that_is_gone_nothing_is_moved) {
    begin(0);
    shmq_queue *gone = scratch_queue(a, "gone", 0, true);
    CHECK_EQUAL(put_number(from_a, 1), SHMQ_OK);
    shmq_delivery d = receive(from_a, shmq_self(from_a));
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    CHECK_EQUAL(move_letter(from_a, &d, gone, 1, 8), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_release(from_a, &d, false), SHMQ_OK);
    CHECK_EQUAL(get_number(from_a), 1);
    shmq_queue_unbind(gone);
    end(true);
}

/* A deletion leaves it in the mover's hand: the move has not happened, so it goes with its queue. */
TEST(test_the_source_is_deleted_under_a_mover_that_dies) {
    begin(0);
    shmq_queue *gone = scratch_queue(a, "gone", 0, true), *gone_b = scratch_queue(b, "gone", 0, true);
    CHECK_EQUAL(put_number(gone_b, 1), SHMQ_OK);
    shmq_delivery d = receive(gone_b, shmq_self(gone_b));
    half_move(gone_b, &d, to_b, 1, 8);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    CHECK_EQUAL(state_at(gone, d.position), SHMQ_LOCKED);
    bury_b();
    CHECK_EQUAL(get_number(to_a), UINT64_MAX);
    CHECK_EQUAL(state_at(gone, d.position), SHMQ_FREE);
    shmq_queue_unbind(gone);
    end(false);
}

TEST(test_the_target_is_deleted_under_a_mover_that_dies) {
    begin(0);
    shmq_queue *gone = scratch_queue(a, "gone", 0, true), *gone_b = scratch_queue(b, "gone", 0, true);
    put_letter(from_b, 1, 400);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    half_move(from_b, &d, gone_b, 1, 400);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    shmq_queue_unbind(gone);
    bury_b();
    CHECK_EQUAL(take_letter(from_a), 1);
    end(false);
}

TEST(test_delays_and_times_to_live_go_along) {
    begin(0);
    letter l;
    shmq_outgoing *o = write_letter(&l, 1, 8);
    uint64_t later = shmq_now_ns() + 1000 * SECOND;
    o->not_before_ns = later;
    o->expires_ns = later + 1;
    CHECK_EQUAL(shmq_put(from_a, o, 0), SHMQ_OK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal(&from_a->first, 0, true, &d), SHMQ_OK);
    o = write_letter(&l, 1, 8);
    shmq_move_times(from_a, &d, o);
    CHECK_EQUAL(shmq_move(from_a, &d, to_a, o), SHMQ_OK);
    CHECK_EQUAL(census_of(to_a).delayed, 1);
    CHECK_EQUAL(census_of(from_a).delayed, 0);
    uint64_t at = 0;
    CHECK_EQUAL(shmq_browse(&to_a->first, &at, &d), SHMQ_OK);
    CHECK_EQUAL(d.expires_ns, later + 1);
    CHECK_EQUAL(shmq_steal(&to_a->first, 0, true, &d), SHMQ_OK);
    CHECK_EQUAL(d.held_until_ns, later);
    CHECK_EQUAL(shmq_release(to_a, &d, false), SHMQ_OK);
    CHECK_EQUAL(get_number(to_a), 1);
    end(true);
}

/* A record that leads nowhere is damage: the message is rather twice there than never. */
TEST(test_an_intent_that_makes_no_sense_moves) {
    begin(0);
    CHECK_EQUAL(put_number(from_b, 1), SHMQ_OK);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    half_move(from_b, &d, to_b, 1, 8);
    uint64_t intent = shmq_intent(from_b->index, from_b->incarnation, 0, d.tag);
    CHECK(shmq_move_source(from_a, intent, d.position, d.owner));
    CHECK(!shmq_move_source(from_a, intent, d.position + 1, d.owner));
    CHECK(!shmq_move_source(from_a, intent, d.position, d.owner + 1));
    CHECK(!shmq_move_source(from_a, intent + (UINT64_C(1) << 48), d.position, d.owner));
    CHECK(!shmq_move_source(from_a, intent + (UINT64_C(1) << 59), d.position, d.owner));
    shmq_cold_at(&to_b->first, shmq_slot_at(&to_b->first, 0))->intent = shmq_intent(4095, 1, 0, d.tag);
    bury_b();
    CHECK_EQUAL(get_number(to_a), 1);
    CHECK_EQUAL(get_number(from_a), 1);
    end(false);
}

TEST(test_what_was_taken_from_a_consumer_is_not_moved) {
    begin(0);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(from_a, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK_EQUAL(put_number(from_a, 1), SHMQ_OK);
    shmq_delivery d = receive(from_a, row), taken;
    CHECK_EQUAL(shmq_steal(&from_b->first, d.position, false, &taken), SHMQ_OK);
    CHECK_EQUAL(move_letter(from_a, &d, to_a, 1, 8), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    CHECK_EQUAL(census_of(to_a).ready, 0);
    CHECK_EQUAL(shmq_release(from_b, &taken, false), SHMQ_OK);
    CHECK_EQUAL(get_number(from_a), 1);
    CHECK_EQUAL(shmq_row_close(from_a, row), SHMQ_OK);
    end(true);
}

TEST(test_another_ones_death_decides_nothing) {
    begin(0);
    shmq_member *c = scratch_attach();
    CHECK_EQUAL(put_number(from_b, 1), SHMQ_OK);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    uint64_t p = half_move(from_b, &d, to_b, 1, 8);
    scratch_kill(c);
    reap_all(a, 1);
    shmq_member_free(c);
    CHECK_EQUAL(state_at(to_a, p), SHMQ_PENDING);
    bury_b();
    CHECK_EQUAL(state_at(to_a, p), SHMQ_FREE);
    CHECK_EQUAL(get_number(from_a), 1);
    end(false);
}

/* Rather twice than never. */
TEST(test_what_does_not_say_where_it_comes_from_is_shown) {
    begin(0);
    CHECK_EQUAL(put_number(from_b, 1), SHMQ_OK);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    uint64_t p = half_move(from_b, &d, to_b, 1, 8);
    shmq_props_change(shmq_slot_at(&to_a->first, p), 0, SHMQ_PROP_INTENT);
    bury_b();
    CHECK_EQUAL(get_number(to_a), 1);
    CHECK_EQUAL(get_number(from_a), 1);
    end(false);
}

/* Nobody knows where to turn back to: from the beginning. */
TEST(test_with_a_damaged_position_it_is_shown_to_all) {
    begin(0);
    CHECK_EQUAL(put_number(from_b, 1), SHMQ_OK);
    shmq_delivery d = receive(from_b, shmq_self(from_b));
    uint64_t p = half_move(from_b, &d, to_b, 1, 8), epoch = shmq_load_seq(&to_a->first.shm->epoch);
    CHECK_EQUAL(shmq_settle(from_b, &d), SHMQ_OK);
    CHECK_EQUAL(put_number(to_a, 2), SHMQ_OK);
    CHECK_EQUAL(get_number(to_a), 2);
    shmq_store_seq(&shmq_slot_at(&to_a->first, p)->position, p + 1);
    bury_b();
    shmq_store_seq(&shmq_slot_at(&to_a->first, p)->position, p);
    CHECK(shmq_load_seq(&to_a->first.shm->epoch) > epoch);
    CHECK_EQUAL(get_number(to_a), 1);
    CHECK_EQUAL(get_number(from_a), UINT64_MAX);
    end(false);
}

TEST(test_what_has_no_times_takes_none_along) {
    begin(0);
    letter l;
    CHECK_EQUAL(put_number(from_a, 1), SHMQ_OK);
    shmq_delivery d = receive(from_a, shmq_self(from_a));
    for (int recorded = 0; recorded < 2; recorded++) {
        shmq_outgoing *o = write_letter(&l, 1, 8);
        shmq_move_times(from_a, &d, o);
        CHECK_EQUAL(o->expires_ns, 0);
        CHECK_EQUAL(o->not_before_ns, 0);
        CHECK_EQUAL(shmq_cold_need(&from_a->first), SHMQ_OK); /* the second time its ring has records, of others */
    }
    CHECK_EQUAL(shmq_settle(from_a, &d), SHMQ_OK);
    end(true);
}

int main(void) { return run_tests(); }
