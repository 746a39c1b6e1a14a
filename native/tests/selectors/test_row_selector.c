/* Sleepers with selectors: a notifier looks for them, and wakes those that want what has come. Shows G4, G6. */
#include <pthread.h>

#include "consumers/ranks.h"
#include "number_selector.h"

#define SLEEPERS 20u

typedef struct sleeper {
    shmq_selector *selector;
    shmq_subscription by;
    uint32_t row, told;
} sleeper;

static shmq_member *m, *other;
static shmq_queue *q, *theirs;
static sleeper all[SLEEPERS];
static shmq_a64 asked; /* how often sleepers themselves looked at an entry */

static bool is_asked(void *context, const shmq_ring *level, const shmq_delivery *d) {
    shmq_add_relaxed(&asked, 1);
    return is_selected(context, level, d);
}

static void begin(uint32_t levels) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = scratch_levels(m, "jobs", 0, levels);
    theirs = scratch_levels(other, "jobs", 0, levels);
    m->patience_ns = other->patience_ns = 5 * SECOND; /* a thread that is late is no lost wake */
    shmq_store_relaxed(&asked, 0);
}

static void leave_segment(void) {
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_queue_unbind(theirs);
    shmq_queue_unbind(q);
    shmq_member_leave(other, true);
    shmq_member_leave(m, true);
    scratch_remove();
}

static void open_sleeper(sleeper *s, unsigned char number, unsigned char spare, int32_t priority) {
    s->selector = number_selector(number, spare);
    shmq_subscription_begin(&s->by, is_asked, s->selector);
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority, .selector = s->selector};
    CHECK_EQUAL(shmq_row_open_as(theirs, &terms, &s->row), SHMQ_OK);
}

static void close_sleeper(sleeper *s) {
    CHECK_EQUAL(shmq_row_close(theirs, s->row), SHMQ_OK);
    shmq_subscription_end(&s->by);
    shmq_selector_free(s->selector);
}

/* The steps of a wait before its sleep. */
static void lie_down(sleeper *s) {
    shmq_delivery d;
    shmq_consumer_shm *consumer = shmq_row_at(theirs, s->row);
    s->told = shmq_announce(theirs, s->row, false);
    CHECK_EQUAL(shmq_offer_to(theirs, s->row, &s->by, &d), SHMQ_EMPTY);
    shmq_row_looked(theirs, consumer, &s->by);
    shmq_store_seq(&consumer->progress, d.seen.version);
}

static bool is_told(const sleeper *s) { return shmq_load_seq(&shmq_row_at(q, s->row)->wake) != s->told; }

static uint32_t told(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        count += is_told(&all[i]);
    }
    return count;
}

/* A sleeper that was told takes the message that it wants; then it may sleep again. */
static uint64_t take(sleeper *s) {
    shmq_delivery d;
    (void)shmq_withdraw(theirs, s->row, false);
    shmq_row_catch_up(theirs, shmq_row_at(theirs, s->row), &s->by);
    CHECK_EQUAL(shmq_offer_to(theirs, s->row, &s->by, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(theirs, &d), SHMQ_OK);
    uint64_t number = number_of(&d);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    return number;
}

static void begin_all(unsigned char spare, int32_t priority) {
    begin(1);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK); /* what was there before, and nobody wants */
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        open_sleeper(&all[i], (unsigned char)i, spare, priority);
        lie_down(&all[i]);
    }
}

static void end_all(void) {
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        close_sleeper(&all[i]);
    }
    CHECK_EQUAL(get_number(q), 0);
    leave_segment();
}

static void a_message_wakes_the_sleeper_that_wants_it_and_no_other(int32_t priority) {
    begin_all(0, priority);
    for (uint32_t i = 0; i < 5 * SLEEPERS; i++) {
        uint32_t wanting = i * 7 % SLEEPERS;
        CHECK_EQUAL(put_of(q, (unsigned char)wanting), SHMQ_OK);
        CHECK_EQUAL(told(), 1);
        CHECK(is_told(&all[wanting]));
        CHECK_EQUAL(take(&all[wanting]), wanting);
        CHECK_EQUAL(told(), 1); /* it leaves with its message, and wakes nobody */
        lie_down(&all[wanting]);
    }
    end_all();
}

static void a_message_that_nobody_wants_wakes_nobody(void) {
    begin_all(0, 0);
    for (int i = 0; i < 500; i++) {
        CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
        CHECK_EQUAL(told(), 0);
    }
    CHECK_EQUAL(put_of(q, 3), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    shmq_store_relaxed(&asked, 0);
    CHECK_EQUAL(take(&all[3]), 3);
    CHECK(shmq_load_relaxed(&asked) <=
          SHMQ_LOOKED_FOR); /* it begins where the notifiers were, not 500 messages before */
    for (int i = 0; i < 500; i++) {
        CHECK_EQUAL(get_number(q), i == 0 ? 0 : SLEEPERS);
    }
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK); /* for end_all, behind the last one */
    CHECK_EQUAL(get_number(q), SLEEPERS);
    end_all();
}

static void what_comes_back_wakes_the_sleeper_that_wants_it(void) {
    begin_all(0, 0);
    shmq_delivery d;
    sleeper taker = {0};
    open_sleeper(&taker, 9, 0, 0);
    CHECK_EQUAL(put_of(q, 9), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_to(theirs, taker.row, &taker.by, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(theirs, &d), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    (void)shmq_withdraw(theirs, all[9].row, false);
    lie_down(&all[9]); /* it was too late */
    for (unsigned char i = 0; i < 5; i++) {
        CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    }
    CHECK_EQUAL(told(), 0);
    CHECK_EQUAL(shmq_release(theirs, &d, false), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    CHECK_EQUAL(take(&all[9]), 9);
    close_sleeper(&taker);
    CHECK_EQUAL(get_number(q), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(get_number(q), SLEEPERS);
    }
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();
}

/* Each of these wakes one sleeper, as if it had no selector. */
static void in_doubt_a_sleeper_is_woken(void) {
    begin_all(60, 0); /* the program is too long for the row */
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();

    begin_all(0, 0); /* its bytes are damaged */
    memset(shmq_at(m, shmq_load_seq(&q->page->selectors[0])), 0xff, SHMQ_PAGE_BYTES);
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();

    begin_all(0, 0); /* the page of selectors lies nowhere */
    uint64_t page = shmq_load_seq(&q->page->selectors[0]);
    shmq_store_seq(&q->page->selectors[0], page + 8);
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    shmq_store_seq(&q->page->selectors[0], page);
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();

    begin_all(0, 0); /* more has come than a notifier looks at */
    uint64_t tail = shmq_load_seq(&q->first.shm->tail);
    shmq_consumer_shm *row = shmq_row_at(q, all[0].row);
    uint64_t looked = shmq_load_seq(&row->looked);
    for (uint32_t i = 0; i <= SHMQ_LOOKED_FOR; i++) {
        CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    }
    shmq_store_seq(&row->progress, shmq_load_seq(&row->progress) - (SHMQ_LOOKED_FOR + 1));
    shmq_store_seq(&row->looked, looked);
    CHECK_EQUAL(tail + SHMQ_LOOKED_FOR + 1, shmq_load_seq(&q->first.shm->tail));
    CHECK(!shmq_look_for(q, all[0].row));
    CHECK(shmq_look_for(q, all[1].row));
    shmq_store_seq(&row->looked, looked + 1); /* and where its words are of two looks */
    CHECK(!shmq_look_for(q, all[0].row));
    CHECK_EQUAL(get_number(q), 0);
    for (uint32_t i = 0; i <= SHMQ_LOOKED_FOR; i++) {
        CHECK_EQUAL(get_number(q), SLEEPERS);
    }
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();
}

static void behind_a_claim_sleepers_are_woken(void) {
    begin_all(0, 0);
    uint64_t tail = shmq_load_seq(&q->first.shm->tail);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, tail);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word(shmq_lap_of(&q->first, tail), 0, shmq_self(q), 0, SHMQ_CLAIMED)));
    CHECK(shmq_cas_seq(&q->first.shm->tail, tail, tail + 1));
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    CHECK_EQUAL(told(), 1); /* somebody has to look whether the producer of the claim lives */
    shmq_store_seq(&slot->word, word); /* as before it */
    CHECK(
        shmq_cas_seq(&slot->word, word, shmq_word_freed(shmq_word(shmq_lap_of(&q->first, tail), 0, 0, 0, SHMQ_FREE))));
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();
}

/* The process that looks has the selector of an earlier consumer of the row. */
static void the_next_consumer_of_a_row_is_looked_for_by_its_own_selector(void) {
    begin_all(0, 0);
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK); /* all selectors are loaded */
    uint32_t row = all[4].row;
    close_sleeper(&all[4]);
    open_sleeper(&all[4], 100, 0, 0);
    CHECK_EQUAL(all[4].row, row);
    lie_down(&all[4]);
    CHECK_EQUAL(put_of(q, 4), SHMQ_OK);
    CHECK_EQUAL(told(), 0);
    CHECK_EQUAL(put_of(q, 100), SHMQ_OK);
    CHECK_EQUAL(told(), 1);
    CHECK_EQUAL(take(&all[4]), 100);
    close_sleeper(&all[4]);
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER}; /* and one without a selector */
    CHECK_EQUAL(shmq_row_open_as(theirs, &terms, &all[4].row), SHMQ_OK);
    CHECK_EQUAL(all[4].row, row);
    all[4].told = shmq_announce(theirs, row, false);
    CHECK_EQUAL(put_of(q, SLEEPERS), SHMQ_OK);
    CHECK(is_told(&all[4]));
    CHECK_EQUAL(shmq_row_close(theirs, row), SHMQ_OK);
    open_sleeper(&all[4], 4, 0, 0);
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(get_number(q), 4);
    CHECK_EQUAL(get_number(q), SLEEPERS);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    end_all();
}

/* ---- real sleepers -------------------------------------------------------------------------------------------- */

#define MESSAGES 400u

typedef struct thread_of {
    sleeper s;
    pthread_t thread;
    uint64_t got;
} thread_of;

static void *take_till_the_end(void *argument) {
    thread_of *t = argument;
    shmq_queue_wait w = {.q = theirs, .owner = t->s.row, .row = t->s.row, .by = &t->s.by};
    for (;;) {
        shmq_delivery d;
        uint32_t from;
        shmq_status status = shmq_offer_wait_any(&w, 1, 0, shmq_now_ns() + 60 * SECOND, &from, &d);
        if (status == SHMQ_INTERRUPTED || status == SHMQ_SETTLED) {
            continue;
        }
        if (status != SHMQ_OK) {
            CHECK_EQUAL(status, SHMQ_SHUT_DOWN);
            return NULL;
        }
        if (shmq_offer_acquire(theirs, &d) == SHMQ_OK) {
            CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
            shmq_add_seq((shmq_a64 *)&t->got, 1);
        }
    }
}

static uint64_t got(const thread_of *threads) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        sum += shmq_load_seq((shmq_a64 *)(uintptr_t)&threads[i].got);
    }
    return sum;
}

/* Two threads put, at most four messages ahead. */
static void *put_some(void *argument) {
    thread_of *threads = argument;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        CHECK_EQUAL(put_of(q, (unsigned char)(i * 7 % (SLEEPERS / 2))), SHMQ_OK);
        while (i % 4 == 3 && got(threads) + 8 < i) {
            sched_yield();
        }
    }
    return NULL;
}

/* Two of them want the same, so half of the wakes are for what another one may take. */
static void no_wake_is_lost_among_real_sleepers_and_producers(void) {
    static thread_of threads[SLEEPERS];
    pthread_t producers[2];
    begin(1);
    memset(threads, 0, sizeof threads);
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        open_sleeper(&threads[i].s, (unsigned char)(i % (SLEEPERS / 2)), 0, 0);
        CHECK(pthread_create(&threads[i].thread, NULL, take_till_the_end, &threads[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&producers[i], NULL, put_some, threads) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(producers[i], NULL);
    }
    while (got(threads) != 2 * MESSAGES) {
        sched_yield();
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_DRAINING), SHMQ_OK);
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        pthread_join(threads[i].thread, NULL);
        close_sleeper(&threads[i].s);
    }
    leave_segment();
}

int main(void) {
    a_message_wakes_the_sleeper_that_wants_it_and_no_other(0);
    a_message_wakes_the_sleeper_that_wants_it_and_no_other(1);
    a_message_that_nobody_wants_wakes_nobody();
    what_comes_back_wakes_the_sleeper_that_wants_it();
    in_doubt_a_sleeper_is_woken();
    behind_a_claim_sleepers_are_woken();
    the_next_consumer_of_a_row_is_looked_for_by_its_own_selector();
    no_wake_is_lost_among_real_sleepers_and_producers();
    return 0;
}
