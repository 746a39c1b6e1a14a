/* Entries that are done with go by their positions, all below one at once. */
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;
static bool damaged; /* by this test: a slot is out of service */

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "range", 0, true);
    damaged = false;
}

static void end(void) {
    if (!damaged) {
        check_ring(q);
    }
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    scratch_close(m, q);
    scratch_remove();
}

static void put_numbers(shmq_queue *queue, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; i++) {
        CHECK_EQUAL(put_number(queue, i), SHMQ_OK);
    }
}

static uint64_t discard_below(shmq_queue *queue, uint64_t position) {
    uint64_t discarded = 0;
    shmq_status status;
    do {
        status = shmq_discard_below(&queue->first, position, &discarded);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
    return discarded;
}

TEST(test_what_lies_below_a_position_is_discarded_once) {
    begin();
    put_numbers(q, 0, 9);
    CHECK_EQUAL(discard_below(q, 0), 0);
    CHECK_EQUAL(discard_below(q, 4), 4);
    CHECK_EQUAL(discard_below(q, 4), 0);
    CHECK_EQUAL(discard_below(q, 3), 0);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->floor), 4);
    CHECK_EQUAL(census_of(q).ready, 6);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&d), 4);
    CHECK_EQUAL(discard_below(q, UINT64_MAX), 5);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->floor), 4); /* somebody has it */
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(discard_below(q, UINT64_MAX), 1);
    end();
}

TEST(test_what_was_carried_is_discarded_too) {
    begin();
    put_numbers(q, 1, 3);
    shmq_delivery d[3];
    for (int i = 0; i < 3; i++) {
        d[i] = receive(q, shmq_self(q));
    }
    for (uint64_t i = 0; i <= q->first.mask + 5; i++) {
        CHECK_EQUAL(put_number(q, 100 + i), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 100 + i);
    }
    CHECK_EQUAL(shmq_release(q, &d[0], false), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &d[2], false), SHMQ_OK);
    put_numbers(q, 4, 4);
    CHECK_EQUAL(census_of(q).ready, 3);
    CHECK(shmq_load_seq(&q->first.shm->floor) > 3); /* as far as the floor goes, all is settled or carried */
    CHECK_EQUAL(discard_below(q, 2), 1);
    CHECK_EQUAL(discard_below(q, UINT64_MAX), 2);
    CHECK_EQUAL(shmq_settle(q, &d[1]), SHMQ_OK);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

TEST(test_discarding_gives_memory_back) {
    begin();
    static const unsigned char body[1 << 20];
    shmq_block_usage usage;
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(put_bytes(q, body, sizeof body, 0), SHMQ_OK);
    }
    CHECK_EQUAL(discard_below(q, 3), 3);
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.used, 0);
    end();
}

TEST(test_many_are_discarded_in_pieces) {
    begin();
    shmq_declaration d = {.create = true};
    shmq_queue *large = scratch_declare(m, "large", d, 8000);
    put_numbers(large, 0, 7999);
    uint64_t discarded = 0;
    CHECK_EQUAL(shmq_discard_below(&large->first, 7000, &discarded), SHMQ_INTERRUPTED);
    CHECK(discarded > 1000 && discarded < 7000);
    CHECK_EQUAL(shmq_discard_below(&large->first, 7000, &discarded), SHMQ_OK);
    CHECK_EQUAL(discarded, 7000);
    CHECK_EQUAL(get_number(large), 7000);
    CHECK_EQUAL(census_of(large).ready, 999);
    check_ring(large);
    shmq_queue_unbind(large);
    end();
}

TEST(test_damage_is_told_once_by_who_discards) {
    begin();
    put_numbers(q, 0, 2);
    shmq_slot_at(&q->first, 1)->body_len = UINT32_MAX;
    damaged = true;
    uint64_t discarded = 0;
    CHECK_EQUAL(shmq_discard_below(&q->first, 3, &discarded), SHMQ_CORRUPT);
    CHECK_EQUAL(discarded, 1);
    CHECK_EQUAL(discard_below(q, 3), 1);
    end();
}

int main(void) { return run_tests(); }
