/* States in which the segment has no memory left, or too little. */
#include "scenario.h"
#include "shmq/structure.h"

#define ONE_GRANULE 60000u /* bytes of a block that needs a granule of its own */
#define LEFT 2u

static bool take(act *a, uint64_t bytes) {
    shmq_block block;
    return shmq_take_block(a->q[QUEUE_A], bytes, 0, &block) == SHMQ_OK;
}

/* Blocks of each size, the large ones first. */
static void take_all(act *a) {
    for (uint32_t size_class = SHMQ_CLASSES; size_class-- != 0;) {
        while (take(a, shmq_class_bytes(size_class))) {
        }
    }
}

static void put_blocks(stage *s) {
    for (uint64_t value = 1; value <= 3; value++) {
        act_put(&s->survivor, QUEUE_A, value, BLOCK_BYTES, 0);
    }
}

void state_no_memory(stage *s) {
    put_blocks(s);
    take_all(&s->survivor);
}

void state_little_memory(stage *s) {
    put_blocks(s);
    shmq_member *m = s->survivor.m;
    while (shmq_granules_free(m) > (uint64_t)shmq_granules_kept(m) + LEFT) {
        if (!take(&s->survivor, ONE_GRANULE)) {
            die("memory is full too early");
        }
    }
}

void state_dead_hoarder(stage *s) {
    put_blocks(s);
    stage_actor_start(s, ACTOR_DEAD, take_all, NULL);
}
