/* Random traffic on blocks: a table of slots that name blocks, as a ring's do, and workers that put, take over, pin,
 * settle and unpin. Each block's bytes say which block of which generation it is, so that a block that was freed while
 * somebody had it is seen at the next look. */
#ifndef SHMQ_TESTS_BLOCK_TRAFFIC_H
#define SHMQ_TESTS_BLOCK_TRAFFIC_H

#include "blocks/slab.h"
#include "check/faults.h"
#include "segment/structure.h"
#include "scratch_segment.h"

#define TRAFFIC_SLOTS 48u
#define TRAFFIC_PINS 24u

enum traffic_state { T_EMPTY, T_CLAIMED, T_AVAILABLE, T_ACQUIRED, T_DEQUEUED };

/* word: version 32 | owner row 16 | state 8 */
typedef struct traffic_slot {
    shmq_a64 word;
    shmq_a64 offset;
    shmq_a64 generation;
} traffic_slot;

typedef struct traffic_table {
    traffic_slot slots[TRAFFIC_SLOTS];
    shmq_a64 operations;
    shmq_a64 pinned;
    shmq_a64 full;
} traffic_table;

typedef struct traffic_worker {
    shmq_member *m;
    traffic_table *table;
    uint64_t random;
    uint32_t pins[TRAFFIC_PINS];
    shmq_block pinned[TRAFFIC_PINS];
    uint32_t pin_count;
} traffic_worker;

static inline uint64_t traffic_random(uint64_t *state) { return xorshift(state); }

static inline uint32_t traffic_state_of(uint64_t word) { return (uint32_t)word & 0xffu; }
static inline uint32_t traffic_owner(uint64_t word) { return (uint32_t)(word >> 8) & 0xffffu; }
static inline uint64_t traffic_to(uint64_t word, uint32_t owner, uint32_t state) {
    return (((word >> 32) + 1) << 32) | ((uint64_t)owner << 8) | state;
}

static inline uint64_t traffic_mark(uint64_t offset, uint32_t generation) {
    return offset * UINT64_C(0x9e3779b97f4a7c15) + generation;
}

static inline void traffic_write(const shmq_member *m, const shmq_block *b) {
    volatile uint64_t *at = shmq_at(m, b->offset);
    at[0] = at[b->capacity / 16] = at[b->capacity / 8 - 1] = traffic_mark(b->offset, b->generation);
}

static inline bool traffic_intact(const shmq_member *m, uint64_t offset, uint32_t generation) {
    shmq_block_location location;
    if (!shmq_block_locate(m, offset, &location)) {
        return false;
    }
    uint64_t bytes = shmq_class_bytes(location.size_class), mark = traffic_mark(offset, generation);
    const volatile uint64_t *at = shmq_at(m, offset);
    return at[0] == mark && at[bytes / 16] == mark && at[bytes / 8 - 1] == mark &&
           shmq_block_gen(shmq_load_seq(&location.block->word)) == generation;
}

static inline bool traffic_move(traffic_slot *slot, uint64_t from, uint32_t owner, uint32_t state) {
    return shmq_cas_seq(&slot->word, from, traffic_to(from, owner, state));
}

/* The step of a settlement; others do it, too, for a process that died in it. */
static inline void traffic_finish(shmq_member *m, traffic_slot *slot, uint64_t dequeued) {
    shmq_block_drop(m, shmq_load_seq(&slot->offset), (uint32_t)shmq_load_seq(&slot->generation), 0);
    traffic_move(slot, dequeued, 0, T_EMPTY);
}

static inline uint64_t traffic_bytes(uint64_t *random) {
    uint64_t bits = 6 + traffic_random(random) % 16; /* 64 bytes to 4 MiB, small ones as often as large ones */
    return (UINT64_C(1) << bits) + traffic_random(random) % (UINT64_C(1) << bits);
}

static inline void traffic_put(traffic_worker *w, traffic_slot *slot, uint64_t word) {
    shmq_block block;
    shmq_status status = shmq_block_take(w->m, traffic_bytes(&w->random), &block);
    if (status != SHMQ_OK) {
        CHECK(status == SHMQ_FULL_MEMORY || status == SHMQ_INTERRUPTED);
        shmq_add_relaxed(&w->table->full, status == SHMQ_FULL_MEMORY);
        return;
    }
    traffic_write(w->m, &block);
    if (traffic_random(&w->random) % 8 == 0 || !traffic_move(slot, word, w->m->row, T_CLAIMED)) {
        shmq_block_drop(w->m, block.offset, block.generation, 0); /* never published */
        return;
    }
    uint64_t claimed = traffic_to(word, w->m->row, T_CLAIMED);
    shmq_store_seq(&slot->offset, block.offset);
    shmq_store_seq(&slot->generation, block.generation);
    CHECK(traffic_move(slot, claimed, 0, T_AVAILABLE));
    shmq_block_share(w->m, &block);
}

static inline void traffic_get(traffic_worker *w, traffic_slot *slot, uint64_t word) {
    if (!traffic_move(slot, word, w->m->row, T_ACQUIRED)) {
        return;
    }
    uint64_t acquired = traffic_to(word, w->m->row, T_ACQUIRED);
    uint64_t offset = shmq_load_seq(&slot->offset);
    uint32_t generation = (uint32_t)shmq_load_seq(&slot->generation), n = w->pin_count;
    CHECK(traffic_intact(w->m, offset, generation));
    if (n < TRAFFIC_PINS && traffic_random(&w->random) % 2 == 0 &&
        shmq_block_pin(w->m, offset, generation, 100, &w->pins[n])) {
        w->pinned[n] = (shmq_block){offset, 0, generation};
        w->pin_count += 1;
        shmq_add_relaxed(&w->table->pinned, 1);
    }
    if (traffic_random(&w->random) % 4 == 0) {
        CHECK(traffic_move(slot, acquired, 0, T_AVAILABLE)); /* released */
        return;
    }
    CHECK(traffic_move(slot, acquired, w->m->row, T_DEQUEUED));
    traffic_finish(w->m, slot, traffic_to(acquired, w->m->row, T_DEQUEUED));
}

static inline void traffic_unpin(traffic_worker *w, uint32_t at) {
    CHECK(traffic_intact(w->m, w->pinned[at].offset, w->pinned[at].generation));
    shmq_block_unpin(w->m, w->pins[at], 100);
    w->pin_count -= 1;
    w->pins[at] = w->pins[w->pin_count];
    w->pinned[at] = w->pinned[w->pin_count];
}

static inline void traffic_step(traffic_worker *w) {
    traffic_slot *slot = &w->table->slots[traffic_random(&w->random) % TRAFFIC_SLOTS];
    uint64_t word = shmq_load_seq(&slot->word);
    if (w->pin_count > 0 && traffic_random(&w->random) % 3 == 0) {
        traffic_unpin(w, (uint32_t)(traffic_random(&w->random) % w->pin_count));
    }
    if (traffic_state_of(word) == T_EMPTY) {
        traffic_put(w, slot, word);
    } else if (traffic_state_of(word) == T_AVAILABLE) {
        traffic_get(w, slot, word);
    }
    shmq_add_relaxed(&w->table->operations, 1);
}

/* Take everything out of the table, as one who is alone. */
static inline void traffic_drain(shmq_member *m, traffic_table *table) {
    for (uint32_t i = 0; i < TRAFFIC_SLOTS; i++) {
        traffic_slot *slot = &table->slots[i];
        uint64_t word = shmq_load_seq(&slot->word);
        if (traffic_state_of(word) == T_AVAILABLE) {
            CHECK(traffic_intact(m, shmq_load_seq(&slot->offset), (uint32_t)shmq_load_seq(&slot->generation)));
            CHECK(traffic_move(slot, word, m->row, T_DEQUEUED));
            traffic_finish(m, slot, traffic_to(word, m->row, T_DEQUEUED));
        }
        CHECK_EQUAL(traffic_state_of(shmq_load_seq(&slot->word)), T_EMPTY);
    }
}

static inline bool traffic_dead(void *context, uint32_t row) {
    return shmq_process_dead(((traffic_worker *)context)->m, row);
}

static inline uint32_t traffic_named(void *context, uint64_t offset, uint32_t generation) {
    traffic_table *table = ((traffic_worker *)context)->table;
    for (uint32_t i = 0; i < TRAFFIC_SLOTS; i++) {
        uint32_t state = traffic_state_of(shmq_load_seq(&table->slots[i].word));
        if (state != T_EMPTY && state != T_CLAIMED && shmq_load_seq(&table->slots[i].offset) == offset &&
            shmq_load_seq(&table->slots[i].generation) == generation) {
            return 1;
        }
    }
    return 0;
}

static inline uint64_t traffic_sweep(shmq_member *m, traffic_table *table) {
    traffic_worker context = {.m = m, .table = table};
    return shmq_blocks_sweep(m, traffic_dead, traffic_named, &context);
}

/* Nobody else is at work: words make sense, what is used is what slots name, every FREE block can be found. */
static inline void traffic_check(shmq_member *m, traffic_table *table) {
    uint64_t named = 0;
    check_no_fault(shmq_blocks_fault(m));
    for (uint32_t i = 0; i < TRAFFIC_SLOTS; i++) {
        uint32_t state = traffic_state_of(shmq_load_seq(&table->slots[i].word));
        CHECK(state == T_EMPTY || state == T_AVAILABLE);
        if (state == T_AVAILABLE) {
            shmq_block_location location;
            uint64_t offset = shmq_load_seq(&table->slots[i].offset);
            uint32_t generation = (uint32_t)shmq_load_seq(&table->slots[i].generation);
            CHECK(traffic_intact(m, offset, generation) && shmq_block_locate(m, offset, &location));
            CHECK_EQUAL(shmq_block_refs(shmq_load_seq(&location.block->word)) & SHMQ_ENTRY_MASK, 1);
            CHECK_EQUAL(shmq_state_of(shmq_load_seq(&location.block->state)), SHMQ_BLOCK_SHARED);
            named += 1;
        }
    }
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.building, 0);
    CHECK_EQUAL(usage.used, named);
    for (uint32_t g = 0; g < m->granule_count; g++) {
        shmq_slab_shm *slab = shmq_slab_at(m, g);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
            if (shmq_state_of(shmq_load_seq(&slab->block[i].state)) == SHMQ_BLOCK_FREE) {
                CHECK((shmq_load_seq(&slab->free[i / 64]) >> (i % 64) & 1) != 0);
                CHECK((shmq_load_seq(shmq_class_bits(m, size_class, g)) >> (g % 64) & 1) != 0);
            }
        }
    }
}

static inline void traffic_lock(shmq_member *m) {
    shmq_status status;
    do {
        status = shmq_structure_lock(m);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
}

/* Alone, with an empty table: everything goes back to the map. */
static inline void traffic_check_all_given_back(shmq_member *m) {
    shmq_block_usage usage;
    traffic_lock(m);
    shmq_blocks_reclaim(m);
    check_no_fault(shmq_structure_fault(m));
    shmq_structure_unlock(m);
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.slabs, 0);
    CHECK_EQUAL(usage.bytes_total, 0);
}

#endif
