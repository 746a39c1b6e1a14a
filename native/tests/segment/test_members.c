/* Several memberships in one process and ONE mapping, a thread each, and everything that members do at once. Under
 * ThreadSanitizer this is the check that what is not ordered is not touched. Arguments: seed, steps of a thread. */
#include <pthread.h>
#include <time.h>

#include "member_traffic.h"

#define WORKERS 4
#define PHASE 1500 /* steps of one kind of traffic before the other */

static shmq_member *first;
static message_board board;
static uint64_t seed, steps, maxsize;
static shmq_member *dead[1000]; /* what a killed process leaves in its own memory: nobody frees it */
static shmq_a32 dead_count;
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

static void worker_begin(member_worker *w) {
    pthread_mutex_lock(&attaching); /* it is mapped at two addresses for a moment */
    w->m = scratch_attach_to(first);
    pthread_mutex_unlock(&attaching);
    w->m->patience_ns = 5000000;
    w->q = scratch_queue(w->m, "jobs", maxsize, true);
    w->held_count = w->view_count = w->consumer_row = 0;
    if (worker_random(w) % 2 == 0) {
        shmq_status status;
        do {
            status = shmq_row_open(w->q, SHMQ_CONSUMER, &w->consumer_row);
        } while (status == SHMQ_INTERRUPTED);
        CHECK_EQUAL(status, SHMQ_OK);
    }
}

/* With all that it holds: deliveries, views, rows. */
static void worker_die(member_worker *w) {
    uint32_t at = shmq_add_seq(&dead_count, 1);
    CHECK(at < sizeof dead / sizeof dead[0]);
    dead[at] = w->m;
    scratch_kill(w->m);
    shmq_add_relaxed(&board.died, 1);
}

static void worker_leave(member_worker *w) {
    worker_finish(w);
    if (w->consumer_row != 0) {
        while (shmq_row_close(w->q, w->consumer_row) == SHMQ_INTERRUPTED) {
        }
    }
    CHECK_EQUAL(shmq_sweep_own(w->m), SHMQ_OK);
    shmq_queue_unbind(w->q);
    scratch_leave(w->m);
}

static void *run_worker(void *argument) {
    uint64_t number = (uint64_t)(uintptr_t)argument;
    member_worker w = {.board = &board, .random = (seed + number * UINT64_C(0x9e3779b97f4a7c15)) | 1};
    worker_begin(&w);
    for (uint64_t i = 0; i < steps; i++) {
        if (i / PHASE % 2 == 0) {
            worker_hand_over(&w, number % 2 == 0);
        } else {
            worker_step(&w);
        }
        if (worker_random(&w) % 2000 == 0) {
            if (worker_random(&w) % 2 == 0) {
                worker_die(&w);
            } else {
                worker_leave(&w);
            }
            worker_begin(&w);
        }
    }
    worker_leave(&w);
    return NULL;
}

/* Alone: what was put and not settled is still there, once. */
static void check_the_rest(void) {
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(first, &reaped), SHMQ_OK);
    member_worker w = {.m = first, .q = scratch_queue(first, "jobs", maxsize, true), .board = &board};
    while (shmq_ring_ready(w.q)) {
        shmq_delivery d;
        CHECK_EQUAL(shmq_offer(w.q, shmq_self(w.q), &d), SHMQ_OK);
        shmq_status status = shmq_offer_acquire(w.q, &d);
        CHECK(status == SHMQ_OK || status == SHMQ_POISONED);
        worker_settle(&w, &d);
    }
    shmq_census census = census_of(w.q);
    CHECK_EQUAL(census.ready + census.unsettled + census.claimed + census.holes + census.broken, 0);
    CHECK_EQUAL(shmq_load_seq(&board.settled_count), shmq_load_seq(&board.next));
    check_ring(w.q);
    shmq_block_usage usage;
    shmq_blocks_usage(first, &usage);
    CHECK_EQUAL(usage.used, 0);
    CHECK_EQUAL(shmq_load_seq(&first->header->damage), 0);
    shmq_queue_unbind(w.q);
}

static void run(uint64_t limit) {
    pthread_t threads[WORKERS];
    maxsize = limit;
    scratch_create(false);
    first = scratch_attach();
    memset(&board, 0, sizeof board);
    for (uintptr_t i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_worker, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    check_the_rest();
    printf(
        "maxsize %llu: %llu steps, %llu messages, died %llu, holes %llu, carried %llu, redelivered %llu, views %llu, "
        "browsed %llu\n",
        (unsigned long long)limit, (unsigned long long)board.steps, (unsigned long long)board.next,
        (unsigned long long)board.died, (unsigned long long)board.holes, (unsigned long long)board.carried,
        (unsigned long long)board.redelivered, (unsigned long long)board.viewed, (unsigned long long)board.browsed);
    shmq_member_leave(first, true);
    scratch_remove();
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 9000;
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    run(0);
    run(40);
    return 0;
}
