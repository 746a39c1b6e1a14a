/* Pages, runs, the map's rebuild after a death, memory of deleted queues. */
#include <signal.h>
#include <time.h>

#include "blocks/slab.h"
#include "layout/run.h"
#include "lifecycle/delete.h"
#include "segment/structure.h"
#include "scratch_segment.h"

static void lock(shmq_member *m) { CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK); }

static void check_valid(shmq_member *m) { check_no_fault(shmq_structure_fault(m)); }

static bool all_zero(const unsigned char *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

TEST(test_pages_share_granules_and_come_zeroed) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t before = shmq_granules_free(m), pages[20];
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(shmq_page_take(m, &pages[i]), SHMQ_OK);
        CHECK(pages[i] >= m->data && pages[i] % SHMQ_PAGE_BYTES == 0 && shmq_inside(m, pages[i], SHMQ_PAGE_BYTES));
        CHECK(all_zero(shmq_at(m, pages[i]), SHMQ_PAGE_BYTES));
        memset(shmq_at(m, pages[i]), 0xee, SHMQ_PAGE_BYTES);
        for (int other = 0; other < i; other++) {
            CHECK(pages[other] != pages[i]);
        }
    }
    /* One page of eight is the member's own. */
    CHECK_EQUAL(before - shmq_granules_free(m), 2);
    for (int i = 0; i < 20; i++) {
        shmq_page_give(m, pages[i]);
    }
    CHECK_EQUAL(shmq_granules_free(m), before);
    check_valid(m);
    CHECK_EQUAL(shmq_page_take(m, &pages[0]), SHMQ_OK);
    CHECK(all_zero(shmq_at(m, pages[0]), SHMQ_PAGE_BYTES));
    shmq_page_give(m, pages[0]);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_runs_of_rings_come_zeroed_and_do_not_overlap) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t before = shmq_granules_free(m), a, b, c, d;
    CHECK_EQUAL(shmq_run_take(m, 3, SHMQ_GRANULE_RING, &a), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(m, 5, SHMQ_GRANULE_SLAB, &b), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(m, 1, SHMQ_GRANULE_RING, &c), SHMQ_OK);
    CHECK(a + 3 * SHMQ_GRANULE_BYTES <= b && b + 5 * SHMQ_GRANULE_BYTES <= c);
    CHECK_EQUAL(before - shmq_granules_free(m), 9);
    memset(shmq_at(m, a), 0xee, 3 * SHMQ_GRANULE_BYTES);
    shmq_run_give(m, a);
    CHECK_EQUAL(shmq_run_take(m, 2, SHMQ_GRANULE_RING, &d), SHMQ_OK);
    CHECK_EQUAL(d, a); /* what is reserved already is used again */
    CHECK(all_zero(shmq_at(m, d), 2 * SHMQ_GRANULE_BYTES));
    shmq_run_give(m, b);
    shmq_run_give(m, c);
    shmq_run_give(m, d);
    CHECK_EQUAL(shmq_granules_free(m), before);
    check_valid(m);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_a_used_up_budget_is_told_and_spares_what_is_there) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t offset, runs[300];
    uint32_t count = 0;
    CHECK_EQUAL(shmq_run_take(m, m->granule_count, SHMQ_GRANULE_RING, &offset), SHMQ_FULL_MEMORY);
    CHECK_EQUAL(shmq_run_take(m, m->granule_count + 1, SHMQ_GRANULE_RING, &offset), SHMQ_FULL_MEMORY);
    while (shmq_run_take(m, 1, SHMQ_GRANULE_SLAB, &runs[count]) == SHMQ_OK) {
        CHECK(++count < 300);
    }
    uint32_t kept = shmq_granules_kept(m);
    CHECK(kept > 0);
    CHECK(shmq_memory_left(m) >= SCRATCH_MEMORY / SHMQ_RING_SHARE); /* left to the slots of queues */
    while (shmq_granules_free(m) > kept) {
        CHECK_EQUAL(shmq_run_take(m, 1, SHMQ_GRANULE_RING, &runs[count++]), SHMQ_OK);
    }
    CHECK_EQUAL(count, m->granule_count - 1 - kept);
    CHECK_EQUAL(shmq_run_take(m, 1, SHMQ_GRANULE_RING, &offset), SHMQ_FULL_MEMORY);
    for (uint32_t i = 0; i < count; i += 2) {
        shmq_run_give(m, runs[i]);
    }
    /* Elsewhere are holes of one only. */
    CHECK_EQUAL(shmq_run_take(m, kept + 2, SHMQ_GRANULE_RING, &offset), SHMQ_FULL_MEMORY);
    CHECK_EQUAL(shmq_run_take(m, 1, SHMQ_GRANULE_RING, &offset), SHMQ_OK);
    while (shmq_run_take(m, 1, SHMQ_GRANULE_SLAB, &offset) == SHMQ_OK) {
    }
    for (uint32_t i = 0; i < kept * SHMQ_PAGES_A_GRANULE; i++) { /* what is kept is there for pages */
        CHECK_EQUAL(shmq_page_take(m, &offset), SHMQ_OK);
    }
    while (shmq_page_take(m, &offset) == SHMQ_OK) {
    }
    CHECK_EQUAL(shmq_page_take(m, &offset), SHMQ_FULL_MEMORY);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

/* A queue as a declaration leaves it: page, ring, one chunk of consumer rows, then the entry. */
static uint64_t make_queue(shmq_member *m, uint32_t index, uint32_t granules, uint32_t state) {
    uint64_t offset, ring, chunk;
    CHECK_EQUAL(shmq_page_take(m, &offset), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(m, granules, SHMQ_GRANULE_RING, &ring), SHMQ_OK);
    CHECK_EQUAL(shmq_page_take(m, &chunk), SHMQ_OK);
    shmq_queue_shm *page = shmq_at(m, offset);
    page->index = index;
    page->levels = 1;
    page->ring.run = ring;
    page->ring.run_granules = granules;
    page->level_rings = ring + SHMQ_LINE_BYTES; /* of its front ring, of which nothing is said */
    page->ring.carried = page->level_rings + sizeof(shmq_ring_shm);
    page->ring.slots = page->ring.carried + shmq_maps_bytes(256);
    shmq_store_relaxed(&page->ring.laid, SHMQ_LAID_ALL);
    page->ring.shift = 8; /* fits into one granule, and is looked at when the queue's memory goes back */
    page->ring.slot_size = SHMQ_SLOT_MIN;
    shmq_store_seq(&page->chunks[3], chunk);
    shmq_store_seq(&m->directory[index].page, offset);
    shmq_store_seq(&m->directory[index].word, shmq_entry_word(7, state));
    if (shmq_load_seq(&m->header->queue_high) <= index) {
        shmq_store_seq(&m->header->queue_high, index + 1);
    }
    return offset;
}

static uint32_t make_slab(shmq_member *m, uint32_t size_class) {
    shmq_block block;
    CHECK_EQUAL(shmq_slab_make(m, size_class, &block), SHMQ_OK);
    return (uint32_t)((block.offset - m->data) >> SHMQ_GRANULE_SHIFT);
}

TEST(test_the_map_is_rebuilt_after_a_death_inside_the_lock) {
    scratch_create(false);
    shmq_member *victim = scratch_attach(), *m = scratch_attach();
    lock(m);
    make_queue(m, 0, 3, SHMQ_ENTRY_LIVE);
    make_queue(m, 4, 2, SHMQ_ENTRY_DELETED);
    make_slab(m, 0);
    uint32_t big = make_slab(m, 18);
    CHECK(shmq_class_granules(18) > 1);
    check_valid(m);
    uint64_t free = shmq_granules_free(m);
    shmq_structure_unlock(m);
    shmq_counters_shm *counters;
    CHECK_EQUAL(shmq_counters_of(m, 70, &counters), SHMQ_OK);
    shmq_store_relaxed(&counters->put, 41);

    lock(victim);
    uint64_t lost;
    CHECK_EQUAL(shmq_page_take(victim, &lost), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(victim, 7, SHMQ_GRANULE_RING, &lost), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(victim, 2, SHMQ_GRANULE_SLAB, &lost), SHMQ_OK);
    shmq_store_seq(&m->granules[big], SHMQ_GRANULE_RESERVED | SHMQ_GRANULE_HEADERS); /* half-written map */
    CHECK(shmq_structure_fault(victim) != NULL);
    CHECK(shmq_load_seq(&m->header->dirty) != 0);
    scratch_kill(victim);

    lock(m);
    check_valid(m);
    CHECK_EQUAL(shmq_granules_free(m), free);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    CHECK_EQUAL(shmq_load_relaxed(&counters->put), 41);
    shmq_structure_unlock(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->dirty), 0);
    shmq_member_free(m);
    shmq_member_free(victim);
    scratch_remove();
}

/* A wrong count is told, changes nothing for good, and is right again after a rebuild. Shows G7. */
TEST(test_the_header_counts_what_the_map_says) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    make_queue(m, 0, 3, SHMQ_ENTRY_LIVE);
    make_slab(m, 0);
    make_slab(m, 18);
    uint64_t given;
    CHECK_EQUAL(shmq_run_take(m, 2, SHMQ_GRANULE_SLAB, &given), SHMQ_OK);
    shmq_run_give(m, given);
    check_valid(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->granules_ready), 2);
    CHECK_EQUAL(shmq_rings_bytes(m), 3 * SHMQ_GRANULE_BYTES);
    uint64_t free = shmq_granules_free(m), used_bytes = shmq_load_seq(&m->header->used_bytes);
    shmq_a32 *const words[] = {&m->header->granules_used, &m->header->granules_ready, &m->header->granules_solid,
                               &m->header->pages_free};
    const char *const names[] = {"granules in use", "free granules with memory", "granules of slabs and pages",
                                 "free pages"};
    const uint32_t wrong[] = {0, 1, m->granule_count, UINT32_MAX};
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t right = shmq_load_seq(words[i]);
        for (uint32_t n = 0; n < 4; n++) {
            if (wrong[n] == right) {
                continue;
            }
            shmq_store_seq(words[i], wrong[n]);
            const char *fault = shmq_structure_fault(m);
            CHECK(fault != NULL && strstr(fault, names[i]) != NULL);
            if (shmq_run_take(m, 1, SHMQ_GRANULE_SLAB, &given) == SHMQ_OK) {
                shmq_run_give(m, given);
            }
            CHECK_EQUAL(shmq_structure_rebuild(m), SHMQ_OK);
            check_valid(m);
            CHECK_EQUAL(shmq_load_seq(words[i]), right);
        }
    }
    shmq_store_seq(&m->header->used_bytes, 1);
    const char *fault = shmq_structure_fault(m);
    CHECK(fault != NULL && strstr(fault, "bytes of granules in use") != NULL);
    CHECK_EQUAL(shmq_rings_bytes(m), 0);
    CHECK_EQUAL(shmq_structure_rebuild(m), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->header->used_bytes), used_bytes);
    CHECK_EQUAL(shmq_granules_free(m), free);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

/* With the budget used up, a run is found in memory that bodies gave back, wherever the last search of this process
 * ended. */
TEST(test_memory_that_was_used_is_found_below_the_mark) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t low, high, again;
    CHECK_EQUAL(shmq_run_take(m, 60, SHMQ_GRANULE_SLAB, &low), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(m, 2, SHMQ_GRANULE_SLAB, &high), SHMQ_OK);
    uint32_t end = (uint32_t)((high - m->data) >> SHMQ_GRANULE_SHIFT) + 2;
    CHECK_EQUAL(shmq_run_high(m), end);
    shmq_run_give(m, low);
    m->run_hint = m->granule_count - 2; /* that of a process that has given nothing back */
    CHECK_EQUAL(shmq_run_take(m, 1, SHMQ_GRANULE_SLAB, &again), SHMQ_OK);
    CHECK_EQUAL(again, m->data + ((uint64_t)(m->granule_count - 2) << SHMQ_GRANULE_SHIFT)); /* the last is a page's */
    m->memory = shmq_load_seq(&m->header->reserved_bytes);
    shmq_store_seq(&m->header->run_high, end);
    m->run_hint = m->granule_count - 1;
    CHECK_EQUAL(shmq_run_take(m, 4, SHMQ_GRANULE_SLAB, &again), SHMQ_OK);
    CHECK_EQUAL(again, low);
    CHECK_EQUAL(shmq_run_high(m), end);
    shmq_store_seq(&m->header->run_high, 0); /* damaged: it is a hint */
    CHECK_EQUAL(shmq_run_take(m, 4, SHMQ_GRANULE_SLAB, &again), SHMQ_OK);
    CHECK_EQUAL(again, low + 4 * SHMQ_GRANULE_BYTES);
    shmq_store_seq(&m->header->run_high, UINT32_MAX);
    CHECK_EQUAL(shmq_run_high(m), m->granule_count);
    CHECK_EQUAL(shmq_structure_rebuild(m), SHMQ_OK);
    check_valid(m);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

/* Shows G7. */
TEST(test_a_damaged_root_is_counted_and_harms_no_other) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t first = make_queue(m, 0, 3, SHMQ_ENTRY_LIVE);
    make_queue(m, 1, 2, SHMQ_ENTRY_LIVE);
    make_queue(m, 2, 2, SHMQ_ENTRY_LIVE);
    make_queue(m, 3, 2, SHMQ_ENTRY_LIVE);
    uint32_t slab = make_slab(m, 3);
    shmq_queue_shm *page = shmq_at(m, first);
    uint64_t ring = page->ring.run;
    shmq_store_seq(&m->directory[1].page, UINT64_MAX - 4095);
    ((shmq_queue_shm *)shmq_at(m, shmq_load_seq(&m->directory[2].page)))->ring.run_granules = UINT64_MAX;
    shmq_store_seq(&m->directory[3].page, first); /* into another's page */
    shmq_slab_at(m, slab)->class_word = 9999;
    CHECK(shmq_structure_fault(m) != NULL);
    CHECK_EQUAL(shmq_structure_rebuild(m), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 4);
    CHECK_EQUAL(shmq_granule_length(shmq_load_seq(&m->granules[(ring - m->data) >> SHMQ_GRANULE_SHIFT])), 3);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_nonsense_that_is_given_back_is_refused) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t run, free;
    CHECK_EQUAL(shmq_run_take(m, 4, SHMQ_GRANULE_RING, &run), SHMQ_OK);
    free = shmq_granules_free(m);
    shmq_run_give(m, 0);
    shmq_run_give(m, run + SHMQ_GRANULE_BYTES);
    shmq_run_give(m, run + 8);
    shmq_run_give(m, UINT64_MAX / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES);
    shmq_page_give(m, run);
    shmq_page_give(m, m->size);
    shmq_page_give(m, 3);
    CHECK_EQUAL(shmq_granules_free(m), free);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 7);
    shmq_run_give(m, run);
    CHECK_EQUAL(shmq_granules_free(m), free + 4);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_a_deleted_queue_keeps_its_memory_while_a_member_may_use_it) {
    scratch_create(false);
    shmq_member *m = scratch_attach(), *user = scratch_attach();
    shmq_counters_shm *counters;
    CHECK_EQUAL(shmq_counters_of(user, 5, &counters), SHMQ_OK);
    shmq_store_seq(&counters->attached, 7 + 1);
    lock(m);
    uint64_t free = shmq_granules_free(m);
    make_queue(m, 5, 6, SHMQ_ENTRY_DELETED);
    make_queue(m, 6, 2, SHMQ_ENTRY_LIVE);
    shmq_queues_release(m);
    CHECK_EQUAL(shmq_entry_state(shmq_load_seq(&m->directory[5].word)), SHMQ_ENTRY_DELETED);
    shmq_store_seq(&counters->attached, 6 + 1); /* an earlier incarnation does not count */
    shmq_queues_release(m);
    CHECK_EQUAL(shmq_load_seq(&m->directory[5].word), shmq_entry_word(7, SHMQ_ENTRY_FREE));
    CHECK_EQUAL(shmq_entry_state(shmq_load_seq(&m->directory[6].word)), SHMQ_ENTRY_LIVE);
    check_valid(m);
    CHECK(free - shmq_granules_free(m) <= 3);
    /* A member that is gone uses nothing, whatever its line says. */
    make_queue(m, 5, 6, SHMQ_ENTRY_DELETED);
    shmq_structure_unlock(m);
    shmq_store_seq(&counters->attached, 7 + 1);
    shmq_member_free(user);
    lock(m);
    shmq_queues_release(m);
    CHECK_EQUAL(shmq_entry_state(shmq_load_seq(&m->directory[5].word)), SHMQ_ENTRY_FREE);
    check_valid(m);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

static volatile sig_atomic_t signals;
static void on_signal(int number) {
    (void)number;
    signals = signals + 1;
}

TEST(test_a_signal_ends_the_wait_for_the_lock) {
    scratch_create(false);
    shmq_member *holder = scratch_attach(), *m = scratch_attach();
    lock(holder);
    struct sigaction action = {.sa_handler = on_signal};
    CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    /* Again and again, for one that comes before the wait has begun ends nothing. */
    pid_t self = getpid(), bell = fork();
    if (bell == 0) {
        struct timespec pause = {0, 2000000};
        while (kill(self, SIGUSR1) == 0 && getppid() == self) {
            nanosleep(&pause, NULL);
        }
        _exit(0);
    }
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_INTERRUPTED);
    CHECK_EQUAL(kill(bell, SIGKILL), 0);
    CHECK(waitpid(bell, NULL, 0) == bell);
    CHECK(signals > 0);
    shmq_structure_unlock(holder);
    lock(m);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    shmq_member_free(holder);
    scratch_remove();
}

TEST(test_processes_that_race_for_memory_never_share_it) {
    enum { CHILDREN = 4, ROUNDS = 60 };
    scratch_create(false);
    shmq_member *m = scratch_attach();
    lock(m);
    uint64_t free = shmq_granules_free(m);
    shmq_structure_unlock(m);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
            for (int round = 0; round < ROUNDS; round++) {
                uint64_t run, page;
                lock(m);
                CHECK_EQUAL(shmq_run_take(m, 1 + (uint32_t)round % 3, SHMQ_GRANULE_SLAB, &run), SHMQ_OK);
                CHECK_EQUAL(shmq_page_take(m, &page), SHMQ_OK);
                shmq_structure_unlock(m);
                memset(shmq_at(m, run), i + 1, SHMQ_GRANULE_BYTES);
                memset(shmq_at(m, page), i + 1, SHMQ_PAGE_BYTES);
                for (uint64_t at = 0; at < SHMQ_PAGE_BYTES; at++) {
                    CHECK_EQUAL(((unsigned char *)shmq_at(m, run))[at], i + 1);
                    CHECK_EQUAL(((unsigned char *)shmq_at(m, page))[at], i + 1);
                }
                lock(m);
                shmq_run_give(m, run);
                shmq_page_give(m, page);
                shmq_structure_unlock(m);
            }
            shmq_member_free(m);
            exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        scratch_wait(children[i]);
    }
    lock(m);
    check_valid(m);
    CHECK(free - shmq_granules_free(m) <= 1); /* the children's process pages stay with their rows */
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_structure_unlock(m);
    shmq_member_free(m);
    scratch_remove();
}

/* Takes and gives back until it is killed; it says once that it has begun. */
static void churn(shmq_member *m, int told) {
    CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
    CHECK(write(told, "x", 1) == 1);
    for (uint32_t round = 0;; round++) {
        uint64_t run, page;
        lock(m);
        CHECK_EQUAL(shmq_run_take(m, 1 + round % 5, round % 2 ? SHMQ_GRANULE_RING : SHMQ_GRANULE_SLAB, &run), SHMQ_OK);
        CHECK_EQUAL(shmq_page_take(m, &page), SHMQ_OK);
        if (round < 60 && round % 3 == 0) { /* not for ever: nobody sweeps their blocks here */
            make_slab(m, round / 4);
            (void)shmq_blocks_reclaim(m); /* the slab that was just made has a block in use: it stays */
        }
        if (round % 2 == 0) {
            make_queue(m, round % 40, 1 + round % 2, SHMQ_ENTRY_DELETED);
            shmq_queues_release(m);
        }
        shmq_run_give(m, run);
        shmq_page_give(m, page);
        shmq_structure_unlock(m);
    }
}

TEST(test_a_kill_at_any_time_leaves_a_map_that_fits_its_roots) {
    unsigned seed = (unsigned)time(NULL);
    printf("seed %u\n", seed);
    srand(seed);
    for (int kill_count = 0; kill_count < 40; kill_count++) {
        scratch_create(false);
        shmq_member *m = scratch_attach();
        int pipes[2];
        CHECK_EQUAL(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            churn(m, pipes[1]);
        }
        char byte;
        CHECK(read(pipes[0], &byte, 1) == 1);
        struct timespec moment = {0, rand() % 3000000}; /* not a synchronisation: where it is struck is up to chance */
        nanosleep(&moment, NULL);
        CHECK_EQUAL(kill(child, SIGKILL), 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        lock(m);
        check_valid(m);
        CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
        shmq_structure_unlock(m);
        close(pipes[0]);
        close(pipes[1]);
        shmq_member_free(m);
        scratch_remove();
    }
}

int main(void) { return run_tests(); }
