/* Queue "a" flows to disk: the oldest messages are rows, some lie in memory above them. */
#include "flow/waiting.h"
#include "lifecycle/declare.h"
#include "limits/count.h"
#include "queue/consumer_row.h"
#include "queue/settings.h"
#include "ring/version.h"
#include "scenario.h"

#include "act_flow.h"
#include "act_time.h"
#include "rows.h"

#define FEW (8u * SMALL_BYTES) /* so many bytes stay in memory: the ninth message finds none, and all before it go */
#define FEWER (4u * SMALL_BYTES)
#define MUCH (2 * SHMQ_TURN_BYTES) /* so much that whoever brings rows need not make room for them */
#define ROW_BYTES 80u /* of a small message */

static void put(stage *s, uint64_t first, uint32_t count, uint32_t bytes) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put(&s->survivor, QUEUE_A, value, bytes, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("put %llu of a state: %s", (unsigned long long)value, shmq_status_name(s->survivor.last));
        }
    }
}

static void get(stage *s, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        act_get(&s->survivor, QUEUE_A, 0);
        if (s->survivor.last != SHMQ_OK) {
            die("get %u of a state: %s", i, shmq_status_name(s->survivor.last));
        }
    }
}

static void limit(stage *s, uint64_t most) {
    act_limit_memory(&s->survivor, QUEUE_A, most);
    if (s->survivor.last != SHMQ_OK) {
        die("a limit of memory: %s", shmq_status_name(s->survivor.last));
    }
    (void)shmq_recount(s->survivor.q[QUEUE_A]); /* else the next put finds the queue full, whatever there is */
}

/* From now on for everybody who joins, too. */
static void may_flow(stage *s, uint64_t most) {
    act *a = &s->survivor;
    a->m->backing_of = rows_backing_of;
    limit(s, most);
    if (!shmq_may_flow(a->q[QUEUE_A])) {
        die("the queue may not flow");
    }
    beginning_apply_front(s->begins, a->q[QUEUE_A]);
}

static void expect_rows(const stage *s, uint64_t rows) {
    uint64_t there = shmq_flow_rows(s->survivor.q[QUEUE_A]);
    if (there != rows) {
        die("%llu rows in place of %llu", (unsigned long long)there, (unsigned long long)rows);
    }
}

void state_may_flow_few(stage *s) { may_flow(s, FEW); }

void state_may_have_much(stage *s) { limit(s, MUCH); }

void state_flow_full(stage *s) {
    may_flow(s, FEW);
    put(s, 1, 8, SMALL_BYTES);
}

void state_flow_full_held(stage *s) {
    state_flow_full(s);
    for (int i = 0; i < 6; i++) {
        act_receive(&s->survivor, QUEUE_A, 0);
    }
    for (int i = 0; i < 5; i++) {
        act_release(&s->survivor, false);
    }
}

void state_flow_full_blocks(stage *s) {
    may_flow(s, 4 * BLOCK_BYTES);
    put(s, 1, 4, BLOCK_BYTES);
}

void state_flow_full_ring(stage *s) {
    state_full_ring(s);
    may_flow(s, MUCH);
}

void state_flowing(stage *s) {
    state_flow_full(s);
    put(s, 9, 2, SMALL_BYTES);
    expect_rows(s, 8);
}

void state_flowing_full(stage *s) {
    state_flow_full(s);
    put(s, 9, 8, SMALL_BYTES);
    expect_rows(s, 8);
}

static void four_rows(stage *s) {
    may_flow(s, FEWER);
    put(s, 1, 8, SMALL_BYTES);
    expect_rows(s, 4);
}

void state_rows_first(stage *s) {
    four_rows(s);
    limit(s, MUCH);
}

void state_rows_first_blocks(stage *s) {
    may_flow(s, 2 * BLOCK_BYTES);
    put(s, 1, 4, BLOCK_BYTES);
    limit(s, MUCH);
    expect_rows(s, 2);
}

/* The entries above the rows have become rows, too; two of the eight came in in one turn, and the first is in hand. */
static void bring_two(stage *s) {
    four_rows(s);
    limit(s, ROW_BYTES + 1);
    act_receive(&s->survivor, QUEUE_A, 0);
    expect_rows(s, 6);
}

void state_front(stage *s) {
    bring_two(s);
    act_release(&s->survivor, false);
}

void state_front_held(stage *s) {
    bring_two(s);
    act_receive(&s->survivor, QUEUE_A, 0);
}

void state_front_held_sleeper(stage *s) {
    state_front_held(s);
    state_sleeper(s);
}

void state_front_held_starved(stage *s) {
    state_front_held_sleeper(s);
    shmq_queue *q = s->survivor.q[QUEUE_A];
    for (uint64_t idle = shmq_load_seq(&q->page->sleepers[0].idle); idle != 0; idle &= idle - 1) {
        shmq_consumer_shm *row = shmq_row_at(q, (uint32_t)__builtin_ctzll(idle));
        shmq_store_seq(&row->progress, shmq_version_starved(shmq_version(q), shmq_load_seq(&q->page->chances)));
    }
}

void state_rows_gone(stage *s) {
    state_rows_first(s);
    get(s, 4);
    expect_rows(s, 0);
}

static void state_rows_last_all(stage *s) {
    may_flow(s, FEWER);
    put(s, 1, 4, SMALL_BYTES);
    act_make_room(&s->survivor);
    expect_rows(s, 4);
}

void state_rows_last(stage *s) {
    state_flow_full(s);
    act_make_room(&s->survivor);
    get(s, 8);
    expect_rows(s, 0);
}

/* The second of four rows has come in by itself, and has been taken. */
void state_fetched(stage *s) {
    state_rows_first(s);
    act_steal_row(&s->survivor);
    expect_rows(s, 3);
}

/* The same one has come back, and lies in the front ring above the rows. */
void state_fetched_free(stage *s) {
    state_rows_first(s);
    uint64_t low = shmq_load_seq(&s->survivor.q[QUEUE_A]->first.shm->low);
    if (shmq_flow_fetch(&s->survivor.q[QUEUE_A]->first, low + 1) != SHMQ_OK) {
        die("a row does not come in by itself");
    }
    expect_rows(s, 3);
}

/* All rows have, and are gone. */
void state_fetched_all(stage *s) {
    state_rows_last_all(s);
    act_steal_rows(&s->survivor);
    expect_rows(s, 0);
}

/* Its life ends later; from now on it may be gone. */
static void put_mortal(stage *s, uint64_t value) {
    act_put_timed(&s->survivor, QUEUE_A, value, 0, LATER_NS);
    act_begin(&s->survivor, CALL_SETTLE, QUEUE_A, value);
}

/* Of four messages, 5 to 8, which are about to become rows, the lives of those in [first, last] end. */
static void fill_with_mortals(stage *s, uint64_t first, uint64_t last) {
    may_flow(s, FEWER);
    for (uint64_t value = 5; value <= 8; value++) {
        if (value >= first && value <= last) {
            put_mortal(s, value);
        } else {
            put(s, value, 1, SMALL_BYTES);
        }
    }
}

void state_flow_full_mortals(stage *s) { fill_with_mortals(s, 6, 7); }

static void flow_with_mortals(stage *s, uint64_t first, uint64_t last) {
    fill_with_mortals(s, first, last);
    put(s, 9, 2, SMALL_BYTES);
    expect_rows(s, 4);
}

void state_mortal_rows_first(stage *s) { flow_with_mortals(s, 5, 6); }

void state_mortal_rows_between(stage *s) { flow_with_mortals(s, 6, 7); }

void state_mortal_rows_only(stage *s) { flow_with_mortals(s, 5, 8); }

/* The life of a row in between is over, and it has come in by itself: what lies below it goes with it. */
void state_mortal_rows_fetched(stage *s) {
    flow_with_mortals(s, 5, 6);
    limit(s, MUCH);
    act_steal_row(&s->survivor);
    expect_rows(s, 3);
}

static void put_delayed(stage *s, uint64_t first, uint32_t count) {
    for (uint64_t value = first; value < first + count; value++) {
        act_put_timed(&s->survivor, QUEUE_A, value, LATER_NS, 0);
    }
}

static void expect_waiting(const stage *s, uint64_t rows) {
    uint64_t there = shmq_waiting_rows(s->survivor.q[QUEUE_A]).count;
    if (there != rows) {
        die("%llu waiting rows in place of %llu", (unsigned long long)there, (unsigned long long)rows);
    }
}

void state_flow_full_delayed(stage *s) {
    may_flow(s, FEW);
    put_delayed(s, 1, 8);
}

void state_waiting(stage *s) {
    state_flow_full_delayed(s);
    put_delayed(s, 9, 2);
    expect_waiting(s, 8);
}

void state_waiting_retried(stage *s) {
    state_rows_first(s);
    act_receive(&s->survivor, QUEUE_A, 0);
    act_release_later(&s->survivor, LATER_NS, false);
    shmq_mover t;
    if (shmq_turn_begin(&t, &s->survivor.q[QUEUE_A]->first) != SHMQ_OK ||
        shmq_waiting_flush(&t, t.front, UINT64_MAX) != SHMQ_OK) {
        die("what is to be tried again does not go to disk");
    }
    shmq_turn_end(&t);
    expect_waiting(s, 1);
}

/* All of the eight were in hand; those whose bits are set failed. */
static void fail_some(stage *s, uint32_t failed) {
    for (int i = 0; i < 8; i++) {
        act_receive(&s->survivor, QUEUE_A, 0);
    }
    for (uint32_t value = 1; value <= 8; value++) {
        act_release(&s->survivor, (failed >> value & 1) != 0);
    }
}

/* Some of those that are about to become rows failed. */
void state_flow_full_tried(stage *s) {
    state_flow_full(s);
    fail_some(s, 1u << 6 | 1u << 7);
}

/* One attempt is one too many by now. */
void state_poisoned_rows(stage *s) {
    shmq_declaration d = {0};
    int differs = -1;
    state_flow_full(s);
    fail_some(s, 1u << 3 | 1u << 6 | 1u << 7);
    put(s, 9, 2, SMALL_BYTES);
    limit(s, MUCH);
    expect_rows(s, 8);
    shmq_declaration_give(&d, SHMQ_SET_MAX_ATTEMPTS, 1);
    if (shmq_queue_alter(s->survivor.q[QUEUE_A], &d, &differs) != SHMQ_OK) {
        die("a limit of attempts");
    }
}

void state_flow_dead_moving(stage *s) {
    state_flow_full(s);
    stage_actor_start(s, ACTOR_DEAD, act_flow_before_commit, NULL);
}

void state_flow_dead_written(stage *s) {
    state_flow_full(s);
    stage_actor_start(s, ACTOR_DEAD, act_flow_behind_commit, NULL);
}

void state_flow_dead_decided(stage *s) {
    state_flow_full(s);
    stage_actor_start(s, ACTOR_DEAD, act_flow_decided, NULL);
}
