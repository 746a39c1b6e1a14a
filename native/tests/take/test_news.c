/* A consumer of several queues looks only at those of which there is news. */
#include "limits/slot_free.h"
#include "recovery/recover.h"
#include "take/news.h"
#include "scratch_queue.h"

enum { QUEUES = 2 };
static const char *names[QUEUES] = {"red", "green"};
static shmq_member *m, *other;
static shmq_queue *q[QUEUES], *theirs[QUEUES];
static uint32_t rows[QUEUES];
static shmq_queue_wait of[QUEUES];
static shmq_news news[QUEUES];

static bool nobody_is_dead(void *context, uint32_t row) {
    (void)context;
    (void)row;
    return false;
}
static const shmq_liveness all_live = {.is_dead = nobody_is_dead};

static void begin(void) {
    scratch_create_patient();
    m = scratch_attach();
    other = scratch_attach();
    for (int i = 0; i < QUEUES; i++) {
        q[i] = scratch_queue(m, names[i], 0, true);
        theirs[i] = scratch_queue(other, names[i], 0, true);
        CHECK_EQUAL(shmq_row_open(theirs[i], SHMQ_CONSUMER, &rows[i]), SHMQ_OK);
        of[i] = (shmq_queue_wait){.q = theirs[i], .owner = rows[i]};
    }
    shmq_news_begin(news, of, QUEUES);
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

static shmq_status next(shmq_delivery *d, uint32_t *from) {
    const shmq_taking t = {0};
    return shmq_receive_news(of, news, QUEUES, 0, &t, from, d);
}

static void take(uint32_t which, uint64_t number) {
    shmq_delivery d;
    uint32_t from;
    CHECK_EQUAL(next(&d, &from), SHMQ_OK);
    CHECK_EQUAL(from, which);
    CHECK_EQUAL(number_of(&d), number);
    CHECK_EQUAL(shmq_settle(theirs[from], &d), SHMQ_OK);
}

static void find_nothing(void) {
    shmq_delivery d;
    uint32_t from;
    CHECK_EQUAL(next(&d, &from), SHMQ_EMPTY);
}

static bool is_asked(int i) { return (shmq_load_seq(&q[i]->page->sleepers[0].browse) & SHMQ_NEWS_BIT) != 0; }

static uint64_t count_of(int i) { return shmq_load_seq(&m->directory[q[i]->index].news); }

static bool remembers(int i) { return news[i].seen == count_of(i); }

/* All of the group are passed by with one load. */
static bool remembers_all(void) {
    return news[0].behind == QUEUES && news[1].first == 0 &&
           news[0].group_seen == shmq_load_seq(&m->directory[shmq_news_group(q[0]->index)].group_news);
}

TEST(what_is_empty_is_passed_by_until_something_comes) {
    begin();
    find_nothing();
    for (int i = 0; i < QUEUES; i++) {
        CHECK(is_asked(i) && remembers(i));
    }
    CHECK(!remembers_all()); /* that look asked for news */
    find_nothing();
    CHECK(remembers_all());
    uint64_t before = count_of(1);
    CHECK_EQUAL(put_number(q[1], 1), SHMQ_OK);
    CHECK(!is_asked(1) && !remembers(1) && remembers(0) && !remembers_all());
    CHECK_EQUAL(put_number(q[1], 2), SHMQ_OK);
    CHECK_EQUAL(count_of(1), before + 1); /* nobody has asked again */
    take(1, 1);
    CHECK(!is_asked(1)); /* a queue in traffic is not asked */
    take(1, 2);
    find_nothing();
    CHECK(is_asked(1) && remembers(1));
    end();
}

TEST(what_comes_back_and_a_change_of_service_are_news) {
    begin();
    CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(q[0], SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_delivery held = receive(q[0], row);
    find_nothing();
    CHECK(remembers(0));
    CHECK_EQUAL(shmq_release(q[0], &held, false), SHMQ_OK);
    take(0, 1);
    find_nothing();
    CHECK_EQUAL(shmq_queue_shut_down(q[0], SHMQ_STOPPED), SHMQ_OK);
    CHECK(!remembers(0));
    find_nothing();
    CHECK(!remembers(0)); /* of a queue that is shut down nothing is remembered */
    CHECK_EQUAL(shmq_queue_shut_down(q[0], SHMQ_OPEN), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q[0], row), SHMQ_OK);
    end();
}

TEST(a_look_that_a_claim_has_ended_is_not_remembered) {
    begin();
    uint64_t position = claim_by_hand(q[0]);
    find_nothing();
    CHECK(news[0].seen == SHMQ_NO_NEWS && remembers(1));
    shmq_slot_shm *slot = shmq_slot_at(&q[0]->first, position);
    CHECK(shmq_claim_end(&q[0]->first, slot, shmq_load_seq(&slot->word)));
    end();
}

/* Shows G2. */
TEST(the_reaper_raises_what_a_dead_notifier_has_not) {
    begin();
    find_nothing();
    (void)shmq_swap_seq(&q[0]->page->sleepers[0].browse, 0); /* a notifier took the bit, and died */
    CHECK(remembers(0));
    shmq_sleepers_recover(theirs[0], &all_live);
    CHECK(!remembers(0));
    end();
}

TEST(it_is_told_of_a_deleted_queue_though_another_one_has_something) {
    begin();
    find_nothing();
    CHECK_EQUAL(put_number(q[0], 1), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(q[1]), SHMQ_OK);
    shmq_delivery d;
    uint32_t from;
    CHECK_EQUAL(next(&d, &from), SHMQ_NOT_FOUND);
    CHECK_EQUAL(from, 1);
    end();
}

int main(void) { return run_tests(); }
