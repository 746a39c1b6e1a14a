/* States in which the segment has no memory left, or too little. */
#include "layout/block.h"
#include "put/put.h"
#include "segment/block_class.h"
#include "segment/structure.h"
#include "rows.h"
#include "scenario.h"

#define ONE_GRANULE 60000u /* bytes of a block that needs a granule of its own */
#define LEFT 2u

static bool take(act *a, uint64_t bytes) {
    shmq_block block;
    return shmq_take_block(a->q[QUEUE_A], bytes, 0, &(shmq_relief){0}, &block) == SHMQ_OK;
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

/* The memory that bodies leave to slots is not there either, in all processes that are forked from here. */
static void leave_nothing(act *a) { a->m->memory = shmq_load_seq(&a->m->header->reserved_bytes); }

void state_no_memory(stage *s) {
    put_blocks(s);
    take_all(&s->survivor);
}

void state_no_memory_for_slots(stage *s) {
    state_no_memory(s);
    leave_nothing(&s->survivor);
}

/* Memory and disk are full: what comes back has the block that is kept for it. */
void state_rows_first_full(stage *s) {
    state_rows_first_blocks(s);
    rows_full = true;
    take_all(&s->survivor);
}

/* Bodies had all the memory of this broker, and it is free now, where they had it; the tail comes to slots without any. */
void state_memory_of_bodies(stage *s) {
    static shmq_block had[STAGE_MEMORY / SHMQ_GRANULE_BYTES];
    uint32_t count = 0;
    act *a = &s->survivor;
    state_edge(s);
    while (shmq_take_block(a->q[QUEUE_A], ONE_GRANULE, 0, &(shmq_relief){0}, &had[count]) == SHMQ_OK) {
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        shmq_block_drop(a->m, had[i].offset, had[i].generation, 0);
    }
    if (shmq_structure_lock(a->m) != SHMQ_OK || shmq_blocks_reclaim(a->m) == 0) {
        die("bodies had nothing");
    }
    shmq_structure_unlock(a->m);
    leave_nothing(a);
}

void state_little_memory(stage *s) {
    put_blocks(s);
    shmq_member *m = s->survivor.m;
    shmq_block block = {0}, last[LEFT];
    for (uint32_t count = 0;
         shmq_take_block(s->survivor.q[QUEUE_A], ONE_GRANULE, 0, &(shmq_relief){0}, &block) == SHMQ_OK; count++) {
        last[count % LEFT] = block;
    }
    for (uint32_t i = 0; i < LEFT; i++) { /* whatever bodies leave to others, these are bodies' */
        shmq_block_drop(m, last[i].offset, last[i].generation, 0);
    }
    if (shmq_structure_lock(m) != SHMQ_OK || shmq_blocks_reclaim(m) != LEFT) {
        die("not two granules were left");
    }
    shmq_structure_unlock(m);
    leave_nothing(&s->survivor);
}

static void take_two(act *a) {
    if (!take(a, BLOCK_BYTES) || !take(a, BLOCK_BYTES) || take(a, BLOCK_BYTES)) {
        die("not two blocks were left");
    }
}

void state_dead_hoarder(stage *s) {
    shmq_block left[2];
    put_blocks(s);
    for (unsigned i = 0; i < 2; i++) {
        if (shmq_take_block(s->survivor.q[QUEUE_A], BLOCK_BYTES, 0, &(shmq_relief){0}, &left[i]) != SHMQ_OK) {
            die("no block");
        }
    }
    take_all(&s->survivor);
    for (unsigned i = 0; i < 2; i++) {
        shmq_block_drop(s->survivor.m, left[i].offset, left[i].generation, 0);
    }
    stage_actor_start(s, ACTOR_DEAD, take_two, NULL);
}

/* The first half of shmq_block_unpin(): the cell goes, its bit stays. */
static void die_unpinning(act *a) {
    act_receive(a, QUEUE_A, 0);
    act_view(a);
    act_settle(a);
    shmq_store_seq(&a->m->page->pins[a->pin].cell, 0);
}

void state_dead_viewer(stage *s) {
    state_no_memory(s);
    stage_actor_start(s, ACTOR_DEAD, die_unpinning, NULL);
}
