/* Queue "a" of three levels; which one a message goes to, its value says (act.h). */
#include "groups/row_close.h"
#include "lifecycle/handle_bind.h"
#include "scenario.h"

#include "act_select.h"

static void put(stage *s, uint64_t first, uint32_t count, uint32_t bytes) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put(&s->survivor, QUEUE_A, value, bytes, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %llu of a state: %s", (unsigned long long)value, shmq_status_name(s->survivor.last));
        }
    }
}

/* In place of "a". */
void state_levels_empty(stage *s) {
    act *a = &s->survivor;
    uint32_t row;
    shmq_queue_unbind(a->q[QUEUE_A]);
    act_declare_levels(a, QUEUE_A, "levels", 3);
    if (a->last != SHMQ_OK || shmq_row_borrow(a->q[QUEUE_A], &row) != SHMQ_OK) {
        die("a queue of three levels: %s", shmq_status_name(a->last));
    }
    shmq_row_return(a->q[QUEUE_A], row);
    beginning_apply(s->begins, a->q[QUEUE_A]);
}

void state_levels_low(stage *s) {
    state_levels_empty(s);
    put(s, 1, 3, SMALL_BYTES);
}

void state_levels_below(stage *s) { /* nothing on the first level */
    state_levels_empty(s);
    put(s, MIDDLE + 1, 2, SMALL_BYTES);
    put(s, 1, 2, SMALL_BYTES);
}

void state_levels(stage *s) {
    state_levels_empty(s);
    put(s, HIGH + 1, 2, SMALL_BYTES);
    put(s, MIDDLE + 1, 2, BLOCK_BYTES);
    put(s, 1, 3, SMALL_BYTES);
}

static void hold_two(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_receive(a, QUEUE_A, 0);
}

void state_levels_dead_holder(stage *s) {
    state_levels_empty(s);
    put(s, HIGH + 1, 1, SMALL_BYTES);
    put(s, MIDDLE + 1, 2, SMALL_BYTES);
    put(s, 1, 1, SMALL_BYTES);
    stage_actor_start(s, ACTOR_DEAD, hold_two, NULL);
}

void state_levels_sleeper(stage *s) {
    state_levels_empty(s);
    state_sleeper(s);
}

/* Nothing that a taker of even values wants, before what it wants and behind. */
void state_mixed(stage *s) { put(s, 1, 5, SMALL_BYTES); }

void state_odd(stage *s) {
    put(s, 1, 1, SMALL_BYTES);
    put(s, 3, 1, SMALL_BYTES);
}
