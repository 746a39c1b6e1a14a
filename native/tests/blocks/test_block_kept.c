/* The block that is kept for rows: which one it is, who gets it, and when it is let go. */
#include "block_traffic.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    CHECK_EQUAL(shmq_load_seq(&m->header->kept_block), 0);
}

static void end(void) {
    CHECK(shmq_blocks_fault(m) == NULL);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    shmq_member_free(m);
    scratch_remove();
}

static uint64_t kept(void) { return shmq_load_seq(&m->header->kept_block); }

/* As a body of an entry. */
static shmq_block take(uint64_t bytes) {
    shmq_block block;
    CHECK_EQUAL(shmq_block_take(m, bytes, &block), SHMQ_OK);
    shmq_block_share(m, &block);
    return block;
}

static void drop(const shmq_block *block) { shmq_block_drop(m, block->offset, block->generation, 0); }

/* As a mover, whose entry has become a row. */
static void flush(const shmq_block *block) {
    shmq_block_keep(m, block->offset, block->generation, 0);
    drop(block);
}

static uint32_t state_of(const shmq_block *block) {
    shmq_block_location location;
    CHECK(shmq_block_locate(m, block->offset, &location));
    return shmq_state_of(shmq_load_seq(&location.block->state));
}

/* Do producers find the block at this offset? They take all that hints lead to, and give it back. */
static bool is_found(uint64_t bytes, uint64_t offset) {
    shmq_block taken[300];
    uint32_t count = 0;
    bool found = false;
    while (!found && count < 300 && shmq_block_take(m, bytes, &taken[count]) == SHMQ_OK) {
        found = taken[count++].offset == offset;
    }
    while (count-- > 0) {
        drop(&taken[count]);
    }
    return found;
}

TEST(test_the_largest_that_went_to_disk_is_kept_and_the_one_before_it_is_let_go) {
    begin();
    shmq_block small = take(1000), large = take(5000), equal = take(5000);
    shmq_block_keep(m, small.offset, small.generation, 0);
    CHECK_EQUAL(kept(), small.offset); /* before it is FREE */
    CHECK_EQUAL(state_of(&small), SHMQ_BLOCK_SHARED);
    drop(&small);
    CHECK_EQUAL(state_of(&small), SHMQ_BLOCK_FREE);
    CHECK(!is_found(1000, small.offset));
    uint32_t before = shmq_load_seq(&m->header->memory_full);
    shmq_add_seq(&m->header->memory_waiters, 1);
    shmq_block_keep(m, large.offset, large.generation, 0);
    CHECK_EQUAL(kept(), large.offset);
    CHECK_EQUAL(shmq_load_seq(&m->header->memory_full), before + 1); /* a waiter may have the small one */
    shmq_sub_seq(&m->header->memory_waiters, 1);
    CHECK(is_found(1000, small.offset));
    drop(&large);
    flush(&equal);
    CHECK_EQUAL(kept(), large.offset);
    small = take(1000);
    flush(&small);
    CHECK_EQUAL(kept(), large.offset);
    CHECK(is_found(5000, equal.offset));
    CHECK(!is_found(5000, large.offset));
    end();
}

TEST(test_a_mover_gets_the_kept_block_as_often_as_it_is_free_and_large_enough) {
    begin();
    shmq_block block = take(5000), mine;
    uint32_t pin;
    CHECK(!shmq_block_take_kept(m, 1, &mine)); /* none is kept */
    flush(&block);
    CHECK(!shmq_block_take_kept(m, block.capacity + 1, &mine));
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_FREE);
    for (int i = 0; i < 3; i++) {
        CHECK(shmq_block_take_kept(m, block.capacity, &mine));
        CHECK_EQUAL(mine.offset, block.offset);
        CHECK_EQUAL(mine.capacity, block.capacity);
        CHECK_EQUAL(state_of(&mine), SHMQ_BLOCK_BUILDING);
        shmq_block_share(m, &mine);
        CHECK(!shmq_block_take_kept(m, 1, &block)); /* it is in use */
        CHECK(!shmq_block_pin(m, mine.offset, mine.generation, 100, &pin)); /* else a view could have it for long */
        CHECK_EQUAL(shmq_load_seq(&m->process->pinned_bytes), 0);
        drop(&mine);
        CHECK_EQUAL(kept(), mine.offset);
        CHECK(!is_found(5000, mine.offset));
    }
    end();
}

TEST(test_a_block_that_others_have_too_is_not_kept) {
    begin();
    shmq_block block = take(5000);
    uint32_t pin;
    CHECK(shmq_block_pin(m, block.offset, block.generation, 100, &pin));
    shmq_block_keep(m, block.offset, block.generation, 0); /* a view would have it when its row comes back */
    CHECK_EQUAL(kept(), 0);
    shmq_block_unpin(m, pin, 100);
    shmq_block_keep(m, block.offset, block.generation, 1); /* the reference of an entry that is gone */
    shmq_block_keep(m, block.offset, block.generation - 1, 0);
    shmq_block_keep(m, block.offset, block.generation, SHMQ_VIEW_SHIFT); /* no bit of an entry */
    shmq_block_keep(m, block.offset, block.generation, UINT32_MAX);
    shmq_block_keep(m, block.offset + 64, block.generation, 0); /* no block begins there */
    shmq_block_keep(m, m->size, block.generation, 0);
    CHECK_EQUAL(kept(), 0);
    CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_SHARED);
    flush(&block);
    CHECK_EQUAL(kept(), block.offset);
    end();
}

TEST(test_while_it_is_in_use_the_next_free_one_of_its_size_is_kept_in_its_place) {
    begin();
    shmq_block first = take(5000), second = take(5000), third = take(5000), smaller = take(1000), larger = take(9000);
    shmq_block mine;
    flush(&first);
    drop(&third); /* the kept one is free: it stays */
    CHECK_EQUAL(kept(), first.offset);
    CHECK(shmq_block_take_kept(m, 5000, &mine));
    drop(&smaller);
    drop(&larger);
    CHECK_EQUAL(kept(), first.offset);
    uint32_t before = shmq_load_seq(&m->header->memory_full);
    shmq_add_seq(&m->header->memory_waiters, 1);
    drop(&second);
    shmq_sub_seq(&m->header->memory_waiters, 1);
    CHECK(shmq_load_seq(&m->header->memory_full) > before);
    CHECK_EQUAL(kept(), second.offset);
    CHECK_EQUAL(state_of(&second), SHMQ_BLOCK_FREE);
    CHECK(!is_found(5000, second.offset));
    drop(&mine); /* it is one of many again */
    CHECK_EQUAL(kept(), second.offset);
    CHECK(is_found(5000, first.offset));
    CHECK(shmq_kept_doubt(m));
    CHECK(shmq_block_take_kept(m, 5000, &mine));
    CHECK_EQUAL(mine.offset, second.offset);
    shmq_block another = take(5000);
    drop(&another);
    CHECK_EQUAL(kept(), another.offset | 1); /* a doubt is about whichever is kept */
    drop(&mine);
    CHECK(shmq_kept_end(m));
    CHECK(is_found(5000, another.offset));
    end();
}

/* The hint is older than the name: the block was let go while a mover had it, and is kept once more. */
TEST(test_no_producer_gets_it_by_a_hint_that_was_left) {
    begin();
    shmq_block first = take(5000), second = take(5000), mine;
    flush(&first);
    CHECK(shmq_block_take_kept(m, 5000, &mine));
    shmq_block_share(m, &mine);
    drop(&second);
    CHECK_EQUAL(kept(), second.offset);
    CHECK(shmq_kept_doubt(m) && shmq_kept_end(m));
    shmq_block_location location;
    CHECK(shmq_block_locate(m, mine.offset, &location));
    CHECK((shmq_load_seq(&location.slab->free[location.index / 64]) >> location.index % 64 & 1) != 0);
    flush(&mine);
    CHECK_EQUAL(kept(), mine.offset);
    CHECK(!is_found(5000, mine.offset));
    CHECK(shmq_block_take_kept(m, 5000, &first));
    drop(&first);
    end();
}

TEST(test_a_doubt_ends_it_unless_a_mover_has_made_a_row_meanwhile) {
    begin();
    CHECK(!shmq_kept_doubt(m)); /* none is kept */
    CHECK(!shmq_kept_end(m));
    CHECK_EQUAL(kept(), 0);
    shmq_block large = take(5000), small = take(1000);
    flush(&large);
    CHECK(!shmq_kept_end(m)); /* nobody doubts */
    CHECK(shmq_kept_doubt(m));
    CHECK(shmq_kept_doubt(m)); /* another one does, too */
    CHECK(shmq_is_kept(m, large.offset));
    CHECK(!is_found(5000, large.offset));
    flush(&small); /* a smaller one: it takes the doubt away, and no more */
    CHECK_EQUAL(kept(), large.offset);
    CHECK(!shmq_kept_end(m));
    CHECK_EQUAL(kept(), large.offset);
    CHECK(shmq_kept_doubt(m));
    shmq_block mine;
    CHECK(shmq_block_take_kept(m, 5000, &mine)); /* a mover may have it all the same */
    drop(&mine);
    CHECK(shmq_kept_end(m));
    CHECK(!shmq_kept_end(m)); /* the other one comes late */
    CHECK_EQUAL(kept(), 0);
    CHECK(is_found(5000, large.offset));
    end();
}

TEST(test_a_kept_block_that_makes_no_sense_is_nobody_s_and_replaced) {
    begin();
    shmq_block block = take(5000), mine;
    const uint64_t wrong[] = {64,      m->data - 64,  block.offset + 64, m->size - SHMQ_GRANULE_BYTES,
                              m->size, UINT64_MAX - 1};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        shmq_store_seq(&m->header->kept_block, wrong[i]);
        CHECK(!shmq_block_take_kept(m, 1, &mine));
        shmq_block other = take(5000);
        drop(&other); /* which does not take the place of one that is none */
        CHECK_EQUAL(kept(), wrong[i]);
        CHECK(shmq_kept_doubt(m));
        CHECK(shmq_kept_end(m));
        CHECK_EQUAL(kept(), 0);
        shmq_store_seq(&m->header->kept_block, wrong[i]);
        flush(&block);
        CHECK_EQUAL(kept(), block.offset);
        CHECK(shmq_block_take_kept(m, 5000, &block));
        shmq_block_share(m, &block);
    }
    drop(&block);
    end();
}

TEST(test_its_slab_stays_until_it_is_let_go) {
    begin();
    static const uint64_t sizes[] = {1000, 5000, 1 << 20};
    for (uint32_t i = 0; i < 3; i++) {
        shmq_block lower = take(3000), block = take(sizes[i]), mine;
        CHECK(lower.offset < block.offset);
        drop(&lower);
        flush(&block);
        traffic_lock(m);
        CHECK_EQUAL(shmq_blocks_reclaim(m), 1); /* granule: that of the lower one */
        shmq_structure_unlock(m);
        CHECK_EQUAL(state_of(&block), SHMQ_BLOCK_FREE);
        CHECK(shmq_block_take_kept(m, sizes[i], &mine));
        CHECK_EQUAL(mine.offset, block.offset);
        drop(&mine);
        CHECK(shmq_kept_doubt(m) && shmq_kept_end(m));
        traffic_check_all_given_back(m);
    }
    end();
}

/* Nobody has rows here: whoever needs memory looks, and has it. */
TEST(test_without_rows_who_finds_no_memory_gets_it) {
    begin();
    shmq_block block = take(1 << 20), all[64], mine;
    flush(&block);
    uint32_t count = 0;
    bool found = false;
    while (count < 64 && shmq_block_take(m, 1 << 20, &all[count]) == SHMQ_OK) {
        found = found || all[count].offset == block.offset;
        CHECK(!found || kept() == 0);
        count++;
    }
    CHECK(found && count >= 12);
    CHECK(!shmq_block_take_kept(m, 1, &mine));
    while (count-- > 0) {
        drop(&all[count]);
    }
    traffic_check_all_given_back(m);
    end();
}

int main(void) { return run_tests(); }
