/* Where a search for a free block begins, and where it ends. */
#include <string.h>

#include "block_traffic.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
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

static uint64_t used(void) {
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    return usage.used;
}

static uint32_t granule_of(const shmq_block *block) {
    shmq_block_location location;
    CHECK(shmq_block_locate(m, block->offset, &location));
    return location.granule;
}

/* The slab at the first granule of all is found again, whatever row the process has. */
TEST(test_the_search_begins_in_the_slab_where_it_ended) {
    begin();
    uint32_t row = m->row, last = m->granule_count - 8;
    shmq_block high[248];
    m->run_hint = last;
    for (uint32_t i = 0; i < 248; i++) {
        high[i] = take(200);
        CHECK_EQUAL(granule_of(&high[i]), last);
    }
    m->run_hint = 0;
    shmq_block low = take(200);
    CHECK_EQUAL(granule_of(&low), 0);
    shmq_block_drop(m, high[0].offset, high[0].generation, 0);
    m->row = 900;
    shmq_block next = take(200);
    CHECK_EQUAL(granule_of(&next), 0);
    m->row = row;
    shmq_block_drop(m, next.offset, next.generation, 0);
    shmq_block_drop(m, low.offset, low.generation, 0);
    for (uint32_t i = 1; i < 248; i++) {
        shmq_block_drop(m, high[i].offset, high[i].generation, 0);
    }
    traffic_check_all_given_back(m);
    end();
}

TEST(test_of_large_free_blocks_the_lowest_is_taken) {
    begin();
    shmq_block big[3];
    for (uint32_t i = 0; i < 3; i++) {
        big[i] = take(60000);
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            shmq_block_drop(m, big[i].offset, big[i].generation, 0);
        }
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t before = big[i].offset;
            big[i] = take(60000);
            CHECK_EQUAL(big[i].offset, before);
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        shmq_block_drop(m, big[i].offset, big[i].generation, 0);
    }
    traffic_check_all_given_back(m);
    end();
}

/* The mark that ends each look over all slabs: raised with a slab, told when it is wrong, and right again after a
 * rebuild. */
TEST(test_the_header_says_how_far_slabs_reach) {
    begin();
    CHECK_EQUAL(shmq_slab_high(m), 0);
    m->run_hint = 40;
    shmq_block far = take(200);
    m->run_hint = 3;
    shmq_block big = take(60000);
    CHECK_EQUAL(granule_of(&far), 40);
    CHECK_EQUAL(granule_of(&big), 3);
    CHECK_EQUAL(shmq_slab_high(m), 41);
    CHECK_EQUAL(used(), 2);
    shmq_store_seq(&m->header->slab_high, UINT32_MAX); /* damaged: all there are */
    CHECK_EQUAL(shmq_slab_high(m), m->granule_count);
    CHECK_EQUAL(used(), 2);
    shmq_store_seq(&m->header->slab_high, 40);
    CHECK_EQUAL(used(), 1);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    const char *fault = shmq_structure_fault(m);
    CHECK(fault != NULL && strstr(fault, "granule 40 was a slab, but the header says that none from 40") != NULL);
    CHECK_EQUAL(shmq_structure_rebuild(m), SHMQ_OK);
    CHECK(shmq_structure_fault(m) == NULL);
    shmq_structure_unlock(m);
    CHECK_EQUAL(shmq_slab_high(m), 41);
    shmq_block_drop(m, far.offset, far.generation, 0);
    shmq_block_drop(m, big.offset, big.generation, 0);
    traffic_check_all_given_back(m);
    end();
}

int main(void) { return run_tests(); }
