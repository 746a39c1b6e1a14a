/* Waiting until there is something, without taking it; with members that die by losing their lock. */
#include "limits/room_wake.h"
#include "scratch_queue.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs, *second;

static void begin(uint32_t levels) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = levels > 1 ? scratch_levels(m, "jobs", 0, levels) : scratch_queue(m, "jobs", 0, true);
    theirs = levels > 1 ? scratch_levels(other, "jobs", 0, levels) : scratch_queue(other, "jobs", 0, true);
    second = scratch_queue(other, "second", 0, true);
}

static void end(void) {
    check_ring(q);
    shmq_queue_unbind(second);
    shmq_queue_unbind(theirs);
    scratch_close(other, q);
    scratch_detach(m);
    scratch_remove();
}

static bool is_odd(void *context, const shmq_ring *level, const shmq_delivery *d) {
    return !wants_even(context, level, d);
}

static uint64_t idle(void) { return shmq_load_seq(&q->page->sleepers[0].idle); }

typedef struct peeker {
    uint32_t row;
    bool both; /* of the second queue, too, on rows that it borrows */
    shmq_status status;
    pthread_t thread;
} peeker;

static void *peek(void *argument) {
    peeker *p = argument;
    shmq_queue_wait of[] = {{.q = theirs, .owner = p->row, .row = p->both ? 0 : p->row},
                            {.q = second, .owner = shmq_self(second)}};
    uint32_t from;
    do {
        p->status = shmq_peek_wait_any(of, p->both ? 2 : 1, SHMQ_FOR_EVER, &from);
    } while (p->status == SHMQ_INTERRUPTED);
    return NULL;
}

static shmq_status peek_once(shmq_subscription *by, uint64_t until_ns) {
    shmq_queue_wait of = {.q = theirs, .owner = shmq_self(theirs), .by = by};
    uint32_t from;
    return shmq_peek_wait_any(&of, 1, until_ns, &from);
}

static void start(peeker *p, uint32_t row, bool both) {
    uint64_t before = idle();
    *p = (peeker){.row = row, .both = both};
    CHECK(pthread_create(&p->thread, NULL, peek, p) == 0);
    while (idle() == before) {
        shmq_pause();
    }
}

static uint32_t open_row(shmq_queue *queue) {
    uint32_t row = 0;
    CHECK_EQUAL(shmq_row_open(queue, SHMQ_CONSUMER, &row), SHMQ_OK);
    return row;
}

static void a_peek_changes_nothing_and_says_what_an_offer_would(uint32_t levels) {
    begin(levels);
    shmq_delivery d;
    shmq_subscription odd;
    shmq_subscription_begin(&odd, is_odd, NULL);
    CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), NULL, &d), SHMQ_EMPTY);
    for (uint64_t number = 0; number < 4; number++) {
        CHECK_EQUAL(put_as(q, number, 0), SHMQ_OK);
    }
    shmq_ring *last = shmq_level(q, q->levels - 1);
    uint64_t words[4];
    for (uint64_t p = 0; p < 4; p++) {
        words[p] = shmq_load_seq(&shmq_slot_at(last, p)->word);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), NULL, &d), SHMQ_OK);
        CHECK_EQUAL(d.position, 0);
        CHECK_EQUAL(shmq_peek_to(theirs, shmq_self(theirs), &odd, &d), SHMQ_OK);
        CHECK_EQUAL(d.position, 1);
        CHECK_EQUAL(peek_once(&odd, SHMQ_FOR_EVER), SHMQ_OK);
    }
    for (uint64_t p = 0; p < 4; p++) {
        CHECK_EQUAL(shmq_load_seq(&shmq_slot_at(last, p)->word), words[p]);
    }
    CHECK_EQUAL(shmq_offer_to(theirs, shmq_self(theirs), &odd, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 1);
    shmq_offer_cancel(theirs, &d);
    for (uint64_t number = 0; number < 4; number++) {
        CHECK_EQUAL(get_number(q), number);
    }
    CHECK_EQUAL(shmq_peek_to(theirs, shmq_self(theirs), &odd, &d), SHMQ_EMPTY);
    CHECK_EQUAL(peek_once(NULL, shmq_now_ns() + SECOND / 1000), SHMQ_EMPTY);
    shmq_subscription_end(&odd);
    end();
}

/* Shows S55, S70, S71. */
static void one_that_is_told_sleeps_no_more_and_the_next_is_told_when_it_passes_on(bool both) {
    begin(1);
    m->patience_ns = other->patience_ns = 60 * SECOND; /* no sleeper looks by itself before 7.5 s */
    for (int round = 0; round < 20; round++) {
        uint32_t rows[] = {open_row(theirs), open_row(theirs)};
        peeker p[2];
        start(&p[0], rows[0], both);
        CHECK_EQUAL(put_number(q, 7), SHMQ_OK);
        pthread_join(p[0].thread, NULL);
        CHECK_EQUAL(p[0].status, SHMQ_OK);
        CHECK_EQUAL(idle(), 0);
        CHECK_EQUAL(get_number(q), 7);
        start(&p[1], rows[1], both);
        (void)shmq_announce(theirs, rows[0], false); /* of the two this one is told */
        shmq_store_relaxed(&q->rotation, rows[0]);
        shmq_store_relaxed(&shmq_row_at(theirs, rows[1])->progress, 0);
        uint64_t before = shmq_now_ns();
        CHECK_EQUAL(put_number(q, 8), SHMQ_OK);
        (void)shmq_withdraw(theirs, rows[0], false);
        shmq_peek_pass_on(theirs);
        pthread_join(p[1].thread, NULL);
        CHECK(shmq_now_ns() - before < 7 * SECOND);
        CHECK_EQUAL(p[1].status, SHMQ_OK);
        CHECK_EQUAL(get_number(q), 8);
        for (int i = 0; i < 2; i++) {
            CHECK_EQUAL(shmq_row_close(theirs, rows[i]), SHMQ_OK);
        }
    }
    end();
}

static void where_nothing_is_left_nobody_is_told(void) {
    begin(1);
    uint32_t row = open_row(theirs);
    (void)shmq_announce(theirs, row, false);
    shmq_peek_pass_on(q);
    CHECK_EQUAL(idle(), UINT64_C(1) << row);
    CHECK(!shmq_withdraw(theirs, row, false));
    CHECK_EQUAL(shmq_row_close(theirs, row), SHMQ_OK);
    end();
}

/* Shows C14. */
static void a_wait_ends_when_its_consumer_is_closed_or_its_queue_is_shut_down_or_deleted(bool both) {
    static const shmq_status how[] = {SHMQ_CLOSED, SHMQ_SHUT_DOWN, SHMQ_NOT_FOUND};
    for (int i = 0; i < 3; i++) {
        begin(1);
        uint32_t row = open_row(theirs);
        peeker p;
        if (both) {
            CHECK_EQUAL(shmq_queue_shut_down(second, SHMQ_DRAINING), SHMQ_OK);
        }
        start(&p, row, both);
        if (how[i] == SHMQ_CLOSED) {
            shmq_row_closing(theirs, row);
            shmq_notify_all(theirs);
        } else if (how[i] == SHMQ_SHUT_DOWN) {
            CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_DRAINING), SHMQ_OK);
        } else {
            CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
        }
        pthread_join(p.thread, NULL);
        CHECK_EQUAL(p.status, how[i]);
        if (how[i] != SHMQ_NOT_FOUND) {
            CHECK_EQUAL(idle(), 0);
        }
        CHECK_EQUAL(shmq_row_close(theirs, row), SHMQ_OK);
        end();
    }
}

int main(void) {
    a_peek_changes_nothing_and_says_what_an_offer_would(1);
    a_peek_changes_nothing_and_says_what_an_offer_would(3);
    one_that_is_told_sleeps_no_more_and_the_next_is_told_when_it_passes_on(false);
    one_that_is_told_sleeps_no_more_and_the_next_is_told_when_it_passes_on(true);
    where_nothing_is_left_nobody_is_told();
    a_wait_ends_when_its_consumer_is_closed_or_its_queue_is_shut_down_or_deleted(false);
    a_wait_ends_when_its_consumer_is_closed_or_its_queue_is_shut_down_or_deleted(true);
    return 0;
}
