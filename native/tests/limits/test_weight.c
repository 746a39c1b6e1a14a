/* The bytes behind max_bytes: exact, never overshot, and right again after a death. */
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;
static const unsigned char bytes[4096];

static void limit_bytes(shmq_queue *q, uint64_t most) { scratch_alter(q, SHMQ_SET_MAX_BYTES, most); }

static void begin(uint64_t maxsize, uint64_t max_bytes) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, true);
    qb = scratch_queue(b, "jobs", 0, true);
    if (max_bytes != 0) {
        limit_bytes(qa, max_bytes);
    }
}

static void end(void) {
    check_ring(qa);
    scratch_close_unless_dead(b, qb);
    scratch_close(a, qa);
    scratch_remove();
}

static uint64_t weight(void) { return shmq_load_seq(&qa->page->weight) & SHMQ_WEIGHT_MASK; }

static shmq_status put(uint64_t length) { return put_bytes(qa, bytes, length, 0); }

static uint64_t get(void) {
    shmq_delivery d = receive(qa, shmq_self(qa));
    uint64_t length = d.body_len + d.headers_len;
    CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    return length;
}

TEST(exactly_the_limit_fits_and_what_goes_makes_room) {
    begin(0, 1000);
    CHECK_EQUAL(put(600), SHMQ_OK); /* in a block */
    CHECK_EQUAL(put(100), SHMQ_OK); /* inline */
    CHECK_EQUAL(put(301), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put(300), SHMQ_OK);
    CHECK_EQUAL(put(1), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put(0), SHMQ_OK); /* nothing weighs nothing */
    CHECK_EQUAL(weight(), 1000);
    shmq_delivery taken = receive(qb, shmq_self(qb));
    CHECK_EQUAL(put(1), SHMQ_FULL_BYTES); /* in whatever state */
    CHECK_EQUAL(shmq_release(qb, &taken, true), SHMQ_OK);
    CHECK_EQUAL(get(), 600);
    CHECK_EQUAL(put(601), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put(600), SHMQ_OK);
    CHECK_EQUAL(get() + get() + get() + get(), 1000);
    CHECK_EQUAL(weight(), 0);
    end();
}

TEST(headers_weigh_as_well) {
    begin(0, 100);
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = 60};
    shmq_outgoing o = {.headers = bytes, .headers_len = 41, .pieces = &piece, .piece_count = 1, .body_len = 60};
    CHECK_EQUAL(put(1), SHMQ_OK);
    CHECK_EQUAL(shmq_put(qa, &o, 0), SHMQ_FULL_BYTES);
    o.headers_len = 39;
    shmq_unprepare(qa, &o);
    CHECK_EQUAL(shmq_put(qa, &o, 0), SHMQ_OK);
    CHECK_EQUAL(weight(), 100);
    end();
}

TEST(what_is_larger_than_the_limit_passes_when_nothing_is_there) {
    begin(0, 1000);
    CHECK_EQUAL(put(1), SHMQ_OK);
    CHECK_EQUAL(put(3000), SHMQ_FULL_BYTES);
    CHECK_EQUAL(get(), 1);
    CHECK_EQUAL(put(3000), SHMQ_OK);
    CHECK_EQUAL(put(1), SHMQ_FULL_BYTES);
    CHECK_EQUAL(get(), 3000);
    CHECK_EQUAL(put(1), SHMQ_OK);
    end();
}

TEST(both_limits_hold_and_a_put_that_fails_takes_neither) {
    begin(2, 100);
    CHECK_EQUAL(put(60), SHMQ_OK);
    CHECK_EQUAL(put(60), SHMQ_FULL_BYTES);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & SHMQ_COUNT_MASK, 1);
    CHECK_EQUAL(put(10), SHMQ_OK);
    CHECK_EQUAL(put(10), SHMQ_FULL_COUNT);
    CHECK_EQUAL(weight(), 70);
    end();
}

TEST(a_limit_that_comes_or_goes_later_weighs_what_is_there) {
    begin(0, 0);
    CHECK_EQUAL(put(600), SHMQ_OK);
    CHECK_EQUAL(put(600), SHMQ_OK);
    limit_bytes(qa, 1500);
    CHECK_EQUAL(put(301), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put(300), SHMQ_OK);
    limit_bytes(qa, 0);
    CHECK_EQUAL(put(2000), SHMQ_OK);
    CHECK_EQUAL(get(), 600);
    limit_bytes(qa, 3000);
    CHECK_EQUAL(put(101), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put(100), SHMQ_OK);
    limit_bytes(qa, 1);
    CHECK_EQUAL(put(1), SHMQ_FULL_BYTES);
    CHECK_EQUAL(get() + get() + get() + get(), 3000);
    CHECK_EQUAL(put(1), SHMQ_OK);
    end();
}

TEST(bytes_that_a_death_has_lost_come_back) {
    begin(0, 1000);
    CHECK_EQUAL(put(500), SHMQ_OK);
    shmq_moving(qb, 1);
    CHECK_EQUAL(shmq_room_take(qb, SHMQ_LIMITED_BYTES, 400, &(shmq_room){0}),
                SHMQ_OK); /* and then it dies, before it has a slot */
    CHECK_EQUAL(weight(), 900);
    scratch_kill(b);
    CHECK_EQUAL(put_patiently(qa, bytes, 500, shmq_now_ns() + 10 * SECOND), SHMQ_OK); /* who waits looks for the dead */
    CHECK_EQUAL(weight(), 1000);
    end();
}

/* Its slot says nothing of what it weighs, or what its last use did. */
TEST(a_claim_is_not_weighed) {
    begin(0, 1000);
    CHECK_EQUAL(put(700), SHMQ_OK);
    CHECK_EQUAL(get(), 700);
    CHECK_EQUAL(shmq_room_take(qb, SHMQ_LIMITED_BYTES, 300, &(shmq_room){0}), SHMQ_OK);
    (void)claim_by_hand(qb);
    shmq_store_seq(&qa->page->recount_due, 1);
    CHECK(!shmq_recount(qa));
    CHECK(shmq_count_fault(qa) == NULL);
    scratch_kill(b);
    CHECK_EQUAL(put(400), SHMQ_OK);
    CHECK_EQUAL(put(700), SHMQ_FULL_BYTES);
    CHECK_EQUAL(put_patiently(qa, bytes, 600, shmq_now_ns() + 10 * SECOND), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
