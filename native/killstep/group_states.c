/* Queue "a" with groups: two, of which the second begins with the hundreds. */
#include "groups/row_close.h"
#include "lifecycle/handle_bind.h"
#include "take/offer.h"
#include "act_group.h"
#include "act_move.h"
#include "act_time.h"
#include "scenario.h"

static void put(stage *s, uint64_t first, uint32_t count) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put(&s->survivor, QUEUE_A, value, SMALL_BYTES, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %llu of a state: %s", (unsigned long long)value, shmq_status_name(s->survivor.last));
        }
    }
}

/* In place of "a", or of the limited one. */
static void make_in_place_of(stage *s, unsigned queue, const char *name, uint32_t grouping, uint64_t maxsize) {
    act *a = &s->survivor;
    uint32_t row;
    shmq_queue_unbind(a->q[queue]);
    act_declare_groups(a, queue, name, grouping, maxsize);
    if (a->last != SHMQ_OK || shmq_row_borrow(a->q[queue], &row) != SHMQ_OK) {
        die("a queue with groups: %s", shmq_status_name(a->last));
    }
    shmq_row_return(a->q[queue], row);
    beginning_apply(s->begins, a->q[queue]);
}

static void make(stage *s, uint32_t grouping) { make_in_place_of(s, QUEUE_A, "groups", grouping, 1024); }

void state_groups_empty(stage *s) { make(s, SHMQ_GROUPS_SHARED); }

void state_groups(stage *s) {
    state_groups_empty(s);
    put(s, 1, 3);
    put(s, MIDDLE + 1, 2);
}

void state_sticky(stage *s) {
    make(s, SHMQ_GROUPS_STICKY);
    put(s, 1, 3);
    put(s, MIDDLE + 1, 2);
}

static void hold_one(act *a) { act_receive(a, QUEUE_A, 0); }

void state_groups_held(stage *s) {
    state_groups(s);
    act_receive(&s->survivor, QUEUE_A, 0);
}

void state_groups_dead_holder(stage *s) {
    state_groups(s);
    stage_actor_start(s, ACTOR_DEAD, hold_one, NULL);
}

/* The first message that is free is the other group's. */
static void pass(stage *s, uint64_t first) {
    act_get(&s->survivor, QUEUE_A, 0);
    if (s->survivor.taken != first) {
        die("got %llu of a group that is another's", (unsigned long long)s->survivor.taken);
    }
}

/* And somebody had to pass what is of its group. */
void state_groups_refused(stage *s) {
    state_groups_dead_holder(s);
    pass(s, MIDDLE + 1);
}

static void lease(stage *s, uint32_t grouping) {
    make(s, grouping);
    act_lease(&s->survivor, QUEUE_A, LATER_NS);
    put(s, 1, 3);
    put(s, MIDDLE + 1, 2);
    act_receive(&s->survivor, QUEUE_A, 0);
}

void state_groups_leased(stage *s) { lease(s, SHMQ_GROUPS_SHARED); }
void state_sticky_leased(stage *s) { lease(s, SHMQ_GROUPS_STICKY); }

/* Its lease takes one of the owner's two messages; the other, which has none, keeps it the owner. */
void state_sticky_leased_once(stage *s) {
    make(s, SHMQ_GROUPS_STICKY);
    put(s, 1, 3);
    put(s, MIDDLE + 1, 2);
    act_receive(&s->survivor, QUEUE_A, 0);
    act_lease(&s->survivor, QUEUE_A, LATER_NS);
    act_receive(&s->survivor, QUEUE_A, 0);
}

static void offer_one(act *a) {
    shmq_delivery d;
    if (shmq_offer(a->q[QUEUE_A], shmq_self(a->q[QUEUE_A]), &d) != SHMQ_OK) {
        die("nothing is offered");
    }
}

void state_groups_offered(stage *s) {
    state_groups(s);
    stage_actor_start(s, ACTOR_HOLDER, offer_one, NULL);
    pass(s, MIDDLE + 1);
}

static void die_robbing(act *a) {
    act_get(a, QUEUE_A, 0); /* passes what is the survivor's */
    act_rob(a, QUEUE_A, the_board->first_position);
}

void state_groups_dead_stealer(stage *s) {
    state_groups_held(s);
    stage_actor_start(s, ACTOR_DEAD, die_robbing, NULL);
}

void state_groups_both(stage *s) {
    make(s, SHMQ_GROUPS_SHARED);
    make_in_place_of(s, QUEUE_LIMITED, "groups-limited", SHMQ_GROUPS_SHARED, 4);
    put(s, 11, 3);
    put(s, MIDDLE + 11, 2);
    act_put(&s->survivor, QUEUE_LIMITED, 1, SMALL_BYTES, 0);
}

void state_groups_dead_mover(stage *s) {
    state_groups_both(s);
    stage_actor_start(s, ACTOR_DEAD, act_move_undecided, NULL);
    pass(s, MIDDLE + 11);
}

void state_groups_dead_moved(stage *s) {
    state_groups_both(s);
    stage_actor_start(s, ACTOR_DEAD, act_move_decided, NULL);
}

void state_sticky_dead_holder(stage *s) {
    state_sticky(s);
    stage_actor_start(s, ACTOR_DEAD, hold_one, NULL);
}
