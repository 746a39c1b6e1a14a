/* Immediate: taken by then, or withdrawn; whoever had it once has had it. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "put/immediate.h"
#include "put/move.h"
#include "put/overflow.h"
#include "time/receipt.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;
static shmq_lock_seen seen;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
}

static void leave(void) {
    scratch_close(m, q);
    scratch_remove();
}

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    leave();
}

static shmq_outgoing put_one(void) {
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    return o;
}

static shmq_outgoing put_with_receipt(uint64_t expires_ns) {
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1, .expires_ns = expires_ns};
    o.receipt = shmq_receipt_begin(m);
    CHECK(o.receipt != 0);
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    return o;
}

static void purge(const shmq_outgoing *o) {
    uint64_t purged;
    (void)o;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, 1);
}

static void drop(const shmq_outgoing *o) {
    (void)o;
    CHECK(shmq_drop_oldest(q, 0, SHMQ_FULL_COUNT, NULL));
}

static void expire(const shmq_outgoing *o) {
    shmq_delivery d;
    while (shmq_now_ns() < o->expires_ns) {
    }
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_EMPTY);
}

static void steal_an_offer(const shmq_outgoing *o) {
    shmq_delivery offered, d = {0};
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &offered), SHMQ_OK);
    CHECK_EQUAL(shmq_steal(&q->first, o->made.position, false, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(q, &offered), SHMQ_SETTLED);
}

static shmq_status see(const shmq_outgoing *o, uint64_t until_ns) {
    shmq_status status;
    do {
        status = shmq_immediate(q, o, until_ns, &seen);
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
    for (uint64_t i = 0; i < 2 * shmq_slot_count(&q->first); i++) {
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

/* A sleeping consumer is woken by the put, and gets the patience to come. */
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
    for (uint64_t i = 0; i < 2 * shmq_slot_count(&q->first); i++) {
        (void)put_one();
        shmq_delivery next = {0};
        uint64_t at = o.made.position + 1;
        CHECK_EQUAL(shmq_browse(&q->first, &at, &next), SHMQ_OK);
        CHECK_EQUAL(shmq_steal(&q->first, at, true, &next), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &next), SHMQ_OK);
    }
    CHECK(shmq_word_carried(shmq_load_seq(&shmq_slot_at(&q->first, o.made.position)->word)));
    CHECK_EQUAL(shmq_immediate(q, &o, 0, &seen), SHMQ_INTERRUPTED); /* offered for a whole piece of the wait */
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(see(&o, 0), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

static void test_a_long_wait_comes_back_for_signals(void) {
    begin();
    shmq_outgoing o = put_one();
    uint64_t before = shmq_now_ns();
    CHECK_EQUAL(shmq_immediate(q, &o, SHMQ_FOR_EVER, &seen), SHMQ_INTERRUPTED);
    CHECK(shmq_now_ns() - before >= SHMQ_SLICE_NS);
    CHECK_EQUAL(census_of(q).ready, 1);
    CHECK_EQUAL(shmq_immediate(q, &o, 0, &seen), SHMQ_EMPTY);
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
        CHECK_EQUAL(shmq_immediate(q, &o, SHMQ_FOR_EVER, &seen), SHMQ_INTERRUPTED);
    } while (atomic_load(&signals) == 0);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK_EQUAL(shmq_immediate(q, &o, 0, &seen), SHMQ_EMPTY);
    end();
}

/* A message that makes no sense is not withdrawn, but out of service: no word says any more that nobody had it. */
static void test_a_damaged_one_is_not_withdrawn(void) {
    begin();
    shmq_outgoing o = put_one();
    shmq_write_once(&shmq_slot_at(&q->first, o.made.position)->body, UINT64_C(0x123456789));
    CHECK_EQUAL(see(&o, 0), SHMQ_OK);
    CHECK_EQUAL(state_at(q, o.made.position), SHMQ_BROKEN);
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    leave();
}

/* Nobody had it, and it is gone; also when its slot has been another's since. */
static void test_what_is_taken_out_by_no_consumer_comes_back(void (*take_out)(const shmq_outgoing *), bool reused) {
    begin();
    shmq_outgoing o = put_with_receipt(shmq_now_ns() + (take_out == expire ? 1000000 : UINT64_C(60000000000)));
    take_out(&o);
    for (uint64_t i = 0; reused && i < 2 * shmq_slot_count(&q->first); i++) {
        (void)put_one();
        shmq_delivery next = receive(q, shmq_self(q));
        CHECK_EQUAL(shmq_settle(q, &next), SHMQ_OK);
    }
    CHECK_EQUAL(see(&o, SHMQ_FOR_EVER), SHMQ_SETTLED);
    shmq_receipt_end(m, o.receipt);
    end();
}

static void test_what_a_consumer_has_had_does_not(void) {
    begin();
    for (int how = 0; how < 3; how++) {
        shmq_outgoing o = put_with_receipt(0);
        shmq_delivery d = receive(q, shmq_self(q)), stolen = {0};
        if (how == 0) {
            CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        } else if (how == 1) { /* taken from its hand */
            CHECK_EQUAL(shmq_steal(&q->first, o.made.position, false, &stolen), SHMQ_OK);
            CHECK_EQUAL(shmq_settle(q, &stolen), SHMQ_OK);
            CHECK_EQUAL(shmq_settle(q, &d), SHMQ_SETTLED);
        } else {
            CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
            purge(&o);
        }
        CHECK_EQUAL(see(&o, 0), SHMQ_OK);
        shmq_receipt_end(m, o.receipt);
    }
    end();
}

/* A management that lets it be: nobody had it, it is not marked as redelivered, and its put waits on. */
static void test_what_was_locked_and_let_be_is_withdrawn(void) {
    begin();
    shmq_outgoing o = put_with_receipt(0);
    shmq_delivery d = {0};
    CHECK_EQUAL(shmq_steal(&q->first, o.made.position, true, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_immediate(q, &o, 0, &seen), SHMQ_OK); /* locked for longer than the patience */
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK((shmq_load_seq(&shmq_slot_at(&q->first, o.made.position)->word) & SHMQ_FLAG_REDELIVERED) == 0);
    CHECK_EQUAL(see(&o, 0), SHMQ_EMPTY);
    shmq_receipt_end(m, o.receipt);
    end();
}

static void test_what_is_moved_counts_as_taken(void) {
    begin();
    shmq_queue *to = scratch_queue(m, "elsewhere", 0, true);
    shmq_outgoing o = put_with_receipt(0), moved = put_one();
    shmq_delivery d = {0};
    CHECK_EQUAL(shmq_steal(&q->first, moved.made.position, true, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    d = (shmq_delivery){0};
    CHECK_EQUAL(shmq_steal(&q->first, o.made.position, true, &d), SHMQ_OK);
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    moved = (shmq_outgoing){.pieces = &piece, .piece_count = 1, .body_len = 1};
    CHECK_EQUAL(shmq_move(q, &d, to, &moved), SHMQ_OK);
    CHECK_EQUAL(see(&o, 0), SHMQ_OK);
    shmq_receipt_end(m, o.receipt);
    shmq_queue_unbind(to);
    end();
}

/* A late word about an earlier put does nothing to the next one that has its receipt's place. */
static void test_receipts_are_of_one_put_each(void) {
    begin();
    uint64_t all[SHMQ_RECEIPTS];
    for (int i = 0; i < (int)SHMQ_RECEIPTS; i++) {
        all[i] = shmq_receipt_begin(m);
        CHECK(all[i] != 0 && !shmq_receipt_says_returned(m, all[i]));
    }
    CHECK_EQUAL(shmq_receipt_begin(m), 0);
    shmq_receipt_end(m, all[7]);
    uint64_t next = shmq_receipt_begin(m);
    CHECK(next != 0 && next != all[7]);
    shmq_receipt_return(m, all[7]);
    CHECK(!shmq_receipt_says_returned(m, next) && !shmq_receipt_says_returned(m, all[7]));
    shmq_receipt_return(m, next);
    CHECK(shmq_receipt_says_returned(m, next) && !shmq_receipt_says_returned(m, all[8]));
    shmq_receipt_return(m, 0xfff << 6); /* of a row that there is not */
    end();
}

int main(void) {
    for (int reused = 0; reused < 2; reused++) {
        test_what_is_taken_out_by_no_consumer_comes_back(purge, reused != 0);
        test_what_is_taken_out_by_no_consumer_comes_back(drop, reused != 0);
        test_what_is_taken_out_by_no_consumer_comes_back(expire, reused != 0);
        test_what_is_taken_out_by_no_consumer_comes_back(steal_an_offer, reused != 0);
    }
    test_what_a_consumer_has_had_does_not();
    test_what_was_locked_and_let_be_is_withdrawn();
    test_what_is_moved_counts_as_taken();
    test_receipts_are_of_one_put_each();
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
