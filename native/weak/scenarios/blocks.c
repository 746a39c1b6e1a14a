/* Bodies in blocks: published, read in place, viewed, freed, used again at once. */
#include "blocks/slab.h"
#include "small_ring.h"

#define EACH 4u
#define BLOCK_BYTES 40000u /* one block a slab: each take and each free is at the hints, too */

static void set_up(void) {
    ring_set_up(0);
    shmq_block blocks[3];
    for (int i = 0; i < 3; i++) { /* three slabs, so that nobody needs the structure lock */
        CHECK_EQUAL(shmq_block_take(ring_members[0], BLOCK_BYTES, &blocks[i]), SHMQ_OK);
    }
    for (int i = 0; i < 3; i++) {
        shmq_block_drop(ring_members[0], blocks[i].offset, blocks[i].generation, 0);
    }
}

static void put_block(int t, uint64_t number) {
    shmq_queue *q = ring_queues[t];
    uint64_t body[BODY_WORDS] = {number, number * UINT64_C(0x9e3779b97f4a7c15) + 1};
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    for (;;) {
        if (shmq_block_take(q->m, BLOCK_BYTES, &o.block) == SHMQ_OK) {
            memcpy(shmq_at(q->m, o.block.offset), body, sizeof body);
            if (shmq_put(q, &o, 0) == SHMQ_OK) {
                board.total++;
                return;
            }
            shmq_unprepare(q, &o);
        }
        weak_yield();
    }
}

static bool take_one(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    uint32_t pin;
    if (!ring_receive(q, shmq_self(q), 0, &d)) {
        return false;
    }
    uint64_t number = ring_read(&d);
    bool pinned = weak_chance(128) && shmq_block_pin(q->m, shmq_body_offset(d.body), d.body_gen, 16, &pin);
    if (pinned && weak_chance(100)) { /* the view outlives our hold: another drops the entry */
        WEAK_CHECK(shmq_release(q, &d, false) == SHMQ_OK);
    } else if (shmq_settle(q, &d) == SHMQ_OK) {
        ring_note_got(number);
    }
    if (pinned) {
        WEAK_CHECK(ring_read(&d) == number);
        shmq_block_unpin(q->m, pin, 16);
    }
    return true;
}

/* At rest each FREE block is to be found by its hints. */
static void check_hints(void) {
    shmq_member *m = ring_members[0];
    for (uint32_t g = 0; g < m->granule_count; g++) {
        shmq_slab_shm *slab = shmq_slab_at(m, g);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
            if (shmq_state_of(shmq_load_seq(&slab->block[i].state)) == SHMQ_BLOCK_FREE) {
                WEAK_CHECK((shmq_load_seq(&slab->free[i / 64]) >> (i % 64) & 1) != 0);
                WEAK_CHECK((shmq_load_seq(shmq_class_bits(m, size_class, g)) >> (g % 64) & 1) != 0);
            }
        }
    }
}

static void thread(int t) {
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            put_block(t, (uint64_t)t * EACH + i);
        }
        return;
    }
    while (board.total < 2 * EACH) {
        (void)take_one(t);
        weak_yield();
    }
}

static void end(void) {
    while (take_one(0)) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
    shmq_block_usage usage;
    shmq_blocks_usage(ring_members[0], &usage);
    WEAK_CHECK(usage.used == 0);
    WEAK_CHECK(shmq_blocks_fault(ring_members[0]) == NULL);
    check_hints();
}

const weak_scenario weak_blocks = {
    "blocks", "blocks: publish, view, free, use again", 4, false, set_up, ring_begin, thread, end};
