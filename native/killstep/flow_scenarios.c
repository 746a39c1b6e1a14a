/* Scenarios of deaths in a queue that flows to disk. */
#include "scenario.h"

#include "act_claim.h"
#include "act_flow.h"
#include "act_select.h"
#include "act_time.h"

#define VALUE 2000u /* the victim's first message */

static void body_small(act *a) {
    (void)a;
    act_body(VALUE, SMALL_BYTES);
}

static void body_big(act *a) {
    (void)a;
    act_body(VALUE, BLOCK_BYTES);
}

static void put(act *a) { act_put(a, QUEUE_A, VALUE, SMALL_BYTES, 0); }
static void put_big(act *a) { act_put(a, QUEUE_A, VALUE, BLOCK_BYTES, 0); }
static void get(act *a) { act_get(a, QUEUE_A, 0); }
static void receive(act *a) { act_receive(a, QUEUE_A, 0); }
static void settle(act *a) { act_settle(a); }
static void release(act *a) { act_release(a, false); }
static void retry(act *a) { act_release(a, true); }
static void receive_selected(act *a) { act_receive_selected(a, QUEUE_A, 0); }
static void receive_and_pass(act *a) { /* the get fetches what is of another group */
    act_row_open(a, QUEUE_A);
    receive(a);
    get(a);
}
static void look(act *a) { act_look(a); }
static void look_in_pieces(act *a) { act_look_in_pieces(a); }
static void purge(act *a) { act_purge(a, QUEUE_A); }
static void reap(act *a) { act_reap(a); }

const scenario flow_scenarios[] = {
    {"flow-enter", state_flow_full, body_small, put, SHMQ_OK, FLOWS | ON_SLOTS},
    {"flow-enter-past-held", state_flow_full_held, body_small, put, SHMQ_OK, FLOWS},
    {"flow-enter-blocks", state_flow_full_blocks, body_big, put_big, SHMQ_OK, FLOWS},
    {"flow-enter-full-ring", state_flow_full_ring, body_small, put, SHMQ_OK, FLOWS | LONG | DEAR},
    {"flow-put", state_flowing, body_small, put, SHMQ_OK, FLOWS},
    {"flow-flush", state_flowing_full, body_small, put, SHMQ_OK, FLOWS | ON_SLOTS},
    {"flow-get", state_flowing, NULL, get, SHMQ_OK, FLOWS},
    {"flow-pull", state_rows_first, NULL, get, SHMQ_OK, FLOWS | ON_SLOTS},
    {"flow-pull-blocks", state_rows_first_blocks, NULL, get, SHMQ_OK, FLOWS},
    {"flow-pull-full", state_rows_first_full, NULL, get, SHMQ_OK, FLOWS | DEAR},
    {"flow-pull-full-receive", state_rows_first_full, NULL, receive, SHMQ_OK, FLOWS | KEEPS | DEAR},
    {"flow-put-full", state_rows_first_full, body_big, put_big, SHMQ_NO_SPACE, FLOWS | DEAR},
    {"flow-pull-receive", state_rows_first, NULL, receive, SHMQ_OK, FLOWS | KEEPS},
    {"flow-leave", state_rows_gone, NULL, get, SHMQ_OK, FLOWS | ON_SLOTS},
    {"flow-leave-empty", state_rows_last, NULL, get, SHMQ_EMPTY, FLOWS},
    {"flow-front-get", state_front, NULL, get, SHMQ_OK, FLOWS},
    {"flow-front-receive", state_front, NULL, receive, SHMQ_OK, FLOWS | KEEPS},
    {"flow-front-ack", state_front, receive, settle, SHMQ_OK, FLOWS | KEEPS},
    {"flow-front-release", state_front, receive, release, SHMQ_OK, FLOWS | KEEPS},
    {"flow-front-retry", state_front, receive, retry, SHMQ_OK, FLOWS | KEEPS},
    {"flow-front-wakes", state_front_held_sleeper, NULL, act_steal_from_front, SHMQ_OK, FLOWS | BUSY | WAKES},
    {"flow-front-wakes-starved", state_front_held_starved, NULL, act_steal_from_front, SHMQ_OK, FLOWS | BUSY | WAKES},
    {"flow-purge", state_front, NULL, purge, SHMQ_OK, FLOWS | ON_SLOTS},
    {"flow-purge-dead-moving", state_flow_dead_moving, NULL, purge, SHMQ_OK, FLOWS},
    {"flow-purge-dead-decided", state_flow_dead_decided, NULL, purge, SHMQ_OK, FLOWS},
    {"flow-discard", state_flowing, NULL, act_discard_two_rows, SHMQ_EMPTY, FLOWS | LONG},
    {"flow-discard-all", state_front, NULL, act_discard, SHMQ_OK, FLOWS | LONG},
    {"flow-fetch", state_rows_first, act_as_selector, receive_selected, SHMQ_OK, FLOWS | ON_SLOTS | KEEPS},
    {"flow-fetch-blocks", state_rows_first_blocks, act_as_selector, receive_selected, SHMQ_OK, FLOWS | KEEPS},
    {"flow-fetch-ack", state_rows_first, act_select_and_receive, settle, SHMQ_OK, FLOWS | KEEPS},
    {"flow-fetch-release", state_rows_first, act_select_and_receive, release, SHMQ_OK, FLOWS | KEEPS},
    {"flow-group-fetch", state_flow_groups_dead_holder, NULL, get, SHMQ_OK, FLOWS | GROUPED | STEADY | LONG},
    {"flow-group-ack", state_flow_groups, receive_and_pass, settle, SHMQ_OK, FLOWS | GROUPED | STEADY | KEEPS},
    {"flow-group-release", state_flow_groups, receive_and_pass, release, SHMQ_OK, FLOWS | GROUPED | STEADY | KEEPS},
    {"flow-fetch-steal", state_rows_first, NULL, act_steal_row, SHMQ_OK, FLOWS},
    {"flow-fetched-get", state_fetched, NULL, get, SHMQ_OK, FLOWS},
    {"flow-fetched-receive", state_fetched_free, NULL, receive, SHMQ_OK, FLOWS | KEEPS},
    {"flow-fetched-discard", state_fetched, NULL, act_discard_two_rows, SHMQ_EMPTY, FLOWS | LONG},
    {"flow-fetched-all", state_fetched_all, NULL, get, SHMQ_EMPTY, FLOWS},
    {"flow-get-dead-moving", state_flow_dead_moving, NULL, get, SHMQ_OK, FLOWS},
    {"flow-get-dead-written", state_flow_dead_written, NULL, get, SHMQ_OK, FLOWS},
    {"flow-get-dead-decided", state_flow_dead_decided, NULL, get, SHMQ_OK, FLOWS},
    {"flow-put-dead-written", state_flow_dead_written, body_small, put, SHMQ_OK, FLOWS},
    {"flow-put-dead-decided", state_flow_dead_decided, body_small, put, SHMQ_OK, FLOWS},
    {"flow-expire-put", state_flow_full_mortals, body_small, put, SHMQ_OK, FLOWS | TIMED},
    {"flow-expire-first", state_mortal_rows_first, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED | ON_SLOTS},
    {"flow-expire-between", state_mortal_rows_between, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED | ON_SLOTS},
    {"flow-expire-all", state_mortal_rows_only, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED},
    {"flow-expire-fetched", state_mortal_rows_fetched, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED},
    {"flow-expire-rounds", state_mortal_rows_between, act_wait_till_later, look_in_pieces, SHMQ_OK, FLOWS | TIMED},
    {"flow-wait-put", state_flow_full_delayed, body_small, put, SHMQ_OK, FLOWS | TIMED | DELAYED | ON_SLOTS},
    {"flow-wait-come", state_waiting, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED | DELAYED | ON_SLOTS},
    {"flow-wait-rounds", state_waiting, act_wait_till_later, look_in_pieces, SHMQ_OK, FLOWS | TIMED | DELAYED},
    {"flow-wait-retried", state_waiting_retried, act_wait_till_later, look, SHMQ_OK, FLOWS | TIMED | DELAYED},
    {"flow-wait-steal", state_waiting, NULL, act_steal_waiting, SHMQ_OK, FLOWS | TIMED | DELAYED},
    {"flow-wait-purge", state_waiting, NULL, purge, SHMQ_OK, FLOWS | TIMED | DELAYED},
    {"flow-poison-put", state_flow_full_tried, body_small, put, SHMQ_OK, FLOWS},
    {"flow-poison-steal", state_poisoned_rows, NULL, act_steal_poisoned, SHMQ_EMPTY, FLOWS | ON_SLOTS},
    {"flow-alerts", state_flowing, NULL, act_tell_alerts, SHMQ_OK, FLOWS},
    {"flow-reap-mover", state_flow_dead_decided, NULL, reap, SHMQ_OK, FLOWS | LONG},
};

const unsigned flow_scenario_count = sizeof(flow_scenarios) / sizeof(flow_scenarios[0]);
