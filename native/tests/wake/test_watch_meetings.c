/* The watch, and two processes of which one stands still at each step as it comes, looks or leaves: one has each place, and in the end
 * nobody. */
#include "wake/watch.h"
#include "meeting_deeds.h"

static shmq_watcher watcher;

static shmq_queue *plain(shmq_member *m, const char *name) { return scratch_queue(m, name, 0, false); }

static void one(shmq_queue *q) { add_number(q); }

static void enter(actor *by) { shmq_watch_enter(&watcher, by->m, &by->m->process->wake_words[0]); }

static void leave(actor *by) {
    (void)by;
    shmq_watch_leave(&watcher);
}

static void tick(actor *by) {
    shmq_watch_tick(&watcher);
    CHECK(shmq_watch_slice(&watcher, SECOND) <= SECOND);
    CHECK(shmq_watch_fault(by->m) == NULL);
}

static void come_and_go(actor *by) {
    enter(by);
    tick(by);
    leave(by);
    CHECK(shmq_watch_fault(by->m) == NULL);
}

/* It holds something: then there is something to watch. */
static void hold_and_enter(actor *by) {
    receive_one(by);
    enter(by);
}

static void settle_and_leave(actor *by) {
    settle_held(by);
    leave(by);
}

static const deed comes = {.act = come_and_go}, goes = {.before = hold_and_enter, .act = settle_and_leave};

TEST(watchers_meet) {
    meetings_begin(plain, one);
    MEET(comes, comes, 5);
    MEET(comes, goes, 5);
    MEET(goes, comes, 5);
    MEET(goes, goes, 5);
    meetings_end();
}

int main(void) { return run_tests(); }
