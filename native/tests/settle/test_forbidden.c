/* Forbidden steps on an entry, tried in every state. Nobody but its owner settles it or gives it back, once, and
 * nothing is acquired that is not available. Each refusal leaves the word as it was. */
#include "ring/ring.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static const uint32_t all_states[] = {SHMQ_FREE,   SHMQ_CLAIMED,  SHMQ_AVAILABLE,   SHMQ_OFFERED, SHMQ_ACQUIRED,
                                      SHMQ_LOCKED, SHMQ_DEQUEUED, SHMQ_QUARANTINED, SHMQ_BROKEN};
#define STATES (sizeof all_states / sizeof all_states[0])

static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 0, false);
    qb = scratch_queue(b, "jobs", 0, false);
}

static void end(void) {
    check_ring(qa);
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 0);
    scratch_close(b, qb);
    scratch_close(a, qa);
    scratch_remove();
}

static uint64_t word_of(uint64_t position) { return shmq_load_seq(&shmq_slot_at(&qa->first, position)->word); }

/* Every way to settle it or to give it back is refused. */
static void check_refused(shmq_queue *q, shmq_delivery d) {
    uint64_t before = word_of(d.position);
    d.counted = false; /* a copy: what is held counts once */
    uint32_t held = shmq_load_seq(&q->m->process->unsettled);
    d.counted = false; /* a copy: what its original counts for stays as it is */
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_lock(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_release(q, &d, true), SHMQ_SETTLED);
    CHECK_EQUAL(word_of(d.position), before);
    CHECK_EQUAL(shmq_load_seq(&q->m->process->unsettled), held);
}

/* Shows E9, E10, E13. */
TEST(only_the_owner_settles_and_gives_back) {
    begin();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_delivery mine = receive(qa, shmq_self(qa)), wrong = mine;
    wrong.owner = shmq_self(qb);
    check_refused(qb, wrong);
    wrong = mine;
    wrong.tag = (mine.tag + 1) & SHMQ_TAG_MASK; /* of a later delivery of the same message */
    check_refused(qa, wrong);
    wrong = mine;
    wrong.position += shmq_slot_count(&qa->first); /* of another message in the same slot */
    check_refused(qa, wrong);
    CHECK_EQUAL(shmq_settle(qa, &mine), SHMQ_OK);
    check_refused(qa, mine); /* once more */
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    check_refused(qa, mine);
    CHECK_EQUAL(get_number(qb), 2);
    end();
}

/* The same owner, position and tag, but not in hand. Shows E10, E13. */
TEST(what_is_not_in_hand_is_neither_settled_nor_given_back) {
    begin();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_delivery mine = receive(qa, shmq_self(qa));
    shmq_a64 *word = &shmq_slot_at(&qa->first, mine.position)->word;
    uint64_t acquired = shmq_load_seq(word);
    for (size_t i = 0; i < STATES; i++) {
        if (all_states[i] != SHMQ_ACQUIRED && all_states[i] != SHMQ_LOCKED) {
            shmq_store_seq(word, shmq_word_to(acquired, all_states[i], mine.owner, mine.tag));
            check_refused(qa, mine);
        }
    }
    shmq_store_seq(word, acquired);
    CHECK_EQUAL(shmq_settle(qa, &mine), SHMQ_OK);
    end();
}

/* An offer that was taken over, or is none any more, is not finished. Shows S93, E4. */
TEST(only_ones_own_offer_becomes_ones_own_entry) {
    begin();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_delivery mine;
    CHECK_EQUAL(shmq_offer(qa, shmq_self(qa), &mine), SHMQ_OK);
    shmq_a64 *word = &shmq_slot_at(&qa->first, mine.position)->word;
    uint64_t offered = shmq_load_seq(word);
    CHECK_EQUAL(shmq_word_state(offered), SHMQ_OFFERED);
    for (size_t i = 0; i < 2 * STATES; i++) {
        uint32_t owner = i < STATES ? shmq_self(qa) : shmq_self(qb);
        uint64_t other = shmq_word_to(offered, all_states[i % STATES], owner, mine.tag);
        if (other != offered) {
            shmq_store_seq(word, other);
            CHECK_EQUAL(shmq_offer_finish(qa, &mine), SHMQ_SETTLED);
            CHECK_EQUAL(shmq_offer_acquire(qa, &mine), SHMQ_SETTLED);
            shmq_offer_cancel(qa, &mine);
            CHECK_EQUAL(shmq_load_seq(word), other);
        }
    }
    shmq_store_seq(word, offered);
    CHECK_EQUAL(shmq_offer_finish(qa, &mine), SHMQ_OK);
    end();
}

/* From one consumer to another an entry goes by way of AVAILABLE only. Shows S80, E4, E5. */
TEST(nothing_is_taken_that_is_not_available) {
    const uint32_t taken[] = {SHMQ_ACQUIRED, SHMQ_LOCKED, SHMQ_DEQUEUED, SHMQ_QUARANTINED, SHMQ_BROKEN};
    begin();
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    shmq_delivery mine = receive(qa, shmq_self(qa)), other;
    shmq_a64 *word = &shmq_slot_at(&qa->first, mine.position)->word;
    uint64_t acquired = shmq_load_seq(word);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        uint64_t now = shmq_word_to(acquired, taken[i], mine.owner, mine.tag);
        shmq_store_seq(word, now);
        shmq_rewind_all(&qb->first); /* it looks from the beginning */
        CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &other), SHMQ_OK);
        CHECK_EQUAL(number_of(&other), 2);
        shmq_offer_cancel(qb, &other);
        CHECK_EQUAL(shmq_steal(&qb->first, mine.position, true, &other), SHMQ_EMPTY);
        if (taken[i] != SHMQ_ACQUIRED && taken[i] != SHMQ_LOCKED) {
            CHECK_EQUAL(shmq_steal(&qb->first, mine.position, false, &other), SHMQ_EMPTY);
        }
        CHECK_EQUAL(shmq_load_seq(word), now);
    }
    shmq_store_seq(word, acquired);
    CHECK_EQUAL(shmq_settle(qa, &mine), SHMQ_OK);
    CHECK_EQUAL(get_number(qb), 2);
    end();
}

int main(void) { return run_tests(); }
