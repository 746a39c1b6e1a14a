/* Random damage in the words of a queue that flows to disk, and then everything that is done to such a queue: each call ends, nothing
 * is read outside, and when the memory is as it was, all is well. test_flips does the same to all the rest.
 *
 *   test_flow_flips [SEED [ROUNDS]] */
#include "queue/cold.h"
#include "ring/ring.h"
#include "upkeep/duty.h"
#include "flips.h"
#include "memory_rows.h"
#include "scratch_flow.h"

#define ROUNDS 1500u

static shmq_member *m;
static shmq_queue *q;
static shmq_ring *back, *front;
static shmq_delivery taken[4];

/* ---- rows --------------------------------------------------------------------------------------------------------------- */

static shmq_row kept[MEMORY_ROWS_MAX];
static uint32_t kept_count;

/* From here on the disk is full now and then. */
static bool fails_at_times(void) { return next(8) == 0; }

/* ---- a queue that flows ------------------------------------------------------------------------------------------------ */

static void build(void) {
    static unsigned char large[5000];
    shmq_segment_plan plan = scratch_plan(false);
    plan.memory = SHMQ_MEMORY_MIN;
    plan.room = SHMQ_MEMORY_MIN;
    plan.patience_ns = 1000000;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    m = scratch_attach();
    m->backing_of = memory_rows_of;
    q = scratch_flowing(m, "flows", UINT64_C(20000));
    back = &q->first;
    front = shmq_level(q, q->levels);
    for (uint64_t i = 0; i < 4000; i++) {
        CHECK_EQUAL(i % 97 == 0 ? put_bytes(q, large, sizeof large, 0) : put_number(q, i), SHMQ_OK);
    }
    for (uint64_t i = 0; i < 1500; i++) {
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    for (int i = 0; i < 4; i++) {
        taken[i] = receive(q, shmq_self(q));
        CHECK(taken[i].depth == q->levels);
    }
    CHECK(shmq_flow_rows(q) > 1000 && memory_row_count > 1000);
}

/* ---- damage ------------------------------------------------------------------------------------------------------------ */

static void find_regions(void) {
    uint64_t place = shmq_flow_place(shmq_load_seq(&back->shm->flow)), tail = shmq_load_seq(&front->shm->tail);
    for (int i = 0; i < 4; i++) { /* these more often than others */
        add_region(&back->shm->flow, 48);
        add_region(&front->shm->tail, 16);
        add_region(&q->page->unfinished, 8);
        add_region(&front->shm->cold, 8);
    }
    add_region(back->shm, 320);
    add_region(front->shm, sizeof *front->shm);
    add_region(&q->page->state, 48);
    add_region(&q->page->limited, 4);
    add_region(&q->page->resident, 8);
    for (uint64_t i = 0; i < 6; i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, tail - 3 + i);
        add_region(slot, 64);
        add_region(shmq_slot_at(back, place + i * i), 64);
        add_region(shmq_cold_at(front, slot), 64);
    }
}

static void restore(void) {
    restore_pages();
    memory_rows_restore(kept, kept_count);
}

/* ---- what is done ------------------------------------------------------------------------------------------------------ */

static void puts_some(void) {
    static unsigned char large[5000];
    for (uint64_t i = next(400); i != 0; i--) {
        (void)(next(50) == 0 ? put_bytes(q, large, sizeof large, 0) : put_number(q, i));
    }
}

static void takes_some(void) {
    const shmq_taking t = {.owner = shmq_self(q)};
    shmq_delivery d;
    for (uint64_t i = next(600); i != 0; i--) {
        shmq_status status = shmq_receive(q, &t, &d);
        if (status == SHMQ_OK) {
            (void)(next(8) == 0 ? shmq_release(q, &d, next(2) != 0) : shmq_settle(q, &d));
        } else if (status != SHMQ_INTERRUPTED) {
            return;
        }
    }
}

static void settles_what_is_held(void) {
    shmq_delivery copies[4];
    memcpy(copies, taken, sizeof taken);
    (void)shmq_settle(q, &copies[0]);
    (void)shmq_release(q, &copies[1], true);
    (void)shmq_release_until(q, &copies[2], true, shmq_now_ns() + next(2) * SECOND);
    (void)shmq_place_of(q, &copies[3]);
}

static void moves(void) {
    (void)shmq_purger_make_room(q, next(2) != 0 ? back : NULL);
    (void)shmq_inhaler_bring(back);
    shmq_store_seq(&q->page->unfinished, 1); /* its mover is dead */
    (void)shmq_inhaler_bring(back);
}

static void empties(void) {
    uint64_t purged;
    if (next(3) == 0) {
        (void)shmq_purge(q, &purged);
    }
}

static void looks(void) {
    uint64_t where;
    shmq_stray stray;
    shmq_bodies bodies;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        (void)shmq_ring_fault(shmq_level(q, depth), &where);
        (void)shmq_entries_fault(shmq_level(q, depth), &where, &stray);
        (void)shmq_bodies_fault(shmq_level(q, depth), &bodies);
    }
    (void)census_of(q);
    (void)shmq_references_fault(m);
    (void)shmq_directory_fault(m);
}

static void runs_other_things(void) {
    uint32_t reaped;
    shmq_due_look(m);
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        shmq_ring_time(shmq_level(q, depth), shmq_now_ns());
    }
    if (next(2) != 0) {
        shmq_store_seq(&m->header->dirty, 1); /* the next holder builds the map anew */
    }
    if (shmq_structure_lock(m) == SHMQ_OK) {
        (void)shmq_blocks_reclaim(m);
        shmq_structure_unlock(m);
    }
    (void)shmq_reap_dead(m, &reaped);
}

/* Each turn of a flush would seem to get on. */
static void a_put_beside_a_tail_beyond_all_positions_ends(void) {
    shmq_store_seq(&back->shm->tail, shmq_load_seq(&back->shm->tail) | UINT64_C(1) << 63);
    CHECK_EQUAL(shmq_purger_make_room(q, back), SHMQ_CORRUPT);
    puts_some();
}

static void check_all_is_well(void) {
    restore();
    check_ring(q);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK(shmq_segment_fault(m) == NULL);
    shmq_structure_unlock(m);
    CHECK(shmq_references_fault(m) == NULL);
    restore();
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20260101,
             rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : ROUNDS;
    printf("seed %llu, %llu rounds\n", (unsigned long long)seed, (unsigned long long)rounds);
    fflush(stdout);
    build();
    flipped = m;
    find_regions();
    keep_image();
    kept_count = memory_rows_keep(kept);
    memory_rows_full = fails_at_times;
    check_all_is_well();
    alarm(30);
    a_put_beside_a_tail_beyond_all_positions_ends();
    check_all_is_well();
    static void (*const calls[])(void) = {puts_some, takes_some, settles_what_is_held, moves,
                                          empties,   looks,      runs_other_things};
    damage_and_use(seed, rounds, calls, sizeof calls / sizeof calls[0], check_all_is_well);
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_member_leave(m, false), SHMQ_OK);
    scratch_remove();
    return 0;
}
