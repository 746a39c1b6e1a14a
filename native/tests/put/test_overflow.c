/* Full queues that refuse at once, or drop their oldest for the newest. */
#include "put/overflow.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static void begin(uint64_t maxsize, uint32_t overflow) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, true);
    qb = scratch_queue(b, "jobs", 0, true);
    scratch_alter(qa, SHMQ_SET_OVERFLOW, overflow);
}

static void leave(void) {
    shmq_queue_unbind(qb);
    if (b->lock_fd >= 0) {
        CHECK_EQUAL(shmq_member_leave(b, true), SHMQ_OK);
    }
    shmq_member_free(b);
    scratch_close(a, qa);
    scratch_remove();
}

static void end(void) {
    check_ring(qa);
    leave();
}

static uint64_t dropped(void) {
    return shmq_load_relaxed(&qa->counters->dropped) + shmq_load_relaxed(&qb->counters->dropped);
}

TEST(who_is_rejected_does_not_wait) {
    begin(1, SHMQ_OVERFLOW_REJECT);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint64_t before = shmq_now_ns(), number = 2;
    CHECK_EQUAL(put_bytes(qa, &number, sizeof number, SHMQ_FOR_EVER), SHMQ_FULL_COUNT);
    CHECK(shmq_now_ns() - before < SECOND);
    CHECK_EQUAL(get_number(qa), 1);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    end();
}

TEST(the_oldest_goes_for_the_newest) {
    begin(3, SHMQ_OVERFLOW_DROP_OLDEST);
    for (uint64_t i = 0; i < 5000; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(dropped(), 4997);
    for (uint64_t i = 4997; i < 5000; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    end();
}

TEST(one_that_a_consumer_holds_is_taken_from_it) {
    begin(2, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    shmq_delivery taken = receive(qb, shmq_self(qb)), offered;
    CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &offered), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qb, &taken), SHMQ_SETTLED);
    CHECK_EQUAL(put_number(qa, 4), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_finish(qb, &offered), SHMQ_SETTLED); /* and he looks for another one */
    CHECK_EQUAL(dropped(), 2);
    CHECK_EQUAL(get_number(qa), 3);
    CHECK_EQUAL(get_number(qa), 4);
    end();
}

/* A locked message is passed, the next one goes, and the newcomer stays. Shows R12. */
TEST(one_that_is_being_settled_is_left_alone) {
    begin(2, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    shmq_delivery taken = receive(qb, shmq_self(qb));
    CHECK_EQUAL(shmq_lock(qb, &taken), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qb, &taken), SHMQ_OK);
    CHECK_EQUAL(dropped(), 1);
    CHECK_EQUAL(get_number(qa), 3);
    end();
}

/* Older than what lies in the ring in its turn. Shows R12. */
TEST(a_carried_entry_goes_first) {
    begin(4, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(put_number(qa, 0), SHMQ_OK);
    shmq_delivery taken = receive(qb, shmq_self(qb));
    for (uint64_t i = 1; i < 2 * shmq_slot_count(&qa->first); i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(dropped(), 0);
    CHECK_EQUAL(put_number(qa, 4), SHMQ_OK);
    CHECK_EQUAL(dropped(), 1);
    CHECK_EQUAL(shmq_settle(qb, &taken), SHMQ_SETTLED);
    CHECK_EQUAL(get_number(qa), 1);
    end();
}

TEST(a_large_one_takes_the_room_of_many) {
    begin(0, SHMQ_OVERFLOW_DROP_OLDEST);
    scratch_alter(qa, SHMQ_SET_MAX_BYTES, 80);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    static const unsigned char large[1000];
    CHECK_EQUAL(put_bytes(qa, large, 33, 0), SHMQ_OK);
    CHECK_EQUAL(dropped(), 5);
    CHECK_EQUAL(get_number(qa), 5);
    CHECK_EQUAL(put_bytes(qa, large, 1000, 0), SHMQ_OK); /* larger than the limit: alone */
    CHECK_EQUAL(dropped(), 10);
    CHECK_EQUAL(census_of(qa).ready, 1);
    end();
}

/* Its own oldest, where the ring is what is full. */
TEST(a_full_ring_loses_its_oldest) {
    begin(0, SHMQ_OVERFLOW_DROP_OLDEST);
    for (uint64_t i = 0; i < shmq_slot_count(&qa->first) + 3; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(dropped(), 3);
    CHECK_EQUAL(get_number(qa), 3);
    end();
}

/* Then the claim is what is waited for, and nothing is dropped for it. */
TEST(behind_a_claim_nothing_is_dropped) {
    begin(0, SHMQ_OVERFLOW_DROP_OLDEST);
    (void)claim_by_hand(qb);
    for (uint64_t i = 1; i < shmq_slot_count(&qa->first); i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(qa, 7), SHMQ_FULL_RING);
    CHECK(!shmq_drop_oldest(qa, 0, SHMQ_FULL_RING, NULL));
    CHECK_EQUAL(dropped(), 0);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(put_number(qa, 8), SHMQ_OK);
    CHECK_EQUAL(dropped(), 0);
    CHECK_EQUAL(get_number(qa), 1);
    end();
}

TEST(where_nothing_can_be_dropped_it_stays_full) {
    begin(2, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK(!shmq_drop_oldest(qa, 0, SHMQ_FULL_COUNT, NULL)); /* empty */
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    shmq_delivery first = receive(qb, shmq_self(qb)), second = receive(qb, shmq_self(qb));
    CHECK_EQUAL(shmq_lock(qb, &first), SHMQ_OK);
    CHECK_EQUAL(shmq_lock(qb, &second), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_FULL_COUNT);
    CHECK_EQUAL(dropped(), 0);
    CHECK_EQUAL(shmq_settle(qb, &second), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 4), SHMQ_OK); /* over the locked one, and what has been settled */
    CHECK_EQUAL(dropped(), 1);
    CHECK_EQUAL(shmq_settle(qb, &first), SHMQ_OK);
    CHECK_EQUAL(get_number(qa), 4);
    end();
}

/* Carried ones: the one that is being settled stays, the others go by their age, and not by where they lie. */
TEST(of_the_carried_the_oldest_goes) {
    begin(5, SHMQ_OVERFLOW_DROP_OLDEST);
    shmq_delivery taken[3];
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        taken[i] = receive(qb, shmq_self(qb));
    }
    CHECK_EQUAL(shmq_lock(qb, &taken[0]), SHMQ_OK);
    for (uint64_t i = 3; i < 2 * shmq_slot_count(&qa->first); i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 4), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 5), SHMQ_OK);
    CHECK_EQUAL(dropped(), 1);
    CHECK_EQUAL(shmq_settle(qb, &taken[1]), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_settle(qb, &taken[2]), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qb, &taken[0]), SHMQ_OK);
    CHECK_EQUAL(get_number(qa), 3);
    end();
}

static void put_until(uint64_t tail, uint64_t *next) {
    while (shmq_load_seq(&qa->first.shm->tail) <= tail) {
        CHECK_EQUAL(put_number(qa, (*next)++), SHMQ_OK);
    }
}

/* A producer that drops again looks at less of the bitmap, but at no less than what may have come: one that was locked is given back, and the tail
 * carries one more, wherever it stands. */
TEST(a_carried_entry_is_found_later_too) {
    enum { FULL = 300 };
    begin(FULL, SHMQ_OVERFLOW_DROP_OLDEST);
    uint64_t slots = shmq_slot_count(&qa->first), next = 1, before;
    CHECK(slots >= 512); /* of many words */
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(put_number(qa, 0), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), 0);
    }
    CHECK_EQUAL(put_number(qa, 0), SHMQ_OK); /* amid a word */
    shmq_delivery held = receive(qb, shmq_self(qb));
    CHECK_EQUAL(shmq_lock(qb, &held), SHMQ_OK);
    put_until(3 * slots + 200, &next);
    CHECK_EQUAL(dropped(), next - FULL);
    CHECK_EQUAL(shmq_release(qb, &held, false), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, next++), SHMQ_OK);
    CHECK_EQUAL(get_number(qa), next - FULL); /* and not the one that was given back */
    CHECK_EQUAL(put_number(qa, next++), SHMQ_OK);
    for (uint64_t i = 0; i < 40; i++) {
        put_until(shmq_load_seq(&qa->first.shm->tail) + 37 * i, &next); /* nothing is carried, and who drops knows it */
        held = receive(qb, shmq_self(qb));
        CHECK_EQUAL(number_of(&held), next - FULL);
        for (uint64_t end = held.position + slots; shmq_load_seq(&qa->first.shm->tail) <= end; next++) {
            CHECK_EQUAL(get_number(qb), next - FULL + 1);
            CHECK_EQUAL(put_number(qa, next), SHMQ_OK);
        }
        CHECK(shmq_word_carried(shmq_load_seq(&shmq_slot_at(&qa->first, held.position)->word)));
        before = dropped();
        CHECK_EQUAL(put_number(qa, next++), SHMQ_OK);
        CHECK_EQUAL(dropped(), before + 1);
        CHECK_EQUAL(shmq_settle(qb, &held), SHMQ_SETTLED);
    }
    end();
}

/* The floor lies laps behind where nobody has counted. */
TEST(the_oldest_is_found_behind_many_that_have_gone) {
    begin(1, SHMQ_OVERFLOW_DROP_OLDEST);
    for (uint64_t i = 0; i < 3 * shmq_slot_count(&qa->first); i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    CHECK_EQUAL(dropped(), 1);
    CHECK(shmq_load_seq(&qa->first.shm->floor) >= 3 * shmq_slot_count(&qa->first));
    CHECK_EQUAL(get_number(qa), 2);
    end();
}

TEST(one_that_waits_for_its_time_may_go) {
    begin(1, SHMQ_OVERFLOW_DROP_OLDEST);
    uint64_t number = 1;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {
        .pieces = &piece, .piece_count = 1, .body_len = sizeof number, .not_before_ns = shmq_now_ns() + 3600 * SECOND};
    CHECK_EQUAL(shmq_put(qa, &o, 0), SHMQ_OK);
    CHECK_EQUAL(census_of(qa).delayed, 1);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    CHECK_EQUAL(dropped(), 1);
    CHECK_EQUAL(census_of(qa).delayed, 0);
    CHECK_EQUAL(get_number(qa), 2);
    end();
}

TEST(the_least_important_goes_first) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_levels(a, "jobs", 3, 3);
    qb = scratch_queue(b, "jobs", 0, true);
    scratch_alter(qa, SHMQ_SET_OVERFLOW, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(put_as(qa, 1, 9), SHMQ_OK);
    CHECK_EQUAL(put_as(qa, 2, 4), SHMQ_OK);
    CHECK_EQUAL(put_as(qa, 3, 0), SHMQ_OK);
    CHECK_EQUAL(put_as(qa, 4, 9), SHMQ_OK); /* 3 goes */
    CHECK_EQUAL(put_as(qa, 5, 9), SHMQ_OK); /* 2 goes: nothing is left below it */
    CHECK_EQUAL(put_as(qa, 6, 9), SHMQ_OK); /* 1 goes */
    CHECK_EQUAL(dropped(), 3);
    CHECK_EQUAL(get_number(qa), 4);
    CHECK_EQUAL(get_number(qa), 5);
    CHECK_EQUAL(get_number(qa), 6);
    end();
}

/* A message that makes no sense goes out of service, and the next one is dropped. */
TEST(a_damaged_one_is_passed) {
    begin(0, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    shmq_write_once(&shmq_slot_at(&qa->first, 0)->body, UINT64_C(0x123456789));
    CHECK(shmq_drop_oldest(qa, 0, SHMQ_FULL_COUNT, NULL));
    CHECK_EQUAL(state_at(qa, 0), SHMQ_BROKEN);
    CHECK_EQUAL(state_at(qa, 1), SHMQ_FREE);
    CHECK_EQUAL(dropped(), 1);
    CHECK(shmq_load_seq(&a->header->damage) != 0);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    leave();
}

TEST(who_drops_waits_for_a_claim_at_least) {
    begin(1, SHMQ_OVERFLOW_WAIT);
    CHECK_EQUAL(shmq_overflow_until(qa, 7), 7);
    scratch_alter(qa, SHMQ_SET_OVERFLOW, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK(shmq_overflow_until(qa, 7) > shmq_now_ns());
    CHECK_EQUAL(shmq_overflow_until(qa, SHMQ_FOR_EVER - 1), SHMQ_FOR_EVER - 1);
    end();
}

int main(void) { return run_tests(); }
