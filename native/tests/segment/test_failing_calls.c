/* Every call of the core to the system fails once: nothing crashes, nothing hangs, and what is left can be used.
 *
 * The linker leads these calls here (--wrap, see CMakeLists.txt); the nth of a life fails, for each n and each errno. */
#include "segment/inspect.h"
#include "selectors/selector.h"
#include "failing_calls.h"

#define DONE(call)         \
    if ((call) != SHMQ_OK) \
    return

static void take_one(shmq_queue *q, bool attempt) {
    shmq_delivery d;
    DONE(shmq_offer(q, shmq_self(q), &d));
    DONE(shmq_offer_acquire(q, &d));
    uint32_t pin;
    bool pinned = d.body != 0 && shmq_block_pin(q->m, shmq_body_offset(d.body), d.body_gen, d.body_len, &pin);
    DONE(shmq_release(q, &d, attempt));
    if (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK && shmq_offer_acquire(q, &d) == SHMQ_OK) {
        (void)shmq_settle(q, &d);
    }
    if (pinned) {
        shmq_block_unpin(q->m, pin, d.body_len);
    }
}

static void use(shmq_queue *q) {
    static unsigned char bytes[300000];
    (void)put_bytes(q, bytes, 16, 0);
    (void)put_bytes(q, bytes, 5000, 0);
    (void)put_bytes(q, bytes, sizeof bytes, 0);
    take_one(q, false);
    take_one(q, true);
    shmq_delivery d;
    uint64_t position = 0;
    (void)shmq_browse(&q->first, &position, &d);
    (void)shmq_ring_ready(q);
    while (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK && shmq_offer_acquire(q, &d) == SHMQ_OK) {
        (void)shmq_settle(q, &d);
    }
    uint64_t until = shmq_now_ns() + 1000000;
    (void)shmq_offer_wait(q, shmq_self(q), 0, until, &d);
    (void)shmq_browse_wait(q, &(uint64_t){position + 100}, until);
    (void)shmq_ring_join(q, until);
}

static shmq_queue *declare(shmq_member *m, const char *name, bool temporary) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_TEMPORARY | 1u << SHMQ_SET_SLOT_SIZE,
                          .temporary = temporary,
                          .slot_size = 128,
                          .create = true};
    shmq_queue *q = NULL;
    int differs;
    return shmq_queue_declare(m, name, (uint32_t)strlen(name), &d, &q, &differs) == SHMQ_OK ? q : NULL;
}

static void leave(shmq_member *m) {
    (void)shmq_sweep_own(m);
    (void)shmq_member_leave(m, true);
    shmq_member_free(m);
}

/* A process from its first call to its last; any of them may fail, and the rest goes on as far as it makes sense. */
static void life(void) {
    shmq_member *m = NULL, *other = NULL;
    DONE(shmq_member_attach(scratch_name, NULL, &m));
    shmq_queue *q = declare(m, "jobs", false), *passing = declare(m, "passing", true);
    if (q != NULL) {
        use(q);
        uint32_t row;
        if (shmq_row_open(q, SHMQ_CONSUMER, &row) == SHMQ_OK) {
            shmq_row_closing(q, row);
            (void)shmq_row_close(q, row);
        }
    }
    if (shmq_member_attach(scratch_name, NULL, &other) == SHMQ_OK) {
        shmq_queue *theirs = declare(other, "jobs", false);
        shmq_delivery d;
        if (theirs != NULL && put_number(theirs, 7) == SHMQ_OK &&
            shmq_offer(theirs, shmq_self(theirs), &d) == SHMQ_OK) {
            (void)shmq_offer_acquire(theirs, &d);
        }
        scratch_kill(other); /* with what it holds */
        if (theirs != NULL) { /* private memory goes with a process */
            free(theirs->lower);
        }
        free(theirs);
        uint32_t reaped;
        (void)shmq_reap_dead(m, &reaped);
        (void)shmq_structure_lock(m);
        if (m->structure_locked) {
            (void)shmq_blocks_reclaim(m);
            shmq_structure_unlock(m);
        }
        other->process = NULL; /* its row is not its own any more: memory goes, words stay */
        other->base = NULL;
        shmq_store_seq(&other->closed, 1);
        shmq_member_free(other);
    }
    if (passing != NULL) {
        (void)shmq_queue_delete(passing);
        shmq_queue_unbind(passing);
    }
    if (q != NULL) {
        shmq_queue_unbind(q);
    }
    leave(m);
}

/* A process that comes after finds a segment that works. */
static void check_after(long n, int number) {
    shmq_member *m = NULL;
    shmq_status status = shmq_member_attach(scratch_name, NULL, &m);
    if (status != SHMQ_OK) {
        fprintf(stderr, "after call %ld with errno %d: %s %s\n", n, number, shmq_status_name(status), shmq_trail());
    }
    CHECK_EQUAL(status, SHMQ_OK);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    shmq_queue *q = declare(m, "jobs", false);
    CHECK(q != NULL);
    shmq_delivery d;
    while (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK) { /* what is left of it, killed too often or not */
        shmq_status acquired = shmq_offer_acquire(q, &d);
        CHECK(acquired == SHMQ_OK || acquired == SHMQ_POISONED);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(q, 42), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 42);
    check_ring(q);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    const char *fault = shmq_structure_fault(m);
    if (fault != NULL) {
        fprintf(stderr, "after call %ld with errno %d: %s\n", n, number, fault);
    }
    CHECK(fault == NULL);
    shmq_structure_unlock(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_queue_unbind(q);
    leave(m);
}

static long files_of_ours(void) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "shmq-ctest-%ld-", (long)getpid());
    DIR *directory = opendir("/dev/shm");
    CHECK(directory != NULL);
    long found = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        found += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 || strstr(entry->d_name, prefix) != NULL;
    }
    closedir(directory);
    return found;
}

/* It appears complete or not at all, and a draft does not stay. */
TEST(test_a_creation_in_which_any_call_fails_leaves_nothing_half_done) {
    static const int more[] = {EOPNOTSUPP, EEXIST, EACCES, EISDIR, EINVAL, ENOENT};
    for (int i = 0; i < FAILURES + 6; i++) {
        long n = 0;
        do {
            shmq_segment_plan plan = scratch_plan(false);
            failure = i < FAILURES ? failures[i] : more[i - FAILURES];
            calls = 0;
            countdown = n++;
            shmq_status status = shmq_segment_create(&plan);
            countdown = -1;
            CHECK(status != SHMQ_OK || scratch_exists());
            CHECK_EQUAL(files_of_ours(), status == SHMQ_OK);
            if (status == SHMQ_OK) {
                leave(scratch_attach());
                scratch_remove();
            }
        } while (calls >= n);
        CHECK(n > 5);
    }
}

TEST(test_a_life_in_which_any_call_fails_harms_nobody) {
    for (int i = 0; i < FAILURES; i++) {
        long n = 0;
        scratch_create(false);
        do {
            failure = failures[i];
            calls = 0;
            countdown = n++;
            life();
            countdown = -1;
            check_after(n - 1, failure);
        } while (calls >= n);
        printf("errno %d: %ld calls\n", failures[i], n - 1);
        CHECK(n > 40);
        scratch_remove();
    }
}

/* An identity is told or an error is; a segment that is used is not removed, whatever fails. */
TEST(test_an_inspection_in_which_any_call_fails_removes_nothing) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    for (int i = 0; i < FAILURES; i++) {
        long n = 0;
        do {
            bool removed = true;
            shmq_identity identity;
            failure = failures[i];
            calls = 0;
            countdown = n++;
            if (shmq_segment_inspect(scratch_name, &identity) == SHMQ_OK) {
                CHECK_EQUAL(identity.size, m->size);
            }
            shmq_member *eye = NULL;
            if (shmq_observer_open(scratch_name, NULL, &eye) == SHMQ_OK) {
                for (int part = 0; part < SHMQ_PARTS; part++) {
                    shmq_finding finding;
                    shmq_part_check(eye, part, &finding);
                    CHECK(finding.verdict != SHMQ_DAMAGED);
                }
                shmq_observer_close(eye);
            }
            if (shmq_segment_sweep(scratch_name, &removed) == SHMQ_OK) {
                CHECK(!removed);
            }
            countdown = -1;
            CHECK(scratch_exists());
        } while (calls >= n);
        CHECK(n > 5);
    }
    leave(m);
    bool removed = false;
    CHECK_EQUAL(shmq_segment_sweep(scratch_name, &removed), SHMQ_OK);
    CHECK(removed && !scratch_exists());
}

/* Its messages go back all the same: else its row would be free while words name it. */
TEST(test_who_leaves_without_memory_for_a_handle_gives_back_what_it_holds) {
    scratch_create(false);
    shmq_member *m = scratch_attach(), *other = scratch_attach();
    shmq_queue *q = declare(m, "jobs", false), *theirs = declare(other, "jobs", false);
    CHECK(q != NULL && theirs != NULL);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK);
    (void)receive(q, shmq_self(q));
    m->handles = NULL; /* its line says that it uses the queue, and no handle is left */
    failure = ENOMEM;
    countdown = 0;
    CHECK_EQUAL(shmq_sweep_own(m), SHMQ_OK);
    countdown = -1;
    CHECK_EQUAL(state_at(theirs, 0), SHMQ_AVAILABLE);
    scratch_detach(m);
    free(q->lower);
    free(q);
    CHECK_EQUAL(get_number(theirs), 3);
    check_ring(theirs);
    shmq_queue_unbind(theirs);
    leave(other);
    scratch_remove();
}

/* name LIKE 'a%b_c' AND size > 5 AND kind IN ('x', 'y'): what shmq/selector/program.py makes of it */
static const unsigned char selection[] = {
    1,   3,  7,   0,   11, 0,  9, 16,  0,   2,   1,   0, 97, 0, 2, 1, 0,   98, 1, 1, 0,   2, 1,  0, 99,  8,   4,   0,
    110, 97, 109, 101, 8,  4,  0, 115, 105, 122, 101, 3, 5,  8, 1, 0, 120, 8,  1, 0, 121, 8, 4,  0, 107, 105, 110, 100,
    1,   1,  0,   0,   0,  21, 0, 0,   0,   0,   26,  8, 0,  0, 0, 1, 2,   0,  0, 0, 3,   3, 0,  0, 0,   8,   0,   0,
    0,   0,  24,  0,   0,  0,  0, 26,  3,   0,   0,   0, 1,  6, 0, 0, 0,   19, 4, 0, 2,   0, 24, 0, 0,   0,   0};

TEST(test_a_selector_for_which_there_is_no_memory_is_refused_whole) {
    long n = 0;
    failure = ENOMEM;
    do {
        shmq_selector *selector = NULL;
        calls = 0;
        countdown = n++;
        shmq_status status = shmq_selector_load(selection, sizeof selection, &selector);
        countdown = -1;
        CHECK_EQUAL(status == SHMQ_OK, selector != NULL);
        CHECK(status == SHMQ_OK || calls >= n);
        shmq_selector_free(selector);
    } while (calls >= n);
    CHECK(n > 7);
}

/* Nobody has it: it goes, or it stays and the error is told. */
TEST(test_a_sweep_in_which_any_call_fails_removes_the_segment_or_says_why_not) {
    static const int errors[] = {EACCES, EPERM, ENOENT, EINTR, ELOOP, EISDIR, ENXIO};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        long n = 0;
        do {
            bool removed = false;
            scratch_create(false);
            failure = errors[i];
            calls = 0;
            countdown = n++;
            shmq_status status = shmq_segment_sweep(scratch_name, &removed);
            countdown = -1;
            CHECK_EQUAL(scratch_exists(), !removed);
            CHECK(!removed || status == SHMQ_OK);
            if (errors[i] == EACCES && calls >= n && n == 1) {
                CHECK_EQUAL(status, SHMQ_DENIED);
            }
            scratch_remove();
        } while (calls >= n);
        CHECK(n > 4);
    }
}

/* /dev/shm is full: what the segment has got before, and nobody uses now, does. Without any of that it is an error. */
TEST(test_memory_that_is_reserved_already_does_where_there_is_no_more) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    uint64_t first, second;
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    failure = ENOSPC;
    countdown = 1; /* behind the look at the descriptor */
    CHECK_EQUAL(shmq_run_take(m, 3, SHMQ_GRANULE_RING, &first), SHMQ_NO_SPACE);
    countdown = -1;
    for (uint32_t kind = SHMQ_GRANULE_RING; kind <= SHMQ_GRANULE_SLAB; kind++) {
        CHECK_EQUAL(shmq_run_take(m, 3, SHMQ_GRANULE_RING, &first), SHMQ_OK);
        memset(shmq_at(m, first), 0xff, 64);
        shmq_run_give(m, first);
        m->run_hint = m->granule_count - 5; /* the search begins where nothing is reserved yet */
        failure = ENOSPC;
        countdown =
            kind == SHMQ_GRANULE_SLAB ? 3 : 1; /* behind looks: at descriptors; for bodies at how much is left */
        CHECK_EQUAL(shmq_run_take(m, 3, kind, &second), SHMQ_OK);
        countdown = -1;
        CHECK(second < first + 3 * SHMQ_GRANULE_BYTES);
        shmq_run_give(m, second);
    }
    CHECK_EQUAL(shmq_run_take(m, m->granule_count + 1, SHMQ_GRANULE_RING, &first), SHMQ_FULL_MEMORY);
    CHECK(shmq_structure_fault(m) == NULL);
    shmq_structure_unlock(m);
    leave(m);
    scratch_remove();
}

int main(void) { return run_tests(); }
