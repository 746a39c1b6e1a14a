/* Time to live, holds and leases where another has come first: a hand, a changed word, a damaged record. */
#include "queue/cold.h"
#include "time/times.h"
#include "upkeep/duty.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;

static void begin_levels(uint32_t levels) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_levels(m, "jobs", 0, levels);
}

static void begin(void) { begin_levels(1); }

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    scratch_close(m, q);
    scratch_remove();
}

static void put_timed(uint64_t number, uint64_t expires_ns, uint64_t not_before_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number,
                       .expires_ns = expires_ns,
                       .not_before_ns = not_before_ns};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

static shmq_slot_shm *slot_at(uint64_t position) { return shmq_slot_at(&q->first, position); }

static uint64_t word_at(uint64_t position) { return shmq_load_seq(&slot_at(position)->word); }

static uint64_t expired(void) { return shmq_load_seq(&q->counters->expired); }

static void dead_letter_the_expired(bool buried) { shmq_store_seq(&q->page->settings.dead_letter_expired, buried); }

static void max_ttl(uint64_t ns) { shmq_store_seq(&q->page->settings.max_ttl_ns, ns); }

/* Its records lie nowhere from now on; answers where they lay. */
static uint64_t lose_records(void) {
    uint64_t cold = shmq_load_seq(&q->first.shm->cold);
    shmq_store_seq(&q->first.shm->cold, cold + 64);
    return cold;
}

static void find_records(uint64_t cold) {
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    shmq_store_seq(&q->first.shm->cold, cold);
    shmq_store_seq(&m->header->damage, 0);
}

TEST(what_is_with_somebody_is_not_dropped_by_who_walks_by) {
    begin();
    put_timed(1, shmq_now_ns(), 0);
    uint64_t before = word_at(0);
    dead_letter_the_expired(true); /* so that it is offered at all */
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    dead_letter_the_expired(false);
    CHECK(!shmq_drop_expired(&q->first, slot_at(0), word_at(0)));
    CHECK(shmq_drop_expired(&q->first, slot_at(0), before)); /* changed: look again */
    CHECK_EQUAL(state_at(q, 0), SHMQ_OFFERED);
    CHECK_EQUAL(expired(), 0);
    shmq_store_seq(&m->header->due, 2); /* who looks leaves the offer alone, too, and looks again later */
    shmq_store_seq(&q->first.shm->due, 2);
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_OFFERED);
    CHECK(shmq_load_seq(&q->first.shm->due) != 0);
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(expired(), 1);
    end();
}

TEST(what_is_settled_does_not_expire) {
    begin();
    put_timed(1, shmq_now_ns() + 3600 * SECOND, 0);
    shmq_delivery d = receive(q, shmq_self(q)), late = d;
    CHECK(!shmq_expires_now(q, &d));
    CHECK(!shmq_is_for_dead_letter(q, &d));
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    late.counted = false;
    CHECK_EQUAL(shmq_expire(q, &late), SHMQ_SETTLED);
    CHECK_EQUAL(expired(), 0);
    end();
}

/* An expired one that goes to the dead comes back to its queue first. */
TEST(what_is_released_too_late_may_go_to_the_dead_letters) {
    begin();
    put_timed(1, shmq_now_ns() + SECOND / 4, 0); /* time enough to receive it, on a busy machine, too */
    dead_letter_the_expired(true);
    shmq_delivery d = receive(q, shmq_self(q));
    while (shmq_now_ns() < d.expires_ns) {
        shmq_pause();
    }
    CHECK(shmq_is_for_dead_letter(q, &d));
    CHECK(!shmq_expires_now(q, &d));
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(expired(), 0);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 1);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

/* Held or in a hand when its time is over, it is given free for its burial. */
TEST(what_goes_to_the_dead_is_taken_out_of_holds_and_hands) {
    begin();
    uint64_t at = shmq_now_ns() + SECOND / 4;
    put_timed(1, at, shmq_now_ns() + 3600 * SECOND);
    put_timed(2, at, 0);
    dead_letter_the_expired(true);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&d), 2);
    while (shmq_now_ns() < at) {
        shmq_pause();
    }
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_AVAILABLE);
    CHECK_EQUAL(state_at(q, 1), SHMQ_AVAILABLE);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(expired(), 0);
    for (uint64_t i = 1; i <= 2; i++) {
        CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    end();
}

/* The ring turns under the oldest: the next ones lie in slots before its own. */
TEST(the_expired_are_buried_in_order_however_the_ring_has_turned) {
    begin();
    dead_letter_the_expired(true);
    uint64_t passed = q->first.mask / 2, past = shmq_now_ns() + SECOND / 4;
    for (uint64_t i = 0; i < passed; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(get_number(q), i);
    }
    put_timed(1, past, past + 3600 * SECOND);
    for (uint64_t i = passed; i < q->first.mask; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(get_number(q), i);
    }
    put_timed(2, past, past + 3600 * SECOND);
    put_timed(3, past, past + 3600 * SECOND);
    while (shmq_now_ns() < past) {
        shmq_pause();
    }
    shmq_due_look(m);
    shmq_delivery d;
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_EMPTY);
    end();
}

TEST(the_expired_are_found_on_every_level) {
    begin_levels(3);
    uint64_t now = shmq_now_ns();
    dead_letter_the_expired(true);
    for (uint64_t i = 0; i < 3; i++) {
        struct iovec piece = {.iov_base = &i, .iov_len = sizeof i};
        shmq_outgoing o = {.pieces = &piece,
                           .piece_count = 1,
                           .body_len = sizeof i,
                           .priority = (uint8_t)(i == 0   ? 9
                                                 : i == 1 ? 4
                                                          : 0),
                           .expires_ns = i == 1 ? now + 3600 * SECOND : now};
        CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    }
    CHECK_EQUAL(put_as(q, 7, 0), SHMQ_OK); /* one without any time */
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 0);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 2);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_EMPTY);
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(get_number(q), 7);
    end();
}

/* In order, level by level; not what is in a hand, was never tried, or has expired, which goes another way. */
TEST(what_failed_too_often_is_found_on_every_level) {
    begin_levels(3);
    dead_letter_the_expired(true);
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK_EQUAL(put_as(q, i, 9), SHMQ_OK);
    }
    uint64_t at = shmq_now_ns() + SECOND / 4;
    CHECK_EQUAL(put_as(q, 4, 0), SHMQ_OK);
    struct iovec piece = {.iov_base = &at, .iov_len = sizeof at};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof at, .expires_ns = at};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    o.expires_ns = at + 3600 * SECOND;
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    shmq_delivery d, tried[6];
    for (int i = 0; i < 6; i++) {
        tried[i] = receive(q, shmq_self(q));
    }
    for (int i = 5; i >= 0; i--) {
        CHECK_EQUAL(shmq_release(q, &tried[i], true), SHMQ_OK);
    }
    CHECK_EQUAL(put_as(q, 7, 9), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    shmq_delivery taken = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&taken), 1);
    shmq_store_seq(&q->page->max_attempts, 1);
    while (shmq_now_ns() < at) {
        shmq_pause();
    }
    static const uint64_t places[] = {2, 3, 4, 0};
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
        CHECK(places[i] == 0 ? d.expires_ns > at : number_of(&d) == places[i]);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &taken), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 7);
    end();
}

TEST(the_sooner_of_two_limits_holds_and_no_sum_runs_over) {
    begin();
    uint64_t now = shmq_now_ns(), at = now + 10 * SECOND;
    put_timed(1, at, 0);
    shmq_slot_shm *slot = slot_at(0);
    uint32_t props = shmq_props(slot);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, props, now), at);
    max_ttl(20 * SECOND);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, props, now), at);
    max_ttl(5 * SECOND);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, props, now), now + 5 * SECOND);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, 0, now), now + 5 * SECOND);
    max_ttl(SHMQ_NEVER - 1);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, props, now), at);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK); /* with such a limit nothing is ever due */
    CHECK(shmq_due_time(shmq_load_seq(&q->first.shm->due)) >= (at & ~SHMQ_DUE_LOOKING));
    max_ttl(SHMQ_NEVER);
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, 0, now), 0);
    shmq_store_seq(&shmq_cold_at(&q->first, slot)->expires_ns,
                   0); /* nobody writes that: it is past, and not for ever */
    CHECK_EQUAL(shmq_expires_of(&q->first, slot, props, now), 1);
    CHECK_EQUAL(get_number(q), 2);
    CHECK_EQUAL(expired(), 1);
    end();
}

TEST(without_its_record_a_message_does_not_expire) {
    begin();
    put_timed(1, shmq_now_ns(), 0);
    uint64_t cold = lose_records();
    CHECK_EQUAL(shmq_expires_of(&q->first, slot_at(0), shmq_props(slot_at(0)), shmq_now_ns()), 0);
    CHECK(!shmq_drop_expired(&q->first, slot_at(0), word_at(0)));
    dead_letter_the_expired(true);
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_EMPTY);
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(expired(), 0);
    find_records(cold);
    end();
}

/* Damaged between prepare and put: it is there for everybody, at once and for ever. */
TEST(a_record_that_cannot_be_written_loses_the_times_only) {
    begin();
    uint64_t number = 5;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .expires_ns = shmq_now_ns() + 1};
    CHECK_EQUAL(shmq_prepare(q, &o, 0), SHMQ_OK);
    uint64_t cold = lose_records();
    CHECK_EQUAL(shmq_put_now(q, &o), SHMQ_OK);
    find_records(cold);
    CHECK_EQUAL(shmq_props(slot_at(o.made.position)), 0);
    CHECK_EQUAL(get_number(q), 5);
    end();
}

TEST(a_release_that_cannot_be_delayed_is_one_at_once) {
    begin();
    put_timed(1, 0, shmq_now_ns() + 1);
    while (get_number(q) != 1) {
        shmq_due_look(m);
    }
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    uint64_t cold = lose_records();
    CHECK_EQUAL(shmq_release_until(q, &d, true, shmq_now_ns() + 3600 * SECOND), SHMQ_OK);
    find_records(cold);
    d = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&d), 2);
    CHECK_EQUAL(d.delivery, 1);
    CHECK_EQUAL(shmq_release_until(q, &d, false, shmq_now_ns() + 3600 * SECOND), SHMQ_OK);
    CHECK_EQUAL(state_at(q, 1), SHMQ_HELD);
    end();
}

/* Seen as it was before: another one has ended the hold, or it has never been this message's. */
TEST(a_hold_ends_once) {
    begin();
    put_timed(1, 0, shmq_now_ns() + 3600 * SECOND);
    put_timed(2, 0, shmq_now_ns() + 3600 * SECOND);
    uint64_t word = word_at(0);
    CHECK(!shmq_hold_end(&q->first, slot_at(0), word, shmq_now_ns()));
    CHECK(shmq_hold_end_now(&q->first, slot_at(0), word));
    CHECK(!shmq_hold_end_now(&q->first, slot_at(0), word));
    CHECK(shmq_hold_end(&q->first, slot_at(0), word, shmq_now_ns())); /* changed: look again */
    CHECK_EQUAL(state_at(q, 0), SHMQ_AVAILABLE);
    CHECK_EQUAL(get_number(q), 1);
    /* With a position that leads elsewhere nobody knows where to turn back to: from the beginning. */
    shmq_store_seq(&slot_at(1)->position, 7);
    uint64_t epoch = shmq_load_seq(&q->first.shm->epoch);
    CHECK(shmq_hold_end_now(&q->first, slot_at(1), word_at(1)));
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->epoch), epoch + 1);
    shmq_store_seq(&slot_at(1)->position, 1);
    CHECK_EQUAL(get_number(q), 2);
    end();
}

TEST(a_hold_without_its_record_is_over) {
    begin();
    put_timed(1, 0, shmq_now_ns() + 3600 * SECOND);
    uint64_t now = shmq_now_ns();
    CHECK(shmq_held_until(&q->first, slot_at(0), now) > now);
    shmq_props_change(slot_at(0), 0, SHMQ_PROP_NOT_BEFORE);
    CHECK_EQUAL(shmq_held_until(&q->first, slot_at(0), now), 0);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

TEST(records_that_do_not_fit_are_said_to_who_gives_the_lease) {
    begin_levels(3);
    uint64_t run;
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    while (shmq_run_take(m, 1, SHMQ_GRANULE_RING, &run) == SHMQ_OK) {
    }
    shmq_structure_unlock(m);
    shmq_store_seq(&q->page->settings.lease_ns, SECOND);
    CHECK_EQUAL(shmq_time_declared(q, 1u << SHMQ_SET_LEASE), SHMQ_FULL_MEMORY);
    CHECK_EQUAL(shmq_time_declared(q, 1u << SHMQ_SET_MAXSIZE), SHMQ_OK); /* another setting: nothing to do */
    shmq_store_seq(&q->page->settings.lease_ns, SHMQ_NEVER);
    CHECK_EQUAL(shmq_time_declared(q, 1u << SHMQ_SET_LEASE), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 1, 9), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_release_until(q, &d, false, shmq_now_ns() + 3600 * SECOND),
                SHMQ_OK); /* at once, without a record */
    CHECK_EQUAL(get_number(q), 1);
    end();
}

int main(void) { return run_tests(); }
