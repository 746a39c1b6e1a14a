/* Takers that want some entries only: their own path, what makes them look again, and who is woken for what. */
#include "ring/version.h"
#include "scratch_queue.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs;
static uint64_t looked; /* how often somebody was asked whether it wants an entry */

static bool is_even(void *context, const shmq_ring *level, const shmq_delivery *d) {
    looked++;
    return wants_even(context, level, d);
}

static void join(void) {
    m = scratch_attach();
    other = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
    theirs = scratch_queue(other, "jobs", 0, true);
    looked = 0;
}

static void begin(void) {
    scratch_create(false);
    join();
}

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_queue_unbind(theirs);
    shmq_queue_unbind(q);
    shmq_member_leave(other, true);
    shmq_member_leave(m, true);
    scratch_remove();
}

static shmq_status take(shmq_subscription *s, shmq_delivery *d) {
    shmq_status status = shmq_offer_to(q, shmq_self(q), s, d);
    return status == SHMQ_OK ? shmq_offer_acquire(q, d) : status;
}

static uint64_t taken(shmq_subscription *s) {
    shmq_delivery d;
    if (take(s, &d) != SHMQ_OK) {
        return UINT64_MAX;
    }
    uint64_t number = number_of(&d);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    return number;
}

/* Shows S5, S23, S80, S87, S92. */
TEST(test_it_takes_what_it_wants_in_order_and_leaves_the_rest) {
    begin();
    shmq_subscription s;
    shmq_subscription_begin(&s, is_even, NULL);
    for (uint64_t i = 1; i <= 9; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    for (uint64_t i = 2; i <= 8; i += 2) {
        CHECK_EQUAL(taken(&s), i);
    }
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    for (uint64_t i = 1; i <= 9; i += 2) {
        CHECK_EQUAL(get_number(q), i);
    }
    shmq_subscription_end(&s);
    end();
}

/* Shows S4, S26. */
TEST(test_it_looks_at_an_entry_once_until_something_changes) {
    begin();
    shmq_subscription s;
    shmq_subscription_begin(&s, is_even, NULL);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_EQUAL(put_number(q, 2 * i + 1), SHMQ_OK);
    }
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(looked, 100);
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(put_number(q, 200), SHMQ_OK);
    CHECK_EQUAL(taken(&s), 200);
    CHECK_EQUAL(looked, 101);
    shmq_delivery last = {0};
    for (int i = 0; i < 100; i++) {
        last = receive(q, shmq_self(q));
        if (i != 99) {
            CHECK_EQUAL(shmq_settle(q, &last), SHMQ_OK);
        }
    }
    CHECK_EQUAL(shmq_release(q, &last, false), SHMQ_OK);
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(looked, 102); /* the released one, and none before it */
    shmq_subscription_end(&s);
    end();
}

/* Shows S4, S37, S38, S81, R2. */
TEST(test_what_is_released_before_its_path_comes_first) {
    begin();
    shmq_subscription s, second;
    shmq_subscription_begin(&s, is_even, NULL);
    shmq_subscription_begin(&second, is_even, NULL);
    for (uint64_t i = 1; i <= 8; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    shmq_delivery two, four;
    CHECK_EQUAL(take(&s, &two), SHMQ_OK);
    CHECK_EQUAL(take(&s, &four), SHMQ_OK);
    CHECK_EQUAL(taken(&second), 6);
    CHECK_EQUAL(shmq_release(q, &four, false), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &two, false), SHMQ_OK);
    CHECK_EQUAL(taken(&second), 2);
    CHECK_EQUAL(taken(&s), 4);
    CHECK_EQUAL(taken(&second), 8);
    shmq_subscription_end(&second);
    shmq_subscription_end(&s);
    end();
}

/* More releases than there are cells: it begins at the beginning, which is always right. Shows S38, R1. */
TEST(test_it_may_sleep_through_any_number_of_releases) {
    begin();
    shmq_subscription s;
    shmq_subscription_begin(&s, is_even, NULL);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery first = receive(q, shmq_self(q));
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(shmq_release(q, &first, false), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(d.position, first.position);
    shmq_delivery unwanted = receive(q, shmq_self(q));
    for (uint32_t i = 0; i < 3 * SHMQ_CELLS; i++) {
        CHECK_EQUAL(shmq_release(q, &unwanted, false), SHMQ_OK);
        unwanted = receive(q, shmq_self(q));
    }
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(taken(&s), 2);
    CHECK_EQUAL(shmq_settle(q, &unwanted), SHMQ_OK);
    shmq_subscription_end(&s);
    end();
}

/* The unwanted one stays behind while the ring turns over it for laps. Shows S2, R17. */
TEST(test_it_finds_what_the_ring_has_turned_over) {
    begin();
    shmq_subscription s;
    shmq_subscription_begin(&s, is_even, NULL);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK);
    shmq_delivery one = receive(q, shmq_self(q)), two = receive(q, shmq_self(q)), three = receive(q, shmq_self(q));
    for (uint64_t i = 0; i < 3 * shmq_slot_count(&q->first); i++) {
        CHECK_EQUAL(put_number(q, 5), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 5);
    }
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(shmq_release(q, &three, false), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &two, false), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &one, false), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 6), SHMQ_OK);
    CHECK_EQUAL(taken(&s), 2);
    CHECK_EQUAL(taken(&s), 6);
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(get_number(q), 3);
    shmq_subscription_end(&s);
    end();
}

TEST(test_what_it_refused_goes_to_others_for_ever) {
    begin();
    shmq_subscription s;
    shmq_subscription_begin(&s, NULL, NULL);
    enum { COUNT = 200 };
    static shmq_delivery d[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(take(&s, &d[i]), SHMQ_OK);
    }
    for (int i = COUNT - 1; i >= 0; i--) { /* all but every third */
        if (i % 3 != 0) {
            CHECK(shmq_refuse(&s, q, d[i].position));
            CHECK(shmq_refuse(&s, q, d[i].position));
        }
        CHECK_EQUAL(shmq_release(q, &d[i], false), SHMQ_OK);
    }
    for (uint64_t i = 0; i < COUNT; i += 3) {
        CHECK_EQUAL(taken(&s), i);
    }
    CHECK_EQUAL(taken(&s), UINT64_MAX);
    for (uint64_t i = 0; i < COUNT; i++) {
        if (i % 3 != 0) {
            CHECK_EQUAL(get_number(q), i);
        }
    }
    for (uint64_t i = 0; i < 1000; i++) { /* what has left the queue is forgotten: the list does not grow */
        shmq_delivery refused;
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(take(&s, &refused), SHMQ_OK);
        CHECK(shmq_refuse(&s, q, refused.position));
        CHECK_EQUAL(shmq_settle(q, &refused), SHMQ_OK);
    }
    CHECK(s.refused_room <= 512);
    shmq_subscription_end(&s);
    end();
}

/* A sleeper that has looked at everything is not woken before something comes; then one is, and passes the wake on. Shows S55, S68. */
TEST(test_only_who_has_not_looked_is_woken) {
    begin();
    uint32_t rows[2];
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &rows[i]), SHMQ_OK);
        (void)shmq_announce(theirs, rows[i], false);
    }
    shmq_store_seq(&shmq_row_at(q, rows[0])->progress, shmq_version(q));
    shmq_store_seq(&shmq_row_at(q, rows[1])->progress, shmq_version(q));
    shmq_notify(q);
    CHECK_EQUAL(shmq_load_seq(&q->page->sleepers[0].idle) >> rows[0] & 3, 3);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK); /* this one tells one of them */
    CHECK_EQUAL(__builtin_popcountll(shmq_load_seq(&q->page->sleepers[0].idle)), 1);
    uint32_t woken = shmq_load_seq(&q->page->sleepers[0].idle) >> rows[0] & 1 ? rows[1] : rows[0];
    uint32_t left = woken == rows[0] ? rows[1] : rows[0];
    shmq_store_seq(&shmq_row_at(q, woken)->progress, shmq_version(q)); /* it is not for it */
    (void)shmq_announce(theirs, woken, false);
    shmq_notify(q);
    CHECK_EQUAL(shmq_load_seq(&q->page->sleepers[0].idle), UINT64_C(1) << woken);
    CHECK_EQUAL(shmq_load_seq(&shmq_row_at(q, left)->wake), 1);
    for (int i = 0; i < 2; i++) {
        (void)shmq_withdraw(theirs, rows[i], false);
        CHECK_EQUAL(shmq_row_close(theirs, rows[i]), SHMQ_OK);
    }
    end();
}

typedef struct sleeper {
    shmq_subscription s;
    uint32_t row;
    shmq_status status;
    shmq_delivery d;
    pthread_t thread;
} sleeper;

static bool is_mine(void *context, const shmq_ring *level, const shmq_delivery *d) {
    uint64_t number;
    (void)level;
    memcpy(&number, d->bytes, sizeof number);
    return number == *(uint64_t *)context;
}

static void *sleep_on(void *argument) {
    sleeper *w = argument;
    do {
        w->status = shmq_offer_wait_to(theirs, w->row, &w->s, w->row, shmq_now_ns() + 20 * SECOND, &w->d);
    } while (w->status == SHMQ_INTERRUPTED);
    if (w->status == SHMQ_OK) {
        w->status = shmq_offer_acquire(theirs, &w->d);
    }
    return NULL;
}

/* Each wants one number; they are put in the reverse order. Nobody sleeps through his own, whoever is woken first. Shows S43, S55, S74. */
TEST(test_each_sleeper_gets_its_own_entry_whoever_is_woken_first) {
    scratch_create_patient(); /* no rescue may be counted */
    join();
    enum { COUNT = 12 };
    static sleeper w[COUNT];
    static uint64_t wanted[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        wanted[i] = i;
        shmq_subscription_begin(&w[i].s, is_mine, &wanted[i]);
        CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &w[i].row), SHMQ_OK);
        CHECK(pthread_create(&w[i].thread, NULL, sleep_on, &w[i]) == 0);
    }
    while (__builtin_popcountll(shmq_load_seq(&q->page->sleepers[0].idle)) != COUNT) {
        shmq_pause();
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(put_number(q, COUNT - 1 - i), SHMQ_OK);
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        pthread_join(w[i].thread, NULL);
        CHECK_EQUAL(w[i].status, SHMQ_OK);
        CHECK_EQUAL(number_of(&w[i].d), i);
        CHECK_EQUAL(shmq_settle(theirs, &w[i].d), SHMQ_OK);
        CHECK_EQUAL(shmq_row_close(theirs, w[i].row), SHMQ_OK);
        shmq_subscription_end(&w[i].s);
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    end();
}

int main(void) { return run_tests(); }
