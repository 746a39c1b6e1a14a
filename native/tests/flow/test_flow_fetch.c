/* Rows that come in by themselves, for who wants them and not those before them. */
#include <string.h>
#include <unistd.h>

#include "flow_select.h"

/* Shows G1. */
TEST(who_wants_some_gets_them_from_wherever_they_are_in_their_order) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t rests[] = {7, 93};
    shmq_subscription by[2];
    shmq_delivery d;
    for (int i = 0; i < 2; i++) {
        shmq_subscription_begin(&by[i], is_of, &rests[i]);
    }
    for (uint64_t hundred = 0; hundred < MANY / 100; hundred++) {
        for (int i = 0; i < 2; i++) {
            shmq_queue *of = i == 0 ? q : theirs;
            CHECK_EQUAL(select_now(of, &by[i], &d), SHMQ_OK);
            CHECK_EQUAL(number_of(&d), hundred * 100 + rests[i]);
            CHECK_EQUAL(shmq_settle(of, &d), SHMQ_OK);
        }
    }
    CHECK_EQUAL(select_now(q, &by[0], &d), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, MANY - MANY / 50);
    scratch_examine_queue(q->index, true);
    for (uint64_t i = 0; i < MANY; i++) {
        if (i % 100 != 7 && i % 100 != 93) {
            get_numbers(i % 2 == 0 ? q : theirs, i, 1);
        }
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK(!shmq_flow_is_on(shmq_load_seq(&q->first.shm->flow)));
    CHECK_EQUAL(shmq_load_seq(&shmq_front_of(&q->first)->shm->fetched_end), 0);
    for (int i = 0; i < 2; i++) {
        shmq_subscription_end(&by[i]);
    }
    end();
}

/* It lies in the front ring above the rows: its own kind finds it first, others when all that lies before it has been taken. */
TEST(what_comes_back_is_in_its_place) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t rest = 50;
    shmq_subscription by, same;
    shmq_delivery held[20], d;
    shmq_subscription_begin(&by, is_of, &rest);
    shmq_subscription_begin(&same, is_of, &rest);
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_EQUAL(select_now(q, &by, &held[i]), SHMQ_OK);
    }
    for (uint64_t i = 20; i-- > 0;) {
        CHECK_EQUAL(shmq_release(q, &held[i], true), SHMQ_OK);
    }
    for (uint64_t i = 0; i < 10; i++) {
        CHECK_EQUAL(select_now(theirs, i % 2 == 0 ? &by : &same, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i * 100 + 50);
        CHECK((d.word & SHMQ_FLAG_REDELIVERED) != 0);
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        if (i % 100 != 50 || i >= 1000) {
            get_numbers(q, i, 1);
        }
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    shmq_subscription_end(&by);
    shmq_subscription_end(&same);
    end();
}

TEST(who_browses_sees_each_once_and_in_order) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t rest = 0, seen = 0;
    shmq_subscription by;
    shmq_delivery held[8], d;
    shmq_subscription_begin(&by, is_of, &rest);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(select_now(theirs, &by, &held[i]), SHMQ_OK);
    }
    for (uint64_t place = 0; shmq_browse_place(&q->first, &place, &d) == SHMQ_OK; place++) {
        CHECK_EQUAL(number_of(&d), seen++);
    }
    CHECK_EQUAL(seen, MANY);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, MANY - 8);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(shmq_settle(theirs, &held[i]), SHMQ_OK);
    }
    shmq_subscription_end(&by);
    end();
}

/* In his hands are all slots of the front ring: nobody finds one for a row, until one is settled. */
TEST(without_a_slot_it_stays_on_disk) {
    static shmq_delivery held[MANY];
    begin();
    put_numbers(q, 0, MANY);
    uint64_t rest = 99, count = 0, place = place_of(7000);
    shmq_subscription by;
    shmq_delivery d;
    shmq_subscription_begin(&by, is_of, &rest);
    const shmq_taking all = {.owner = shmq_self(q)};
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    CHECK_EQUAL(count, shmq_slot_count(shmq_front_of(&q->first)));
    CHECK_EQUAL(select_now(theirs, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_steal_at(&q->first, place, true, &d), SHMQ_NO_SPACE);
    CHECK(strstr(shmq_trail(), "no slot is free for a message that comes back") != NULL);
    CHECK_EQUAL(shmq_settle(q, &held[0]), SHMQ_OK);
    CHECK_EQUAL(select_now(theirs, &by, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d) % 100, 99);
    CHECK_EQUAL(shmq_release(theirs, &d, false), SHMQ_OK);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(i == 0 || shmq_settle(q, &held[i]) == SHMQ_OK);
    }
    uint64_t last = 0, number;
    while ((number = get_number(q)) != UINT64_MAX) {
        CHECK(number > last);
        last = number;
    }
    CHECK_EQUAL(last, MANY - 1);
    shmq_subscription_end(&by);
    end();
}

/* All that one had in hand, of what lies deep, comes back, and nobody wants it: those that lie before it come in all the same. */
TEST(what_comes_back_leaves_slots_to_what_lies_before_it) {
    static shmq_delivery held[MANY];
    begin();
    put_numbers(q, 0, MANY);
    uint64_t count = 0, position = place_of(4000);
    shmq_status status = SHMQ_OK;
    while (status == SHMQ_OK) {
        status = shmq_steal_at(&q->first, position++, true, &held[count]);
        count += status == SHMQ_OK;
        status = status == SHMQ_EMPTY ? SHMQ_OK : status;
    }
    CHECK_EQUAL(status, SHMQ_NO_SPACE);
    CHECK_EQUAL(count, shmq_slot_count(shmq_front_of(&q->first)) / 4);
    while (count > 0) {
        CHECK_EQUAL(shmq_release(q, &held[--count], false), SHMQ_OK);
    }
    get_numbers(theirs, 0, MANY);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* All of them, one by one: the flow ends as if they had been pulled. Shows S181. */
TEST(one_that_wants_all_ends_the_flow) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t asked = 0;
    shmq_subscription by;
    shmq_delivery d;
    shmq_subscription_begin(&by, is_any, &asked);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(select_now(i % 2 == 0 ? q : theirs, &by, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(i % 2 == 0 ? q : theirs, &d), SHMQ_OK);
    }
    CHECK_EQUAL(select_now(q, &by, &d), SHMQ_EMPTY);
    CHECK(!shmq_flow_is_on(shmq_load_seq(&q->first.shm->flow)));
    CHECK(asked < 4 * MANY);
    shmq_subscription_end(&by);
    end();
}

static bool is_slow(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    usleep(50);
    return number_of(d) == *(uint64_t *)context;
}

/* Each look goes on where the last one ended: slices, and between them others have the lock. */
TEST(a_long_search_goes_on_with_the_next_look) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t wanted = 7000, looks = 0;
    shmq_subscription by;
    shmq_delivery d;
    shmq_subscription_begin(&by, is_slow, &wanted);
    get_numbers(q, 0, 4000);
    while (shmq_offer_to(q, shmq_self(q), &by, &d) == SHMQ_EMPTY) {
        CHECK_EQUAL(d.seen.why, SHMQ_LEFT_TO_OTHER);
        looks++;
    }
    CHECK(looks > 0);
    CHECK_EQUAL(number_of(&d), wanted);
    shmq_offer_cancel(q, &d);
    get_numbers(theirs, 4000, MANY - 4000);
    shmq_subscription_end(&by);
    end();
}

/* Rows that are discarded, or passed, with some among them that came in by themselves. */
TEST(what_was_fetched_is_counted_once_when_a_place_is_discarded) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t number[] = {5000, 5001, 5500, 6000, 6001, 6500}, discarded = 0, bytes = 8;
    shmq_delivery d;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        CHECK_EQUAL(shmq_steal_at(&q->first, place_of(number[i]), true, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), number[i]);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(census_of(q).ready, MANY - 6);
    CHECK_EQUAL(shmq_flow_size(q), shmq_rows_size(m, shmq_flow_rows(q) + 6, shmq_flow_bytes(q) + 48));
    uint64_t place = place_of(5999) + 1; /* the two that follow are gone */
    shmq_status status;
    while ((status = shmq_discard_below(&theirs->first, place, &discarded)) == SHMQ_INTERRUPTED) {
    }
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK_EQUAL(discarded, 6000 - 3);
    CHECK_EQUAL(census_of(q).ready, MANY - 6000 - 3);
    CHECK_EQUAL(census_of(q).bytes, bytes * (MANY - 6000 - 3));
    scratch_examine_queue(q->index, true);
    for (uint64_t i = 6002; i < MANY; i++) {
        get_numbers(q, i, i != 6500);
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Of levels each has an end for who wants nothing of it, though it flows. */
TEST(what_is_less_important_comes_to_who_wants_nothing_above) {
    begin();
    shmq_queue *levels = scratch_levels(m, "levels", 0, 3);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_as(levels, i, (uint8_t)(i % 3 * 4)), SHMQ_OK);
    }
    for (uint32_t depth = 0; depth < 3; depth++) {
        CHECK_EQUAL(shmq_purger_make_room(levels, shmq_level(levels, depth)), SHMQ_OK);
    }
    uint64_t rest = 50;
    shmq_subscription by;
    shmq_delivery d;
    shmq_subscription_begin(&by, is_of, &rest);
    for (uint64_t level = 3; level-- > 0;) {
        for (uint64_t i = 50; i < MANY; i += 100) {
            if (i % 3 == level) {
                CHECK_EQUAL(select_now(levels, &by, &d), SHMQ_OK);
                CHECK_EQUAL(number_of(&d), i);
                CHECK_EQUAL(shmq_settle(levels, &d), SHMQ_OK);
            }
        }
    }
    CHECK_EQUAL(select_now(levels, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(levels).ready, MANY - MANY / 100);
    shmq_subscription_end(&by);
    shmq_queue_unbind(levels);
    end();
}

/* Their bodies need blocks, and there is no memory but what others give. */
TEST(large_ones_come_in_where_memory_is_used_up) {
    static unsigned char large[4000];
    begin();
    shmq_queue *plain = scratch_queue(m, "plain", 0, true);
    uint64_t count = 3 * SCRATCH_MEMORY / sizeof large;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(large, &i, sizeof i);
        CHECK_EQUAL(put_bytes(plain, large, sizeof large, 0), SHMQ_OK);
    }
    shmq_delivery d;
    for (uint64_t i = count / 2; i < count; i += count / 8) {
        uint64_t place = 0, number;
        for (;; place++) {
            CHECK_EQUAL(shmq_browse_place(&plain->first, &place, &d), SHMQ_OK);
            memcpy(&number, d.bytes, sizeof number);
            if (number == i) {
                break;
            }
        }
        CHECK_EQUAL(shmq_steal_at(&plain->first, place, true, &d), SHMQ_OK);
        memcpy(&number, d.bytes, sizeof number);
        CHECK_EQUAL(number, i);
        CHECK_EQUAL(shmq_settle(plain, &d), SHMQ_OK);
    }
    shmq_queue_unbind(plain);
    end();
}

int main(void) { return run_tests(); }
