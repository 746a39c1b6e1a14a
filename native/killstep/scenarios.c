#include "scenario.h"

#include <string.h>

#include "virtual.h"

#define VALUE 2000u /* the victim's first message */

static uint64_t soon(uint64_t ns) { return virtual_clock() + ns; }

static void bodies_small(act *a) {
    (void)a;
    for (uint64_t i = 0; i < 4; i++) {
        act_body(VALUE + i, SMALL_BYTES);
    }
}

static void body_big(act *a) {
    (void)a;
    act_body(VALUE, BLOCK_BYTES);
}

static void put(act *a) { act_put(a, QUEUE_A, VALUE, SMALL_BYTES, 0); }
static void put_big(act *a) { act_put(a, QUEUE_A, VALUE, BLOCK_BYTES, 0); }
static void put_limited(act *a) { act_put(a, QUEUE_LIMITED, VALUE, SMALL_BYTES, 0); }
static void put_wait(act *a) { act_put(a, QUEUE_LIMITED, VALUE, SMALL_BYTES, soon(3 * PATIENCE_NS / 100)); }
static void put_many(act *a) { act_put_many(a, QUEUE_A, VALUE, 4); }
static void put_many_limited(act *a) { act_put_many(a, QUEUE_LIMITED, VALUE, 2); }
static void get(act *a) { act_get(a, QUEUE_A, 0); }
static void get_limited(act *a) { act_get(a, QUEUE_LIMITED, 0); }
static void get_many(act *a) {
    for (int i = 0; i < 3; i++) {
        act_get(a, QUEUE_A, 0);
    }
}
static void get_patiently(act *a) { act_get(a, QUEUE_A, soon(3 * PATIENCE_NS)); }
static void get_sleeping(act *a) { act_get(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void receive(act *a) { act_receive(a, QUEUE_A, 0); }
static void receive_limited(act *a) { act_receive(a, QUEUE_LIMITED, 0); }
static void receive_sleeping(act *a) { act_receive(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void settle(act *a) { act_settle(a); }
static void release(act *a) { act_release(a, false); }
static void retry(act *a) { act_release(a, true); }
static void bury(act *a) { act_bury(a, QUEUE_LIMITED, VALUE); }
static void as_consumer(act *a) { act_row_open(a, QUEUE_A); }
static void receive_as_consumer(act *a) {
    act_row_open(a, QUEUE_A);
    act_receive(a, QUEUE_A, 0);
}
static void receive_with_body(act *a) {
    bodies_small(a);
    receive_as_consumer(a);
}
static void close_consumer(act *a) { act_row_close(a, QUEUE_A); }
static void loan(act *a) { act_loan(a, BLOCK_BYTES); }
static void loan_filled(act *a) {
    body_big(a);
    act_loan(a, BLOCK_BYTES);
}
static void commit(act *a) { act_commit(a, QUEUE_A, VALUE); }
static void abandon(act *a) { act_abandon(a); }
static void view(act *a) { act_view(a); }
static void viewed(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_view(a);
}
static void settle_and_end_view(act *a) {
    act_settle(a);
    act_view_end(a);
}
static void attach(act *a) {
    char name[64];
    snprintf(name, sizeof(name), "%s", the_board->segment);
    act_attach(a, name);
}
static void leave(act *a) { act_leave(a); }
static void hold_and_sleep_row(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_row_open(a, QUEUE_A);
}
static void make(act *a) { act_declare(a, QUEUE_EXTRA, "extra", false); }
static void make_temporary(act *a) { act_declare(a, QUEUE_EXTRA, "extra", true); }
static void drop(act *a) { act_delete(a, QUEUE_A); }
static void purge(act *a) { act_purge(a, QUEUE_A); }
static void steal(act *a) { act_steal(a, QUEUE_A, 0); }
static void browse(act *a) { act_browse(a, QUEUE_A); }
static void browse_sleeping(act *a) { act_browse_wait(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void census(act *a) { act_census(a, QUEUE_A); }
static void join(act *a) { act_join(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void shut_down(act *a) { act_shut_down(a, QUEUE_A); }
static void reap(act *a) { act_reap(a); }
static void sweep_blocks(act *a) { act_sweep_blocks(a); }
static void rebuild(act *a) { act_rebuild(a); }

const scenario scenarios[] = {
    /* name, state, set-up, operation, how the operation ends, flags */
    {"put-empty", state_empty, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-few", state_few, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-wrapping", state_wrapping, bodies_small, put_many, SHMQ_OK, ON_SLOTS},
    {"put-full-ring", state_full_ring, bodies_small, put, SHMQ_FULL_RING, ON_SLOTS | LONG},
    {"put-full-count", state_full_count, bodies_small, put_limited, SHMQ_FULL_COUNT, ON_SLOTS},
    {"put-limited", state_few, bodies_small, put_limited, SHMQ_OK, ON_SLOTS},
    {"put-waits", state_full_count, bodies_small, put_wait, SHMQ_FULL_COUNT, 0},
    {"put-recounts", state_recount_due, bodies_small, put_limited, SHMQ_OK, LONG},
    {"put-carries", state_carry, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-past-hole", state_old_hole, bodies_small, put, SHMQ_OK, BUSY | ON_SLOTS},
    {"put-behind-claim", state_hole, bodies_small, put, SHMQ_OK, BUSY},
    {"put-past-dead-claim", state_dead_claim, bodies_small, put, SHMQ_OK, 0},
    {"put-block-new-slab", state_few, body_big, put_big, SHMQ_OK, LONG},
    {"put-block", state_slab, body_big, put_big, SHMQ_OK, ON_SLOTS},
    {"put-many", state_few, bodies_small, put_many, SHMQ_OK, ON_SLOTS},
    {"put-many-limited", state_few, bodies_small, put_many_limited, SHMQ_OK, 0},
    {"put-many-carries", state_carry, bodies_small, put_many, SHMQ_OK, ON_SLOTS},
    {"put-beside-carried", state_carried, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-many-past-hole", state_old_hole, bodies_small, put_many, SHMQ_OK, BUSY | ON_SLOTS},
    {"put-block-behind-claim", state_hole, body_big, put_big, SHMQ_OK, BUSY},
    {"put-block-wrapping", state_wrapping, body_big, put_big, SHMQ_OK, 0},
    {"wake", state_sleeper, bodies_small, put, SHMQ_OK, BUSY},
    {"wake-many", state_sleepers, bodies_small, put_many, SHMQ_OK, BUSY},
    {"wake-browser", state_browser, bodies_small, put, SHMQ_OK, BUSY},
    {"get", state_few, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-empty", state_empty, NULL, get, SHMQ_EMPTY, ON_SLOTS},
    {"get-block", state_blocks, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-released", state_released, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-carried", state_carried, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-wrapping", state_wrapping_more, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-many-wrapping", state_wrapping_more, NULL, get_many, SHMQ_OK, ON_SLOTS},
    {"get-many-carried", state_carried, NULL, get_many, SHMQ_OK, ON_SLOTS},
    {"get-many-blocks", state_blocks, NULL, get_many, SHMQ_OK, ON_SLOTS},
    {"get-beside-held", state_carried_held, NULL, get, SHMQ_OK, ON_SLOTS},
    {"get-full-ring", state_full_ring, NULL, get, SHMQ_OK, 0},
    {"get-many", state_few, NULL, get_many, SHMQ_OK, 0},
    {"get-full", state_full_count, NULL, get_limited, SHMQ_OK, ON_SLOTS},
    {"get-wakes-producer", state_full_waiter, NULL, get_limited, SHMQ_OK, BUSY},
    {"get-past-claim", state_hole, NULL, get_patiently, SHMQ_OK, BUSY | LONG},
    {"get-past-dead-claim", state_dead_claim, NULL, get, SHMQ_OK, 0},
    {"get-sleeps", state_empty, NULL, get_sleeping, SHMQ_EMPTY, LONG},
    {"receive", state_few, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-block", state_blocks, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-as-consumer", state_few, as_consumer, receive, SHMQ_OK, ON_SLOTS},
    {"receive-carried", state_carried, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-wrapping", state_wrapping_more, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-released", state_released, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-past-dead-claim", state_dead_claim, NULL, receive, SHMQ_OK, 0},
    {"receive-limited", state_full_count, NULL, receive_limited, SHMQ_OK, 0},
    {"receive-sleeps", state_empty, as_consumer, receive_sleeping, SHMQ_EMPTY, LONG},
    {"ack", state_few, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-block", state_blocks, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-as-consumer", state_few, receive_as_consumer, settle, SHMQ_OK, ON_SLOTS},
    {"ack-full", state_full_waiter, receive_limited, settle, SHMQ_OK, BUSY},
    {"ack-carried", state_carried, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-wrapping", state_wrapping_more, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-full-count", state_full_count, receive_limited, settle, SHMQ_OK, ON_SLOTS},
    {"release", state_few, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-block", state_blocks, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-carried", state_carried, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-limited", state_full_count, receive_limited, release, SHMQ_OK, ON_SLOTS},
    {"release-wrapping", state_wrapping_more, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-as-consumer", state_few, receive_as_consumer, release, SHMQ_OK, ON_SLOTS},
    {"release-wakes", state_entry_sleeper, receive, release, SHMQ_OK, BUSY},
    {"retry", state_few, receive, retry, SHMQ_OK, ON_SLOTS},
    {"retry-carried", state_carried, receive, retry, SHMQ_OK, ON_SLOTS},
    {"reject", state_few, receive_with_body, bury, SHMQ_OK, 0},
    {"loan", state_slab, NULL, loan, SHMQ_OK, 0},
    {"loan-commit", state_slab, loan_filled, commit, SHMQ_OK, 0},
    {"loan-abandon", state_slab, loan, abandon, SHMQ_OK, 0},
    {"view", state_blocks, receive, view, SHMQ_OK, 0},
    {"view-end", state_blocks, viewed, settle_and_end_view, SHMQ_OK, 0},
    {"consumer-open", state_few, NULL, as_consumer, SHMQ_OK, 0},
    {"consumer-close", state_few, as_consumer, close_consumer, SHMQ_OK, 0},
    {"attach", state_few, NULL, attach, SHMQ_OK, ATTACHES | LONG},
    {"leave", state_few, NULL, leave, SHMQ_OK, LONG},
    {"leave-holding", state_few, hold_and_sleep_row, leave, SHMQ_OK, LONG},
    {"make-queue", state_few, NULL, make, SHMQ_OK, MAKES},
    {"make-temporary", state_few, NULL, make_temporary, SHMQ_OK, 0},
    {"delete-queue", state_few, NULL, drop, SHMQ_OK, ENDS_QUEUE | LONG},
    {"delete-blocks", state_blocks, receive, drop, SHMQ_OK, ENDS_QUEUE | LONG},
    {"purge", state_few, NULL, purge, SHMQ_OK, 0},
    {"purge-carried", state_carried, NULL, purge, SHMQ_OK, 0},
    {"purge-blocks", state_blocks, NULL, purge, SHMQ_OK, 0},
    {"steal", state_carried_held, NULL, steal, SHMQ_OK, 0},
    {"browse", state_few, NULL, browse, SHMQ_OK, 0},
    {"browse-sleeps", state_few, NULL, browse_sleeping, SHMQ_EMPTY, 0},
    {"census", state_few, NULL, census, SHMQ_OK, 0},
    {"join", state_few, NULL, join, SHMQ_TIMEOUT, 0},
    {"shut-down", state_few, NULL, shut_down, SHMQ_OK, SHUTS | STEADY},
    {"reap-claim", state_dead_claim, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-holder", state_dead_holder, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-blocks", state_dead_blocks, NULL, reap, SHMQ_OK, LONG},
    {"reap-waiter", state_dead_waiter, NULL, reap, SHMQ_OK, LONG},
    {"reap-sleeper", state_dead_sleeper, NULL, reap, SHMQ_OK, LONG},
    {"reap-temporary", state_dead_temporary, NULL, reap, SHMQ_OK, LONG},
    {"sweep-blocks", state_dead_blocks, NULL, sweep_blocks, SHMQ_OK, LONG},
    {"rebuild", state_dead_maker, NULL, rebuild, SHMQ_OK, 0},
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

const scenario *scenario_named(const char *name) {
    for (unsigned i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}
