/* Blocks one step at a time: classes, references, pins, slabs that come and go, each half-done step and its repair. */
#include "block_traffic.h"

static shmq_member *m;
static traffic_table table;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    memset(&table, 0, sizeof(table));
}

static void end(void) {
    CHECK(shmq_blocks_fault(m) == NULL);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    scratch_remove();
}

static shmq_block take(uint64_t bytes) {
    shmq_block block;
    CHECK_EQUAL(shmq_block_take(m, bytes, &block), SHMQ_OK);
    return block;
}

static shmq_block_location place_of(const shmq_block *block) {
    shmq_block_location location;
    CHECK(shmq_block_locate(m, block->offset, &location));
    return location;
}

static uint64_t word_of(const shmq_block *block) { return shmq_load_seq(&place_of(block).block->word); }
static uint32_t state_of(const shmq_block *block) {
    return shmq_state_of(shmq_load_seq(&place_of(block).block->state));
}

static uint64_t used(void) {
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    return usage.used;
}

/* Rows of processes that never were: `dead_row` is the answer, what slots name is `named_mask`. */
static uint32_t dead_row, named_mask;
static bool is_dead(void *context, uint32_t row) {
    (void)context;
    return row == dead_row;
}
static uint32_t is_named(void *context, uint64_t offset, uint32_t generation) {
    (void)context;
    CHECK(offset != 0 && generation != 0);
    return named_mask;
}
static uint64_t sweep(uint32_t row, uint32_t named) {
    dead_row = row;
    named_mask = named;
    return shmq_blocks_sweep(m, is_dead, is_named, NULL);
}

TEST(test_classes_grow_by_half_at_most_and_fill_their_slab) {
    for (uint32_t c = 0; c < SHMQ_CLASSES; c++) {
        uint64_t bytes = shmq_class_bytes(c), granules = shmq_class_granules(c), count = shmq_class_count(c);
        CHECK(bytes % 64 == 0 && shmq_class_of(bytes) == c && shmq_class_of(bytes + 1) == c + 1);
        CHECK(c == 0 || 2 * bytes <= 4 * shmq_class_bytes(c - 1));
        if (bytes <= SHMQ_GRANULE_BYTES) {
            CHECK_EQUAL(granules, 1);
            CHECK_EQUAL(count, SHMQ_GRANULE_BYTES / bytes < 248 ? SHMQ_GRANULE_BYTES / bytes : 248);
        } else {
            CHECK_EQUAL(granules * SHMQ_GRANULE_BYTES, bytes);
            CHECK_EQUAL(count, 1);
        }
    }
    CHECK_EQUAL(shmq_class_of(0), 0);
    CHECK_EQUAL(shmq_class_bytes(SHMQ_CLASSES), 0);
    CHECK_EQUAL(shmq_class_bytes(SHMQ_CLASSES - 1), SHMQ_BODY_MAX);
}

TEST(test_blocks_of_all_sizes_do_not_overlap) {
    begin();
    shmq_block blocks[600];
    for (uint32_t i = 0; i < 600; i++) {
        uint64_t bytes = 1 + (i * 37) % 9000;
        blocks[i] = take(bytes);
        CHECK(blocks[i].capacity >= bytes && blocks[i].offset % 64 == 0);
        CHECK(shmq_inside(m, blocks[i].offset, blocks[i].capacity) && blocks[i].offset >= m->data);
        memset(shmq_at(m, blocks[i].offset), (int)(i % 251), blocks[i].capacity);
    }
    for (uint32_t i = 0; i < 600; i++) {
        const unsigned char *at = shmq_at(m, blocks[i].offset);
        CHECK(at[0] == i % 251 && at[blocks[i].capacity - 1] == i % 251);
        CHECK_EQUAL(state_of(&blocks[i]), SHMQ_BLOCK_BUILDING);
        shmq_block_drop(m, blocks[i].offset, blocks[i].generation, 0);
    }
    CHECK_EQUAL(used(), 0);
    traffic_check(m, &table);
    traffic_check_all_given_back(m);
    end();
}

TEST(test_a_reference_is_dropped_once_and_only_in_its_generation) {
    begin();
    shmq_block first = take(1000);
    shmq_block_location location = place_of(&first);
    shmq_or_seq(&location.block->word, 6); /* bits 1 and 2: a put to three queues */
    shmq_block_share(m, &first);
    CHECK_EQUAL(state_of(&first), SHMQ_BLOCK_SHARED);
    shmq_block_drop(m, first.offset, first.generation, 1);
    shmq_block_drop(m, first.offset, first.generation, 1);
    shmq_block_drop(m, first.offset, first.generation, 0);
    CHECK_EQUAL(word_of(&first), shmq_block_word(first.generation, 4));
    shmq_block_drop(m, first.offset, first.generation, 2);
    CHECK_EQUAL(word_of(&first), shmq_block_word(first.generation + 1, 0));
    CHECK_EQUAL(state_of(&first), SHMQ_BLOCK_FREE);
    shmq_block next = first;
    do { /* until it is the same one again */
        next = take(1000);
    } while (next.offset != first.offset);
    CHECK_EQUAL(next.generation, first.generation + 1);
    shmq_block_drop(m, first.offset, first.generation, 0);
    shmq_block_share(m, &first);
    CHECK_EQUAL(word_of(&next), shmq_block_word(next.generation, 1));
    CHECK_EQUAL(state_of(&next), SHMQ_BLOCK_BUILDING);
    end();
}

TEST(test_a_late_drop_misses_the_block_of_another_class_at_its_offset) {
    begin();
    shmq_block small[64], last = {0};
    for (int i = 0; i < 64; i++) {
        small[i] = take(1024);
    }
    uint64_t slab = small[0].offset;
    for (int life = 0; life < 5; life++) { /* block 6 of class 1024 begins where block 4 of class 1536 begins */
        shmq_block_drop(m, small[6].offset, small[6].generation, 0);
        last = small[6];
        small[6] = take(1024);
        CHECK_EQUAL(small[6].offset, slab + 6 * 1024);
    }
    for (int i = 0; i < 64; i++) {
        shmq_block_drop(m, small[i].offset, small[i].generation, 0);
    }
    traffic_check_all_given_back(m);
    shmq_block other = take(1536);
    CHECK_EQUAL(other.offset, slab);
    shmq_block fifth = other;
    while (fifth.offset != slab + 4 * 1536) {
        fifth = take(1536);
    }
    CHECK(fifth.generation > small[6].generation);
    CHECK_EQUAL(last.generation, small[6].generation - 1);
    uint64_t word = word_of(&fifth);
    for (uint32_t generation = 0; generation <= small[6].generation; generation++) {
        shmq_block_drop(m, fifth.offset, generation, 0);
    }
    CHECK_EQUAL(word_of(&fifth), word);
    end();
}

TEST(test_offsets_that_are_no_block_are_refused) {
    begin();
    shmq_block block = take(768), big = take(3 * SHMQ_GRANULE_BYTES);
    CHECK(shmq_block_at(m, block.offset, 768) == shmq_at(m, block.offset));
    CHECK(shmq_block_at(m, block.offset, 769) == NULL);
    CHECK(shmq_block_at(m, block.offset + 64, 1) == NULL);
    CHECK(shmq_block_at(m, block.offset + 85 * 768, 1) == NULL); /* behind the last block of its slab */
    CHECK(shmq_block_at(m, big.offset, big.capacity) != NULL);
    CHECK(shmq_block_at(m, big.offset + SHMQ_GRANULE_BYTES, 1) == NULL);
    CHECK(shmq_block_at(m, 0, 1) == NULL && shmq_block_at(m, m->data - 64, 1) == NULL);
    CHECK(shmq_block_at(m, m->size, 0) == NULL && shmq_block_at(m, UINT64_MAX, 1) == NULL);
    CHECK(shmq_block_at(m, m->size - SHMQ_GRANULE_BYTES, 1) == NULL); /* never a slab */
    CHECK(shmq_block_at(m, m->rows[m->row].pins, 1) == NULL);
    shmq_slab_shm *slab = place_of(&block).slab;
    uint64_t class_word = shmq_load_seq(&slab->class_word);
    static const uint64_t wrong[] = {0, SHMQ_CLASSES + 1, SHMQ_CLASSES, UINT64_MAX, UINT64_C(1) << 32};
    for (uint32_t i = 0; i < 5; i++) { /* SHMQ_CLASSES: the largest class, which reaches beyond the segment */
        shmq_store_seq(&slab->class_word, wrong[i]);
        CHECK(shmq_block_at(m, block.offset, 1) == NULL);
        CHECK(wrong[i] == 0 || shmq_blocks_fault(m) != NULL);
    }
    shmq_store_seq(&slab->class_word, class_word);
    end();
}

TEST(test_too_large_and_full_are_told_apart_and_memory_comes_back) {
    begin();
    shmq_block block, big[64];
    CHECK_EQUAL(shmq_block_take(m, m->size / 4 + 1, &block), SHMQ_TOO_LARGE);
    CHECK_EQUAL(shmq_block_take(m, UINT64_MAX, &block), SHMQ_TOO_LARGE);
    uint32_t count = 0;
    while (shmq_block_take(m, 1 << 20, &big[count]) == SHMQ_OK) {
        count += 1;
        CHECK(count < 64);
    }
    CHECK(count >= 12); /* of 16 MiB, with tables and what is kept for pages */
    CHECK_EQUAL(shmq_block_take(m, 1 << 20, &block), SHMQ_FULL_MEMORY);
    uint32_t before = shmq_load_seq(&m->header->memory_full);
    shmq_block_drop(m, big[0].offset, big[0].generation, 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->memory_full), before); /* nobody waits */
    shmq_add_seq(&m->header->memory_waiters, 1);
    shmq_block_drop(m, big[1].offset, big[1].generation, 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->memory_full), before + 1);
    shmq_sub_seq(&m->header->memory_waiters, 1);
    block = take(700 << 10); /* another class: the two slabs that nobody uses make room for it */
    CHECK_EQUAL(block.capacity, 768 << 10);
    for (uint32_t i = 2; i < count; i++) {
        shmq_block_drop(m, big[i].offset, big[i].generation, 0);
    }
    shmq_block_drop(m, block.offset, block.generation, 0);
    traffic_check_all_given_back(m);
    end();
}

/* Processes whose searches ended at different places of the room take bodies until all memory is reserved. Slabs then
 * begin where none had its headers, which need memory that bodies had. */
TEST(test_all_memory_serves_again_wherever_bodies_lay) {
    scratch_room = 4 * SCRATCH_MEMORY;
    begin();
    shmq_block block[64];
    for (uint32_t round = 0; round < 64; round++) {
        uint32_t count = 0;
        m->run_hint = round * 61 % m->granule_count;
        while (count < 64 && shmq_block_take(m, (1 << 20) / (round + 1), &block[count]) == SHMQ_OK) {
            count += 1;
        }
        CHECK(count >= 12);
        for (uint32_t i = 0; i < count; i++) {
            shmq_block_drop(m, block[i].offset, block[i].generation, 0);
        }
        traffic_check_all_given_back(m);
    }
    CHECK(shmq_memory_left(m) < SHMQ_GRANULE_BYTES);
    end();
    scratch_room = SCRATCH_MEMORY;
}

TEST(test_a_pin_keeps_the_block_and_its_bits_and_cells_run_out) {
    begin();
    shmq_block block = take(5000), others[SHMQ_PINS];
    shmq_block_share(m, &block);
    uint32_t pins[SHMQ_PINS], more;
    for (uint32_t i = 0; i < SHMQ_VIEW_BITS; i++) {
        CHECK(shmq_block_pin(m, block.offset, block.generation, 100, &pins[i]));
    }
    CHECK(!shmq_block_pin(m, block.offset, block.generation, 100, &more));
    CHECK(!shmq_block_pin(m, block.offset, block.generation + 1, 100, &more));
    CHECK(!shmq_block_pin(m, block.offset + 64, block.generation, 100, &more));
    CHECK_EQUAL(shmq_load_seq(&m->process->pinned_bytes), 800);
    shmq_block_unpin(m, pins[3], 100);
    CHECK(shmq_block_pin(m, block.offset, block.generation, 100, &pins[3]));
    CHECK_EQUAL(sweep(999, 0), 0); /* nothing leaked */
    shmq_block_drop(m, block.offset, block.generation, 0);
    CHECK_EQUAL(sweep(999, 0), 0);
    shmq_block_unpin(m, pins[0], 100);
    CHECK(!shmq_block_pin(m, block.offset, block.generation, 100, &more)); /* no entry is left to pin it through */
    for (uint32_t i = 1; i < SHMQ_VIEW_BITS; i++) {
        CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_SHARED);
        shmq_block_unpin(m, pins[i], 100);
    }
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_FREE);
    CHECK_EQUAL(shmq_load_seq(&m->process->pinned_bytes), 0);
    for (uint32_t i = 0; i < SHMQ_PINS; i++) {
        others[i] = take(256);
        CHECK(shmq_block_pin(m, others[i].offset, others[i].generation, 1, &pins[i]));
    }
    CHECK(!shmq_block_pin(m, others[0].offset, others[0].generation, 1, &more));
    for (uint32_t i = 0; i < SHMQ_PINS; i++) {
        shmq_block_unpin(m, pins[i], 1);
        shmq_block_drop(m, others[i].offset, others[i].generation, 0);
    }
    CHECK_EQUAL(used(), 0);
    end();
}

TEST(test_a_view_bit_without_a_cell_goes_when_the_entries_have_gone) {
    begin();
    shmq_block block = take(5000);
    shmq_block_location location = place_of(&block);
    shmq_block_share(m, &block);
    uint32_t pin;
    CHECK(shmq_block_pin(m, block.offset, block.generation, 1, &pin));
    shmq_or_seq(&location.block->word, UINT64_C(0x60) << SHMQ_VIEW_SHIFT); /* of one that died between bit and cell */
    uint64_t before = word_of(&block);
    CHECK_EQUAL(sweep(999, 1), 0);
    CHECK_EQUAL(word_of(&block), before); /* an entry is left: such a bit may be somebody's by now */
    shmq_block_drop(m, block.offset, block.generation, 0);
    shmq_pin_shm tentative = {.generation = block.generation};
    shmq_store_seq(&m->page->pins[200].generation, tentative.generation);
    shmq_store_seq(&m->page->pins[200].cell, shmq_pin_cell(block.offset, SHMQ_PIN_TENTATIVE, m->row_generation));
    CHECK_EQUAL(sweep(999, 0), 0);
    CHECK_EQUAL(shmq_block_refs(word_of(&block)) >> SHMQ_VIEW_SHIFT, 0x61); /* a tentative cell protects them all */
    shmq_store_seq(&m->page->pins[200].cell, 0);
    CHECK_EQUAL(sweep(999, 0), 0);
    CHECK_EQUAL(shmq_block_refs(word_of(&block)) >> SHMQ_VIEW_SHIFT, 1); /* the one with a cell stays */
    shmq_block_unpin(m, pin, 1);
    CHECK_EQUAL(used(), 0);
    block = take(5000);
    shmq_block_share(m, &block);
    location = place_of(&block);
    shmq_store_seq(&location.block->word, shmq_block_word(block.generation, UINT32_C(0x80000000)));
    CHECK_EQUAL(sweep(999, 0), 1);
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_FREE);
    end();
}

TEST(test_pins_of_a_dead_process_end_and_those_of_the_rows_next_owner_do_not) {
    begin();
    shmq_block block = take(5000);
    shmq_block_share(m, &block);
    shmq_member *other = scratch_attach(), *heir;
    uint32_t pin;
    CHECK(shmq_block_pin(other, block.offset, block.generation, 1, &pin));
    shmq_blocks_unpin_dead(m, other->row); /* it lives */
    CHECK_EQUAL(shmq_block_refs(word_of(&block)), 1 | 1u << SHMQ_VIEW_SHIFT);
    uint32_t row = other->row;
    uint64_t cell = shmq_load_seq(&other->page->pins[pin].cell);
    scratch_kill(other);
    shmq_blocks_unpin_dead(m, row);
    shmq_blocks_unpin_dead(m, row);
    CHECK_EQUAL(shmq_block_refs(word_of(&block)), 1);
    uint64_t word = shmq_load_seq(&m->rows[row].word);
    shmq_store_seq(&m->rows[row].word, shmq_row_word(shmq_row_generation(word) + 1, 0, SHMQ_ROW_FREE));
    heir = scratch_attach();
    CHECK_EQUAL(heir->row, row);
    CHECK(shmq_block_pin(heir, block.offset, block.generation, 1, &pin));
    CHECK(shmq_load_seq(&heir->page->pins[pin].cell) != cell); /* a late reaper's CAS from the dead one's cell fails */
    shmq_block_drop(m, block.offset, block.generation, 0);
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_SHARED);
    shmq_block_unpin(heir, pin, 1);
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_FREE);
    shmq_member_leave(heir, true);
    end();
}

/* A reaper that read the row's generation long ago meets a view of the row's next owner: the same block, view and cell. */
TEST(test_a_reaper_leaves_views_of_another_generation_alone) {
    scratch_create(false);
    shmq_member *m = scratch_attach(), *other = scratch_attach();
    shmq_block block;
    uint32_t pin;
    CHECK_EQUAL(shmq_block_take(other, 1000, &block), SHMQ_OK);
    CHECK(shmq_block_pin(other, block.offset, block.generation, 1000, &pin));
    uint64_t cell = shmq_load_seq(&other->page->pins[pin].cell);
    uint64_t next = shmq_pin_cell(block.offset, shmq_pin_view(cell), other->row_generation + 1);
    shmq_store_seq(&other->page->pins[pin].cell, next);
    scratch_kill(other);
    shmq_blocks_unpin_dead(m, other->row);
    CHECK_EQUAL(shmq_load_seq(&other->page->pins[pin].cell), next);
    shmq_block_location location;
    CHECK(shmq_block_locate(m, block.offset, &location));
    CHECK((shmq_block_refs(shmq_load_seq(&location.block->word)) & SHMQ_VIEW_MASK) != 0);
    shmq_store_seq(&other->page->pins[pin].cell, cell); /* its own: goes */
    shmq_blocks_unpin_dead(m, other->row);
    CHECK_EQUAL(shmq_load_seq(&other->page->pins[pin].cell), 0);
    CHECK((shmq_block_refs(shmq_load_seq(&location.block->word)) & SHMQ_VIEW_MASK) == 0);
    shmq_member_free(other);
    shmq_member_leave(m, true);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_each_half_done_step_of_a_dead_process_is_finished_by_the_sweep) {
    begin();
    shmq_block taken = take(300), unnamed = take(300), named = take(300), freed = take(300), spare = take(300);
    shmq_block *all[] = {&taken, &unnamed, &named, &freed};
    for (int i = 0; i < 4; i++) { /* as if row 77 had taken them */
        shmq_block_location location = place_of(all[i]);
        shmq_store_seq(&location.block->state,
                       shmq_state_word(all[i]->generation, location.size_class, 77, SHMQ_BLOCK_BUILDING));
    }
    shmq_store_seq(&place_of(&taken).block->word, shmq_block_word(taken.generation, 0));
    shmq_store_seq(&place_of(&freed).block->word, shmq_block_word(freed.generation + 1, 0));
    CHECK(shmq_blocks_fault(m) == NULL);
    CHECK_EQUAL(sweep(78, 0), 1); /* who lives there is left alone, but a free that has begun is ended */
    CHECK_EQUAL(state_of(&freed), SHMQ_BLOCK_FREE);
    CHECK_EQUAL(state_of(&unnamed), SHMQ_BLOCK_BUILDING);
    shmq_or_seq(&place_of(&named).block->word, 14); /* a put to four queues that published two of its entries */
    shmq_or_seq(&place_of(&unnamed).block->word, 14);
    shmq_store_seq(&place_of(&unnamed).block->word, shmq_block_word(unnamed.generation, 8));
    CHECK_EQUAL(sweep(77, 5), 2);
    CHECK_EQUAL(state_of(&taken), SHMQ_BLOCK_FREE);
    CHECK_EQUAL(state_of(&unnamed), SHMQ_BLOCK_FREE);
    CHECK_EQUAL(state_of(&named), SHMQ_BLOCK_SHARED);
    CHECK_EQUAL(word_of(&named), shmq_block_word(named.generation, 5));
    CHECK_EQUAL(sweep(77, 5), 0);
    CHECK_EQUAL(used(), 2);
    shmq_block_location location = place_of(&taken);
    shmq_and_seq(&location.slab->free[0], ~(UINT64_C(1) << location.index)); /* lost hints */
    shmq_and_seq(shmq_class_bits(m, location.size_class, location.granule), ~(UINT64_C(1) << (location.granule % 64)));
    sweep(999, 0);
    shmq_block again;
    bool found = false;
    while (!found && used() < 170) {
        again = take(300);
        found = again.offset == taken.offset;
        CHECK_EQUAL(place_of(&again).granule, location.granule);
    }
    CHECK(found);
    CHECK_EQUAL(state_of(&spare), SHMQ_BLOCK_BUILDING);
    end();
}

TEST(test_a_slab_left_half_retired_serves_again_when_its_process_is_reaped) {
    begin();
    shmq_block kept = take(20000), gone = take(20000), third = take(20000);
    shmq_block_drop(m, gone.offset, gone.generation, 0);
    shmq_block_drop(m, third.offset, third.generation, 0);
    shmq_block_location location = place_of(&gone);
    uint32_t generation = gone.generation + 1;
    shmq_store_seq(&location.block->state, shmq_state_word(generation, location.size_class, 0, SHMQ_BLOCK_RETIRED));
    shmq_and_seq(&location.slab->free[0], 0);
    CHECK(shmq_blocks_fault(m) == NULL);
    traffic_lock(m);
    CHECK_EQUAL(shmq_blocks_reclaim(m), 0);
    CHECK_EQUAL(state_of(&gone), SHMQ_BLOCK_RETIRED); /* whoever is short of memory looks at no slab in use */
    shmq_blocks_unretire(m);
    shmq_structure_unlock(m);
    CHECK_EQUAL(state_of(&gone), SHMQ_BLOCK_FREE);
    CHECK_EQUAL(shmq_load_seq(&location.slab->free[0]) >> location.index & 1, 1);
    shmq_store_seq(&location.block->state, shmq_state_word(generation, location.size_class, 0, SHMQ_BLOCK_RETIRED));
    shmq_block_drop(m, kept.offset, kept.generation, 0);
    traffic_check_all_given_back(m);
    end();
}

TEST(test_stale_hints_lead_nowhere_and_are_cleared) {
    begin();
    m->run_hint = 9;
    take(40000);
    shmq_block first = take(256);
    shmq_block_location location = place_of(&first);
    for (int i = 1; i < 248; i++) {
        take(256);
    }
    shmq_or_seq(&location.slab->free[0], 0xf); /* used blocks */
    shmq_or_seq(&location.slab->free[3], UINT64_C(0xff) << 56); /* no blocks */
    uint32_t wide = shmq_class_of(40000), never = 5;
    shmq_or_seq(shmq_class_bits(m, wide, location.granule), UINT64_C(1)
                                                                << (location.granule % 64)); /* another class' slab */
    shmq_or_seq(shmq_class_bits(m, 0, never), UINT64_C(1) << (never % 64)); /* never a slab */
    CHECK(place_of(&(shmq_block){take(40000).offset, 0, 0}).granule != location.granule);
    CHECK(place_of(&(shmq_block){take(256).offset, 0, 0}).granule != location.granule);
    CHECK_EQUAL(shmq_load_seq(shmq_class_bits(m, wide, location.granule)) >> (location.granule % 64) & 1, 0);
    CHECK_EQUAL(shmq_load_seq(shmq_class_bits(m, 0, never)) >> (never % 64) & 1, 0);
    CHECK_EQUAL(shmq_load_seq(&location.slab->free[0]), 0);
    end();
}

/* Shows G7. */
TEST(test_damage_in_the_words_is_reported) {
    begin();
    shmq_block block = take(2000), next = take(2000);
    shmq_block_drop(m, next.offset, next.generation, 0);
    shmq_block_location used_one = place_of(&block), free_one = place_of(&next);
    uint64_t word = word_of(&block), state = shmq_load_seq(&used_one.block->state);
    static const uint64_t flips[] = {UINT64_C(1) << 40, UINT64_C(1) << 25, 7, UINT64_C(0x800) << 8};
    for (uint32_t i = 0; i < 4; i++) {
        shmq_store_seq(&used_one.block->state, state ^ flips[i]);
        CHECK(shmq_blocks_fault(m) != NULL);
        shmq_store_seq(&used_one.block->state, state);
    }
    shmq_store_seq(&used_one.block->word, word ^ (UINT64_C(1) << 50));
    CHECK(shmq_blocks_fault(m) != NULL);
    shmq_store_seq(&used_one.block->word, word);
    shmq_add_seq(&free_one.block->word, 1);
    CHECK(shmq_blocks_fault(m) != NULL);
    shmq_block other = take(2000); /* the damaged one is not handed out */
    CHECK(other.offset != next.offset);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 1);
    shmq_sub_seq(&m->header->damage, 1);
    shmq_sub_seq(&free_one.block->word, 1);
    end();
}

int main(void) { return run_tests(); }
