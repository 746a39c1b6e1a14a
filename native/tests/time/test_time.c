/* Entries that wait for a time: when they come, in which order, and who brings them. */
#include "layout/run.h"
#include "queue/cold.h"
#include "time/times.h"
#include "upkeep/duty.h"
#include "scratch_queue.h"

#define MS UINT64_C(1000000)

static shmq_member *m;
static shmq_queue *q;

/* Time stands still but where a test lets it pass, so that a busy machine cannot come between two calls; who sleeps in the
 * kernel needs it to run. */
static uint64_t stands_at; /* 0: it runs */

uint64_t __real_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) { return stands_at != 0 ? stands_at : __real_shmq_now_ns(); }
uint64_t __wrap_shmq_about_now_ns(void) { return __wrap_shmq_now_ns(); }

static void let_time_run(void) { stands_at = 0; }

static void begin(void) {
    stands_at = __real_shmq_now_ns();
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
}

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    check_segment(m);
    shmq_queue_unbind(q);
    scratch_leave(m);
    scratch_remove();
}

static void put_until(uint64_t number, uint64_t until_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof(number)};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof(number), .not_before_ns = until_ns};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

static void sleep_until(uint64_t at) { stands_at = at > stands_at ? at : stands_at; }

static void a_ring_gets_its_records_when_the_first_message_needs_one(void) {
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->cold), 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->due), 0);
    uint64_t before = shmq_granules_free(m);
    put_until(2, shmq_now_ns() + 3600 * SECOND);
    CHECK(shmq_load_seq(&q->first.shm->cold) != 0);
    CHECK_EQUAL(before - shmq_granules_free(m), shmq_cold_granules(q->first.shift));
    put_until(3, shmq_now_ns() + 3600 * SECOND);
    CHECK_EQUAL(before - shmq_granules_free(m), shmq_cold_granules(q->first.shift));
}

static void records_go_with_their_queue(void) {
    shmq_queue *other = scratch_queue(m, "other", 0, true);
    uint64_t before = shmq_granules_free(m);
    CHECK_EQUAL(shmq_cold_need(&other->first), SHMQ_OK);
    CHECK(shmq_granules_free(m) < before);
    CHECK_EQUAL(shmq_queue_delete(other), SHMQ_OK);
    shmq_queue_unbind(other);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    shmq_queues_release(m);
    shmq_structure_unlock(m);
    CHECK(shmq_granules_free(m) > before);
}

static void a_rebuild_of_the_map_knows_the_records(void) {
    put_until(1, shmq_now_ns() + 3600 * SECOND);
    uint64_t before = shmq_granules_free(m);
    shmq_store_seq(&m->header->dirty, UINT64_C(1) << 63 | 1);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK(shmq_structure_fault(m) == NULL);
    shmq_structure_unlock(m);
    CHECK_EQUAL(shmq_granules_free(m), before);
}

/* Shows E6, E7. */
static void a_message_is_held_until_its_time(void) {
    uint64_t at = shmq_now_ns() + 30 * MS;
    put_until(1, at);
    CHECK_EQUAL(state_at(q, 0), SHMQ_HELD);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    shmq_census c = census_of(q);
    CHECK_EQUAL(c.delayed, 1);
    CHECK_EQUAL(c.ready, 0);
    sleep_until(at);
    CHECK_EQUAL(shmq_queue_enter(q), SHMQ_OK); /* as every call begins */
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
}

/* Shows E7, R11. */
/* Shows E6, E7, R11. */
static void what_is_not_held_overtakes(void) {
    uint64_t at = shmq_now_ns() + 30 * MS;
    put_until(1, at);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 2);
    sleep_until(at);
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_AVAILABLE);
    CHECK_EQUAL(get_number(q), 1); /* in its place again: before 3 */
    CHECK_EQUAL(get_number(q), 3);
}

/* Shows S54, E7, R11. */
/* Shows S54, R11. */
static void a_waiting_taker_is_woken_when_it_is_due(void) {
    let_time_run();
    uint64_t at = shmq_now_ns() + 50 * MS, waited;
    put_until(1, at);
    CHECK_EQUAL(await_number(q, &waited), 1);
    CHECK(shmq_now_ns() >= at);
    CHECK(shmq_now_ns() - at < SECOND);
    CHECK_EQUAL(shmq_load_seq(&m->header->due), 0);
}

static void a_release_with_a_delay_holds_it(void) {
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    uint64_t at = shmq_now_ns() + 30 * MS;
    CHECK_EQUAL(shmq_release_until(q, &d, true, at), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    CHECK_EQUAL(state_at(q, 0), SHMQ_HELD);
    CHECK_EQUAL(shmq_release_until(q, &d, true, at), SHMQ_SETTLED);
    sleep_until(at);
    shmq_due_look(m);
    d = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&d), 1);
    CHECK_EQUAL(d.delivery, 1);
    CHECK((d.word & SHMQ_FLAG_REDELIVERED) != 0);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 2);
}

static void a_held_one_is_carried_and_comes_all_the_same(void) {
    uint64_t at = shmq_now_ns() + 20 * MS, n = shmq_slot_count(&q->first);
    put_until(UINT64_MAX - 1, at);
    for (uint64_t i = 0; i < 3 * n; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        if (shmq_now_ns() < at) {
            CHECK_EQUAL(get_number(q), i);
        } else {
            (void)get_number(q);
        }
    }
    sleep_until(at);
    shmq_due_look(m);
    while (get_number(q) != UINT64_MAX) {
    }
    CHECK_EQUAL(census_of(q).delayed, 0);
    CHECK_EQUAL(census_of(q).ready, 0);
}

static void purge_and_delete_take_what_is_held(void) {
    shmq_delivery d;
    put_until(1, shmq_now_ns() + 3600 * SECOND);
    CHECK_EQUAL(shmq_steal(&q->first, 0, true, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    put_until(2, shmq_now_ns() + 3600 * SECOND);
    uint64_t at = 0;
    CHECK_EQUAL(shmq_browse(&q->first, &at, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 2);
    let_time_run();
    CHECK_EQUAL(shmq_ring_join(q, shmq_now_ns() + 5 * MS), SHMQ_TIMEOUT);
}

static void a_damaged_offset_of_the_records_loses_nothing(void) {
    put_until(7, shmq_now_ns() + 3600 * SECOND);
    uint64_t cold = shmq_load_seq(&q->first.shm->cold);
    shmq_store_seq(&q->first.shm->cold, cold + 64);
    CHECK_EQUAL(get_number(q), 7);
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    shmq_store_seq(&q->first.shm->cold, cold);
    shmq_store_seq(&m->header->damage, 0);
}

static void a_time_that_nobody_writes_does_not_hold_for_ever(void) {
    put_until(7, shmq_now_ns() + 3600 * SECOND);
    shmq_store_seq(&shmq_cold_at(&q->first, shmq_slot_at(&q->first, 0))->not_before_ns, UINT64_MAX);
    uint64_t where;
    CHECK(shmq_ring_fault(&q->first, &where) != NULL);
    CHECK_EQUAL(get_number(q), 7);
}

/* ---- time to live ------------------------------------------------------------------------------------------------ */

static void put_with(uint64_t number, uint64_t expires_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof(number)};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof(number), .expires_ns = expires_ns};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

static void max_ttl(uint64_t ns) {
    shmq_store_seq(&q->page->settings.max_ttl_ns, ns);
    shmq_settings_seal(q->page);
}

static uint64_t expired(void) { return shmq_load_seq(&q->counters->expired); }

static void what_has_expired_is_not_delivered(void) {
    put_with(1, shmq_now_ns());
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 2); /* the scan drops it, whoever looks after what is due */
    CHECK_EQUAL(expired(), 1);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
}

static void what_expires_is_delivered_before(void) {
    put_with(1, shmq_now_ns() + 3600 * SECOND);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK(d.expires_ns > shmq_now_ns());
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(expired(), 0);
}

static void what_nobody_takes_expires_in_its_time(void) {
    uint64_t at = shmq_now_ns() + 5 * MS;
    put_with(1, at);
    sleep_until(at);
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_FREE);
    CHECK_EQUAL(expired(), 1);
}

static void a_limit_of_the_queue_holds_for_what_is_there(void) {
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    put_with(2, shmq_now_ns() + 3600 * SECOND);
    max_ttl(1 * MS);
    CHECK_EQUAL(shmq_time_declared(q, 1u << SHMQ_SET_MAX_TTL), SHMQ_OK);
    sleep_until(shmq_now_ns() + 2 * MS + SHMQ_CLOCK_LATE_NS);
    shmq_due_look(m);
    CHECK_EQUAL(expired(), 2);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK);
    uint64_t due = shmq_due_time(shmq_load_seq(&q->first.shm->due));
    CHECK(due <= shmq_now_ns() + 1 * MS + SHMQ_CLOCK_LATE_NS);
    sleep_until(due + 1); /* it is even: the last bit says something else */
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(expired(), 3);
}

/* Shows R7, E11. */
static void what_expires_in_a_hand_is_taken_from_it(void) {
    uint64_t at = shmq_now_ns() + 10 * MS;
    put_with(1, at);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 1);
    sleep_until(at);
    shmq_due_look(m);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    CHECK_EQUAL(expired(), 1);
}

static void what_is_released_too_late_does_not_come_back(void) {
    uint64_t at = shmq_now_ns() + 5 * MS;
    put_with(1, at);
    shmq_delivery d = receive(q, shmq_self(q));
    sleep_until(at);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(expired(), 1);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
}

/* Being settled, it is left alone; given back, it is looked at again. Shows E12, R7. */
static void what_is_locked_expires_when_it_is_let_go(void) {
    uint64_t at = shmq_now_ns() + 5 * MS;
    put_with(1, at);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_lock(q, &d), SHMQ_OK);
    sleep_until(at);
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_LOCKED);
    CHECK_EQUAL(expired(), 0);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(expired(), 1);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
}

static void what_is_held_expires(void) {
    uint64_t now = shmq_now_ns();
    uint64_t number = 1;
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof(number)};
    shmq_outgoing o = {.pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof(number),
                       .expires_ns = now + 2 * MS,
                       .not_before_ns = now + 3600 * SECOND};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    sleep_until(now + 2 * MS);
    shmq_due_look(m);
    CHECK_EQUAL(expired(), 1);
    CHECK_EQUAL(state_at(q, 0), SHMQ_FREE);
}

static void what_goes_to_the_dead_is_left_for_its_burial(void) {
    shmq_store_seq(&q->page->settings.dead_letter_expired, 1);
    shmq_settings_seal(q->page);
    put_with(1, shmq_now_ns());
    put_with(2, shmq_now_ns());
    shmq_due_look(m);
    CHECK_EQUAL(shmq_load_seq(&m->upcalls), 1);
    CHECK_EQUAL(expired(), 0);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK); /* a taker is told, and buries it */
    CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_POISONED);
    CHECK_EQUAL(number_of(&d), 1);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 2);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_expired(q, &d), SHMQ_EMPTY);
}

/* ---- leases ------------------------------------------------------------------------------------------------------ */

static void lease(uint64_t ns) {
    shmq_store_seq(&q->page->settings.lease_ns, ns);
    shmq_settings_seal(q->page);
    CHECK_EQUAL(shmq_time_declared(q, 1u << SHMQ_SET_LEASE), SHMQ_OK);
}

/* Shows E11, R8. */
static void a_message_is_lent_for_its_lease_only(void) {
    lease(10 * MS);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q)), again;
    CHECK_EQUAL(state_at(q, 0), SHMQ_ACQUIRED);
    sleep_until(shmq_now_ns() + 11 * MS);
    shmq_due_look(m);
    CHECK_EQUAL(state_at(q, 0), SHMQ_AVAILABLE);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    CHECK_EQUAL(shmq_touch(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_release(q, &d, true), SHMQ_SETTLED);
    again = receive(q, shmq_self(q));
    CHECK_EQUAL(number_of(&again), 1); /* in its place */
    CHECK_EQUAL(again.delivery, 1);    /* an attempt */
    CHECK((again.word & SHMQ_FLAG_REDELIVERED) != 0);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_settle(q, &again), SHMQ_OK);
}

static void a_touch_renews_the_lease(void) {
    lease(30 * MS);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    uint64_t began = shmq_now_ns();
    shmq_delivery d = receive(q, shmq_self(q));
    for (int i = 0; i < 5; i++) {
        sleep_until(shmq_now_ns() + 10 * MS);
        CHECK_EQUAL(shmq_touch(q, &d), SHMQ_OK);
        shmq_due_look(m);
    }
    CHECK(shmq_now_ns() - began > 30 * MS);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
}

static void a_settlement_in_time_ends_the_lease(void) {
    lease(5 * MS);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_lock(q, &d), SHMQ_OK); /* what is being settled is not taken */
    sleep_until(shmq_now_ns() + 6 * MS);
    shmq_due_look(m);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
}

static void the_time_of_an_old_hold_is_no_lease(void) {
    uint64_t at = shmq_now_ns() + 2 * MS;
    put_until(1, at);
    sleep_until(at);
    shmq_due_look(m);
    shmq_delivery d = receive(q, shmq_self(q));
    lease(3600 * SECOND);
    shmq_due_recover(&q->first);
    shmq_due_look(m);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
}

static void without_a_lease_a_touch_asks_whose_it_is(void) {
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_touch(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_touch(q, &d), SHMQ_SETTLED);
}

static void a_due_word_that_nobody_writes_is_looked_at_and_written_anew(void) {
    uint64_t at = shmq_now_ns() + 3 * MS;
    put_until(1, at);
    sleep_until(at);
    shmq_store_seq(&q->first.shm->due, UINT64_MAX - 1);
    shmq_store_seq(&m->header->due, UINT64_MAX - 1);
    shmq_due_look(m);
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->due), 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->due), 0);
}

/* ---- due words --------------------------------------------------------------------------------------------------- */

static void a_due_word_has_the_earliest_time(void) {
    shmq_a64 word;
    shmq_store_seq(&word, 0);
    CHECK(shmq_due_at(&word, 1000));
    CHECK(!shmq_due_at(&word, 2000));
    CHECK(shmq_due_at(&word, 500));
    CHECK_EQUAL(shmq_load_seq(&word), 500);
    uint64_t mark;
    CHECK(!shmq_due_begin(&word, 499, 100, &mark));
    CHECK(shmq_due_begin(&word, 500, 100, &mark));
    CHECK(!shmq_due_begin(&word, 550, 100, &mark)); /* somebody looks */
    shmq_due_end(&word, (500 + 100) | SHMQ_DUE_LOOKING, 2000);
    CHECK_EQUAL(shmq_load_seq(&word), 2000);
    CHECK(shmq_due_begin(&word, 2000, 100, &mark));
    shmq_due_end(&word, mark, SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_load_seq(&word), 0);
}

static void what_becomes_due_during_a_look_is_looked_for(void) {
    shmq_a64 word;
    uint64_t mark;
    shmq_store_seq(&word, 0);
    CHECK(shmq_due_at(&word, 1000));
    CHECK(shmq_due_begin(&word, 1000, 100, &mark));
    (void)shmq_due_at(&word, 5000); /* later than the mark: the look may have passed it */
    shmq_due_end(&word, mark, SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_load_seq(&word), 1100); /* so there is one look more */
    CHECK(shmq_due_begin(&word, 1100, 100, &mark));
    (void)shmq_due_at(&word, 1150); /* earlier */
    shmq_due_end(&word, mark, 5000);
    CHECK_EQUAL(shmq_load_seq(&word), 1150);
}

static void a_look_that_was_left_is_taken_over(void) {
    uint64_t at = shmq_now_ns(), mark;
    put_until(1, at + 5 * MS);
    sleep_until(at + 5 * MS);
    CHECK(shmq_due_begin(&m->header->due, shmq_now_ns(), 10 * MS, &mark)); /* and nothing more */
    CHECK(shmq_due_begin(&q->first.shm->due, shmq_now_ns(), 10 * MS, &mark));
    uint64_t waited;
    CHECK_EQUAL(await_number(q, &waited), 1);
}

int main(void) {
    void (*tests[])(void) = {
        a_ring_gets_its_records_when_the_first_message_needs_one,
        records_go_with_their_queue,
        a_rebuild_of_the_map_knows_the_records,
        a_message_is_held_until_its_time,
        what_is_not_held_overtakes,
        a_waiting_taker_is_woken_when_it_is_due,
        a_release_with_a_delay_holds_it,
        a_held_one_is_carried_and_comes_all_the_same,
        purge_and_delete_take_what_is_held,
        a_damaged_offset_of_the_records_loses_nothing,
        a_time_that_nobody_writes_does_not_hold_for_ever,
        what_has_expired_is_not_delivered,
        what_expires_is_delivered_before,
        what_nobody_takes_expires_in_its_time,
        a_limit_of_the_queue_holds_for_what_is_there,
        what_expires_in_a_hand_is_taken_from_it,
        what_is_locked_expires_when_it_is_let_go,
        what_is_released_too_late_does_not_come_back,
        what_is_held_expires,
        what_goes_to_the_dead_is_left_for_its_burial,
        a_message_is_lent_for_its_lease_only,
        a_touch_renews_the_lease,
        a_settlement_in_time_ends_the_lease,
        the_time_of_an_old_hold_is_no_lease,
        without_a_lease_a_touch_asks_whose_it_is,
        a_due_word_that_nobody_writes_is_looked_at_and_written_anew,
        a_due_word_has_the_earliest_time,
        what_becomes_due_during_a_look_is_looked_for,
        a_look_that_was_left_is_taken_over,
    };
    for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        begin();
        tests[i]();
        end();
    }
    return 0;
}
