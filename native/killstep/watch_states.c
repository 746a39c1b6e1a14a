/* States in which others are stopped with a claim to be first: in the watch, while a process that can be killed holds the
 * only message; by their priority; with the offer of a live place. */
#include "take/take.h"
#include "scenario.h"

#include "act_ranks.h"
#include "act_watch.h"

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

static void put_three(stage *s) {
    for (uint64_t value = 1; value <= 3; value++) {
        act_put(&s->survivor, QUEUE_A, value, SMALL_BYTES, 0);
    }
}

static void stand_by(act *a) { act_row_open(a, QUEUE_A); }

static void offer_the_place(stage *s, unsigned heirs) {
    put_three(s);
    act_limit_live(&s->survivor, QUEUE_A, 1);
    act_row_open(&s->survivor, QUEUE_A);
    for (unsigned i = 0; i < heirs; i++) {
        stage_actor_start(s, ACTOR_HOLDER, stand_by, NULL);
    }
    act_row_close(&s->survivor, QUEUE_A);
}

void state_live_stopped(stage *s) { offer_the_place(s, 1); }

void state_live_stopped_more(stage *s) { offer_the_place(s, 3); }

void state_live_held(stage *s) {
    put_three(s);
    act_limit_live(&s->survivor, QUEUE_A, 1);
    stage_actor_start(s, ACTOR_HOLDER, stand_by, NULL);
}

void state_ranked_stopped(stage *s) {
    put_three(s);
    stage_actor_start(s, ACTOR_HOLDER, want_first, NULL);
}
