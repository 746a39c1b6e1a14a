#include "consumers/sleepers.h"
#include "limits/count.h"
#include "limits/waiters.h"
#include "look/census.h"
#include "put/put.h"
#include "queue/cold.h"
#include "queue/consumer_row.h"
#include "ring/ring_memory.h"
#include "segment/process_table.h"
#include "segment/structure.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "wake/wait.h"
#include "scenario.h"

#include "act_select.h"
#include "act_line.h"
#include "act_move.h"
#include "act_time.h"

#include "act_any.h"

/* Messages that come and go before the history begins. */
static void pass_through(stage *s, unsigned queue, uint32_t count) {
    uint32_t calls = the_board->count;
    for (uint32_t i = 0; i < count; i++) {
        act_put(&s->survivor, queue, 1, SMALL_BYTES, 0);
        act_get(&s->survivor, queue, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("a message does not pass");
        }
        the_board->count = calls;
    }
}

static void put_numbers(stage *s, unsigned queue, uint64_t first, uint32_t count, uint32_t bytes) {
    for (uint32_t i = 0; i < count; i++) {
        act_put(&s->survivor, queue, first + i, bytes, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %u of a state: %s", i, shmq_status_name(s->survivor.last));
        }
    }
}

void state_empty(stage *s) { (void)s; }

/* The next put comes to a slot whose next one has no memory yet. */
void state_edge(stage *s) {
    uint64_t laid = shmq_slots_laid(&s->survivor.q[QUEUE_A]->first);
    pass_through(s, QUEUE_A, (uint32_t)laid - 3);
    put_numbers(s, QUEUE_A, 1, 2, SMALL_BYTES);
}

/* Amid the same: there is memory, and the ring does not say so yet. */
static void die_laying(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    if (shmq_structure_lock(a->m) != SHMQ_OK ||
        shmq_rings_reserve(a->m, q->page->ring.run, SHMQ_GRANULE_BYTES) != SHMQ_OK) {
        die("no memory for slots");
    }
}

void state_edge_dead(stage *s) {
    state_edge(s);
    stage_actor_start(s, ACTOR_DEAD, die_laying, NULL);
}

void state_few(stage *s) { put_numbers(s, QUEUE_A, 1, 3, SMALL_BYTES); }

void state_blocks(stage *s) { put_numbers(s, QUEUE_A, 1, 3, BLOCK_BYTES); }

void state_weighed(stage *s) {
    put_numbers(s, QUEUE_A, 1, 2, SMALL_BYTES);
    act_limit_bytes(&s->survivor, QUEUE_A, UINT64_C(1) << 20);
    put_numbers(s, QUEUE_A, 3, 3, BLOCK_BYTES);
}

void state_slab(stage *s) {
    put_numbers(s, QUEUE_A, 1, 1, BLOCK_BYTES);
    act_get(&s->survivor, QUEUE_A, 0);
    put_numbers(s, QUEUE_A, 2, 2, SMALL_BYTES);
}

void state_wrapping(stage *s) {
    pass_through(s, QUEUE_A, 1022);
    put_numbers(s, QUEUE_A, 1, 1, SMALL_BYTES);
}

void state_wrapping_more(stage *s) {
    pass_through(s, QUEUE_A, 1022);
    put_numbers(s, QUEUE_A, 1, 4, SMALL_BYTES);
}

void state_full_ring(stage *s) { put_numbers(s, QUEUE_A, 1, 1024, SMALL_BYTES); }

void state_full_count(stage *s) { put_numbers(s, QUEUE_LIMITED, 1, 4, SMALL_BYTES); }

static void wait_for_room(act *a) {
    shmq_waiters waiters = shmq_room_waiters(a->q[QUEUE_LIMITED], a->q[QUEUE_LIMITED]->counters);
    shmq_join_count(&waiters);
    stage_actor_sleeps_on(&a->q[QUEUE_LIMITED]->first.shm->full);
}

/* There is room: fewer slots are in use than the limit allows. */
static bool has_room(act *survivor) {
    shmq_queue *q = survivor->q[QUEUE_LIMITED];
    uint64_t used = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(&q->first); i++) {
        used += shmq_word_state(shmq_load_seq(&shmq_slot_at(&q->first, i)->word)) != SHMQ_FREE;
    }
    return used < 4;
}

void state_full_waiter(stage *s) {
    state_full_count(s);
    stage_actor_start(s, ACTOR_SLEEPER, wait_for_room, has_room);
}

static void stand_in_line(act *a) { stage_actor_sleeps_on(act_line_stand(a)); }

static void die_in_line(act *a) { (void)act_line_stand(a); }

void state_line(stage *s) {
    state_full_count(s);
    stage_actor_start(s, ACTOR_SLEEPER, stand_in_line, has_room);
}

void state_line_beyond(stage *s) {
    state_line(s);
    for (int i = 0; i < 3; i++) {
        act_get(&s->survivor, QUEUE_LIMITED, 0);
    }
}

void state_line_dead_first(stage *s) {
    state_full_count(s);
    stage_actor_start(s, ACTOR_DEAD, die_in_line, NULL);
    stage_actor_start(s, ACTOR_SLEEPER, stand_in_line, has_room);
}

/* Room, and a call that the dead one has not heard. */
void state_line_dead_called(stage *s) {
    state_line_dead_first(s);
    shmq_queue *q = s->survivor.q[QUEUE_LIMITED];
    uint64_t word = shmq_load_seq(&q->tickets[0].word);
    shmq_store_seq(&q->tickets[0].word,
                   shmq_ticket_word(shmq_ticket_lap(word), shmq_ticket_row(word), SHMQ_TICKET_CALLED));
    act_get(&s->survivor, QUEUE_LIMITED, 0);
}

/* The first ticket is drawn for the victim; there is room for it and for the next one. */
void state_line_room(stage *s) {
    state_full_count(s);
    shmq_waiters waiters = shmq_room_waiters(s->survivor.q[QUEUE_LIMITED], s->survivor.q[QUEUE_LIMITED]->counters);
    (void)act_line_stand(&s->survivor);
    shmq_leave_count(&waiters);
    stage_actor_start(s, ACTOR_SLEEPER, stand_in_line, has_room);
    act_get(&s->survivor, QUEUE_LIMITED, 0);
    act_get(&s->survivor, QUEUE_LIMITED, 0);
}

void state_carry(stage *s) {
    put_numbers(s, QUEUE_A, 1, 1, SMALL_BYTES);
    act_receive(&s->survivor, QUEUE_A, 0);
    pass_through(s, QUEUE_A, 1022);
    put_numbers(s, QUEUE_A, 2, 1, SMALL_BYTES);
}

void state_carried_held(stage *s) {
    state_carry(s);
    put_numbers(s, QUEUE_A, 3, 2, SMALL_BYTES); /* passes the old one */
}

void state_carried(stage *s) {
    state_carried_held(s);
    act_release(&s->survivor, false);
}

/* A put up to its claim, and no further. */
static void claim_only(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    uint64_t t = shmq_load_seq(&q->first.shm->tail);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, t);
    uint64_t word = shmq_load_seq(&slot->word);
    if (!shmq_cas_seq(&slot->word, word, shmq_word(shmq_lap_of(&q->first, t), 0, shmq_self(q), 0, SHMQ_CLAIMED)) ||
        !shmq_cas_seq(&q->first.shm->tail, t, t + 1)) {
        die("claim");
    }
}

void state_hole(stage *s) {
    stage_actor_start(s, ACTOR_HOLDER, claim_only, NULL);
    put_numbers(s, QUEUE_A, 1, 2, SMALL_BYTES);
}

void state_old_hole(stage *s) {
    state_hole(s);
    for (int i = 0; i < 2; i++) {
        act_get(&s->survivor, QUEUE_A, SHMQ_FOR_EVER);
    }
    pass_through(s, QUEUE_A, 1021);
    put_numbers(s, QUEUE_A, 3, 1, SMALL_BYTES);
}

static bool has_entry(act *survivor) { return shmq_ring_ready(survivor->q[QUEUE_A]); }

static void sleep_as(act *a, uint32_t kind) {
    shmq_queue *q = a->q[QUEUE_A];
    uint32_t row = 0;
    if (shmq_row_open(q, kind, &row) != SHMQ_OK) {
        die("row");
    }
    (void)shmq_announce(q, row, kind == SHMQ_BROWSER);
    stage_actor_sleeps_on(&shmq_row_at(q, row)->wake);
}

static void sleep_for_entry(act *a) { sleep_as(a, SHMQ_GETTER); }

static void sleep_as_browser(act *a) { sleep_as(a, SHMQ_BROWSER); }

void state_sleeper(stage *s) { stage_actor_start(s, ACTOR_SLEEPER, sleep_for_entry, has_entry); }

static void sleep_for_either(act *a) { stage_actor_sleeps_on(act_announce_any(a)); }

static bool has_either(act *survivor) { return has_entry(survivor) || shmq_ring_ready(survivor->q[QUEUE_LIMITED]); }

void state_sleeper_of_two(stage *s) { stage_actor_start(s, ACTOR_SLEEPER, sleep_for_either, has_either); }

void state_entry_sleeper(stage *s) {
    put_numbers(s, QUEUE_A, 1, 1, SMALL_BYTES);
    state_sleeper(s);
}

void state_entries_sleeper(stage *s) {
    state_few(s);
    state_sleeper(s);
}

void state_sleepers(stage *s) {
    state_sleeper(s);
    state_sleeper(s);
}

static void sleep_for_nothing(act *a) { stage_actor_sleeps_on(act_lie_down_with_selector(a, false)); }

static void sleep_for_all(act *a) { stage_actor_sleeps_on(act_lie_down_with_selector(a, true)); }

/* A notifier meets the one that wants nothing first. */
void state_choosy_sleepers(stage *s) {
    put_numbers(s, QUEUE_A, 1, 1, SMALL_BYTES);
    act_get(&s->survivor, QUEUE_A, SHMQ_FOR_EVER);
    stage_actor_start(s, ACTOR_SLEEPER, sleep_for_nothing, has_entry);
    stage_actor_start(s, ACTOR_SLEEPER, sleep_for_all, has_entry);
}

void state_browser(stage *s) { stage_actor_start(s, ACTOR_SLEEPER, sleep_as_browser, has_entry); }

void state_asked(stage *s) { act_ask_for_news(&s->survivor); }

void state_released(stage *s) {
    state_few(s);
    act_receive(&s->survivor, QUEUE_A, 0);
    act_release(&s->survivor, false);
}

void state_dead_claim(stage *s) {
    stage_actor_start(s, ACTOR_DEAD, claim_only, NULL);
    put_numbers(s, QUEUE_A, 1, 2, SMALL_BYTES);
}

static void hold_some(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_row_open(a, QUEUE_A);
    act_receive(a, QUEUE_A, 0);
    (void)shmq_lock(a->q[QUEUE_A], &a->held[1].d);
    shmq_delivery d;
    (void)shmq_offer(a->q[QUEUE_A], shmq_self(a->q[QUEUE_A]), &d);
}

void state_dead_holder(stage *s) {
    state_few(s);
    stage_actor_start(s, ACTOR_DEAD, hold_some, NULL);
}

void state_few_held(stage *s) {
    state_few(s);
    act_receive(&s->survivor, QUEUE_A, 0);
}

void state_dead_holder_of_ending(stage *s) {
    state_dead_holder(s);
    act_delete(&s->survivor, QUEUE_A);
}

void state_ended(stage *s) {
    state_few_held(s);
    act_delete(&s->survivor, QUEUE_A);
    act_settle(&s->survivor);
}

/* A view, a loan, an entry in hand, and one that is settled but for its block. */
static void hold_blocks(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_view(a);
    act_settle(a);
    act_loan(a, BLOCK_BYTES);
    act_receive(a, QUEUE_A, 0);
}

void state_dead_blocks(stage *s) {
    state_blocks(s);
    stage_actor_start(s, ACTOR_DEAD, hold_blocks, NULL);
}

static void die_waiting(act *a) {
    wait_for_room(a);
    shmq_moving(a->q[QUEUE_LIMITED], 1);
    if (shmq_count_take(a->q[QUEUE_LIMITED], 1)) {
        die("the state is not full");
    }
}

void state_dead_waiter(stage *s) {
    state_full_count(s);
    stage_actor_start(s, ACTOR_DEAD, die_waiting, NULL);
}

void state_dead_sleeper(stage *s) { stage_actor_start(s, ACTOR_DEAD, sleep_for_entry, NULL); }

static void die_making(act *a) {
    uint64_t page = 0, run = 0;
    if (shmq_structure_lock(a->m) != SHMQ_OK || shmq_page_take(a->m, &page) != SHMQ_OK ||
        shmq_run_take(a->m, 2, SHMQ_GRANULE_RING, &run) != SHMQ_OK) {
        die("structure");
    }
}

void state_dead_maker(stage *s) {
    state_blocks(s);
    stage_actor_start(s, ACTOR_DEAD, die_making, NULL);
}

/* Dead there without a row, as who was about to get one: nothing in the table leads to it. */
static void die_attaching(act *a) {
    die_making(a);
    shmq_row_give(a->m);
}

void state_dead_attacher(stage *s) {
    state_blocks(s);
    stage_actor_start(s, ACTOR_DEAD, die_attaching, NULL);
}

static void make_temporary(act *a) {
    act_declare(a, QUEUE_EXTRA, "extra", true);
    act_body(1, BLOCK_BYTES);
    struct iovec piece = {.iov_base = (unsigned char[BLOCK_BYTES]){0}, .iov_len = BLOCK_BYTES};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = BLOCK_BYTES};
    (void)shmq_put(a->q[QUEUE_EXTRA], &o, 0);
}

void state_dead_temporary(stage *s) { stage_actor_start(s, ACTOR_DEAD, make_temporary, NULL); }

/* A deleted queue that nobody else has open, and a slab without a used block. */
static void leave_memory(act *a) {
    act_declare(a, QUEUE_EXTRA, "extra", false);
    act_put(a, QUEUE_A, 9, BLOCK_BYTES, 0);
    act_get(a, QUEUE_A, 0);
    act_delete(a, QUEUE_EXTRA);
}

void state_dead_user(stage *s) {
    stage_actor_start(s, ACTOR_DEAD, leave_memory, NULL);
    state_few(s);
}

void state_recount_due(stage *s) {
    put_numbers(s, QUEUE_LIMITED, 1, 3, SMALL_BYTES);
    (void)shmq_count_take(s->survivor.q[QUEUE_LIMITED], 1); /* as a death between count and slot leaves it */
    shmq_store_seq(&s->survivor.q[QUEUE_LIMITED]->page->recount_due, 1);
}

void state_held(stage *s) {
    put_numbers(s, QUEUE_A, 1, 1, SMALL_BYTES);
    act_put_timed(&s->survivor, QUEUE_A, 2, LATER_NS, 0);
    put_numbers(s, QUEUE_A, 3, 2, SMALL_BYTES);
}

void state_mortal(stage *s) {
    act_put_timed(&s->survivor, QUEUE_A, 1, 0, LATER_NS);
    act_begin(&s->survivor, CALL_SETTLE, QUEUE_A, 1); /* from now on it may be gone */
    put_numbers(s, QUEUE_A, 2, 2, SMALL_BYTES);
}

void state_mortal_held(stage *s) {
    state_mortal(s);
    act_receive(&s->survivor, QUEUE_A, 0);
}

/* The survivor's put waits, for whatever becomes of it. */
void state_immediate(stage *s) {
    (void)act_immediate_begin(&s->survivor, QUEUE_A, 1);
    put_numbers(s, QUEUE_A, 2, 2, SMALL_BYTES);
}

void state_leased(stage *s) {
    act_lease(&s->survivor, QUEUE_A, LATER_NS);
    put_numbers(s, QUEUE_A, 1, 3, SMALL_BYTES);
}

void state_leased_held(stage *s) {
    state_leased(s);
    act_receive(&s->survivor, QUEUE_A, 0);
}

void state_few_beside_full(stage *s) {
    state_full_count(s);
    put_numbers(s, QUEUE_A, 11, 3, SMALL_BYTES);
}

/* ---- moves -------------------------------------------------------------------------------------------------------- */

static void need_records(stage *s, unsigned queue) {
    if (shmq_cold_need(&s->survivor.q[queue]->first) != SHMQ_OK) {
        die("records");
    }
}

void state_movable(stage *s) {
    need_records(s, QUEUE_LIMITED);
    state_few(s);
}

void state_movable_blocks(stage *s) {
    need_records(s, QUEUE_LIMITED);
    state_blocks(s);
}

void state_movable_carry(stage *s) {
    need_records(s, QUEUE_A);
    state_carry(s);
    put_numbers(s, QUEUE_LIMITED, 11, 1, SMALL_BYTES);
}

void state_movable_sleeper(stage *s) {
    need_records(s, QUEUE_A);
    put_numbers(s, QUEUE_LIMITED, 11, 1, SMALL_BYTES);
    state_sleeper(s);
}

void state_dead_mover(stage *s) {
    state_movable(s);
    stage_actor_start(s, ACTOR_DEAD, act_move_undecided, NULL);
}

void state_dead_mover_block(stage *s) {
    state_movable_blocks(s);
    stage_actor_start(s, ACTOR_DEAD, act_move_undecided, NULL);
}

void state_dead_moved(stage *s) {
    state_movable(s);
    stage_actor_start(s, ACTOR_DEAD, act_move_decided, NULL);
}
