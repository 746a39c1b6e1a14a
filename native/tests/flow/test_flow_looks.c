/* Looking at a queue that flows, choosing from it, finding that another one moves; and what keeps a queue in memory. */
#include "flow_pair.h"

TEST(a_browser_sees_all_of_it_wherever_it_is) {
    begin();
    put_numbers(q, 0, 9000);
    shmq_delivery taken[5], d;
    for (int i = 0; i < 5; i++) {
        taken[i] = receive(theirs, shmq_self(theirs));
    }
    get_numbers(q, 5, 4000);
    CHECK_EQUAL(shmq_release(theirs, &taken[3], false), SHMQ_OK);
    uint64_t place = 0, seen = 0, last = 0;
    for (; shmq_browse_place(&q->first, &place, &d) == SHMQ_OK; place++, seen++) {
        CHECK(seen == 0 || place > last);
        last = place;
        uint64_t number = number_of(&d);
        CHECK(number < 5 || number >= 4005);
    }
    CHECK_EQUAL(seen, 5000); /* what is in hand, too */
    get_numbers(q, 3, 1);
    get_numbers(q, 4005, 4995);
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(shmq_settle(theirs, &taken[i]), i == 3 ? SHMQ_SETTLED : SHMQ_OK);
    }
    end();
}

TEST(while_another_moves_nobody_waits_for_it_and_it_is_told) {
    begin();
    uint64_t count = shmq_slot_count(&q->first), put = 0, purged = 0, place = 0;
    shmq_delivery d;
    hold_mover_lock(other, q, F_WRLCK);
    while (put_number(q, put) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(put, count);
    CHECK_EQUAL(shmq_load_seq(&q->page->missed), 1);
    hold_mover_lock(other, q, F_UNLCK);
    put_numbers(q, put, 3000);
    put += 3000;
    hold_mover_lock(other, q, F_WRLCK);
    uint64_t got = 0, number;
    while ((number = get_number(q)) != UINT64_MAX) {
        CHECK_EQUAL(number, got++);
    }
    CHECK(got < put);
    CHECK(shmq_browse_place(&q->first, &place, &d) != SHMQ_OK || number_of(&d) >= got);
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_INTERRUPTED);
    shmq_flow_remove(q); /* not now */
    hold_mover_lock(other, q, F_UNLCK);
    get_numbers(q, got, put - got);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

TEST(times_to_live_come_back_with_it) {
    begin();
    uint64_t number = 0, expires = shmq_now_ns() + 3600 * SECOND;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    for (; number < 6000; number++) {
        shmq_outgoing o = {
            .pieces = &piece, .piece_count = 1, .body_len = sizeof number, .expires_ns = expires + number};
        CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    }
    shmq_delivery d;
    uint64_t place = 5000;
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(d.expires_ns, expires + number_of(&d));
    for (uint64_t i = 0; i < 6000; i++) {
        d = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(d.expires_ns, expires + i);
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    }
    end();
}

TEST(who_looks_or_chooses_finds_what_is_there) {
    begin();
    put_numbers(q, 0, 6000);
    shmq_delivery d;
    shmq_subscription even, all;
    shmq_subscription_begin(&even, wants_even, NULL);
    shmq_subscription_begin(&all, wants_all, NULL);
    CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), NULL, &d), SHMQ_OK);
    for (uint64_t i = 0; i < 200; i += 2) {
        CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &even, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    }
    for (uint64_t i = 1; i < 200; i += 2) {
        CHECK_EQUAL(get_number(theirs), i);
    }
    for (uint64_t i = 200; i < 6000; i++) {
        CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), &all, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &all, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), &all, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), NULL, &d), SHMQ_EMPTY);
    shmq_subscription_end(&even);
    shmq_subscription_end(&all);
    end();
}

TEST(without_a_directory_all_stays_in_memory) {
    begin();
    char path[2000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    CHECK_EQUAL(shmq_flow_into(m, path), SHMQ_OS);
    CHECK(shmq_may_flow(q));
    m->backing_of = NULL;
    CHECK(!shmq_may_flow(q));
    CHECK_EQUAL(shmq_purger_make_room(q, &q->first), SHMQ_EMPTY);
    shmq_flow_mend(q);
    CHECK_EQUAL(shmq_disk_bytes(q), 0);
    end();
}

int main(void) { return run_tests(); }
