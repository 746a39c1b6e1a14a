/* Many entries go from one queue to another. The "dead" are other memberships of this process. */
#include "consumers/ranks.h"
#include "ring/ring.h"
#include "take/claim.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *from, *to, *from_b, *to_b;
static shmq_subscription by;
static bool damaged; /* by this test: a slot of `from` is out of service */

static const shmq_claim_limits no_limits = {.entries = UINT64_MAX, .bytes = UINT64_MAX};

static void begin(uint64_t maxsize, uint32_t levels) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    from = scratch_levels(a, "from", 0, levels);
    to = scratch_levels(a, "to", maxsize, levels);
    from_b = scratch_levels(b, "from", 0, levels);
    to_b = scratch_levels(b, "to", maxsize, levels);
    shmq_subscription_begin(&by, NULL, NULL);
    damaged = false;
}

static void check_all(void) {
    check_segment(a);
    if (!damaged) {
        check_ring(from);
    }
    check_ring(to);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
}

static void end(bool b_lives) {
    check_all();
    shmq_subscription_end(&by);
    if (b_lives) {
        shmq_queue_unbind(from_b);
        scratch_close(b, to_b);
    }
    shmq_queue_unbind(from);
    scratch_close(a, to);
    scratch_remove();
}

static void put_numbers(shmq_queue *q, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
}

static void check_numbers(shmq_queue *q, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; i++) {
        CHECK_EQUAL(get_number(q), i);
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
}

/* To its end. */
static shmq_status claim_within(shmq_claim_limits limits, shmq_claimed *result) {
    shmq_status status;
    *result = (shmq_claimed){0};
    do {
        status = shmq_claim(from, to, &limits, &by, result);
    } while (status == SHMQ_INTERRUPTED);
    return status;
}

static uint64_t claim_all(void) {
    shmq_claimed result;
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_OK);
    CHECK_EQUAL(result.ended, SHMQ_EMPTY);
    return result.entries;
}

TEST(test_entries_are_claimed_in_the_order_of_a_taker) {
    begin(0, 10);
    for (uint64_t i = 0; i < 30; i++) {
        CHECK_EQUAL(put_as(from, i, (uint8_t)(i % 10)), SHMQ_OK);
    }
    CHECK_EQUAL(claim_all(), 30);
    CHECK_EQUAL(get_number(from), UINT64_MAX);
    CHECK_EQUAL(shmq_load_relaxed(&from->counters->purged), 30);
    CHECK_EQUAL(shmq_load_relaxed(&to->counters->put), 30);
    for (uint64_t i = 0; i < 30; i++) {
        CHECK_EQUAL(get_number(to), 9 - i / 3 + i % 3 * 10);
    }
    CHECK_EQUAL(claim_all(), 0);
    end(true);
}

TEST(test_a_claim_ends_at_its_limits) {
    begin(0, 1);
    shmq_claimed result;
    put_numbers(from, 1, 9);
    CHECK_EQUAL(claim_within((shmq_claim_limits){.entries = 0, .bytes = 100}, &result), SHMQ_OK);
    CHECK(result.entries == 0 && result.ended == SHMQ_OK);
    CHECK_EQUAL(claim_within((shmq_claim_limits){.entries = 2, .bytes = 100}, &result), SHMQ_OK);
    CHECK(result.entries == 2 && result.bytes == 16 && result.ended == SHMQ_OK);
    CHECK_EQUAL(claim_within((shmq_claim_limits){.entries = 100, .bytes = 1}, &result), SHMQ_OK);
    CHECK(result.entries == 1 && result.bytes == 8 && result.ended == SHMQ_OK);
    CHECK_EQUAL(claim_within((shmq_claim_limits){.entries = 100, .bytes = 17}, &result), SHMQ_OK);
    CHECK(result.entries == 2 && result.bytes == 16 && result.ended == SHMQ_OK);
    CHECK_EQUAL(claim_within((shmq_claim_limits){.entries = 100, .bytes = 24}, &result), SHMQ_OK);
    CHECK(result.entries == 3 && result.bytes == 24 && result.ended == SHMQ_OK);
    check_numbers(from, 9, 9);
    check_numbers(to, 1, 8);
    end(true);
}

TEST(test_pieces_of_a_long_claim_go_on_where_they_ended) {
    begin(0, 2);
    for (uint64_t i = 1; i <= 1400; i++) {
        CHECK_EQUAL(put_as(from, i, i <= 700 ? 9 : 0), SHMQ_OK);
    }
    shmq_claimed result = {0};
    CHECK_EQUAL(shmq_claim(from, to, &no_limits, &by, &result), SHMQ_INTERRUPTED);
    CHECK(result.entries > 100 && result.entries < 1400);
    CHECK_EQUAL(shmq_claim(from, to, &no_limits, &by, &result), SHMQ_OK);
    CHECK_EQUAL(result.entries, 1400);
    check_numbers(to, 1, 1400);
    end(true);
}

TEST(test_an_entry_keeps_what_it_is_and_loses_its_times_and_attempts) {
    begin(0, 1);
    const unsigned char headers[] = {1, 4, 0, 1, 'n', 3, 7, 3, 1, 0, 'g'}; /* n = 7, group g */
    unsigned char body[400] = {5};
    const uint64_t sizes[] = {8, 400};
    for (size_t i = 0; i < 2; i++) {
        struct iovec piece = {.iov_base = body, .iov_len = sizes[i]};
        shmq_outgoing o = {.headers = headers,
                           .headers_len = sizeof headers,
                           .pieces = &piece,
                           .piece_count = 1,
                           .body_len = sizes[i],
                           .content = 77,
                           .expires_ns = shmq_now_ns() + 1000 * SECOND,
                           .priority = 7};
        CHECK_EQUAL(shmq_put(from, &o, 0), SHMQ_OK);
        shmq_delivery before = receive(from, shmq_self(from));
        CHECK_EQUAL(shmq_release(from, &before, true), SHMQ_OK);
        CHECK_EQUAL(claim_all(), 1);
        shmq_delivery after = receive(to, shmq_self(to));
        CHECK(shmq_delivery_intact(to, &after));
        CHECK(after.message_id == o.made.message_id && after.enqueued_ns == o.enqueued_ns);
        CHECK(after.content == 77 && after.priority == 7);
        CHECK_EQUAL(after.headers_len, sizeof headers);
        CHECK(memcmp(after.headers, headers, sizeof headers) == 0 && memcmp(after.bytes, body, sizes[i]) == 0);
        CHECK(after.expires_ns == 0 && after.delivery == 0 && after.deaths == 0);
        CHECK((after.word & SHMQ_FLAG_REDELIVERED) == 0);
        CHECK_EQUAL(shmq_settle(to, &after), SHMQ_OK);
        CHECK_EQUAL(put_number(to, 1), SHMQ_OK); /* the next one has an id of its own */
        after = receive(to, shmq_self(to));
        CHECK(after.message_id != o.made.message_id);
        CHECK_EQUAL(shmq_settle(to, &after), SHMQ_OK);
    }
    end(true);
}

static void put_headers(const unsigned char *headers, uint32_t headers_len) {
    shmq_outgoing o = {.headers = headers, .headers_len = headers_len};
    CHECK_EQUAL(shmq_put(from, &o, 0), SHMQ_OK);
}

static void check_headers(const unsigned char *headers, uint32_t headers_len) {
    shmq_delivery d = receive(to, shmq_self(to));
    CHECK(shmq_delivery_intact(to, &d));
    CHECK_EQUAL(d.headers_len, headers_len);
    CHECK(headers_len == 0 || memcmp(d.headers, headers, headers_len) == 0);
    CHECK_EQUAL(shmq_settle(to, &d), SHMQ_OK);
}

TEST(test_headers_go_along_as_they_are) {
    begin(0, 1);
    const unsigned char dead[] = {1, 3, 0, 1, 'n', 0, 1, 1, 0, 'c', 2, 2, 0, 'd', 'd', 3, 1, 0, 'g'};
    const unsigned char cut[] = {1, 0, 0, 2, 9, 0, 'd'};
    put_headers(dead, sizeof dead);
    put_headers(cut, sizeof cut); /* no head that anybody wrote */
    CHECK_EQUAL(claim_all(), 2);
    check_headers(dead, sizeof dead);
    check_headers(cut, sizeof cut);
    end(true);
}

TEST(test_what_others_have_and_what_is_held_stays) {
    begin(0, 1);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(from, SHMQ_CONSUMER, &row), SHMQ_OK);
    put_numbers(from, 1, 2);
    shmq_delivery taken = receive(from, row), locked = receive(from, row);
    CHECK_EQUAL(shmq_lock(from, &locked), SHMQ_OK);
    uint64_t number = 3;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {
        .pieces = &piece, .piece_count = 1, .body_len = sizeof number, .not_before_ns = shmq_now_ns() + 1000 * SECOND};
    CHECK_EQUAL(shmq_put(from, &o, 0), SHMQ_OK);
    put_numbers(from, 4, 5);
    CHECK_EQUAL(claim_all(), 2);
    check_numbers(to, 4, 5);
    CHECK_EQUAL(shmq_release(from, &taken, false), SHMQ_OK);
    CHECK_EQUAL(claim_all(), 1);
    check_numbers(to, 1, 1);
    CHECK_EQUAL(shmq_settle(from, &locked), SHMQ_OK);
    CHECK_EQUAL(census_of(from).delayed, 1);
    CHECK_EQUAL(shmq_row_close(from, row), SHMQ_OK);
    end(true);
}

static void put_expired(uint64_t number) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .expires_ns = 1};
    CHECK_EQUAL(shmq_put(from, &o, 0), SHMQ_OK);
}

TEST(test_what_has_expired_is_not_moved) {
    begin(0, 1);
    put_expired(1);
    put_numbers(from, 2, 2);
    CHECK_EQUAL(claim_all(), 1);
    check_numbers(to, 2, 2);
    CHECK_EQUAL(shmq_load_relaxed(&from->counters->expired), 1);
    end(true);
}

TEST(test_what_is_to_be_buried_is_handed_to_the_caller) {
    begin(0, 1);
    shmq_claimed result = {0};
    uint32_t max_deaths = shmq_load_seq(&from->page->max_deaths);
    shmq_store_seq(&from->page->settings.dead_letter_expired, 1);
    shmq_store_seq(&from->page->max_deaths, 1);
    put_expired(1);
    put_numbers(from, 2, 3);
    shmq_slot_at(&from->first, 1)->deaths = 1;
    for (uint64_t i = 1; i <= 2; i++) {
        CHECK_EQUAL(shmq_claim(from, to, &no_limits, &by, &result), SHMQ_POISONED);
        CHECK_EQUAL(number_of(&result.dead), i);
        CHECK_EQUAL(state_at(from, i - 1), SHMQ_LOCKED);
        CHECK_EQUAL(shmq_settle(from, &result.dead), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_claim(from, to, &no_limits, &by, &result), SHMQ_OK);
    CHECK_EQUAL(result.entries, 1);
    check_numbers(to, 3, 3);
    shmq_store_seq(&from->page->settings.dead_letter_expired, 0);
    shmq_store_seq(&from->page->max_deaths, max_deaths);
    end(true);
}

TEST(test_only_what_is_selected_is_claimed) {
    begin(0, 2);
    shmq_subscription_end(&by);
    shmq_subscription_begin(&by, wants_even, NULL);
    for (uint64_t i = 1; i <= 8; i++) {
        CHECK_EQUAL(put_as(from, i, i > 4 ? 9 : 0), SHMQ_OK);
    }
    CHECK_EQUAL(claim_all(), 4);
    const uint64_t claimed[] = {6, 8, 2, 4}, left[] = {5, 7, 1, 3};
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(get_number(to), claimed[i]);
    }
    CHECK_EQUAL(claim_all(), 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(get_number(from), left[i]);
    }
    end(true);
}

TEST(test_what_is_damaged_is_left_to_its_queue_and_the_rest_goes) {
    begin(0, 1);
    put_numbers(from, 1, 4);
    shmq_slot_at(&from->first, 1)->inline_area[0] ^= 1;
    CHECK_EQUAL(claim_all(), 3);
    CHECK_EQUAL(claim_all(), 0);
    CHECK_EQUAL(get_number(to), 1);
    check_numbers(to, 3, 4);
    shmq_slot_shm *slot = shmq_slot_at(&from->first, 1);
    CHECK_EQUAL(state_at(from, 1), SHMQ_AVAILABLE);
    CHECK((shmq_load_seq(&slot->word) & SHMQ_FLAG_REDELIVERED) == 0);
    slot->inline_area[0] ^= 1;
    check_numbers(from, 2, 2);
    end(true);
}

TEST(test_a_full_target_ends_it_and_what_was_in_hand_is_as_it_was) {
    begin(3, 1);
    shmq_claimed result;
    put_numbers(from, 1, 5);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_OK);
    CHECK(result.entries == 3 && result.ended == SHMQ_FULL_COUNT);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_FULL_COUNT);
    CHECK_EQUAL(result.entries, 0);
    shmq_delivery d = receive(from, shmq_self(from));
    CHECK_EQUAL(number_of(&d), 4);
    CHECK((d.word & SHMQ_FLAG_REDELIVERED) == 0);
    CHECK(d.delivery == 0 && d.deaths == 0);
    CHECK_EQUAL(shmq_settle(from, &d), SHMQ_OK);
    check_numbers(to, 1, 3);
    CHECK_EQUAL(shmq_queue_shut_down(to, SHMQ_DRAINING), SHMQ_OK);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_SHUT_DOWN);
    CHECK_EQUAL(shmq_queue_shut_down(to, SHMQ_OPEN), SHMQ_OK);
    CHECK_EQUAL(claim_all(), 1);
    check_numbers(to, 5, 5);
    end(true);
}

TEST(test_a_full_ring_and_full_memory_end_it_too) {
    begin(0, 1);
    static unsigned char body[1 << 20];
    shmq_claimed result;
    uint64_t filled = 0;
    while (put_number(to, filled) == SHMQ_OK) {
        filled++;
    }
    put_numbers(from, 1, 1);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_FULL_RING);
    check_numbers(to, 0, filled - 1);
    CHECK_EQUAL(claim_all(), 1);
    uint64_t many = 0;
    while (put_bytes(from, body, sizeof body, 0) == SHMQ_OK) {
        many++;
    }
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_FULL_MEMORY);
    shmq_delivery d = receive(from, shmq_self(from));
    CHECK_EQUAL(shmq_settle(from, &d), SHMQ_OK); /* room for a copy, each time */
    CHECK_EQUAL(claim_all(), many - 1);
    end(true);
}

TEST(test_a_queue_that_is_gone_is_an_error) {
    begin(0, 1);
    shmq_claimed result;
    put_numbers(from, 1, 1);
    CHECK_EQUAL(shmq_queue_delete(to_b), SHMQ_OK);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_NOT_FOUND);
    check_numbers(from, 1, 1);
    CHECK_EQUAL(shmq_queue_delete(from_b), SHMQ_OK);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_NOT_FOUND);
    end(true);
}

TEST(test_a_taker_may_take_over_what_is_offered) {
    begin(0, 1);
    put_numbers(from, 1, 1);
    shmq_delivery ours, theirs;
    CHECK_EQUAL(shmq_offer(from, shmq_self(from), &ours), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(from_b, shmq_self(from_b), &theirs), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_seize(from, &ours), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    CHECK_EQUAL(shmq_offer_finish(from_b, &theirs), SHMQ_OK);
    end(true);
}

TEST(test_a_seized_entry_that_makes_no_sense_is_out_of_service) {
    begin(0, 1);
    put_numbers(from, 1, 2);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(from, shmq_self(from), &d), SHMQ_OK);
    shmq_slot_at(&from->first, 0)->body_len = UINT32_MAX;
    damaged = true;
    CHECK_EQUAL(shmq_offer_seize(from, &d), SHMQ_SETTLED);
    CHECK_EQUAL(state_at(from, 0), SHMQ_BROKEN);
    CHECK_EQUAL(claim_all(), 1);
    check_numbers(to, 2, 2);
    end(true);
}

TEST(test_what_a_dead_claimer_had_is_back_first_and_counts_no_death) {
    begin(0, 1);
    put_numbers(from, 1, 3);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(from_b, shmq_self(from_b), &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_seize(from_b, &d), SHMQ_OK);
    scratch_kill(b);
    CHECK_EQUAL(claim_all(), 3);
    check_numbers(to, 1, 3);
    CHECK_EQUAL(shmq_load_relaxed(&from->counters->died), 0);
    end(false);
}

TEST(test_old_entries_come_first) {
    begin(0, 1);
    put_numbers(from, 1, 2);
    shmq_delivery first = receive(from, shmq_self(from)), second = receive(from, shmq_self(from));
    for (uint64_t i = 0; i <= from->first.mask + 5; i++) {
        CHECK_EQUAL(put_number(from, 100 + i), SHMQ_OK);
        CHECK_EQUAL(get_number(from), 100 + i);
    }
    CHECK_EQUAL(put_number(from, 3), SHMQ_OK);
    CHECK_EQUAL(shmq_release(from, &second, false), SHMQ_OK);
    CHECK_EQUAL(shmq_release(from, &first, false), SHMQ_OK);
    CHECK(shmq_word_carried(shmq_load_seq(&shmq_slot_at(&from->first, 0)->word)));
    CHECK_EQUAL(claim_all(), 3);
    check_numbers(to, 1, 3);
    end(true);
}

TEST(test_a_group_that_a_consumer_has_is_passed) {
    begin(0, 1);
    shmq_declaration d = {.given = 1u << SHMQ_SET_GROUPS, .grouping = SHMQ_GROUPS_SHARED, .create = true};
    shmq_queue *groups = scratch_declare(a, "groups", d, 0), *plain = from;
    unsigned char headers[] = {1, 0, 0, 3, 1, 0, 'g'};
    for (uint64_t i = 1; i <= 4; i++) {
        struct iovec piece = {.iov_base = &i, .iov_len = sizeof i};
        shmq_outgoing o = {
            .headers = headers, .headers_len = sizeof headers, .pieces = &piece, .piece_count = 1, .body_len = 8};
        headers[6] = i == 3 ? 'h' : 'g';
        CHECK_EQUAL(shmq_put(groups, &o, 0), SHMQ_OK);
    }
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(groups, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_delivery has = receive(groups, row);
    from = groups;
    CHECK_EQUAL(claim_all(), 1);
    check_numbers(to, 3, 3);
    CHECK_EQUAL(shmq_settle(groups, &has), SHMQ_OK);
    CHECK_EQUAL(claim_all(), 2);
    CHECK(shmq_groups_fault(groups) == NULL);
    CHECK_EQUAL(get_number(to), 2);
    check_numbers(to, 4, 4);
    CHECK_EQUAL(shmq_row_close(groups, row), SHMQ_OK);
    check_ring(groups);
    shmq_queue_unbind(groups);
    from = plain;
    end(true);
}

TEST(test_an_exclusive_consumer_keeps_claims_out) {
    begin(0, 1);
    uint32_t row;
    shmq_claimed result;
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .exclusive = true};
    CHECK_EQUAL(shmq_row_open_as(from_b, &terms, &row), SHMQ_OK);
    put_numbers(from, 1, 1);
    CHECK_EQUAL(claim_within(no_limits, &result), SHMQ_REFUSED);
    CHECK_EQUAL(shmq_row_close(from_b, row), SHMQ_OK);
    CHECK_EQUAL(claim_all(), 1);
    end(true);
}

int main(void) { return run_tests(); }
