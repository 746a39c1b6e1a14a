/* States in which a process that can be killed holds the only message, and others stand in the watch, stopped. */
#include "scenario.h"

#include "act_ranks.h"
#include "act_watch.h"
#include "shmq/ranks.h"

static void hold_one(act *a) { act_receive(a, QUEUE_A, 0); }

void state_watch_none(stage *s) {
    act_put(&s->survivor, QUEUE_A, 1, SMALL_BYTES, 0);
    stage_actor_start(s, ACTOR_MORTAL, hold_one, NULL);
}

void state_watch_stopped(stage *s) {
    state_watch_none(s);
    stage_actor_start(s, ACTOR_HOLDER, act_watch_stand, NULL);
}

void state_watch_both_stopped(stage *s) {
    state_watch_stopped(s);
    stage_actor_start(s, ACTOR_HOLDER, act_watch_stand, NULL);
}

void state_watch_asleep(stage *s) {
    state_watch_stopped(s);
    act_watch_fall_asleep(&s->survivor);
}

void state_watch_volunteer(stage *s) {
    state_watch_both_stopped(s);
    act_watch_fall_asleep(&s->survivor);
}

static void want_first(act *a) {
    act_row_open_as(a, QUEUE_A, 1, false);
    shmq_want(a->q[QUEUE_A], a->row);
}

void state_ranked_stopped(stage *s) {
    for (uint64_t value = 1; value <= 3; value++) {
        act_put(&s->survivor, QUEUE_A, value, SMALL_BYTES, 0);
    }
    stage_actor_start(s, ACTOR_HOLDER, want_first, NULL);
}
