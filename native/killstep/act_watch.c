#include "base/clock.h"
#include "consumers/sleepers.h"
#include "groups/row_close.h"
#include "queue/consumer_row.h"
#include "wake/watch.h"
#include "act_watch.h"

#include "stage.h"
#include "virtual.h"

#define WAIT_NS (3 * SHMQ_TICK_NS)

static shmq_a32 *to_call;

/* As whoever leaves the watch, or begins to hold something, does with a volunteer. */
static void call_once(void) {
    if (to_call != NULL) {
        shmq_add_seq(to_call, 1);
        to_call = NULL;
    }
}

void act_watch_begin(act *a) {
    act_row_open(a, QUEUE_A);
    to_call = &shmq_row_at(a->q[QUEUE_A], a->row)->wake;
    virtual_before_sleep(call_once);
}

void act_watch_begin_behind(act *a) {
    act_watch_begin(a);
    for (int index = 0; index < 2; index++) {
        shmq_store_seq(&a->m->header->watch_looked[index], virtual_clock());
    }
}

void act_watch_wait(act *a) { act_receive(a, QUEUE_A, virtual_clock() + WAIT_NS); }

static void stand(shmq_watcher *w, act *a, shmq_a32 *word) {
    shmq_watch_enter(w, a->m, word);
    (void)shmq_watch_slice(w, SHMQ_SLICE_NS);
}

void act_watch_stand(act *a) {
    shmq_watcher watcher;
    stand(&watcher, a, &a->m->process->wake_words[0]);
}

/* As the prepared image has it. */
static shmq_watcher asleep;
static uint32_t row_asleep;

void act_watch_fall_asleep(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    if (shmq_row_borrow(q, &row_asleep) != SHMQ_OK) {
        die("row");
    }
    (void)shmq_announce(q, row_asleep, false);
    stand(&asleep, a, &shmq_row_at(q, row_asleep)->wake);
}

/* The steps of a wait from its first sleep on. */
void act_watch_sleep_on(act *a) {
    shmq_watcher w = asleep;
    if (w.m == NULL) {
        return;
    }
    uint32_t seen = shmq_load_seq(w.word);
    uint64_t now = shmq_now_ns(), end = now + SHMQ_SLICE_NS;
    uint64_t slice = w.quiet != 0 ? SHMQ_TICK_NS : SHMQ_SLICE_NS; /* this one it had begun before */
    for (; now < end && shmq_load_seq(w.word) == seen; now = shmq_now_ns()) {
        virtual_clock_set(now + (slice < end - now ? slice : end - now));
        shmq_watch_tick(&w);
        slice = shmq_watch_slice(&w, end - now);
    }
    shmq_watch_leave(&w);
    (void)shmq_withdraw(a->q[QUEUE_A], row_asleep, false);
    shmq_row_return(a->q[QUEUE_A], row_asleep);
}
