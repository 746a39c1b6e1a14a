/* Slots whose owners died, live, or cannot be: who clears them, and what is left alone. */
#include "check/check.h"
#include "flow/flow.h"
#include "limits/slot_free.h"
#include "scratch_queue.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs;
static unsigned char large[5000];

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = scratch_queue(m, "jobs", 8, true);
    theirs = scratch_queue(other, "jobs", 8, true);
}

static void end(void) {
    scratch_close_unless_dead(other, theirs);
    scratch_close(m, q);
    scratch_remove();
}

TEST(only_who_was_there_can_be_dead) {
    begin();
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK(!shmq_owner_dead(q, shmq_self(theirs)));
    CHECK(!shmq_owner_dead(q, row));
    CHECK(!shmq_owner_dead(q, row + 1)); /* a row that nobody has */
    CHECK(!shmq_owner_dead(q, SHMQ_CONSUMER_ROWS - 1)); /* in a chunk that was never made */
    scratch_kill(other);
    CHECK(shmq_owner_dead(q, shmq_self(theirs)));
    CHECK(shmq_owner_dead(q, row));
    CHECK(!shmq_owner_dead(q, row + 1));
    reap_all(m, 1);
    CHECK(!shmq_owner_dead(q, row));
    end();
}

static shmq_slot_shm *slot_at(uint64_t position) { return shmq_slot_at(&q->first, position); }

static uint64_t word_at(uint64_t position) { return shmq_load_seq(&slot_at(position)->word); }

static void set_word(uint64_t position, uint32_t state, uint32_t owner) {
    uint64_t word = word_at(position);
    shmq_store_seq(&slot_at(position)->word, shmq_word_to(word, state, owner, shmq_word_tag(word)));
}

static bool clear(uint64_t position, bool overdue) {
    return shmq_claim_clear(&q->first, slot_at(position), word_at(position), overdue);
}

TEST(a_claim_of_the_living_is_a_hole_only_when_it_is_overdue_and_anothers) {
    begin();
    uint64_t mine = claim_by_hand(q), of_another = claim_by_hand(theirs);
    CHECK(!clear(mine, false) && !clear(mine, true));
    CHECK(!clear(of_another, false));
    CHECK_EQUAL(state_at(q, mine), SHMQ_CLAIMED);
    CHECK(clear(of_another, true));
    CHECK_EQUAL(state_at(q, of_another), SHMQ_QUARANTINED);
    CHECK(!clear(of_another, true)); /* its claimant may still come */
    CHECK_EQUAL(state_at(q, of_another), SHMQ_QUARANTINED);
    scratch_kill(other);
    CHECK(clear(of_another, false));
    CHECK_EQUAL(state_at(q, of_another), SHMQ_FREE);
    CHECK(shmq_claim_clear(&q->first, slot_at(mine), word_at(mine), true) == false);
    CHECK(shmq_claim_end(&q->first, slot_at(mine), word_at(mine)));
    reap_all(m, 1);
    check_ring(q);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

TEST(what_somebody_is_settling_is_left_to_it_while_it_lives) {
    begin();
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    shmq_delivery d = receive(theirs, shmq_self(theirs));
    CHECK(!clear(d.position, true)); /* in a hand: nothing to be cleared */
    CHECK_EQUAL(state_at(q, d.position), SHMQ_ACQUIRED);
    set_word(d.position, SHMQ_DEQUEUED, shmq_self(theirs));
    CHECK(!clear(d.position, true));
    CHECK_EQUAL(state_at(q, d.position), SHMQ_DEQUEUED);
    uint64_t before = word_at(d.position);
    scratch_kill(other);
    CHECK(clear(d.position, false));
    CHECK_EQUAL(state_at(q, d.position), SHMQ_FREE);
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.used, 0); /* and its body has gone with it */
    CHECK(shmq_claim_end(&q->first, slot_at(d.position), before)); /* who comes later finds it done */
    CHECK_EQUAL(state_at(q, d.position), SHMQ_FREE);
    reap_all(m, 1);
    check_ring(q);
    end();
}

/* One that has a view and no handle has no counters in which it could be seen: the count is one too high, until a producer finds no
 * room. */
TEST(a_slot_that_is_freed_through_a_view_is_counted_again_later) {
    begin();
    shmq_queue view;
    shmq_delivery d;
    CHECK(shmq_queue_look(m, q->index, &view) == NULL);
    CHECK(view.counters == NULL);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(q, 8), SHMQ_FULL_COUNT);
    CHECK_EQUAL(shmq_steal(&view.first, 0, true, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_entry_ends(&view.first, &d, SHMQ_END_ACKED), SHMQ_OK);
    CHECK_EQUAL(census_of(q).ready, 7);
    CHECK_EQUAL(put_number(q, 8), SHMQ_OK); /* a producer that finds no room counts */
    for (uint64_t i = 1; i <= 8; i++) {
        CHECK_EQUAL(get_number(theirs), i);
    }
    check_ring(q);
    end();
}

TEST(a_snapshot_is_of_an_entry_that_can_be_read) {
    begin();
    shmq_delivery d;
    CHECK(!shmq_entry_snapshot(&q->first, 0, &d)); /* nothing there */
    CHECK_EQUAL(put_number(q, 42), SHMQ_OK);
    CHECK(shmq_entry_snapshot(&q->first, 0, &d));
    CHECK_EQUAL(number_of(&d), 42);
    uint64_t position = shmq_load_seq(&slot_at(0)->position);
    shmq_store_seq(&slot_at(0)->position, position + 1); /* another slot's: it is being used anew, or damaged */
    CHECK(!shmq_entry_snapshot(&q->first, 0, &d));
    shmq_bodies bodies;
    CHECK(shmq_bodies_fault(&q->first, &bodies) == NULL);
    CHECK_EQUAL(bodies.moved, 1);
    shmq_store_seq(&slot_at(0)->position, position);
    uint32_t length = slot_at(0)->body_len;
    slot_at(0)->body_len = UINT32_MAX;
    CHECK(!shmq_entry_snapshot(&q->first, 0, &d));
    slot_at(0)->body_len = length;
    CHECK_EQUAL(get_number(theirs), 42);
    end();
}

/* A mover that died has not turned the head back yet: the next one does. */
TEST(what_a_dead_mover_gave_back_is_not_lost) {
    begin();
    shmq_stray stray;
    uint64_t where;
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q)), second = receive(q, shmq_self(q));
    set_word(d.position, SHMQ_AVAILABLE, 0);
    CHECK(shmq_entries_fault(&q->first, &where, &stray) == NULL);
    CHECK(stray.found);
    CHECK_EQUAL(stray.slot, d.position);
    shmq_store_seq(&q->page->unfinished, 1);
    CHECK(shmq_entries_fault(&q->first, &where, &stray) == NULL);
    CHECK(!stray.found);
    uint64_t flow = shmq_load_seq(&q->first.shm->flow);
    shmq_store_seq(&q->first.shm->flow, shmq_flow_word(2, true)); /* below its turn: no mover ever had it */
    CHECK(shmq_entries_fault(&q->first, &where, &stray) == NULL);
    CHECK(stray.found);
    shmq_store_seq(&q->first.shm->flow, flow);
    shmq_store_seq(&q->page->unfinished, 0);
    set_word(d.position, SHMQ_ACQUIRED, shmq_self(q));
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &second), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
