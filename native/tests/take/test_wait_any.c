/* One wait for several queues; with members that die by losing their lock. */
#include "recovery/recover.h"
#include "wake/wake_word.h"
#include "scratch_queue.h"

enum { QUEUES = 3 };
static const char *names[QUEUES] = {"red", "green", "blue"};
static shmq_member *m, *other;
static shmq_queue *q[QUEUES], *theirs[QUEUES];
static uint32_t rows[QUEUES];

static bool nobody_is_dead(void *context, uint32_t row) {
    (void)context;
    (void)row;
    return false;
}
static const shmq_liveness all_live = {.is_dead = nobody_is_dead};

static void join(void) {
    m = scratch_attach();
    other = scratch_attach();
    for (int i = 0; i < QUEUES; i++) {
        q[i] = scratch_queue(m, names[i], 0, true);
        theirs[i] = scratch_queue(other, names[i], 0, true);
        CHECK_EQUAL(shmq_row_open(theirs[i], SHMQ_CONSUMER, &rows[i]), SHMQ_OK);
    }
}

static void begin(void) {
    scratch_create(false);
    join();
}

/* Where no rescue may be counted. */
static void begin_patient(void) {
    scratch_create_patient();
    join();
}

static void end(void) {
    for (int i = 0; i < QUEUES; i++) {
        check_ring(q[i]);
        CHECK_EQUAL(shmq_row_close(theirs[i], rows[i]), SHMQ_OK);
        shmq_queue_unbind(theirs[i]);
        shmq_queue_unbind(q[i]);
    }
    scratch_detach(other);
    scratch_detach(m);
    scratch_remove();
}

static shmq_consumer_shm *row_of(int i) { return shmq_row_at(q[i], rows[i]); }

static bool is_idle(int i) { return shmq_load_seq(&q[i]->page->sleepers[0].idle) >> rows[i] & 1; }

typedef struct sleeper {
    shmq_queue_wait of[QUEUES];
    uint32_t first, from;
    uint64_t until_ns;
    shmq_status status;
    uint64_t number;
    pthread_t thread;
} sleeper;

/* An offer that is not finished within the patience goes back to the others; so this one waits again. */
static void *sleep_on(void *argument) {
    sleeper *s = argument;
    shmq_delivery d;
    do {
        s->status = shmq_offer_wait_any(s->of, QUEUES, s->first, s->until_ns, &s->from, &d);
        if (s->status == SHMQ_OK) {
            s->number = number_of(&d);
            s->status = shmq_offer_finish(s->of[s->from].q, &d);
        }
    } while (s->status == SHMQ_INTERRUPTED || s->status == SHMQ_SETTLED);
    return NULL;
}

/* own: on the rows of its consumers; else it borrows some. */
static void start_for(sleeper *s, uint32_t first, bool own, uint64_t ns) {
    *s = (sleeper){.first = first, .until_ns = shmq_now_ns() + ns};
    for (int i = 0; i < QUEUES; i++) {
        s->of[i] = (shmq_queue_wait){.q = theirs[i], .owner = rows[i], .row = own ? rows[i] : 0};
    }
    CHECK(pthread_create(&s->thread, NULL, sleep_on, s) == 0);
}

static void start(sleeper *s, uint32_t first, bool own) { start_for(s, first, own, 20 * SECOND); }

static void await_idle(int count) {
    for (int i = 0; i < QUEUES; i++) {
        while (__builtin_popcountll(shmq_load_seq(&q[i]->page->sleepers[0].idle)) != count) {
            shmq_pause();
        }
    }
}

/* Shows S41. */
TEST(it_is_woken_by_any_of_them_and_asks_them_in_turn) {
    begin_patient();
    sleeper s;
    for (int round = 0; round < 30; round++) {
        int which = round % QUEUES;
        start(&s, (uint32_t)round, round % 2 == 0);
        await_idle(1);
        CHECK_EQUAL(put_number(q[which], (uint64_t)round), SHMQ_OK);
        pthread_join(s.thread, NULL);
        CHECK_EQUAL(s.status, SHMQ_OK);
        CHECK_EQUAL(s.number, (uint64_t)round);
        CHECK_EQUAL(s.from, (uint32_t)which);
        for (int i = 0; i < QUEUES; i++) {
            CHECK_EQUAL(shmq_load_seq(&q[i]->page->sleepers[0].idle), 0);
            CHECK_EQUAL(shmq_load_seq(&row_of(i)->sleeps_on), 0);
            CHECK_EQUAL(shmq_load_seq(&row_of(i)->sleeps), 0);
        }
        CHECK_EQUAL(shmq_load_seq(&other->wake_words_taken), 0);
    }
    for (int i = 0; i < QUEUES; i++) {
        CHECK_EQUAL(put_number(q[i], (uint64_t)i), SHMQ_OK);
    }
    for (uint32_t first = 1; first < 1 + QUEUES; first++) {
        shmq_delivery d;
        uint32_t from;
        CHECK_EQUAL(shmq_offer_any(s.of, QUEUES, first, &from, &d), SHMQ_OK);
        CHECK_EQUAL(from, first % QUEUES);
        CHECK_EQUAL(shmq_offer_finish(theirs[from], &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    end();
}

/* Announced on two queues, notified on both before it is awake: the one that it does not use goes to the other sleeper. */
TEST(a_wake_that_it_does_not_use_is_passed_on) {
    begin_patient();
    for (int round = 0; round < 50; round++) {
        sleeper both, next;
        start(&both, 0, true);
        await_idle(1);
        start(&next, 1, false);
        await_idle(2);
        CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
        CHECK_EQUAL(put_number(q[1], 2), SHMQ_OK);
        pthread_join(both.thread, NULL);
        pthread_join(next.thread, NULL);
        CHECK_EQUAL(both.status, SHMQ_OK);
        CHECK_EQUAL(next.status, SHMQ_OK);
        CHECK_EQUAL(both.number + next.number, 3);
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    end();
}

TEST(what_is_shut_down_is_left_out_until_all_are) {
    begin();
    sleeper s;
    CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_shut_down(q[0], SHMQ_DRAINING), SHMQ_OK);
    start(&s, 0, true);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.number, 1);
    start(&s, 0, true);
    await_idle(1);
    CHECK_EQUAL(put_number(q[2], 2), SHMQ_OK);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.number, 2);
    CHECK_EQUAL(put_number(q[1], 3), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_shut_down(q[1], SHMQ_STOPPED), SHMQ_OK);
    start(&s, 0, true);
    await_idle(1);
    CHECK_EQUAL(shmq_queue_shut_down(q[2], SHMQ_DRAINING), SHMQ_OK);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_SHUT_DOWN);
    CHECK_EQUAL(shmq_queue_shut_down(q[1], SHMQ_OPEN), SHMQ_OK);
    start(&s, 0, true);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.number, 3);
    start(&s, 0, true);
    await_idle(1);
    shmq_row_closing(theirs[2], rows[2]);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_CLOSED);
    end();
}

TEST(a_wake_goes_to_the_words_of_its_process_only) {
    begin();
    shmq_a32 *word, *words[SHMQ_WAKE_WORDS + 2];
    uint32_t numbers[SHMQ_WAKE_WORDS + 2];
    for (uint32_t i = 0; i < SHMQ_WAKE_WORDS + 2; i++) {
        numbers[i] = shmq_wake_word_take(other, &words[i]);
        CHECK_EQUAL(shmq_wake_word_owner(m, (uint64_t)((unsigned char *)words[i] - other->base)), other->row);
        for (uint32_t before = 0; before < i && i < SHMQ_WAKE_WORDS; before++) {
            CHECK(words[before] != words[i]);
        }
    }
    for (uint32_t i = 0; i < SHMQ_WAKE_WORDS + 2; i++) {
        shmq_wake_word_give(other, numbers[i]);
    }
    CHECK_EQUAL(shmq_load_seq(&other->wake_words_taken), 0);
    uint32_t number = shmq_wake_word_take(other, &word);
    uint64_t own = (uint64_t)((unsigned char *)word - other->base);
    uint64_t wrong[] = {1, 64, own + 1, own - 4, own + SHMQ_WAKE_WORDS * 4, m->size, UINT64_MAX};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQUAL(shmq_wake_word_owner(m, wrong[i]), UINT32_MAX);
        shmq_store_seq(&row_of(0)->sleeps_on, wrong[i]);
        CHECK(shmq_wake_word(m, row_of(0)) == &row_of(0)->wake);
    }
    shmq_row_share(other, shmq_row_at(theirs[0], rows[0]), word);
    uint32_t seen = shmq_announce(theirs[0], rows[0], false), of_row = shmq_load_seq(&row_of(0)->wake);
    shmq_notify(q[0]);
    CHECK_EQUAL(shmq_load_seq(word), seen + 1);
    CHECK_EQUAL(shmq_load_seq(&row_of(0)->wake), of_row);
    CHECK(!is_idle(0));
    /* The notifier that claimed the bit has died before the wake. */
    shmq_sleepers_recover(q[0], &all_live);
    CHECK_EQUAL(shmq_load_seq(word), seen + 2);
    CHECK(shmq_withdraw(theirs[0], rows[0], false));
    shmq_row_share(other, shmq_row_at(theirs[0], rows[0]), NULL);
    shmq_wake_word_give(other, number);
    end();
}

static uint64_t offset_of(const volatile void *word) {
    return (uint64_t)((const volatile unsigned char *)word - m->base);
}

/* The offset of the word on which a watcher sleeps may be damaged: no word but a wake word is raised. */
TEST(no_word_is_raised_but_one_to_sleep_on) {
    begin();
    shmq_queue_shm *page = q[0]->page;
    const volatile void *right[] = {&m->header->memory_full, &page->ring.full, &page->ring.drained, &row_of(0)->wake,
                                    &m->process->wake_words[0]};
    for (uint32_t i = 0; i < sizeof right / sizeof *right; i++) {
        CHECK(shmq_is_wake_word(m, offset_of(right[i])));
        CHECK(!shmq_is_wake_word(m, offset_of(right[i]) + 1));
    }
    shmq_consumer_shm *unused = shmq_row_at(q[0], 40);
    const volatile void *wrong[] = {&page->maxsize,         &page->ring.tail,
                                    &page->count,           &row_of(0)->word,
                                    &unused->wake,          &shmq_slot_at(&q[0]->first, 3)->word,
                                    &m->process->unsettled, &m->directory[0].word,
                                    &q[0]->counters->put,   m->base};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!shmq_is_wake_word(m, offset_of(wrong[i])));
    }
    CHECK(!shmq_is_wake_word(m, offset_of(&q[0]->tickets[3].wake))); /* nobody's */
    shmq_store_seq(&q[0]->tickets[3].word, (uint64_t)m->row << 8 | SHMQ_TICKET_WAITING);
    CHECK(shmq_is_wake_word(m, offset_of(&q[0]->tickets[3].wake)));
    CHECK(!shmq_is_wake_word(m, offset_of(&q[0]->tickets[3].bytes)));
    shmq_store_seq(&q[0]->tickets[3].word, 0);
    CHECK(!shmq_is_wake_word(m, m->size));
    CHECK(!shmq_is_wake_word(m, UINT64_MAX));

    /* A second watcher and no first one: who takes a message wakes it, where it is said to sleep. */
    uint64_t limit = shmq_load_seq(&page->maxsize);
    CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
    shmq_store_seq(&m->header->watch[1], UINT64_MAX);
    shmq_store_seq(&m->header->watch_wake[1], offset_of(&page->maxsize));
    CHECK_EQUAL(get_number(q[0]), 1);
    CHECK_EQUAL(put_number(q[0], 2), SHMQ_OK);
    shmq_delivery d = receive(q[0], shmq_self(q[0]));
    CHECK_EQUAL(shmq_load_seq(&page->maxsize), limit);
    shmq_store_seq(&m->header->watch_wake[1], offset_of(&page->ring.full));
    uint32_t raised = shmq_load_seq(&page->ring.full);
    CHECK_EQUAL(shmq_release(q[0], &d, false), SHMQ_OK);
    d = receive(q[0], shmq_self(q[0]));
    CHECK(shmq_load_seq(&page->ring.full) > raised);
    CHECK_EQUAL(shmq_settle(q[0], &d), SHMQ_OK);
    shmq_store_seq(&m->header->watch[1], 0);
    shmq_store_seq(&m->header->watch_wake[1], 0);
    end();
}

TEST(it_ends_with_its_time_and_with_a_queue) {
    begin();
    sleeper s;
    uint64_t before = shmq_now_ns();
    start_for(&s, 0, false, SECOND / 50);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_EMPTY);
    CHECK(shmq_now_ns() - before >= SECOND / 50);
    start(&s, 0, true);
    await_idle(1);
    CHECK_EQUAL(shmq_queue_delete(q[1]), SHMQ_OK);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_NOT_FOUND);
    CHECK_EQUAL(s.from, 1);
    CHECK(!is_idle(0) && !is_idle(2));
    start(&s, 0, true); /* at once */
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_NOT_FOUND);
    end();
}

/* The notifier has died with its bit: the consumer looks by itself, and that is counted, unless the put was so late in its
 * sleep that this was no rescue, which happens on a busy machine. Behind a claim it looks more often. */
TEST(it_looks_by_itself_when_nobody_wakes_it) {
    begin();
    sleeper s;
    for (int round = 0; round < 50 && shmq_load_seq(&m->header->rescues) == 0; round++) {
        start(&s, 0, true);
        await_idle(1);
        shmq_store_seq(&q[2]->page->sleepers[0].idle, 0);
        CHECK_EQUAL(put_number(q[2], 5), SHMQ_OK);
        pthread_join(s.thread, NULL);
        CHECK_EQUAL(s.status, SHMQ_OK);
        CHECK_EQUAL(s.number, 5);
        CHECK_EQUAL(s.from, 2);
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 1);

    uint64_t position = claim_by_hand(q[1]), claimed = shmq_load_seq(&shmq_slot_at(&q[1]->first, position)->word);
    uint64_t patience = other->patience_ns;
    other->patience_ns = 60 * SECOND; /* the claim is not passed, however busy the machine is */
    start_for(&s, 0, true, SECOND / 50);
    pthread_join(s.thread, NULL);
    other->patience_ns = patience;
    CHECK_EQUAL(s.status, SHMQ_EMPTY);
    CHECK_EQUAL(shmq_load_seq(&shmq_slot_at(&q[1]->first, position)->word), claimed);
    start(&s, 0, true);
    await_idle(1);
    CHECK_EQUAL(put_number(q[1], 6), SHMQ_OK); /* behind the claim, which is passed when the patience is over */
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_OK);
    CHECK_EQUAL(s.number, 6);
    CHECK_EQUAL(state_at(q[1], position), SHMQ_QUARANTINED);
    end();
}

/* Of a queue where it stands by nobody wakes it; of the others it is served. */
TEST(it_is_not_announced_where_it_stands_by) {
    begin_patient();
    shmq_declaration d = {0};
    int differs = -1;
    uint32_t second;
    shmq_declaration_give(&d, SHMQ_SET_LIVE_CONSUMERS, 1);
    CHECK_EQUAL(shmq_queue_alter(q[0], &d, &differs), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(theirs[0], SHMQ_CONSUMER, &second), SHMQ_OK);
    uint32_t first = rows[0];
    rows[0] = second;
    sleeper s;
    start(&s, 0, true);
    while (!is_idle(1) || !is_idle(2)) {
        shmq_pause();
    }
    CHECK(!is_idle(0));
    CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q[1], 2), SHMQ_OK);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_OK);
    CHECK_EQUAL(s.number, 2);
    start(&s, 0, true);
    while (!is_idle(1) || !is_idle(2)) {
        shmq_pause();
    }
    CHECK_EQUAL(shmq_row_close(theirs[0], first), SHMQ_OK); /* then it is its turn, and it is told */
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_OK);
    CHECK_EQUAL(s.number, 1);
    CHECK_EQUAL(shmq_load_seq(&m->header->rescues), 0);
    end();
}

TEST(a_damaged_row_is_told) {
    begin();
    sleeper s;
    uint64_t chunk = shmq_load_seq(&q[1]->page->chunks[0]);
    shmq_store_seq(&q[1]->page->chunks[0], chunk + 1);
    start(&s, 0, true);
    pthread_join(s.thread, NULL);
    CHECK_EQUAL(s.status, SHMQ_CORRUPT);
    CHECK_EQUAL(s.from, 1);
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    shmq_store_seq(&q[1]->page->chunks[0], chunk);
    CHECK_EQUAL(shmq_load_seq(&row_of(0)->sleeps_on), 0); /* what it had laid down is taken back */
    CHECK_EQUAL(shmq_load_seq(&other->wake_words_taken), 0);
    end();
}

int main(void) { return run_tests(); }
