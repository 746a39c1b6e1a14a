/* Queue "a" with groups: two, of which the second begins with the hundreds. */
#include "act_group.h"
#include "scenario.h"
#include "shmq/group.h"
#include "shmq/sleepers.h"

static void put(stage *s, uint64_t first, uint32_t count) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put(&s->survivor, QUEUE_A, value, SMALL_BYTES, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %llu of a state: %s", (unsigned long long)value, shmq_status_name(s->survivor.last));
        }
    }
}

/* In place of "a". */
static void make(stage *s, uint32_t grouping) {
    act *a = &s->survivor;
    uint32_t row;
    shmq_queue_unbind(a->q[QUEUE_A]);
    act_declare_groups(a, QUEUE_A, "groups", grouping);
    if (a->last != SHMQ_OK || shmq_row_borrow(a->q[QUEUE_A], &row) != SHMQ_OK) {
        die("a queue with groups: %s", shmq_status_name(a->last));
    }
    shmq_row_return(a->q[QUEUE_A], row);
}

void state_groups(stage *s) {
    make(s, SHMQ_GROUPS_SHARED);
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

/* And somebody had to pass what is of its group. */
void state_groups_refused(stage *s) {
    state_groups_dead_holder(s);
    act_get(&s->survivor, QUEUE_A, 0);
    if (s->survivor.taken != MIDDLE + 1) {
        die("got %llu of a group that is a dead one's", (unsigned long long)s->survivor.taken);
    }
}

void state_sticky_dead_holder(stage *s) {
    state_sticky(s);
    stage_actor_start(s, ACTOR_DEAD, hold_one, NULL);
}
