/* Words that lead somewhere, with values that lead nowhere: every operation goes on, or says so, and none crashes. */
#include <errno.h>
#include <sys/stat.h>

#include "blocks/slab.h"
#include "segment/inspect.h"
#include "looks.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
    theirs = scratch_queue(other, "jobs", 0, true);
}

static void end(void) {
    shmq_queue_unbind(theirs);
    shmq_queue_unbind(q);
    (void)shmq_sweep_own(other);
    shmq_member_free(other);
    (void)shmq_sweep_own(m);
    shmq_member_free(m);
    scratch_remove();
}

static void look(void) {
    look_at_everything(m, q, other->row);
    if (shmq_structure_lock(m) == SHMQ_OK) {
        (void)shmq_structure_rebuild(m);
        shmq_structure_unlock(m);
    }
}

static void with_wrong(uint64_t *word) {
    uint64_t good = *word;
    const uint64_t wrong[] = {0,
                              1,
                              good + 8,
                              good + SHMQ_PAGE_BYTES / 2,
                              8192,
                              m->data - SHMQ_PAGE_BYTES,
                              m->size,
                              m->size - 8,
                              m->size - SHMQ_PAGE_BYTES,
                              UINT64_MAX,
                              UINT64_MAX & ~UINT64_C(8191),
                              q->page->ring.slots,
                              (uint64_t)((unsigned char *)q->page - m->base)};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        *(volatile uint64_t *)word = wrong[i];
        look();
        *(volatile uint64_t *)word = good;
    }
    look();
}

TEST(test_a_wrong_root_leads_nowhere) {
    begin();
    static unsigned char bytes[5000];
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    }
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &row), SHMQ_OK);
    with_wrong((uint64_t *)(void *)&m->rows[other->row].pins);
    with_wrong((uint64_t *)(void *)&other->page->chunks[0]);
    with_wrong((uint64_t *)(void *)&other->page->chunks[1]);
    with_wrong((uint64_t *)(void *)&m->directory[q->index].page);
    with_wrong((uint64_t *)(void *)&q->page->chunks[0]);
    with_wrong((uint64_t *)(void *)&q->page->ring.slots);
    with_wrong((uint64_t *)(void *)&q->page->ring.carried);
    with_wrong((uint64_t *)(void *)&q->page->ring.run_granules);
    with_wrong((uint64_t *)(void *)&m->header->reserved_bytes);
    CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    end();
}

TEST(test_a_wrong_word_of_a_slab_leads_nowhere) {
    begin();
    shmq_block block;
    shmq_block_location location;
    CHECK_EQUAL(shmq_block_take(m, 3000, &block), SHMQ_OK);
    CHECK(shmq_block_locate(m, block.offset, &location));
    with_wrong((uint64_t *)(void *)&location.slab->class_word);
    with_wrong((uint64_t *)(void *)&location.block->state);
    with_wrong((uint64_t *)(void *)&location.block->word);
    end();
}

TEST(test_pins_that_name_nothing_end_with_their_process) {
    begin();
    const uint64_t cells[] = {shmq_pin_cell(64, 1, other->row_generation),
                              shmq_pin_cell(m->size - 64, 2, other->row_generation),
                              shmq_pin_cell(m->data + 64, 9, other->row_generation),
                              shmq_pin_cell(m->data, SHMQ_PIN_TENTATIVE, other->row_generation),
                              shmq_pin_cell(m->data, 0, other->row_generation) | 1};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        shmq_store_seq(&other->page->pins[i].cell, cells[i]);
    }
    shmq_block_unpin(other, 0, 0);
    scratch_kill(other);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 1);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        CHECK_EQUAL(shmq_load_seq(&other->page->pins[i].cell), 0);
    }
    end();
}

/* Its messages come back by a process that is a member, and by one that is only about to be. */
TEST(test_what_the_dead_held_in_blocks_comes_back) {
    begin();
    static unsigned char bytes[3000];
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(put_bytes(theirs, bytes, sizeof bytes, 0), SHMQ_OK);
    }
    shmq_delivery taken = receive(theirs, shmq_self(theirs)), locked = receive(theirs, shmq_self(theirs)), offered, d;
    CHECK(taken.position == 0);
    CHECK_EQUAL(shmq_lock(theirs, &locked), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(theirs, shmq_self(theirs), &offered), SHMQ_OK);
    shmq_block building;
    CHECK_EQUAL(shmq_block_take(other, 100000, &building), SHMQ_OK);
    /* DEQUEUED: it died while it dropped the body */
    shmq_slot_shm *slot = shmq_slot_at(&q->first, taken.position);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, shmq_self(theirs), taken.tag)));
    (void)claim_by_hand(theirs);
    scratch_kill(other);
    shmq_process_shm *process = m->process;
    m->process = NULL; /* as one who is about to become a member: it takes the structure lock for all of it */
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    m->process = process;
    CHECK(reaped >= 1);
    int found = 0;
    while (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK) {
        CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        found++;
    }
    CHECK_EQUAL(found, 3);
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.used, 0);
    end();
}

/* Shows E9, E11, E14, R8. */
TEST(test_stealing_takes_from_anybody_once) {
    begin();
    shmq_delivery d, taken, again;
    CHECK_EQUAL(shmq_steal(&q->first, 0, false, &d), SHMQ_EMPTY);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_steal(&q->first, 5, false, &d), SHMQ_EMPTY);
    taken = receive(theirs, shmq_self(theirs));
    CHECK_EQUAL(shmq_steal(&q->first, taken.position, true, &d), SHMQ_EMPTY); /* only what is ready */
    CHECK_EQUAL(shmq_steal(&q->first, taken.position, false, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_lock(theirs, &taken), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&other->process->unsettled), 0);
    CHECK_EQUAL(shmq_release(theirs, &taken, true), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_settle(theirs, &taken), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(theirs, shmq_self(theirs), &again), SHMQ_OK);
    CHECK_EQUAL(shmq_steal(&q->first, 0, false, &d), SHMQ_OK); /* from an offer */
    CHECK_EQUAL(shmq_offer_finish(theirs, &again), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_offer_acquire(theirs, &again), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    shmq_slot_at(&q->first, 1)->body_len = 100000;
    CHECK_EQUAL(shmq_steal(&q->first, 1, false, &d), SHMQ_CORRUPT);
    CHECK_EQUAL(state_at(q, 1), SHMQ_BROKEN);
    end();
}

/* All other rows are locked by somebody: no room, said so, and nobody is harmed. */
TEST(test_a_full_process_table_is_told) {
    begin();
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2, .l_len = SHMQ_PROCESS_ROWS - 2};
    CHECK(fcntl(other->lock_fd, F_OFD_SETLK, &all) == 0);
    shmq_member *late = NULL;
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &late), SHMQ_LIMIT);
    CHECK(strstr(shmq_trail(), "no room for another process") != NULL);
    shmq_trail_clear();
    CHECK(shmq_trail()[0] == '\0' && shmq_trail_errno() == 0);
    end();
}

TEST(test_names_and_codes_out_of_range_are_refused) {
    shmq_member *none = NULL;
    shmq_identity identity;
    CHECK(strcmp(shmq_status_name(SHMQ_OK), "UNKNOWN") != 0);
    CHECK(strcmp(shmq_status_name(SHMQ_STATUS_COUNT), "UNKNOWN") == 0);
    CHECK_EQUAL(shmq_member_attach("a/b", NULL, &none), SHMQ_GONE);
    CHECK_EQUAL(
        shmq_member_attach("0123456789012345678901234567890123456789012345678901234567890123456789", NULL, &none),
        SHMQ_GONE);
    CHECK_EQUAL(shmq_member_attach("shmq-ctest-is-not-there", NULL, &none), SHMQ_GONE);
    CHECK_EQUAL(shmq_segment_inspect("shmq-ctest-is-not-there", &identity), SHMQ_GONE);
    begin();
    const shmq_home home = {.dir_fd = 99999};
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &none), SHMQ_OS); /* no descriptor of a directory */
    CHECK_EQUAL(shmq_trail_errno(), EBADF);
    CHECK_EQUAL(shmq_reap_row(m, SHMQ_PROCESS_ROWS), SHMQ_OK);
    CHECK_EQUAL(shmq_reap_row(m, m->row), SHMQ_OK);
    CHECK(shmq_counters_at(m, SHMQ_PROCESS_ROWS, 0) == NULL && shmq_counters_at(m, 0, SHMQ_QUEUES) == NULL);
    CHECK(!shmq_process_dead(m, SHMQ_PROCESS_ROWS));
    shmq_member_free(NULL);
    shmq_block_drop(m, m->data, 1, 40);
    CHECK(shmq_block_at(m, m->data, 1) == NULL && shmq_block_at(m, UINT64_MAX, 1) == NULL);
    end();
}

/* Another user's segment, one that is open to a group, one that is open to all. */
TEST(test_a_segment_of_others_is_refused_unless_it_is_the_groups) {
    char path[128];
    if (geteuid() != 0) {
        return; /* only root can be somebody else; others have these cases in tests of the broker */
    }
    begin();
    scratch_path(path, sizeof path);
    shmq_member *none = NULL;
    CHECK(seteuid(65534) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &none), SHMQ_DENIED);
    CHECK(strstr(shmq_trail(), "another user") != NULL);
    CHECK(seteuid(0) == 0);
    CHECK(chmod(path, 0666) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &none), SHMQ_DENIED);
    CHECK(seteuid(65534) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &none), SHMQ_DENIED);
    CHECK(seteuid(0) == 0);
    CHECK(chmod(path, 0660) == 0);
    CHECK(chown(path, 65534, (gid_t)getegid()) == 0); /* another's, but our group's */
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &none), SHMQ_OK);
    scratch_detach(none);
    CHECK(chown(path, 65534, 65533) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &none), SHMQ_DENIED);
    CHECK(chown(path, 0, 0) == 0);
    end();
}

int main(void) { return run_tests(); }
