#include "consumers/ranks.h"
#include "lifecycle/declare.h"
#include "queue/settings.h"
#include "take/take.h"
#include "act_ranks.h"

#include "virtual.h"

void act_row_open_as(act *a, unsigned queue, int32_t priority, bool exclusive) {
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = priority, .exclusive = exclusive};
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_row_open_as(a->q[queue], &terms, &a->row));
}

void act_row_open_implicit(act *a, unsigned queue) {
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .implicit = true};
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_row_open_as(a->q[queue], &terms, &a->row));
}

void act_receive_wanting(act *a, unsigned queue) {
    shmq_want(a->q[queue], a->row);
    act_receive(a, queue, 0);
    shmq_want_end(a->q[queue], a->row);
}

void act_open_and_limit(act *a) {
    act_row_open(a, QUEUE_A);
    act_limit_live(a, QUEUE_A, 1);
}

void act_receive_in_time(act *a, unsigned queue) { act_receive(a, queue, virtual_clock() + 5 * PATIENCE_NS); }

void act_receive_twice(act *a, unsigned queue) {
    act_receive(a, queue, 0);
    virtual_clock_set(virtual_clock() + 2 * PATIENCE_NS);
    act_receive(a, queue, 0);
}

void act_take_up(act *a, unsigned queue) {
    act_limit_live(a, queue, 2);
    act_receive(a, queue, 0);
}

void act_limit_live(act *a, unsigned queue, uint32_t live) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_LIVE_CONSUMERS, live);
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_queue_alter(a->q[queue], &d, &differs));
}
