/* A process dies with blocks: it builds one, has shared one, views one. Others sweep, while its messages are taken, its
 * blocks used again, and other views are alive. */
#include "recovery/recover.h"
#include "small_ring.h"

#define EACH 3u
#define BLOCK_BYTES 40000u /* one block a slab */

static bool dead_by_lock(void *context, uint32_t row) { return shmq_process_dead(context, row); }

static void set_up(void) {
    ring_set_up(0);
    shmq_block blocks[3];
    for (int i = 0; i < 3; i++) { /* so that nobody needs the structure lock */
        CHECK_EQUAL(shmq_block_take(ring_members[0], BLOCK_BYTES, &blocks[i]), SHMQ_OK);
    }
    for (int i = 0; i < 3; i++) {
        shmq_block_drop(ring_members[0], blocks[i].offset, blocks[i].generation, 0);
    }
}

static void begin(void) {
    ring_begin();
    weak_die_somewhere(0, ring_members[0]->row);
}

/* As the reaper asks it: after the block's word was read. */
static uint32_t named(void *context, uint64_t offset, uint32_t generation) {
    uint32_t bits = 0;
    (void)context;
    for (uint64_t i = 0; i < RING_SLOTS; i++) {
        shmq_slot_shm *slot = shmq_slot_at(&ring_queues[2]->first, i);
        uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
        uint64_t body = shmq_read_once(&slot->body);
        if ((shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) && shmq_body_offset(body) == offset &&
            shmq_read_once(&slot->body_gen) == generation) {
            bits |= UINT32_C(1) << (shmq_body_bit(body) & 31);
        }
    }
    return bits;
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
                return;
            }
            shmq_unprepare(q, &o);
        }
        weak_yield();
    }
}

/* The view outlives the message; what it shows stays what it was. */
static bool take_one(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    uint32_t pin;
    if (!ring_receive(q, shmq_self(q), 0, &d)) {
        return false;
    }
    uint64_t number = ring_read(&d);
    bool pinned = shmq_block_pin(q->m, shmq_body_offset(d.body), d.body_gen, 16, &pin);
    if (shmq_settle(q, &d) == SHMQ_OK) {
        ring_note_got(number);
    }
    if (pinned) {
        if (weak_running) {
            weak_step();
        }
        WEAK_CHECK(ring_read(&d) == number);
        shmq_block_unpin(q->m, pin, 16);
    }
    return true;
}

static void thread(int t) {
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            put_block(t, (uint64_t)t * EACH + i);
            (void)take_one(t);
        }
        board.total += t == 1;
        return;
    }
    while (board.total == 0) {
        (void)take_one(t);
        if (weak_chance(12)) { /* a look at all cells of all processes is some thousand steps */
            shmq_blocks_unpin_dead(ring_members[t], ring_members[0]->row);
            (void)shmq_blocks_sweep(ring_members[t], dead_by_lock, named, ring_members[t]);
        }
        weak_yield();
    }
}

static bool has_died(void *context, uint32_t row) {
    (void)context;
    return weak_is_dead(row);
}

/* All that the dead one held is given back by a reaper; then no block is left in use. */
static void end(void) {
    shmq_member *m = ring_members[1];
    shmq_liveness by_simulator = {.is_dead = has_died, .context = m};
    shmq_ring_recover(ring_queues[1], &by_simulator);
    while (take_one(1)) {
    }
    shmq_pins_recover(m, ring_members[0]->row, &by_simulator);
    (void)shmq_blocks_sweep(m, has_died, named, m);
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    WEAK_CHECK(usage.used == 0);
    for (uint64_t number = EACH; number < 2 * EACH; number++) {
        WEAK_CHECK(board.got[number] <= 1);
    }
    WEAK_CHECK(shmq_blocks_fault(ring_members[1]) == NULL);
    WEAK_CHECK(shmq_load_seq(&ring_members[0]->header->damage) == 0);
}

const weak_scenario weak_sweep = {"sweep", "the block sweep beside the living", 4, false, set_up, begin, thread, end};
