/* A queue with levels of priority whose messages do not fit into memory: each level flows for itself, and a mover that dies in one of
 * them leaves the others as they were. */
#include <signal.h>
#include <sys/wait.h>

#include "faulty_backing.h"

#define LEVELS 3u
#define MANY 3000

static shmq_member *m;
static shmq_queue *q;

/* Priorities 3, 4, 5 are the three levels, the last one first. Numbers tell which. */
static void put_all(uint64_t from, uint64_t below) {
    for (uint64_t i = from; i < below; i++) {
        CHECK_EQUAL(put_as(q, i, (uint8_t)(3 + i % LEVELS)), SHMQ_OK);
    }
}

static void get_level(uint32_t rest, uint64_t from, uint64_t below) {
    for (uint64_t i = from; i < below; i++) {
        if (i % LEVELS == rest) {
            CHECK_EQUAL(get_number(q), i);
        }
    }
}

static const char *dead_letters; /* where the dead of the next queue go; NULL: nowhere */

static void begin(uint64_t max_memory) {
    scratch_spill_begin();
    shmq_segment_plan plan = scratch_plan(false);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    m = scratch_attach_flowing();
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_MEMORY | 1u << SHMQ_SET_PRIORITIES | 1u << SHMQ_SET_MAX_DEATHS,
                          .max_memory = max_memory,
                          .priorities = LEVELS,
                          .create = true};
    if (dead_letters != NULL) {
        d.given |= 1u << SHMQ_SET_DEAD_LETTER;
        d.dead_letter = dead_letters;
        d.dead_letter_len = (uint32_t)strlen(dead_letters);
    }
    q = scratch_declare(m, "levels", d, 0);
    CHECK(shmq_may_flow(q) && q->rings == 2 * LEVELS);
}

static void end(void) {
    scratch_examine_queue(q->index, true);
    scratch_examine_parts(true);
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_member_leave(m, false), SHMQ_OK);
    scratch_remove();
    scratch_spill_end();
}

/* Shows S129. */
TEST(levels_flow_and_come_back_by_their_order) {
    begin(4000);
    put_all(0, MANY);
    CHECK(shmq_flow_rows(q) > MANY / 2);
    CHECK_EQUAL(census_of(q).ready, MANY);
    scratch_examine_queue(q->index, true);
    for (uint32_t rest = LEVELS; rest-- > 0;) {
        get_level(rest, 0, MANY);
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK(!shmq_flows(q) && shmq_has_flowed(q));
    put_all(0, 9);
    get_level(2, 0, 9);
    get_level(1, 0, 9);
    get_level(0, 0, 9);
    end();
}

TEST(what_failed_too_often_is_found_on_the_disk_of_each_level) {
    shmq_delivery held[90], d;
    begin(UINT64_C(1) << 30);
    put_all(0, 90);
    for (uint64_t i = 0; i < 90; i++) {
        held[i] = receive(q, shmq_self(q));
    }
    for (uint64_t i = 0; i < 90; i++) {
        CHECK_EQUAL(shmq_release(q, &held[i], number_of(&held[i]) % 10 == 0), SHMQ_OK);
    }
    scratch_alter(q, SHMQ_SET_MAX_MEMORY, 1);
    put_all(90, 99);
    for (uint32_t level = 0; level < LEVELS; level++) {
        CHECK(shmq_flow_is_on(shmq_load_seq(&shmq_level_ring(q, level)->flow)));
        CHECK(shmq_load_seq(&shmq_level_ring(q, level)->tried) != 0);
    }
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    for (uint32_t rest = LEVELS; rest-- > 0;) {
        for (uint64_t i = rest; i < 90; i += LEVELS) {
            if (i % 10 == 0) {
                CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
                CHECK_EQUAL(number_of(&d), i);
                CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
            }
        }
    }
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    for (uint32_t rest = LEVELS; rest-- > 0;) {
        for (uint64_t i = rest; i < 99; i += LEVELS) {
            CHECK(i % 10 == 0 && i < 90 ? true : get_number(q) == i);
        }
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Shows S129. */
TEST(the_least_important_goes_first) {
    begin(MANY * sizeof(uint64_t) / 2);
    put_all(0, MANY);
    uint64_t rows[LEVELS];
    for (uint32_t depth = 0; depth < LEVELS; depth++) {
        const shmq_ring_shm *ring = shmq_level_ring(q, depth);
        rows[depth] =
            shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->flushed) - shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->pulled);
    }
    CHECK(rows[2] > rows[1] && rows[1] > rows[0]);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, MANY);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

TEST(a_browser_sees_each_level_with_its_rows) {
    begin(4000);
    put_all(0, MANY);
    for (uint32_t depth = 0; depth < LEVELS; depth++) {
        shmq_delivery d;
        uint64_t place = 0, expected = LEVELS - 1 - depth;
        for (; shmq_browse_place(shmq_level(q, depth), &place, &d) == SHMQ_OK; place++) {
            CHECK_EQUAL(number_of(&d), expected);
            expected += LEVELS;
        }
        CHECK(expected >= MANY);
    }
    end();
}

/* Rows of a queue that is deleted go where the dead go: every message comes out, once. */
TEST(what_a_deleted_queue_has_on_disk_is_buried) {
    dead_letters = "letters";
    begin(4000);
    dead_letters = NULL;
    put_all(0, MANY);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    uint64_t next[LEVELS] = {0, 1, 2}, count = 0;
    shmq_delivery d;
    for (; shmq_steal_left(q, &d) == SHMQ_OK; count++) {
        uint64_t number = number_of(&d);
        CHECK(number < MANY);
        next[number % LEVELS] += LEVELS;
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(count, MANY);
    for (uint64_t rest = 0; rest < LEVELS; rest++) {
        CHECK_EQUAL(next[rest], MANY + rest);
    }
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_member_leave(m, false), SHMQ_OK);
    scratch_remove();
    scratch_spill_end();
}

/* An entry that went to disk when somebody had given it back is a redelivery there, too. */
TEST(what_was_given_back_is_marked_on_disk) {
    begin(1 << 20);
    put_all(0, 300);
    shmq_delivery held[40];
    for (int i = 0; i < 40; i++) {
        held[i] = receive(q, shmq_self(q));
    }
    for (int i = 0; i < 40; i++) {
        CHECK_EQUAL(shmq_release(q, &held[i], true), SHMQ_OK);
    }
    for (uint32_t depth = 0; depth < LEVELS; depth++) {
        (void)shmq_purger_make_room(q, NULL);
    }
    CHECK(shmq_flow_rows(q) > 100);
    uint64_t again = 0;
    for (int i = 0; i < 300; i++) {
        shmq_delivery d = receive(q, shmq_self(q));
        again += (d.word & SHMQ_FLAG_REDELIVERED) != 0;
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(again, 40);
    end();
}

/* ---- death ---------------------------------------------------------------------------------------------------------- */

/* In a process of its own, as a member of its own, at this level. */
static void a_mover_dies_at(uint32_t depth, enum faulty_death when) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        shmq_member *own = scratch_attach_flowing();
        shmq_queue *queue;
        int differs;
        const shmq_declaration d = {0};
        CHECK_EQUAL(shmq_queue_declare(own, "levels", 6, &d, &queue, &differs), SHMQ_OK);
        faulty_begin(own);
        faulty.at_write = when;
        for (int turns = 0; turns < 2; turns++) { /* the first one hands over what the front ring has room for */
            (void)shmq_purger_make_room(queue, shmq_level(queue, depth));
        }
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(shmq_load_seq(&q->page->unfinished) != 0);
}

/* Shows G5. */
TEST(a_mover_that_dies_in_one_level_loses_and_doubles_nothing) {
    for (uint32_t depth = 0; depth < LEVELS; depth++) {
        for (int behind = 0; behind < 2; behind++) {
            begin(1 << 20);
            put_all(0, MANY);
            CHECK_EQUAL(shmq_flow_rows(q), 0);
            a_mover_dies_at(depth, behind != 0 ? FAULTY_DIES_BEHIND : FAULTY_DIES_BEFORE);
            uint32_t reaped;
            CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
            /* The next mover, in another level, puts this one right. */
            CHECK_EQUAL(shmq_purger_make_room(q, shmq_level(q, (depth + 1) % LEVELS)), SHMQ_OK);
            CHECK_EQUAL(shmq_load_seq(&q->page->unfinished), 0);
            CHECK_EQUAL(census_of(q).ready, MANY);
            scratch_examine_queue(q->index, true);
            for (uint32_t rest = LEVELS; rest-- > 0;) {
                get_level(rest, 0, MANY);
            }
            CHECK_EQUAL(get_number(q), UINT64_MAX);
            end();
        }
    }
}

int main(void) { return run_tests(); }
