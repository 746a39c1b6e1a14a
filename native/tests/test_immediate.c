/* Immediate: taken by then, or withdrawn; whoever had it once has had it. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "scratch_queue.h"
#include "shmq/immediate.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
}

static void leave(void) {
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
    shmq_member_free(m);
    scratch_remove();
}

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->process->held), 0);
    leave();
}

static shmq_outgoing put_one(void) {
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    return o;
}

static shmq_status see(const shmq_outgoing *o, uint64_t until_ns) {
    shmq_status status;
    do {
        status = shmq_immediate(q, o, until_ns);
    } while (status == SHMQ_INTERRUPTED);
    return status;
}

/* Shows S15, S16. */
static void test_it_is_withdrawn_if_nobody_had_it(void) {
    begin();
    shmq_outgoing o = put_one();
    CHECK_EQUAL(see(&o, shmq_now_ns() + 3000000), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, 0);
    o = put_one();
    CHECK_EQUAL(see(&o, shmq_immediate_until(q)), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

static void test_whoever_has_it_or_had_it_keeps_it(void) {
    begin();
    shmq_outgoing o = put_one();
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(see(&o, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(see(&o, 0), SHMQ_OK); /* it came back */
    d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(see(&o, 0), SHMQ_OK); /* it is gone */
    for (uint64_t i = 0; i < 2 * shmq_slot_count(q); i++) {
        (void)put_one();
        shmq_delivery next = receive(q, shmq_self(q));
        CHECK_EQUAL(shmq_settle(q, &next), SHMQ_OK);
    }
    CHECK_EQUAL(see(&o, 0), SHMQ_OK); /* and its slot has been another's */
    end();
}

static void *take_back(void *offer) {
    shmq_offer_cancel(q, offer);
    return NULL;
}

/* OFFERED is neither: the offer may come to nothing. */
static void test_an_offer_is_waited_for(void) {
    begin();
    shmq_outgoing o = put_one();
    shmq_delivery d;
    pthread_t thread;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    CHECK(pthread_create(&thread, NULL, take_back, &d) == 0);
    CHECK_EQUAL(see(&o, 0), SHMQ_EMPTY);
    pthread_join(thread, NULL);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

/* Who sleeps is woken by the put, and gets the patience to come. */
static void test_while_somebody_sleeps_it_has_the_patience(void) {
    begin();
    uint32_t row = 0;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_GETTER, &row), SHMQ_OK);
    uint64_t before = shmq_now_ns(), awake = shmq_immediate_until(q);
    CHECK(awake < shmq_now_ns() + m->patience_ns);
    (void)shmq_announce(q, row, false);
    CHECK(shmq_immediate_until(q) >= before + m->patience_ns);
    (void)shmq_withdraw(q, row, false);
    CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK);
    end();
}

/* Carried by the ring while it waits: still there, still withdrawn, and still an offer while it is one. */
static void test_it_is_found_where_it_was_carried_to(void) {
    begin();
    shmq_outgoing o = put_one();
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    for (uint64_t i = 0; i < 2 * shmq_slot_count(q); i++) {
        (void)put_one();
        shmq_delivery next = {0};
        uint64_t at = o.position + 1;
        CHECK_EQUAL(shmq_browse(q, &at, &next), SHMQ_OK);
        CHECK_EQUAL(shmq_steal(q, at, true, &next), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &next), SHMQ_OK);
    }
    CHECK(shmq_word_carried(shmq_load_seq(&shmq_slot_at(q, o.position)->word)));
    CHECK_EQUAL(shmq_immediate(q, &o, 0), SHMQ_INTERRUPTED); /* offered for a whole piece of the wait */
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(see(&o, 0), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

static void test_a_long_wait_comes_back_for_signals(void) {
    begin();
    shmq_outgoing o = put_one();
    uint64_t before = shmq_now_ns();
    CHECK_EQUAL(shmq_immediate(q, &o, SHMQ_FOR_EVER), SHMQ_INTERRUPTED);
    CHECK(shmq_now_ns() - before >= SHMQ_SLICE_NS);
    CHECK_EQUAL(census_of(q).ready, 1);
    CHECK_EQUAL(shmq_immediate(q, &o, 0), SHMQ_EMPTY);
    end();
}

static atomic_int signals;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* The piece may be over before the signal: then it is waited for in the next one. */
static void test_a_signal_ends_a_sleep(void) {
    begin();
    shmq_outgoing o = put_one();
    struct sigaction action = {.sa_handler = count_signal};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval each = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}}, never = {0};
    CHECK(setitimer(ITIMER_REAL, &each, NULL) == 0);
    do {
        CHECK_EQUAL(shmq_immediate(q, &o, SHMQ_FOR_EVER), SHMQ_INTERRUPTED);
    } while (atomic_load(&signals) == 0);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK_EQUAL(shmq_immediate(q, &o, 0), SHMQ_EMPTY);
    end();
}

/* What makes no sense is not withdrawn, but out of service: nobody can say any more that nobody had it. */
static void test_a_damaged_one_is_not_withdrawn(void) {
    begin();
    shmq_outgoing o = put_one();
    shmq_poke(&shmq_slot_at(q, o.position)->body, UINT64_C(0x123456789));
    CHECK_EQUAL(see(&o, 0), SHMQ_OK);
    CHECK_EQUAL(state_at(q, o.position), SHMQ_BROKEN);
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    leave();
}

int main(void) {
    test_it_is_withdrawn_if_nobody_had_it();
    test_whoever_has_it_or_had_it_keeps_it();
    test_an_offer_is_waited_for();
    test_while_somebody_sleeps_it_has_the_patience();
    test_it_is_found_where_it_was_carried_to();
    test_a_long_wait_comes_back_for_signals();
    test_a_signal_ends_a_sleep();
    test_a_damaged_one_is_not_withdrawn();
    return 0;
}
