/* Threads of one process in each other's way. Argument: seed. */
#include <pthread.h>
#include <time.h>

#include "block_traffic.h"

static shmq_member *m;
static traffic_table table;
static uint64_t seed;

static void *run_worker(void *argument) {
    uint64_t random = seed + (uint64_t)(uintptr_t)argument * 7919;
    traffic_worker worker = {.m = m, .table = &table, .random = random | 1};
    for (int i = 0; i < 40000; i++) {
        traffic_step(&worker);
        if (i % 2048 == 0) {
            traffic_sweep(m, &table); /* finds nobody dead, and must harm nobody */
            CHECK(shmq_blocks_fault(m) == NULL);
        }
    }
    while (worker.pin_count > 0) {
        traffic_unpin(&worker, 0);
    }
    return NULL;
}

static void run_threads(void *(*run)(void *)) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void test_threads_share_slabs_without_losing_a_block(void) {
    scratch_create(false);
    m = scratch_attach();
    run_threads(run_worker);
    traffic_check(m, &table);
    traffic_drain(m, &table);
    traffic_check(m, &table);
    CHECK_EQUAL(shmq_load_seq(&m->process->pinned_bytes), 0);
    CHECK(shmq_load_seq(&table.pinned) > 100);
    traffic_check_all_given_back(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    scratch_remove();
}

/* One block a slab, so that each take empties its slab and each drop fills it: all of them at the hints. */
static void *take_and_drop(void *argument) {
    (void)argument;
    for (int i = 0; i < 100000; i++) {
        shmq_block block;
        CHECK_EQUAL(shmq_block_take(m, SHMQ_GRANULE_BYTES, &block), SHMQ_OK);
        shmq_block_drop(m, block.offset, block.generation, 0);
    }
    return NULL;
}

static void test_hints_are_right_at_rest_without_a_sweep(void) {
    scratch_create(false);
    m = scratch_attach();
    run_threads(take_and_drop);
    traffic_check(m, &table);
    traffic_check_all_given_back(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    scratch_remove();
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    test_threads_share_slabs_without_losing_a_block();
    test_hints_are_right_at_rest_without_a_sweep();
    return 0;
}
