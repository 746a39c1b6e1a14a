/* The wall clock's steps: a put notices them, the segment keeps them, and each message tells the time of its put. All
 * clocks stand still but where a test lets them pass. */
#include "check/check.h"
#include "segment/wall_clock.h"
#include "scratch_queue.h"

#define MS UINT64_C(1000000)
#define HOUR (3600 * SECOND)

static struct clocks {
    uint64_t now, ahead, asleep; /* the wall clock is ahead of the monotonic one, which does not count sleep */
    uint64_t lags; /* the coarse one */
    uint64_t slow; /* so long takes each look */
    uint64_t looks;
} clocks;

static uint64_t read_clock(void) {
    clocks.looks++;
    clocks.now += clocks.slow;
    return clocks.now;
}

uint64_t __wrap_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) { return read_clock(); }
uint64_t __wrap_shmq_wall_ns(void);
uint64_t __wrap_shmq_wall_ns(void) { return read_clock() + clocks.ahead; }
uint64_t __wrap_shmq_boot_ns(void);
uint64_t __wrap_shmq_boot_ns(void) { return read_clock() + clocks.asleep; }
uint64_t __wrap_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void) { return read_clock() - clocks.lags; }

static shmq_member *m;

static void begin(void) {
    clocks = (struct clocks){.now = 1000 * SECOND, .ahead = UINT64_C(1700000000) * SECOND, .asleep = 50 * SECOND};
    scratch_create(false);
    m = scratch_attach();
}

static void end(void) {
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    shmq_member_free(m);
    scratch_remove();
}

static void pass(uint64_t ns) { clocks.now += ns; }

static void sleep_for(uint64_t ns) { /* the system, not the process: the monotonic clock stands */
    clocks.ahead += ns;
    clocks.asleep += ns;
}

static uint64_t steps(void) { return shmq_load_seq(&m->header->clock_steps_count); }

/* A put that is told by both clocks as they are. */
static uint64_t put(shmq_member *by) {
    uint64_t at = shmq_put_ns(by);
    CHECK_EQUAL(at, clocks.now);
    CHECK_EQUAL(shmq_wall_of(by, at), clocks.now + clocks.ahead);
    return at;
}

TEST(puts_look_at_the_wall_clock_alone_until_it_has_moved) {
    begin();
    (void)put(m);
    uint64_t before = clocks.looks;
    for (int i = 0; i < 9; i++) {
        pass(MS / 10);
        CHECK_EQUAL(shmq_put_ns(m), clocks.now);
    }
    CHECK_EQUAL(clocks.looks - before, 9);
    pass(MS / 10);
    CHECK_EQUAL(shmq_put_ns(m), clocks.now);
    CHECK(clocks.looks - before > 11);
    CHECK_EQUAL(steps(), 0);
    end();
}

/* Also from one step to the next, and when the clock is set back. */
TEST(a_message_tells_what_the_wall_clock_said_at_its_put) {
    begin();
    static const int64_t by[] = {HOUR, -2 * (int64_t)HOUR, 17 * MS, -17 * (int64_t)MS, 30 * SECOND};
    uint64_t at[6], said[6];
    for (int i = 0; i < 6; i++) {
        at[i] = put(m);
        said[i] = clocks.now + clocks.ahead;
        CHECK_EQUAL(steps(), i);
        for (int before = 0; before <= i; before++) {
            CHECK_EQUAL(shmq_wall_of(m, at[before]), said[before]);
        }
        pass(SECOND);
        if (i < 5) {
            clocks.ahead += (uint64_t)by[i];
        }
    }
    shmq_member *late = scratch_attach();
    CHECK_EQUAL(shmq_wall_of(late, at[1]), said[1]);
    (void)put(late);
    CHECK_EQUAL(steps(), 5);
    scratch_detach(late);
    end();
}

TEST(a_process_goes_by_a_step_that_another_has_noted) {
    begin();
    shmq_member *other = scratch_attach();
    (void)put(m);
    (void)put(other);
    pass(SECOND);
    clocks.ahead += HOUR;
    (void)put(m);
    (void)put(other);
    CHECK_EQUAL(steps(), 1);
    CHECK_EQUAL(shmq_load_seq(&other->clock_offset_ns), clocks.ahead);
    scratch_detach(other);
    end();
}

/* It has read its clocks before the other one did, and goes on behind it. */
TEST(no_put_behind_a_step_is_told_by_the_difference_before_it) {
    begin();
    shmq_member *other = scratch_attach();
    pass(SECOND);
    clocks.ahead += HOUR;
    uint64_t first = put(m);
    clocks.now -= MS / 2;
    uint64_t second = shmq_put_ns(other);
    CHECK_EQUAL(second, first);
    CHECK_EQUAL(shmq_wall_of(other, second), first + clocks.ahead);
    CHECK_EQUAL(steps(), 1);
    scratch_detach(other);
    end();
}

TEST(a_small_step_is_none_and_the_coarse_clock_may_lag) {
    begin();
    clocks.lags = 10 * MS;
    (void)put(m);
    pass(SECOND);
    (void)put(m);
    clocks.ahead += 5 * MS;
    pass(SECOND);
    CHECK_EQUAL(shmq_put_ns(m), clocks.now + 5 * MS);
    CHECK_EQUAL(shmq_wall_of(m, clocks.now + 5 * MS), clocks.now + clocks.ahead);
    clocks.ahead -= 5 * MS;
    pass(SECOND);
    (void)put(m);
    CHECK_EQUAL(steps(), 0);
    end();
}

TEST(an_age_counts_the_time_asleep) {
    begin();
    uint64_t before = put(m);
    pass(10 * SECOND);
    CHECK_EQUAL(shmq_age_ns(m, before), 10 * SECOND);
    sleep_for(HOUR);
    CHECK_EQUAL(shmq_age_ns(m, before), HOUR + 10 * SECOND);
    uint64_t behind = put(m);
    CHECK_EQUAL(steps(), 1);
    pass(SECOND);
    CHECK_EQUAL(shmq_age_ns(m, before), HOUR + 11 * SECOND);
    CHECK_EQUAL(shmq_age_ns(m, behind), SECOND);
    CHECK_EQUAL(shmq_age_ns(m, clocks.now + SECOND), 0); /* it is yet to come */
    end();
}

/* Of those that went there is nothing to tell: the oldest difference that is left holds for all before it. */
TEST(of_many_steps_the_last_are_kept) {
    begin();
    enum { MANY = 3 * SHMQ_CLOCK_STEPS };
    static uint64_t at[MANY], said[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        pass(SECOND);
        clocks.ahead += HOUR;
        at[i] = put(m);
        said[i] = clocks.now + clocks.ahead;
    }
    CHECK_EQUAL(steps(), MANY);
    uint32_t oldest = MANY - SHMQ_CLOCK_STEPS + 1; /* one is the next one's */
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t lost = i < oldest ? (oldest - i) * HOUR : 0;
        CHECK_EQUAL(shmq_wall_of(m, at[i]), said[i] + lost);
    }
    end();
}

/* A record that one has begun, and that does not count: it is nobody's, and the next step's. */
TEST(a_death_amid_a_note_changes_no_time) {
    begin();
    shmq_clock_step_shm *next = &m->header->clock_steps[0];
    uint64_t before = put(m), said = clocks.now + clocks.ahead;
    shmq_store_seq(&next->from_ns, before);
    shmq_store_seq(&next->offset_ns, 5);
    CHECK_EQUAL(shmq_wall_of(m, before), said);
    pass(SECOND);
    clocks.ahead += HOUR;
    (void)put(m);
    CHECK_EQUAL(steps(), 1);
    CHECK_EQUAL(shmq_wall_of(m, before), said);
    CHECK_EQUAL(shmq_load_seq(&next->offset_ns), clocks.ahead);
    end();
}

/* It is interrupted between any two looks: they are of no one moment, so it knows no difference, and notes none. */
TEST(looks_that_are_far_apart_note_nothing_and_the_put_has_its_time) {
    begin();
    (void)put(m);
    pass(SECOND);
    clocks.ahead += HOUR;
    clocks.slow = 2 * MS;
    uint64_t before = clocks.now, at = shmq_put_ns(m);
    CHECK(at > before && at <= clocks.now);
    CHECK_EQUAL(steps(), 0);
    clocks.slow = 0;
    (void)put(m);
    CHECK_EQUAL(steps(), 1);
    end();
}

TEST(who_may_only_read_tells_the_time_and_notes_no_step) {
    begin();
    uint64_t before = put(m), said = clocks.now + clocks.ahead;
    shmq_member *eye;
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
    pass(SECOND);
    clocks.ahead += HOUR;
    CHECK_EQUAL(shmq_put_ns(eye), clocks.now);
    CHECK_EQUAL(steps(), 0);
    (void)put(m);
    CHECK_EQUAL(shmq_wall_of(eye, before), said);
    CHECK_EQUAL(shmq_wall_of(eye, clocks.now), clocks.now + clocks.ahead);
    shmq_observer_close(eye);
    end();
}

int main(void) { return run_tests(); }
