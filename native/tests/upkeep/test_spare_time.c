/* Upkeep of sleepers: they have time for all that is due, until what they wait for is there; and they wake up for what is next. */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "wake/due.h"
#include "wake/watch.h"
#include "still_broker.h"

#define ENTRIES 600u
#define A_ROUND (SHMQ_ROUND_BUDGET / (SHMQ_PRICE_ENTRY + SHMQ_PRICE_CHANGE) + 1)

static void begin_with_a_long_ring(void) {
    begin();
    for (uint32_t i = 0; i < ENTRIES; i++) {
        put_until(qa, i, stands_at + 10 * MS);
    }
    stands_at += 10 * MS;
}

TEST(a_sleeper_does_all_that_is_due) {
    begin_with_a_long_ring();
    shmq_a32 word = 7;
    shmq_spare_time spare = {.word = &word, .seen = 7, .until_ns = stands_at + 1};
    shmq_upkeep_finish(a, SHMQ_DUTY(SHMQ_DUTY_TIMES), &spare);
    CHECK_EQUAL(held_in(qa), 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    end();
}

/* Its message is there, and it pays for a part of what is due before it takes that. Shows G4. */
TEST(a_sleeper_that_is_woken_leaves_the_rest) {
    begin_with_a_long_ring();
    shmq_a32 word = 8;
    shmq_spare_time spare = {.word = &word, .seen = 7, .until_ns = UINT64_MAX};
    shmq_upkeep_finish(a, SHMQ_DUTY(SHMQ_DUTY_TIMES), &spare);
    CHECK(held_in(qa) >= ENTRIES - A_ROUND && held_in(qa) < ENTRIES);
    CHECK(is_due(SHMQ_DUTY_TIMES));
    end();
}

TEST(a_sleeper_whose_time_is_over_leaves_the_rest) {
    begin_with_a_long_ring();
    shmq_a32 word = 7;
    shmq_spare_time spare = {.word = &word, .seen = 7, .until_ns = stands_at};
    shmq_upkeep_finish(a, SHMQ_DUTY(SHMQ_DUTY_TIMES), &spare);
    CHECK(held_in(qa) >= ENTRIES - A_ROUND && held_in(qa) < ENTRIES);
    end();
}

/* ---- how long the watcher sleeps ------------------------------------------------------------------------------- */

static shmq_watcher watching(shmq_member *m) {
    shmq_watcher w;
    shmq_watch_enter(&w, m, &m->process->wake_words[0]);
    CHECK_EQUAL(w.index, 0);
    return w;
}

TEST(the_watcher_sleeps_to_what_is_due_next) {
    begin();
    shmq_watcher w = watching(b);
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), SECOND);
    put_until(qa, 1, stands_at + 300 * MS);
    CHECK_EQUAL((shmq_watch_slice(&w, SECOND) + 1) / MS, 300);
    shmq_watch_leave(&w);
    end();
}

/* Nobody tells the watcher what the look will find next; so the watcher reads the word again. */
TEST(the_watcher_does_not_sleep_to_the_end_of_a_look) {
    patience = 60 * SECOND;
    begin();
    shmq_watcher w = watching(b);
    uint64_t mark;
    shmq_store_seq(&a->header->due, 2);
    CHECK(shmq_due_begin(&a->header->due, stands_at, a->patience_ns, &mark));
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), SHMQ_TICK_NS);
    CHECK_EQUAL(shmq_watch_slice(&w, MS), MS);
    CHECK(!shmq_due_end(&a->header->due, mark, SHMQ_DUE_NEVER));
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), SECOND);
    shmq_watch_leave(&w);
    end();
    patience = 100 * MS;
}

/* It can do nothing just then; it does not run in a circle until the other thread has ended. */
TEST(the_watcher_leaves_another_thread_of_its_process_some_time) {
    begin();
    shmq_watcher w = watching(b);
    shmq_store_seq(&b->header->due, 2);
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), 0);
    shmq_store_seq(&b->rounds.busy, 1);
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), SHMQ_SHORT_SLEEP_NS);
    CHECK_EQUAL(shmq_watch_slice(&w, 10), 10);
    shmq_store_seq(&b->rounds.busy, 0);
    CHECK_EQUAL(shmq_watch_slice(&w, SECOND), 0);
    shmq_watch_leave(&w);
    end();
}

static void put_for_a_day_later(void) { put_until(qa, ENTRIES, stands_at + 86400 * SECOND); }

static void after_the_first_reading(void) { at_clock = put_for_a_day_later; }

/* Its maker knows only of its own time, which is later than all: so whoever looks tells what is next. */
TEST(the_watcher_is_told_when_a_look_ends_into_which_something_came) {
    patience = 60 * SECOND;
    begin();
    put_until(qa, 0, stands_at + 3 * MS);
    shmq_store_seq(&qa->first.shm->due, 2);
    shmq_store_seq(&a->header->due, 2);
    shmq_watcher w = watching(b);
    uint32_t before = shmq_load_seq(w.word);
    at_clock = after_the_first_reading; /* that of the round; the next one comes when the ring has been looked at */
    (void)round_of(SHMQ_DUTY_TIMES);
    CHECK_EQUAL(held_in(qa), 2);
    CHECK(shmq_due_time(shmq_load_seq(&a->header->due)) <= stands_at + 3 * MS);
    CHECK_EQUAL(shmq_load_seq(w.word), before + 1);
    shmq_watch_leave(&w);
    end();
    patience = 100 * MS;
}

/* ---- asleep in earnest ----------------------------------------------------------------------------------------- */

static shmq_a32 ended, sleeper;

static void *sleep_until_the_end(void *word) {
    shmq_store_seq(&sleeper, (uint32_t)syscall(SYS_gettid));
    while (shmq_load_seq(&ended) == 0) {
        (void)shmq_sleep(b, word, 0, shmq_now_ns() + 600 * SECOND);
    }
    return NULL;
}

static bool is_asleep(uint32_t tid) {
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
    FILE *file = tid != 0 ? fopen(path, "r") : NULL;
    bool known = file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file != NULL) {
        fclose(file);
    }
    return known && state == 'S';
}

static void a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* A process does a part of what is due and calls no more. Nothing wakes the sleeper, whose own pieces end after two minutes.
 * Shows G4. */
TEST(a_sleeper_goes_on_where_a_call_has_ended) {
    patience = 60 * SECOND;
    begin_with_a_long_ring();
    uint64_t mark, now = __real_shmq_now_ns();
    pthread_t thread;
    shmq_a32 *word = &b->process->wake_words[0];
    stands_at = 0;
    while (__real_shmq_now_ns() < now + 10 * MS) {
        a_moment();
    }
    CHECK(shmq_due_begin(&a->header->due, shmq_now_ns(), a->patience_ns, &mark)); /* a call has begun its part */
    CHECK_EQUAL(pthread_create(&thread, NULL, sleep_until_the_end, word), 0);
    while (shmq_load_seq(&a->header->watch[0]) == 0 || !is_asleep(shmq_load_seq(&sleeper))) {
        a_moment();
    }
    bool earlier;
    CHECK(shmq_due_leave(&a->header->due, mark, shmq_now_ns(), &earlier) != 0);
    uint64_t left_at = shmq_now_ns();
    while (held_in(qa) != 0) {
        CHECK(shmq_now_ns() - left_at < 30 * SECOND);
        a_moment();
    }
    shmq_store_seq(&ended, 1);
    shmq_add_seq(word, 1);
    (void)shmq_futex_wake_count(word, 1);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    shmq_store_seq(word, 0);
    end();
    patience = 100 * MS;
}

int main(void) { return run_tests(); }
