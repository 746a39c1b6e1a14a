/* Queue "a" with groups flows to disk: of one group there is more than comes in order, and behind it, on disk, two messages of another. */
#include "act_flow.h"
#include "act_group.h"
#include "scenario.h"

#define FIRST_GROUP 80u /* messages of the first group before the others: more than a quarter of the front ring */

static void put(stage *s, uint64_t first, uint32_t count) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put(&s->survivor, QUEUE_A, value, SMALL_BYTES, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %llu of a state: %s", (unsigned long long)value, shmq_status_name(s->survivor.last));
        }
    }
}

void state_flow_groups(stage *s) {
    state_groups_empty(s);
    state_may_flow_few(s);
    put(s, 1, FIRST_GROUP);
    put(s, MIDDLE + 1, 2);
    put(s, FIRST_GROUP + 1, 8);
    state_may_have_much(s);
}

/* The first message that is free is the other group's, and has to be fetched. */
static void pass(stage *s) {
    act_get(&s->survivor, QUEUE_A, 0);
    if (s->survivor.taken != MIDDLE + 1) {
        die("got %llu of a group that is another's", (unsigned long long)s->survivor.taken);
    }
}

static void hold_one(act *a) { act_receive(a, QUEUE_A, 0); }

void state_flow_groups_dead_holder(stage *s) {
    state_flow_groups(s);
    stage_actor_start(s, ACTOR_DEAD, hold_one, NULL);
    pass(s);
}
