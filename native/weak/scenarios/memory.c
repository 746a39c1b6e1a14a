/* One block for two: who waits for memory is woken when it is free, slabs are given back and made anew on the way, and
 * whose the block is, his are its bytes. All asleep is a failure. The last scenario: it leaves no memory. */
#include "small_ring.h"

#define TIMES 2u
#define BLOCK_BYTES 40000u /* one block a slab */

static uint32_t finished;

static void begin(void) {
    ring_begin();
    finished = 0;
}

static void set_up(void) {
    static bool taken;
    shmq_block block, last = {0};
    ring_set_up(0);
    while (!taken && shmq_block_take(ring_members[5], BLOCK_BYTES, &block) == SHMQ_OK) {
        last = block;
    }
    if (!taken) {
        shmq_block_drop(ring_members[5], last.offset, last.generation, 0);
        taken = true;
        weak_keep(ring_members[5], sizeof *ring_members[5]);
    }
}

/* Until the other one waits, and a little longer; looked at as it is, without a step. */
static void hold(int t) {
    uint64_t waiters = 0, more = weak_random(40);
    for (int turns = 0; turns < 5000 && shmq_waiters_in(waiters) == 0 && finished == 0; turns++) {
        weak_yield();
        __builtin_memcpy(&waiters, (const void *)&ring_members[t]->header->memory_waiters, 8);
    }
    for (; more != 0; more--) {
        weak_yield();
    }
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    for (uint64_t i = 0; i < TIMES; i++) {
        shmq_block block;
        shmq_status status;
        while ((status = shmq_take_block(q, BLOCK_BYTES, SHMQ_FOR_EVER, &(shmq_relief){0}, &block)) ==
               SHMQ_INTERRUPTED) {
        }
        WEAK_CHECK(status == SHMQ_OK);
        uint64_t *bytes = shmq_at(q->m, block.offset), mark = (uint64_t)t * TIMES + i;
        memcpy(bytes, &mark, sizeof mark);
        hold(t);
        WEAK_CHECK(*bytes == mark);
        shmq_block_drop(q->m, block.offset, block.generation, 0);
    }
    finished++;
}

static void end(void) {
    WEAK_CHECK(shmq_waiters_in(shmq_load_seq(&ring_members[0]->header->memory_waiters)) == 0);
    WEAK_CHECK(shmq_blocks_fault(ring_members[0]) == NULL);
    WEAK_CHECK(shmq_load_seq(&ring_members[0]->header->damage) == 0);
}

const weak_scenario weak_memory = {"memory", "waiting for memory", 2, true, set_up, begin, thread, end};
