/* Several messages that are given back at once: in order, on every level, without what was taken away meanwhile. */
#include "scratch_queue.h"

#define COUNT 8u

static shmq_member *m;
static shmq_queue *q;

/* Called when the clock is read, once. */
static void (*meanwhile)(void);

uint64_t __real_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) {
    void (*happens)(void) = meanwhile;
    meanwhile = NULL;
    if (happens != NULL) {
        happens();
    }
    return __real_shmq_now_ns();
}
uint64_t __real_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void) { return __real_shmq_about_now_ns(); }

static void begin(uint32_t levels) {
    scratch_create(false);
    m = scratch_attach();
    q = levels > 1 ? scratch_levels(m, "jobs", 0, levels) : scratch_queue(m, "jobs", 0, true);
}

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(m->process->unsettled, 0);
    scratch_close(m, q);
    scratch_remove();
}

/* In hand, in the order of their places. */
static void take(shmq_delivery *taken, shmq_delivery **all) {
    for (uint32_t i = 0; i < COUNT; i++) {
        taken[i] = receive(q, shmq_self(q));
        CHECK_EQUAL(number_of(&taken[i]), i);
        all[i] = &taken[i];
    }
    CHECK_EQUAL(m->process->unsettled, COUNT);
}

/* Shows S2, R2. */
TEST(what_is_given_back_at_once_comes_back_in_order_before_what_came_later) {
    shmq_delivery taken[COUNT], *all[COUNT];
    begin(1);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    take(taken, all);
    CHECK_EQUAL(put_number(q, COUNT), SHMQ_OK);
    uint64_t epoch = shmq_load_seq(&q->first.shm->epoch);
    shmq_release_all(q, all, COUNT);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->epoch), epoch + 1); /* one turn back for all of them */
    CHECK_EQUAL(m->process->unsettled, 0);
    for (uint64_t i = 0; i <= COUNT; i++) {
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL((d.word & SHMQ_FLAG_REDELIVERED) != 0, i < COUNT);
        CHECK_EQUAL(d.delivery, 0); /* no attempt */
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    end();
}

TEST(on_each_level_in_its_order) {
    shmq_delivery taken[COUNT], *all[COUNT];
    begin(3);
    for (uint64_t i = 0; i < COUNT; i++) { /* three on the first level, three on the second, the others on the last */
        CHECK_EQUAL(put_as(q, i, (uint8_t)(i < 3 ? 9 : i < 6 ? 4 : 0)), SHMQ_OK);
    }
    take(taken, all);
    shmq_release_all(q, all, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(get_number(q), i);
    }
    end();
}

TEST(what_was_taken_away_stays_with_the_one_that_took_it) {
    shmq_delivery taken[COUNT], *all[COUNT], stolen;
    begin(1);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    take(taken, all);
    CHECK_EQUAL(shmq_steal(&q->first, taken[0].position, false, &stolen), SHMQ_OK);
    shmq_release_all(q, all, COUNT);
    CHECK_EQUAL(m->process->unsettled, 1);
    for (uint64_t i = 1; i < COUNT; i++) {
        CHECK_EQUAL(get_number(q), i);
    }
    CHECK_EQUAL(shmq_settle(q, &stolen), SHMQ_OK);
    end();
}

static shmq_member *other;
static shmq_queue *theirs;

/* The ring turns over both, and another process looks for old entries: it knows then which there are. */
static void turn_over(void) {
    CHECK_EQUAL(put_number(theirs, 4), SHMQ_OK);
    shmq_delivery fourth = receive(theirs, shmq_self(theirs));
    for (uint64_t i = 0; i < shmq_slot_count(&q->first) + COUNT; i++) {
        CHECK_EQUAL(put_number(theirs, 10 + i), SHMQ_OK);
        CHECK_EQUAL(get_number(theirs), 10 + i);
    }
    CHECK_EQUAL(shmq_release(theirs, &fourth, false), SHMQ_OK);
    CHECK_EQUAL(get_number(theirs), 2);
    CHECK_EQUAL(get_number(theirs), 4);
}

/* The first is available before the ring turns over it, the second only behind that. */
TEST(what_the_ring_turns_over_meanwhile_is_found_by_all) {
    begin(1);
    other = scratch_attach();
    CHECK_EQUAL(shmq_queue_bind(other, q->index, 0, &theirs), SHMQ_OK);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(get_number(theirs), 1);
    shmq_delivery taken[2] = {receive(q, shmq_self(q)), receive(q, shmq_self(q))};
    shmq_delivery *all[2] = {&taken[0], &taken[1]};
    taken[1].expires_ns = UINT64_MAX; /* so the clock is read before it is given back */
    meanwhile = turn_over;
    shmq_release_all(q, all, 2);
    CHECK(meanwhile == NULL);
    CHECK_EQUAL(get_number(theirs), 3);
    scratch_close(other, theirs);
    end();
}

int main(void) { return run_tests(); }
