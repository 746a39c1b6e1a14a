#include "scenario.h"

#include "act_move.h"
#include "act_any.h"
#include "act_claim.h"
#include "act_group.h"
#include "act_line.h"
#include "act_ranks.h"
#include "act_peek.h"
#include "act_select.h"
#include "act_time.h"
#include "act_watch.h"
#include "virtual.h"

#define VALUE 2000u /* the victim's first message */

static uint64_t soon(uint64_t ns) { return virtual_clock() + ns; }

static void bodies_small(act *a) {
    (void)a;
    for (uint64_t i = 0; i < 4; i++) {
        act_body(VALUE + i, SMALL_BYTES);
    }
}

static void bodies_small_and_clock_set(act *a) {
    bodies_small(a);
    virtual_wall_step(UINT64_C(3600000000000));
}

static void body_big(act *a) {
    (void)a;
    act_body(VALUE, BLOCK_BYTES);
}

static void put(act *a) { act_put(a, QUEUE_A, VALUE, SMALL_BYTES, 0); }
static void put_big(act *a) { act_put(a, QUEUE_A, VALUE, BLOCK_BYTES, 0); }
static void put_big_wait(act *a) { act_put(a, QUEUE_A, VALUE, BLOCK_BYTES, soon(3 * PATIENCE_NS / 100)); }
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
static void receive_any(act *a) { act_receive_any(a, 0); }
static void receive_any_sleeping(act *a) { act_receive_any(a, soon(PATIENCE_NS / 50)); }
static void receive_news(act *a) { act_receive_news(a); }
static void settle(act *a) { act_settle(a); }
static void release(act *a) { act_release(a, false); }
static void retry(act *a) { act_release(a, true); }
static void release_all(act *a) { act_release_all(a); }
static void bury(act *a) { act_dead_letter(a, QUEUE_LIMITED); }
static void move_on(act *a) { act_move(a, QUEUE_LIMITED); }
static void move_back(act *a) { act_move(a, QUEUE_A); }
static void dead_letter_block(act *a) { act_dead_letter_block(a, QUEUE_EXTRA, "extra"); }
static void as_consumer(act *a) { act_row_open(a, QUEUE_A); }
static void receive_as_consumer(act *a) {
    act_row_open(a, QUEUE_A);
    act_receive(a, QUEUE_A, 0);
}
static void receive_two(act *a) {
    act_row_open(a, QUEUE_A);
    act_receive(a, QUEUE_A, 0);
    act_receive(a, QUEUE_A, 0);
}
static void receive_two_and_drop(act *a) {
    receive_two(a);
    act_delete(a, QUEUE_A);
}
static void close_consumer(act *a) { act_row_close(a, QUEUE_A); }
static void as_exclusive(act *a) { act_row_open_as(a, QUEUE_A, 0, true); }
static void as_implicit(act *a) {
    act_row_open_implicit(a, QUEUE_A);
    act_receive(a, QUEUE_A, 0);
    act_settle(a);
}
static void as_first(act *a) { act_row_open_as(a, QUEUE_A, 1, false); }
static void as_live(act *a) {
    act_limit_live(a, QUEUE_A, 1);
    act_row_open(a, QUEUE_A);
}
static void limit_live(act *a) { act_limit_live(a, QUEUE_A, 1); }
static void take_up(act *a) { act_take_up(a, QUEUE_A); }
static void pass(act *a) { act_receive_in_time(a, QUEUE_A); }
static void pass_more(act *a) { act_receive_twice(a, QUEUE_A); }
static void receive_wanting(act *a) { act_receive_wanting(a, QUEUE_A); }
static void settle_as_consumer(act *a) {
    receive_as_consumer(a);
    act_settle(a);
}
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
static void attach_and_get(act *a) {
    attach(a);
    act_get(a, QUEUE_A, 0);
}
static void leave(act *a) { act_leave(a); }
static void hold_and_sleep_row(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_row_open(a, QUEUE_A);
}
static void make(act *a) { act_declare(a, QUEUE_EXTRA, "extra", false); }
static void make_temporary(act *a) { act_declare(a, QUEUE_EXTRA, "extra", true); }
static void drop(act *a) { act_delete(a, QUEUE_A); }
static void receive_and_drop(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_delete(a, QUEUE_A);
}
static void put_immediate(act *a) { act_immediate(a, QUEUE_A, VALUE, 0); }
static void put_immediate_patiently(act *a) { act_immediate(a, QUEUE_A, VALUE, soon(PATIENCE_NS / 50)); }
static void purge(act *a) { act_purge(a, QUEUE_A); }
static void steal(act *a) { act_steal(a, QUEUE_A, the_board->first_position); }
static void browse(act *a) { act_browse(a, QUEUE_A); }
static void browse_sleeping(act *a) { act_browse_wait(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void census(act *a) { act_census(a, QUEUE_A); }
static void join(act *a) { act_join(a, QUEUE_A, soon(PATIENCE_NS / 50)); }
static void shut_down(act *a) { act_shut_down(a, QUEUE_A); }
static void drop_oldest(act *a) { act_drop_oldest(a, QUEUE_A); }
static void limit_bytes(act *a) { act_limit_bytes(a, QUEUE_A, UINT64_C(1) << 20); }
static void alter(act *a) { act_alter(a, QUEUE_A, SHMQ_RING_MIN); }
static void reap(act *a) { act_reap(a); }
static void sweep_blocks(act *a) { act_sweep_blocks(a); }
static void rebuild(act *a) { act_rebuild(a); }

/* Levels, and takers of some messages */
static void body_high(act *a) {
    (void)a;
    act_body(VALUE + HIGH, SMALL_BYTES);
}
static void bodies_middle(act *a) {
    (void)a;
    for (uint64_t i = 0; i < 3; i++) {
        act_body(VALUE + MIDDLE + i, SMALL_BYTES);
    }
}
static void put_high(act *a) { act_put(a, QUEUE_A, VALUE + HIGH, SMALL_BYTES, 0); }
static void put_middle(act *a) { act_put_many(a, QUEUE_A, VALUE + MIDDLE, 3); }
static void make_levels(act *a) { act_declare_levels(a, QUEUE_EXTRA, "extra", 3); }
static void select_while_others_put(act *a) {
    act_as_selector(a);
    act_body(1000 + HIGH, SMALL_BYTES);
    act_select_arrival(a, QUEUE_A, 1000 + HIGH);
}
static void select_while_one_is_to_sleep(act *a) {
    act_as_selector(a);
    act_body(1001, SMALL_BYTES);
    act_sleep_arrival(a, QUEUE_A, 1001);
    shmq_store_relaxed(&a->q[QUEUE_A]->rotation, a->row); /* who is woken first */
}
static void peek_while_one_is_to_sleep(act *a) {
    as_consumer(a);
    act_body(1001, SMALL_BYTES);
    act_sleep_arrival(a, QUEUE_A, 1001);
    shmq_store_relaxed(&a->q[QUEUE_A]->rotation, a->row);
}
static void peek_and_pass_on(act *a) { act_peek_and_pass_on(a, soon(PATIENCE_NS / 50)); }
static void peek_any_and_pass_on(act *a) { act_peek_any_and_pass_on(a, soon(PATIENCE_NS / 50)); }
static void receive_selected(act *a) { act_receive_selected(a, QUEUE_A, 0); }
static void receive_selected_sleeping(act *a) { act_receive_selected(a, QUEUE_A, soon(PATIENCE_NS / 50)); }

/* Groups that are taken from who lives */
static void receive_and_pass(act *a) {
    receive_as_consumer(a);
    act_get(a, QUEUE_A, 0); /* in another's name: it passes what the consumer has */
}
static void receive_pass_and_rob(act *a) {
    receive_and_pass(a);
    act_rob_self(a);
}
static void settle_robbed_and_release(act *a) {
    act_settle(a);
    act_release(a, false);
}

/* Time */
static void put_held(act *a) { act_put_timed(a, QUEUE_A, VALUE, LATER_NS, 0); }
static void put_mortal(act *a) { act_put_timed(a, QUEUE_A, VALUE, 0, 100 * LATER_NS); }
static void release_later(act *a) { act_release_later(a, LATER_NS, false); }
static void retry_later(act *a) { act_release_later(a, LATER_NS, true); }
static void get_and_wait(act *a) {
    act_get(a, QUEUE_A, 0);
    act_wait_till_later(a);
}
static void look(act *a) { act_look(a); }
static void look_in_pieces(act *a) { act_look_in_pieces(a); }
static void leave_unused(act *a) { act_unused(a, QUEUE_A, LATER_NS); }
static void look_unused(act *a) { act_look_unused(a, QUEUE_A); }
static void touch(act *a) { act_touch(a); }
static void receive_and_wait(act *a) {
    receive(a);
    act_wait_till_later(a);
}
static void stand_first(act *a) {
    bodies_small(a);
    act_line_take_over(a);
}
static void put_from_line(act *a) { act_line_put(a, VALUE); }
static void leave_line(act *a) { act_line_leave(a); }
static void put_past_silent(act *a) { act_put(a, QUEUE_LIMITED, VALUE, SMALL_BYTES, soon(4 * PATIENCE_NS)); }
const scenario scenarios[] = {
    /* name, state, set-up, operation, how the operation ends, flags */
    {"put-empty", state_empty, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-behind-step", state_few, bodies_small_and_clock_set, put, SHMQ_OK, ON_SLOTS},
    {"put-lays", state_edge, bodies_small, put, SHMQ_OK, STEADY},
    {"put-many-lays", state_edge, bodies_small, put_many, SHMQ_OK, STEADY},
    {"put-lays-by-bodies", state_memory_of_bodies, bodies_small, put, SHMQ_OK, LONG | STEADY},
    {"put-lays-past-dead", state_edge_dead, bodies_small, put, SHMQ_OK, LONG | STEADY},
    {"put-few", state_few, bodies_small, put, SHMQ_OK, ON_SLOTS}, /* Shows E2. */
    {"put-wrapping", state_wrapping, bodies_small, put_many, SHMQ_OK, ON_SLOTS},
    {"put-full-ring", state_full_ring, bodies_small, put, SHMQ_FULL_RING, ON_SLOTS | LONG},
    {"put-full-count", state_full_count, bodies_small, put_limited, SHMQ_FULL_COUNT, ON_SLOTS},
    {"put-limited", state_few, bodies_small, put_limited, SHMQ_OK, ON_SLOTS},
    {"put-waits", state_full_count, bodies_small, put_wait, SHMQ_FULL_COUNT, 0},
    {"put-recounts", state_recount_due, bodies_small, put_limited, SHMQ_OK, LONG},
    {"put-carries", state_carry, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-past-hole", state_old_hole, bodies_small, put, SHMQ_OK, BUSY | ON_SLOTS},
    {"put-behind-claim", state_hole, bodies_small, put, SHMQ_OK, BUSY},
    {"put-past-dead-claim", state_dead_claim, bodies_small, put, SHMQ_OK, 0}, /* Shows E3. */
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
    {"wake-choosy", state_choosy_sleepers, bodies_small, put, SHMQ_OK, BUSY | WAKES},
    {"wake-of-two", state_sleeper_of_two, bodies_small, put, SHMQ_OK, BUSY},
    {"wake-of-two-other", state_sleeper_of_two, bodies_small, put_limited, SHMQ_OK, BUSY},
    {"wake-browser", state_browser, bodies_small, put, SHMQ_OK, BUSY},
    {"put-news", state_asked, bodies_small, put, SHMQ_OK, 0},
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
    {"get-past-claim", state_hole, NULL, get_patiently, SHMQ_OK, BUSY},
    {"get-past-dead-claim", state_dead_claim, NULL, get, SHMQ_OK, 0},
    {"get-sleeps", state_empty, NULL, get_sleeping, SHMQ_EMPTY, 0}, /* Shows C5. */
    {"receive", state_few, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-block", state_blocks, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-as-consumer", state_few, as_consumer, receive, SHMQ_OK, ON_SLOTS},
    {"receive-carried", state_carried, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-wrapping", state_wrapping_more, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-released", state_released, NULL, receive, SHMQ_OK, ON_SLOTS},
    {"receive-past-dead-claim", state_dead_claim, NULL, receive, SHMQ_OK, 0},
    {"receive-limited", state_full_count, NULL, receive_limited, SHMQ_OK, 0},
    {"receive-sleeps", state_empty, as_consumer, receive_sleeping, SHMQ_EMPTY, 0},
    {"receive-any", state_few, NULL, receive_any, SHMQ_OK, ON_SLOTS},
    {"receive-any-sleeps", state_empty, NULL, receive_any_sleeping, SHMQ_EMPTY, 0},
    {"receive-news", state_few, NULL, receive_news, SHMQ_OK, ON_SLOTS},
    {"receive-no-news", state_empty, NULL, receive_news, SHMQ_EMPTY, 0},
    {"peek", state_sleeper, peek_while_one_is_to_sleep, peek_and_pass_on, SHMQ_OK, 0},
    {"peek-any", state_sleeper, peek_while_one_is_to_sleep, peek_any_and_pass_on, SHMQ_OK, 0},
    {"ack", state_few, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-block", state_blocks, receive, settle, SHMQ_OK, ON_SLOTS}, /* Shows E17. */
    {"ack-as-consumer", state_few, receive_as_consumer, settle, SHMQ_OK, ON_SLOTS},
    {"ack-full", state_full_waiter, receive_limited, settle, SHMQ_OK, BUSY},
    {"ack-carried", state_carried, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-wrapping", state_wrapping_more, receive, settle, SHMQ_OK, ON_SLOTS},
    {"ack-full-count", state_full_count, receive_limited, settle, SHMQ_OK, ON_SLOTS},
    {"release", state_few, receive, release, SHMQ_OK, ON_SLOTS}, /* Shows R1. */
    {"release-block", state_blocks, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-carried", state_carried, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-limited", state_full_count, receive_limited, release, SHMQ_OK, ON_SLOTS},
    {"release-wrapping", state_wrapping_more, receive, release, SHMQ_OK, ON_SLOTS},
    {"release-as-consumer", state_few, receive_as_consumer, release, SHMQ_OK, ON_SLOTS},
    {"release-wakes", state_entry_sleeper, receive, release, SHMQ_OK, BUSY}, /* Shows S54. */
    {"release-all", state_few, receive_two, release_all, SHMQ_OK, ON_SLOTS}, /* Shows S2, R2. */
    {"release-all-carried", state_carried, receive_two, release_all, SHMQ_OK, ON_SLOTS},
    {"release-all-wrapping", state_wrapping_more, receive_two, release_all, SHMQ_OK, ON_SLOTS},
    {"release-all-wakes", state_entries_sleeper, receive_two, release_all, SHMQ_OK, BUSY},
    {"release-all-ending", state_few, receive_two_and_drop, release_all, SHMQ_OK, ENDS_QUEUE},
    {"release-all-levels", state_levels, receive_two, release_all, SHMQ_OK, LEVELS | ON_SLOTS},
    {"release-all-groups", state_groups, receive_two, release_all, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"retry", state_few, receive, retry, SHMQ_OK, ON_SLOTS},
    {"retry-carried", state_carried, receive, retry, SHMQ_OK, ON_SLOTS},
    {"reject-first", state_few, receive_as_consumer, bury, SHMQ_OK, LONG},
    {"reject", state_movable, receive_as_consumer, bury, SHMQ_OK, ON_SLOTS},
    {"reject-block", state_movable_blocks, receive_as_consumer, bury, SHMQ_OK, ON_SLOTS},
    {"move", state_movable, receive, move_on, SHMQ_OK, ON_SLOTS},
    {"move-all", state_movable, NULL, act_move_all, SHMQ_OK, MOVES},
    {"move-all-blocks", state_movable_blocks, NULL, act_move_all, SHMQ_OK, MOVES | LONG},
    {"move-block", state_movable_blocks, receive, move_on, SHMQ_OK, 0},
    {"move-carries", state_movable_carry, receive_limited, move_back, SHMQ_OK, ON_SLOTS},
    {"move-to-sleeper", state_movable_sleeper, receive_limited, move_back, SHMQ_OK, BUSY},
    {"claim-few", state_movable, NULL, act_claim_two, SHMQ_OK, MOVES},
    {"claim-blocks", state_movable_blocks, NULL, act_claim_all, SHMQ_OK, MOVES | LONG},
    {"claim-carried", state_carried, NULL, act_claim_all, SHMQ_OK, LONG},
    {"claim-without-room", state_few_beside_full, NULL, act_claim_all, SHMQ_FULL_COUNT, LONG},
    {"claim-groups", state_groups_both, NULL, act_claim_all, SHMQ_OK, STEADY | GROUPED | BOTH_GROUPED | LONG},
    {"bury-block", state_blocks, receive_as_consumer, dead_letter_block, SHMQ_OK, MAKES},
    {"bury-without-room", state_few_beside_full, receive_as_consumer, bury, SHMQ_FULL_COUNT, LONG},
    {"loan", state_slab, NULL, loan, SHMQ_OK, 0},
    {"loan-commit", state_slab, loan_filled, commit, SHMQ_OK, 0},
    {"loan-abandon", state_slab, loan, abandon, SHMQ_OK, 0},
    {"view", state_blocks, receive, view, SHMQ_OK, 0},
    {"view-end", state_blocks, viewed, settle_and_end_view, SHMQ_OK, 0},
    {"consumer-open", state_few, NULL, as_consumer, SHMQ_OK, 0}, /* Shows R21. */
    {"consumer-close", state_few, as_consumer, close_consumer, SHMQ_OK, 0}, /* Shows C11. */
    {"consumer-open-selector", state_few, NULL, act_open_with_selector, SHMQ_OK, 0},
    {"exclusive-open", state_few, NULL, as_exclusive, SHMQ_OK, STEADY},
    {"exclusive-beside-implicit", state_few, as_implicit, as_exclusive, SHMQ_OK, STEADY},
    {"exclusive-close", state_few, as_exclusive, close_consumer, SHMQ_OK, STEADY},
    {"ranked-open", state_sleeper, NULL, as_first, SHMQ_OK, 0},
    {"ranked-receive", state_entry_sleeper, as_first, receive_wanting, SHMQ_OK, ON_SLOTS | STEADY},
    {"live-limit", state_few, as_consumer, limit_live, SHMQ_OK, 0},
    {"live-open", state_few, limit_live, as_consumer, SHMQ_OK, 0},
    {"live-receive", state_few, act_open_and_limit, receive, SHMQ_OK, 0},
    {"live-close", state_few, as_live, close_consumer, SHMQ_OK, 0},
    {"live-take-up", state_live_held, as_consumer, take_up, SHMQ_OK, BUSY},
    {"live-pass", state_live_stopped, as_consumer, pass, SHMQ_OK, BUSY | STANDS_BY},
    {"live-pass-more", state_live_stopped_more, as_consumer, pass_more, SHMQ_OK, BUSY | STANDS_BY},
    {"attach", state_few, NULL, attach, SHMQ_OK, ATTACHES | LONG},
    {"leave", state_few, NULL, leave, SHMQ_OK, LONG},
    {"leave-holding", state_few, hold_and_sleep_row, leave, SHMQ_OK, LONG},
    {"make-queue", state_few, NULL, make, SHMQ_OK, MAKES},
    {"make-temporary", state_few, NULL, make_temporary, SHMQ_OK, 0},
    {"delete-queue", state_few, NULL, drop, SHMQ_OK, ENDS_QUEUE | LONG},
    {"delete-blocks", state_blocks, receive, drop, SHMQ_OK, ENDS_QUEUE | LONG},
    {"delete-held", state_few_held, NULL, drop, SHMQ_OK, ENDS_QUEUE | LONG}, /* Shows R16. */
    {"ack-ending", state_few, receive_and_drop, settle, SHMQ_OK, ENDS_QUEUE},
    {"ack-block-ending", state_blocks, receive_and_drop, settle, SHMQ_OK, ENDS_QUEUE},
    {"release-ending", state_few, receive_and_drop, release, SHMQ_OK, ENDS_QUEUE}, /* Shows E15. */
    {"release-block-ending", state_blocks, receive_and_drop, release, SHMQ_OK, ENDS_QUEUE},
    {"reap-ending", state_dead_holder_of_ending, NULL, reap, SHMQ_OK, ENDS_QUEUE | LONG},
    {"make-beside-ending", state_ended, NULL, make, SHMQ_OK, ENDS_QUEUE | MAKES | LONG},
    {"purge", state_few, NULL, purge, SHMQ_OK, 0},
    {"purge-carried", state_carried, NULL, purge, SHMQ_OK, 0},
    {"purge-blocks", state_blocks, NULL, purge, SHMQ_OK, 0},
    {"discard", state_few, NULL, act_discard, SHMQ_OK, 0},
    {"discard-carried", state_carried, NULL, act_discard, SHMQ_OK, 0},
    {"steal", state_carried_held, NULL, steal, SHMQ_OK, 0}, /* Shows E11. */
    {"browse", state_few, NULL, browse, SHMQ_OK, 0},
    {"browse-sleeps", state_few, NULL, browse_sleeping, SHMQ_EMPTY, 0},
    {"census", state_few, NULL, census, SHMQ_OK, 0},
    {"join", state_few, NULL, join, SHMQ_TIMEOUT, 0},
    {"shut-down", state_few, NULL, shut_down, SHMQ_OK, SHUTS | STEADY},
    {"line-waits", state_line, bodies_small, put_wait, SHMQ_FULL_COUNT, BUSY},
    {"line-put", state_line_room, stand_first, put_from_line, SHMQ_OK, BUSY},
    {"line-leave", state_line_room, stand_first, leave_line, SHMQ_OK, BUSY},
    {"line-put-beyond", state_line_beyond, bodies_small, put_limited, SHMQ_OK, BUSY},
    {"line-past-silent", state_line_room, bodies_small, put_past_silent, SHMQ_OK, BUSY | LONG},
    {"line-get", state_line, NULL, get_limited, SHMQ_OK, BUSY},
    {"line-ack", state_line, receive_limited, settle, SHMQ_OK, BUSY},
    {"line-get-past-dead", state_line_dead_first, NULL, get_limited, SHMQ_OK, BUSY},
    {"line-put-past-dead", state_line_dead_called, bodies_small, put_limited, SHMQ_FULL_COUNT, BUSY},
    {"line-reap", state_line_dead_called, NULL, reap, SHMQ_OK, BUSY | LONG},
    {"put-weighed", state_weighed, bodies_small, put, SHMQ_OK, ON_SLOTS},
    {"put-block-weighed", state_weighed, body_big, put_big, SHMQ_OK, 0},
    {"get-weighed", state_weighed, NULL, get, SHMQ_OK, ON_SLOTS},
    {"ack-weighed", state_weighed, receive, settle, SHMQ_OK, ON_SLOTS},
    {"drop-oldest", state_few, NULL, drop_oldest, SHMQ_OK, ON_SLOTS},
    {"drop-carried", state_carried, NULL, drop_oldest, SHMQ_OK, ON_SLOTS},
    {"drop-blocks", state_blocks, NULL, drop_oldest, SHMQ_OK, 0},
    {"alter-weighs", state_few, NULL, limit_bytes, SHMQ_OK, 0},
    {"alter", state_few, NULL, alter, SHMQ_OK, 0},
    {"reap-claim", state_dead_claim, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-holder", state_dead_holder, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-mover", state_dead_mover, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-mover-block", state_dead_mover_block, NULL, reap, SHMQ_OK, LONG},
    {"reap-moved", state_dead_moved, NULL, reap, SHMQ_OK, ON_SLOTS | LONG},
    {"reap-blocks", state_dead_blocks, NULL, reap, SHMQ_OK, LONG},
    {"reap-waiter", state_dead_waiter, NULL, reap, SHMQ_OK, LONG},
    {"reap-sleeper", state_dead_sleeper, NULL, reap, SHMQ_OK, LONG},
    {"reap-memory", state_dead_user, NULL, reap, SHMQ_OK, MAKES | LONG},
    {"reap-temporary", state_dead_temporary, NULL, reap, SHMQ_OK, LONG},
    {"put-held-first", state_few, bodies_small, put_held, SHMQ_OK, TIMED},
    {"put-held", state_held, bodies_small, put_held, SHMQ_OK, TIMED | ON_SLOTS},
    {"put-mortal", state_held, bodies_small, put_mortal, SHMQ_OK, TIMED | ON_SLOTS},
    {"release-held", state_held, receive, release_later, SHMQ_OK, TIMED | ON_SLOTS},
    {"retry-held", state_held, receive, retry_later, SHMQ_OK, TIMED | ON_SLOTS},
    {"hold-end", state_held, act_wait_till_later, look, SHMQ_OK, TIMED | ON_SLOTS},
    {"hold-end-rounds", state_held, act_wait_till_later, look_in_pieces, SHMQ_OK, TIMED | ON_SLOTS},
    {"hold-end-get", state_held, act_wait_till_later, get, SHMQ_OK, TIMED | ON_SLOTS},
    {"expire", state_mortal, act_wait_till_later, look, SHMQ_OK, TIMED | ON_SLOTS},
    {"expire-rounds", state_mortal, act_wait_till_later, look_in_pieces, SHMQ_OK, TIMED | ON_SLOTS},
    {"expire-get", state_mortal, act_wait_till_later, get, SHMQ_OK, TIMED},
    {"expire-release", state_mortal, receive_and_wait, release, SHMQ_OK, TIMED},
    {"expire-held", state_mortal_held, act_wait_till_later, look, SHMQ_OK, TIMED},
    {"lease-receive", state_leased, NULL, receive, SHMQ_OK, TIMED | ON_SLOTS},
    {"lease-touch", state_leased, receive_as_consumer, touch, SHMQ_OK, TIMED},
    {"lease-ack", state_leased, receive, settle, SHMQ_OK, TIMED},
    {"lease-end", state_leased_held, act_wait_till_later, look, SHMQ_OK, TIMED | ON_SLOTS},
    {"levels-put", state_levels, bodies_small, put, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-put-high", state_levels_below, body_high, put_high, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-put-few", state_levels, bodies_middle, put_middle, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-put-sleeper", state_levels_sleeper, body_high, put_high, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-get", state_levels, NULL, get_many, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-get-low", state_levels_low, NULL, get, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-get-empty", state_levels_empty, NULL, get_sleeping, SHMQ_EMPTY, LEVELS},
    {"levels-receive", state_levels_below, as_consumer, receive, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-ack", state_levels_below, receive, settle, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-release", state_levels_below, receive_as_consumer, release, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-retry", state_levels_low, receive, retry, SHMQ_OK, LEVELS},
    {"levels-arrival", state_levels_low, select_while_others_put, receive_selected, SHMQ_OK, LEVELS | ON_SLOTS},
    {"levels-purge", state_levels, NULL, purge, SHMQ_OK, LEVELS},
    {"levels-delete", state_levels, NULL, drop, SHMQ_OK, LEVELS | ENDS_QUEUE | LONG},
    {"levels-make", state_few, NULL, make_levels, SHMQ_OK, MAKES},
    {"levels-reap", state_levels_dead_holder, NULL, reap, SHMQ_OK, LEVELS | LONG},
    {"select-receive", state_mixed, act_as_selector, receive_selected, SHMQ_OK, ON_SLOTS},
    {"select-ack", state_mixed, act_select_and_receive, settle, SHMQ_OK, ON_SLOTS},
    {"select-release", state_mixed, act_select_and_receive, release, SHMQ_OK, ON_SLOTS},
    {"select-sleeps", state_odd, act_as_selector, receive_selected_sleeping, SHMQ_EMPTY, 0},
    {"select-passes-on", state_sleeper, select_while_one_is_to_sleep, receive_selected_sleeping, SHMQ_EMPTY, 0},
    {"group-put", state_groups, bodies_small, put, SHMQ_OK, ON_SLOTS | GROUPED},
    {"group-get", state_groups, NULL, get_many, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"group-get-past", state_groups_held, NULL, get, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"group-receive", state_groups, as_consumer, receive, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"group-ack", state_groups, receive_as_consumer, settle, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"group-release", state_groups, receive_as_consumer, release, SHMQ_OK, ON_SLOTS | STEADY | GROUPED}, /* Shows R6. */
    {"group-get-dead", state_groups_dead_holder, NULL, get, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"group-reap", state_groups_refused, NULL, reap, SHMQ_OK, ON_SLOTS | LONG | GROUPED},
    {"group-steal", state_groups_held, get, steal, SHMQ_OK, STEADY | GROUPED},
    {"group-robbed", state_groups, receive_pass_and_rob, settle_robbed_and_release, SHMQ_OK, STEADY | GROUPED},
    {"group-lease-end", state_groups_leased, get_and_wait, look, SHMQ_OK, TIMED | STEADY | GROUPED},
    {"group-recheck", state_groups_held, get_and_wait, look, SHMQ_OK, GROUPED},
    {"group-recheck-offered", state_groups_offered, act_wait_till_later, look, SHMQ_OK, BUSY | STEADY | GROUPED},
    {"group-reap-stealer", state_groups_dead_stealer, NULL, reap, SHMQ_OK, LONG | GROUPED},
    {"group-move", state_groups_both, receive_and_pass, move_on, SHMQ_OK, STEADY | GROUPED | BOTH_GROUPED},
    {"group-reject", state_groups_both, receive_and_pass, bury, SHMQ_OK, STEADY | GROUPED | BOTH_GROUPED},
    {"group-reap-mover", state_groups_dead_mover, NULL, reap, SHMQ_OK, LONG | GROUPED | BOTH_GROUPED},
    {"group-reap-moved", state_groups_dead_moved, NULL, reap, SHMQ_OK, LONG | GROUPED | BOTH_GROUPED},
    {"sticky-lease-end", state_sticky_leased, get_and_wait, look, SHMQ_OK, TIMED | STEADY | GROUPED},
    {"sticky-lease-kept", state_sticky_leased_once, get_and_wait, look, SHMQ_OK, TIMED | STEADY | GROUPED},
    {"sticky-receive", state_sticky, as_consumer, receive, SHMQ_OK, ON_SLOTS | STEADY | GROUPED},
    {"sticky-close", state_sticky, settle_as_consumer, close_consumer, SHMQ_OK, LONG | STEADY | GROUPED},
    {"sticky-reap", state_sticky_dead_holder, NULL, reap, SHMQ_OK, ON_SLOTS | LONG | GROUPED},
    {"sweep-blocks", state_dead_blocks, NULL, sweep_blocks, SHMQ_OK, LONG},
    {"immediate", state_few, bodies_small, put_immediate, SHMQ_OK, 0},
    {"immediate-sleeper", state_sleeper, bodies_small, put_immediate_patiently, SHMQ_OK, 0},
    {"immediate-purge", state_immediate, NULL, purge, SHMQ_OK, 0},
    {"immediate-get", state_immediate, NULL, get, SHMQ_OK, 0},
    {"expires", state_few, leave_unused, look_unused, SHMQ_OK, TIMED | ENDS_QUEUE | LONG},
    {"get-reaps-blocks", state_dead_blocks, get, get_patiently, SHMQ_OK, LONG},
    {"put-no-memory", state_no_memory, body_big, put_big, SHMQ_FULL_MEMORY, DEAR},
    {"put-waits-for-memory", state_no_memory, body_big, put_big_wait, SHMQ_FULL_MEMORY, DEAR},
    {"put-dead-hoarder", state_dead_hoarder, body_big, put_big, SHMQ_OK, DEAR},
    {"put-sweeps-blocks", state_dead_viewer, body_big, put_big, SHMQ_OK, DEAR},
    {"get-no-memory", state_no_memory, NULL, get, SHMQ_OK, DEAR},
    {"attach-get-no-memory", state_no_memory, NULL, attach_and_get, SHMQ_OK, ATTACHES | DEAR},
    {"make-queue-no-memory", state_no_memory_for_slots, NULL, make, SHMQ_FULL_MEMORY, DEAR},
    {"make-queue-half-way", state_little_memory, NULL, make, SHMQ_FULL_MEMORY, DEAR},
    {"watch-first", state_watch_none, act_watch_begin, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"watch-silent", state_watch_stopped, act_watch_begin, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"watch-deputy", state_watch_stopped, act_watch_begin_behind, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"watch-volunteer", state_watch_both_stopped, act_watch_begin_behind, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"watch-asleep", state_watch_asleep, act_watch_begin, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"watch-asleep-behind", state_watch_volunteer, act_watch_begin, act_watch_wait, SHMQ_EMPTY, BUSY | WATCHED},
    {"ranked-pass", state_ranked_stopped, as_consumer, act_watch_wait, SHMQ_OK, BUSY | PASSES},
    {"reap-structure", state_dead_attacher, NULL, reap, SHMQ_OK, 0},
    {"rebuild", state_dead_maker, NULL, rebuild, SHMQ_OK, 0},
};

const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
