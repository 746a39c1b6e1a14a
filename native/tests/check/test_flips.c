/* Random damage in shared memory, then everything that a process does: each call ends, nothing is read outside, and when
 * the memory is as it was, all is well. tools/flips does the same to processes, this does it to the core alone.
 *
 *   test_flips [SEED [ROUNDS]] */
#include "check/check.h"
#include "limits/room_wake.h"
#include "ring/ring.h"
#include "segment/inspect.h"
#include "upkeep/duty.h"
#include "wake/watch.h"
#include "flips.h"
#include "scratch_queue.h"

#define ROUNDS 800u
#define HELD 6u

static shmq_member *a, *b, *dead;
static shmq_queue *jobs, *limited, *theirs;
static shmq_delivery taken[HELD];
static uint32_t consumer, pin;
static shmq_a32 *wake_word;

/* Everything in use: bodies in slots and in blocks, carried and held back ones, rows, a view, a dead process, a deleted
 * queue that somebody still uses. */
static void build(void) {
    static unsigned char large[5000], huge[300000];
    shmq_segment_plan plan = scratch_plan(false);
    plan.memory = SHMQ_MEMORY_MIN;
    plan.room = SHMQ_MEMORY_MIN;
    plan.patience_ns = 1000000;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    a = scratch_attach();
    b = scratch_attach();
    dead = scratch_attach();
    jobs = scratch_queue(a, "jobs", 0, true);
    limited = scratch_queue(a, "limited", 8, true);
    theirs = scratch_queue(b, "jobs", 0, true);
    shmq_queue *of_dead = scratch_queue(dead, "jobs", 0, true), *gone = scratch_queue(b, "gone", 0, false);
    CHECK_EQUAL(put_bytes(jobs, large, sizeof large, 0), SHMQ_OK);
    for (uint64_t i = 1; i < 12; i++) {
        CHECK_EQUAL(put_number(jobs, i), SHMQ_OK);
        CHECK_EQUAL(put_number(limited, i), i <= 8 ? SHMQ_OK : SHMQ_FULL_COUNT);
    }
    taken[0] = receive(jobs, shmq_self(jobs)); /* carried soon */
    CHECK(shmq_block_pin(a, shmq_body_offset(taken[0].body), taken[0].body_gen, taken[0].body_len, &pin));
    for (uint64_t i = 0; i < 2 * shmq_slot_count(&jobs->first); i++) {
        CHECK_EQUAL(put_number(jobs, i), SHMQ_OK);
        (void)get_number(jobs);
    }
    CHECK_EQUAL(put_bytes(jobs, huge, sizeof huge, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &consumer), SHMQ_OK);
    taken[1] = receive(theirs, consumer);
    taken[2] = receive(limited, shmq_self(limited));
    taken[3] = receive(jobs, shmq_self(jobs));
    CHECK_EQUAL(shmq_release_until(jobs, &taken[3], true, shmq_now_ns() + 60 * SECOND), SHMQ_OK);
    taken[3] = receive(jobs, shmq_self(jobs));
    (void)receive(of_dead, shmq_self(of_dead));
    (void)claim_by_hand(of_dead);
    CHECK_EQUAL(put_bytes(jobs, large, sizeof large, 0), SHMQ_OK);
    CHECK_EQUAL(put_number(gone, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    (void)shmq_announce(theirs, consumer, false);
    scratch_kill(dead);
}

/* ---- damage --------------------------------------------------------------------------------------------------------- */

/* Where words are that decide something; found before any of them is damaged. */
static void find_regions(void) {
    add_region(&a->header->state, sizeof(shmq_segment_shm) - offsetof(shmq_segment_shm, state));
    add_region(a->granules, 64 * 8);
    add_region(a->page->pins, 64);
    add_region(a->page->chunks, 64);
    add_region(shmq_row_at(jobs, consumer), 64);
    for (uint32_t i = 0; i < 4; i++) {
        add_region(&a->rows[i], 256);
        add_region(&a->directory[i], sizeof(shmq_directory_shm));
    }
    for (uint32_t i = 0; i < 2; i++) {
        shmq_queue *q = i == 0 ? jobs : limited;
        add_region(q->counters, sizeof(shmq_counters_shm));
        add_region(&q->page->ring, 512);
        add_region(&q->page->ring.full, 64);
        add_region(q->page->sleepers, 1024);
        add_region(q->page, 1024);
        for (uint64_t slot = 0; slot < 12; slot++) {
            add_region(shmq_slot_at(&q->first, slot), 64);
        }
    }
    for (uint32_t granule = 0; granule < a->granule_count; granule++) {
        if (shmq_granule_kind(shmq_load_seq(&a->granules[granule])) == SHMQ_GRANULE_SLAB) {
            add_region((unsigned char *)a->slabs + (uint64_t)granule * 4096, 256);
        }
    }
}

/* ---- what a process does -------------------------------------------------------------------------------------------- */

static void use(shmq_queue *q) {
    static unsigned char large[5000];
    shmq_delivery d;
    uint64_t position = next(64);
    (void)put_number(q, 1);
    (void)put_bytes(q, large, sizeof large, 0);
    for (int i = 0; i < 6 && shmq_offer(q, shmq_self(q), &d) == SHMQ_OK; i++) {
        uint64_t what = next(5);
        shmq_status status = what == 0   ? shmq_offer_finish(q, &d)
                             : what == 1 ? SHMQ_SETTLED
                                         : shmq_offer_acquire(q, &d);
        if (what == 1) {
            shmq_offer_cancel(q, &d);
        } else if (what > 1 && status != SHMQ_SETTLED) {
            (void)shmq_delivery_intact(q, &d);
            (void)(what == 2 ? shmq_settle(q, &d) : shmq_release(q, &d, what == 3));
        }
    }
    for (int i = 0; i < 8 && shmq_browse(&q->first, &position, &d) == SHMQ_OK; i++) {
        (void)(shmq_browse_valid(&q->first, &d) && shmq_delivery_intact(q, &d));
        position++;
    }
    if (shmq_steal(&q->first, next(shmq_slot_count(&q->first) * 3), next(2) != 0, &d) == SHMQ_OK) {
        (void)shmq_settle(q, &d);
    }
    uint64_t soon = shmq_now_ns() + 100000;
    (void)shmq_ring_ready(q);
    (void)shmq_ring_join(q, soon);
    (void)shmq_offer_wait(q, shmq_self(q), 0, next(4) == 0 ? soon : 0, &d);
    uint64_t positions[SHMQ_LEVELS_MAX] = {next(16)};
    (void)shmq_browse_wait(q, positions, soon);
    shmq_notify_all(q);
}

static void use_jobs(void) { use(jobs); }
static void use_limited(void) { use(limited); }
static void use_theirs(void) { use(theirs); }

static void settle_what_is_held(void) {
    shmq_delivery copies[HELD];
    memcpy(copies, taken, sizeof taken);
    (void)shmq_settle(jobs, &copies[0]);
    (void)shmq_release(theirs, &copies[1], true);
    (void)(shmq_lock(limited, &copies[2]) == SHMQ_OK && shmq_settle(limited, &copies[2]) == SHMQ_OK);
    (void)shmq_release_until(jobs, &copies[3], true, shmq_now_ns() + next(2) * SECOND);
    shmq_block_unpin(a, pin, copies[0].body_len);
    (void)shmq_withdraw(theirs, consumer, false);
}

static void look_at_everything(void) {
    uint64_t where;
    shmq_stray stray = {.found = false};
    shmq_bodies bodies;
    for (int i = 0; i < 2; i++) {
        shmq_queue *q = i == 0 ? jobs : limited;
        (void)shmq_ring_fault(&q->first, &where);
        (void)census_of(q);
        (void)shmq_bodies_fault(&q->first, &bodies);
        if (shmq_structure_lock(a) == SHMQ_OK) {
            (void)shmq_entries_fault(&q->first, &where, &stray);
            shmq_structure_unlock(a);
        }
    }
    static const char *(*const checks[])(shmq_member *) = {
        shmq_structure_fault, shmq_directory_fault, shmq_processes_fault, shmq_counters_fault,
        shmq_pins_fault,      shmq_watch_fault,     shmq_references_fault};
    if (shmq_structure_lock(a) == SHMQ_OK) {
        for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
            (void)checks[i](a);
        }
        (void)shmq_blocks_fault(a);
        (void)shmq_consumers_fault(jobs);
        shmq_structure_unlock(a);
    }
}

static void manage(void) {
    shmq_declaration d = {.create = true};
    shmq_queue *q = NULL;
    int differs;
    uint32_t row, reaped;
    uint64_t what = next(4);
    if (shmq_queue_declare(a, what == 0 ? "other" : "jobs", what == 0 ? 5 : 4, &d, &q, &differs) == SHMQ_OK) {
        if (shmq_row_open(q, SHMQ_CONSUMER, &row) == SHMQ_OK) {
            (void)shmq_announce(q, row, next(2) != 0);
            (void)shmq_sleep_limit(q);
            shmq_row_closing(q, row);
            (void)shmq_row_close(q, row);
        }
        if (what == 0) {
            (void)shmq_queue_delete(q);
        }
        shmq_queue_unbind(q);
    }
    shmq_due_look(a);
    shmq_ring_time(&jobs->first, shmq_now_ns());
    shmq_watcher watcher;
    shmq_watch_enter(&watcher, a, wake_word);
    for (int i = 0; i < 3; i++) {
        (void)shmq_watch_slice(&watcher, 1000000);
        shmq_watch_tick(&watcher);
    }
    shmq_watch_leave(&watcher);
    if (next(2) != 0) {
        shmq_store_seq(&a->header->dirty, 1); /* the next holder builds the map anew */
    }
    if (shmq_structure_lock(a) == SHMQ_OK) {
        (void)shmq_blocks_reclaim(a);
        shmq_queues_release(a);
        shmq_structure_unlock(a);
    }
    (void)shmq_reap_dead(a, &reaped);
    shmq_row_open(jobs, SHMQ_GETTER, &row);
}

static void come_and_go(void) {
    shmq_identity identity;
    shmq_member *m = NULL;
    (void)shmq_segment_inspect(scratch_name, &identity);
    if (shmq_member_attach(scratch_name, NULL, &m) == SHMQ_OK) {
        (void)shmq_sweep_own(m);
        (void)shmq_member_leave(m, true);
        shmq_member_free(m);
    }
}

/* As it was in the beginning, whatever happened in between. */
static void check_all_is_well(void) {
    uint64_t where;
    restore_pages();
    const char *wrong = shmq_ring_fault(&jobs->first, &where);
    CHECK(wrong == NULL);
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    wrong = shmq_segment_fault(a);
    if (wrong != NULL) {
        fprintf(stderr, "round %llu: %s\n", (unsigned long long)round_now, wrong);
    }
    CHECK(wrong == NULL);
    CHECK(shmq_references_fault(a) == NULL);
    shmq_structure_unlock(a);
    restore_pages();
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20260101,
             rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : ROUNDS;
    printf("seed %llu, %llu rounds\n", (unsigned long long)seed, (unsigned long long)rounds);
    fflush(stdout);
    build();
    wake_word = &shmq_row_at(jobs, consumer)->wake;
    flipped = a;
    find_regions();
    keep_image();
    check_all_is_well();
    static void (*const calls[])(void) = {settle_what_is_held, use_jobs, use_limited, use_theirs,
                                          look_at_everything,  manage,   come_and_go};
    damage_and_use(seed, rounds, calls, sizeof calls / sizeof calls[0], check_all_is_well);
    shmq_queue_unbind(jobs);
    CHECK_EQUAL(shmq_member_leave(a, false), SHMQ_OK);
    scratch_remove();
    return 0;
}
