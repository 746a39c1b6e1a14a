/* Takers of a queue that flows sleep beside each other: none wakes others in vain, and none keeps a wake that another one could use. */
#include <pthread.h>
#include <time.h>

#include "wake/wake_word.h"
#include "flow_select.h"

#define TAKERS 6u
#define NEVER 999999u /* a number that nobody puts, or only one test does */

typedef struct taker {
    pthread_t thread;
    uint32_t row;
    shmq_subscription by;
    bool plain; /* without a subscription */
    uint64_t wanted;
    shmq_delivery d;
    shmq_status status;
} taker;

static taker takers[TAKERS];
static shmq_delivery held[2 * MANY];

static bool is_the(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    return d->body_len == 8 && number_of(d) == *(uint64_t *)context;
}

static void *take_one(void *argument) {
    taker *t = argument;
    const shmq_taking how = {
        .owner = t->row, .row = t->row, .by = t->plain ? NULL : &t->by, .until_ns = shmq_now_ns() + 600 * SECOND};
    do {
        t->status = shmq_receive(theirs, &how, &t->d);
    } while (t->status == SHMQ_INTERRUPTED);
    return NULL;
}

static void nap(void) { (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

static bool is_asleep(const taker *t) {
    bool idle = shmq_load_seq(&q->page->sleepers[t->row / 64].idle) >> t->row % 64 & 1;
    return idle && shmq_load_seq(&shmq_row_at(q, t->row)->sleeps) != 0;
}

static void start(taker *t, shmq_wants wants) {
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &t->row), SHMQ_OK);
    shmq_subscription_begin(&t->by, wants, &t->wanted);
    CHECK(pthread_create(&t->thread, NULL, take_one, t) == 0);
}

static void join(taker *t, shmq_status expected) {
    CHECK(pthread_join(t->thread, NULL) == 0);
    CHECK_EQUAL(t->status, expected);
    if (t->status == SHMQ_OK) {
        CHECK_EQUAL(shmq_settle(theirs, &t->d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_row_close(theirs, t->row), SHMQ_OK);
    shmq_subscription_end(&t->by);
}

static void close_all(void) {
    for (uint32_t i = 0; i < TAKERS; i++) {
        shmq_row_closing(theirs, takers[i].row);
        join(&takers[i], SHMQ_CLOSED);
    }
}

static uint32_t wakes(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < TAKERS; i++) {
        count += shmq_load_seq(shmq_wake_word(m, shmq_row_at(q, takers[i].row)));
    }
    return count;
}

static uint32_t wakes_within(uint64_t ns) {
    uint32_t before = wakes();
    for (uint64_t end = shmq_now_ns() + ns; shmq_now_ns() < end;) {
        nap();
    }
    return wakes() - before;
}

/* Some hundreds of wakes are usual. On a busy machine takers that miss the mover's lock wake each other a hundred thousand times a
 * second for 1 to 13 seconds, but not without end. */
static void they_sleep(void) {
    for (uint32_t i = 0; i < TAKERS; i++) {
        while (!is_asleep(&takers[i])) {
            nap();
        }
    }
    for (uint64_t until = shmq_now_ns() + 120 * SECOND; wakes_within(SECOND / 2) >= 20000;) {
        CHECK(shmq_now_ns() < until);
    }
}

static uint64_t hold_all(void) {
    const shmq_taking all = {.owner = shmq_self(q)};
    uint64_t count = 0;
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    return count;
}

static void drain(uint64_t in_hand) {
    uint64_t purged;
    for (uint64_t i = 0; i < in_hand; i++) {
        CHECK_EQUAL(shmq_settle(q, &held[i]), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    end();
}

/* All are threads of one process, which alone sleeps: none of them can watch it. A look at rows counts as something in hand.
 * Shows G5. */
TEST(takers_that_want_none_of_the_rows_let_each_other_sleep) {
    begin();
    put_numbers(q, 0, MANY);
    for (uint32_t i = 0; i < TAKERS; i++) {
        takers[i] = (taker){.wanted = NEVER};
        start(&takers[i], is_the);
    }
    they_sleep();
    close_all();
    drain(0);
}

/* All slots are in hand. Each has once left a message to others, and may be told of the one that is put. */
static void starved(bool plain) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t count = hold_all();
    for (uint32_t i = 0; i < TAKERS; i++) {
        takers[i] = (taker){.plain = plain};
        start(&takers[i], NULL);
        CHECK(plain || shmq_refuse(&takers[i].by, theirs, 0));
    }
    they_sleep();
    put_numbers(q, NEVER, 1);
    they_sleep();
    close_all();
    drain(count);
}

TEST(starved_takers_let_each_other_sleep) {
    starved(true);
    starved(false);
}

static void patient(void) { m->patience_ns = other->patience_ns = 3600 * SECOND; /* nobody looks by time */ }

/* The first one finds no slot for the rows; the other one wants nothing but what is put. Shows G5. */
TEST(a_starved_taker_passes_the_wake_on) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t count = hold_all();
    patient();
    taker *plain = &takers[0], *chooses = &takers[1];
    *plain = (taker){.plain = true};
    *chooses = (taker){.wanted = NEVER};
    start(chooses, is_the); /* it has the watch: who leaves that calls another one */
    while (!is_asleep(chooses)) {
        nap();
    }
    start(plain, NULL);
    while (!is_asleep(plain) || !is_asleep(chooses) || !shmq_has_looked(q, chooses->row)) {
        nap();
    }
    q->rotation = plain->row; /* it is the next to be woken */
    uint64_t before = shmq_now_ns();
    put_numbers(q, NEVER, 1);
    join(chooses, SHMQ_OK);
    CHECK(shmq_now_ns() - before < 5 * SECOND); /* it looks by itself after ten */
    CHECK_EQUAL(number_of(&chooses->d), NEVER);
    uint64_t oldest = count - shmq_slot_count(shmq_front_of(&q->first)); /* of those that have come back */
    CHECK_EQUAL(shmq_settle(q, &held[oldest]), SHMQ_OK);
    join(plain, SHMQ_OK);
    held[oldest] = held[--count];
    drain(count);
}

static void begin_levels(void) {
    scratch_create_flowing();
    scratch_spill_begin();
    m = scratch_attach_flowing();
    other = scratch_attach_flowing();
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_MEMORY | 1u << SHMQ_SET_PRIORITIES | 1u << SHMQ_SET_MAX_DEATHS,
                          .max_memory = MEMORY,
                          .priorities = 2,
                          .create = true};
    q = scratch_declare(m, "levels", d, 0);
    theirs = scratch_declare(other, "levels", d, 0);
}

/* A producer is about to put it, in the more important level. In the other one no slot is free for rows. Shows G5. */
TEST(who_found_a_claim_above_rows_is_woken_for_it) {
    begin_levels();
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_as(q, i, 0), SHMQ_OK);
    }
    uint64_t count = hold_all();
    patient();
    CHECK_EQUAL(put_as(q, 98, 9), SHMQ_OK);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, shmq_load_seq(&q->first.shm->tail) - 1);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK_EQUAL(shmq_word_state(word), SHMQ_AVAILABLE);
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_CLAIMED, shmq_self(q), 0));
    takers[0] = (taker){.wanted = 98};
    start(&takers[0], is_of);
    while (!is_asleep(&takers[0])) {
        nap();
    }
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_to(theirs, takers[0].row, &takers[0].by, &d), SHMQ_EMPTY);
    CHECK(d.word != 0 && d.depth == 0);
    shmq_store_seq(&slot->word, word);
    shmq_notify(q);
    join(&takers[0], SHMQ_OK);
    drain(count);
}

static bool is_none(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)context, (void)level, (void)d;
    return false;
}

/* It has joined as others do who have no directory. */
TEST(a_member_without_a_backing_is_told_at_once_that_it_can_have_nothing) {
    begin();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, shmq_load_seq(&q->first.shm->low));
    shmq_member *third = scratch_attach();
    third->patience_ns = 3600 * SECOND;
    shmq_queue *view = scratch_flowing(third, "jobs", MEMORY);
    shmq_subscription by;
    shmq_delivery d = {.word = 1, .depth = 77};
    shmq_subscription_begin(&by, is_none, NULL);
    CHECK_EQUAL(select_now(view, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(d.word, 0);
    CHECK_EQUAL(d.seen.version, 0);
    CHECK_EQUAL(select_now(view, NULL, &d), SHMQ_EMPTY);
    shmq_subscription_end(&by);
    scratch_close(third, view);
    drain(0);
}

int main(void) { return run_tests(); }
