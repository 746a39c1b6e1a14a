/* Looking on at a queue that flows while something happens amid the look: a mover's turn ends, or the queue is shut down. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "flow_pair.h"

#define PAGE UINT64_C(4096)
#define NEXT UINT64_C(6300) /* the number of the next message of a queue that flows */
#define TAKEN UINT64_C(3000)

/* ---- a word whose first reader does something before it goes on ---------------------------------------------------- */

static struct trap {
    const void *word;
    void (*reached)(void);
    int times;
} trap;

static void protect(const void *word, int how) {
    CHECK(mprotect((void *)((uintptr_t)word & ~(PAGE - 1)), PAGE, how) == 0);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_addr != trap.word || trap.times != 0) {
        _exit(3); /* not at the place that was meant */
    }
    protect(trap.word, PROT_READ | PROT_WRITE);
    trap.times++;
    trap.reached();
}

static void trap_begin(const void *word, void (*reached)(void)) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    trap = (struct trap){.word = word, .reached = reached};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    protect(word, PROT_NONE);
}

static void trap_end(void) {
    CHECK_EQUAL(trap.times, 1);
    signal(SIGSEGV, SIG_DFL);
}

/* A browser at or behind P reads this word when it has gone over the back ring and asked for rows. It reads it by its own mapping. */
static const void *word_behind_the_scan(void) { return &shmq_front_of(&q->first)->shm->fetched_end; }

/* ---- a mover that waits amid its turn -------------------------------------------------------------------------------- */

static shmq_a32 writes, goes; /* it is about to write its rows; it may */
static const shmq_backing *real;
static shmq_status (*real_of)(shmq_queue *queue, uint32_t depth, const shmq_backing **backing);
static pthread_t mover;

static void await(shmq_a32 *word) {
    while (shmq_load_seq(word) == 0) {
        sched_yield();
    }
}

static shmq_status waiting_write(void *context, bool sweeps, uint64_t low, uint64_t from, const shmq_row *rows,
                                 uint32_t count) {
    shmq_store_seq(&writes, 1);
    await(&goes);
    return real->write(context, sweeps, low, from, rows, count);
}

static shmq_status waiting_backing_of(shmq_queue *queue, uint32_t depth, const shmq_backing **backing) {
    static shmq_backing calls;
    CHECK_EQUAL(real_of(queue, depth, &real), SHMQ_OK);
    calls = *real;
    calls.write = waiting_write;
    *backing = &calls;
    return SHMQ_OK;
}

static void *move(void *unused) {
    CHECK_EQUAL(shmq_purger_make_room(theirs, &theirs->first), SHMQ_OK);
    return unused;
}

static void mover_begin(void) {
    shmq_store_seq(&writes, 0);
    shmq_store_seq(&goes, 0);
    real_of = other->backing_of;
    other->backing_of = waiting_backing_of;
    CHECK(pthread_create(&mover, NULL, move, NULL) == 0);
    await(&writes);
}

static void mover_end(void) {
    shmq_store_seq(&goes, 1);
    CHECK(pthread_join(mover, NULL) == 0);
    other->backing_of = real_of;
}

static uint64_t flow_place(void) { return shmq_flow_place(shmq_load_seq(&q->first.shm->flow)); }

/* Answers the place of the next newcomer. */
static uint64_t move_all(void) {
    while (shmq_purger_make_room(q, &q->first) == SHMQ_OK) {
    }
    CHECK_EQUAL(flow_place(), shmq_load_seq(&q->first.shm->tail));
    return flow_place();
}

/* ---- nothing is passed ----------------------------------------------------------------------------------------------- */

/* Its rows are committed, and its slots free, between the browser's scan and whatever it does then. */
static void check_next_while_its_mover_ends(uint64_t at, uint64_t number) {
    shmq_delivery d;
    uint64_t place = at;
    CHECK_EQUAL(flow_place(), at);
    mover_begin();
    trap_begin(word_behind_the_scan(), mover_end);
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    trap_end();
    CHECK_EQUAL(place, at);
    CHECK_EQUAL(number_of(&d), number);
    CHECK_EQUAL(d.depth, SHMQ_ON_DISK);
}

/* A level that flows, whose back ring is empty: what is put now lies in other pages than the word. */
static uint64_t begin_on_disk(void) {
    begin();
    put_numbers(q, 0, NEXT);
    get_numbers(q, 0, TAKEN);
    return move_all();
}

TEST(an_entry_that_goes_to_disk_behind_the_scan_is_not_passed) {
    uint64_t at = begin_on_disk();
    put_numbers(q, NEXT, 2000);
    check_next_while_its_mover_ends(at, NEXT); /* there are more in memory, behind what is moved */
    at = move_all();
    put_numbers(q, NEXT + 2000, 1);
    check_next_while_its_mover_ends(at, NEXT + 2000); /* it is the last one */
    get_numbers(q, TAKEN, NEXT - TAKEN + 2001);
    end();
}

/* Nobody could wait for it but by the lock: nothing is on disk yet that the browser asks for. */
TEST(a_browser_of_what_is_being_moved_ends_with_its_patience) {
    uint64_t at = begin_on_disk(), place = at;
    shmq_delivery d;
    put_numbers(q, NEXT, 10);
    mover_begin();
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_INTERRUPTED);
    CHECK_EQUAL(place, at);
    CHECK_EQUAL(d.word, 0);
    mover_end();
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), NEXT);
    get_numbers(q, TAKEN, NEXT - TAKEN + 10);
    end();
}

/* The ring has turned over it while the disk was full: what was put behind it was taken by others by place. */
TEST(a_carried_entry_that_is_being_moved_is_not_passed) {
    uint64_t at = begin_on_disk(), place = at;
    shmq_delivery d;
    put_numbers(q, NEXT, 2);
    m->disk = other->disk = 1;
    for (uint64_t i = 0; i < shmq_slot_count(&q->first) + 10; i++) {
        put_numbers(q, i, 1);
        CHECK_EQUAL(shmq_steal(&q->first, shmq_load_seq(&q->first.shm->tail) - 1, true, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    m->disk = other->disk = SCRATCH_DISK;
    CHECK_EQUAL(flow_place(), at);
    mover_begin();
    uint64_t word = shmq_load_seq(&shmq_slot_at(&q->first, at)->word);
    CHECK(shmq_word_carried(word) && shmq_word_state(word) == SHMQ_MOVING);
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_INTERRUPTED);
    mover_end();
    for (uint64_t i = 0; i < 2; i++, place++) {
        CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
        CHECK_EQUAL(place, at + i);
        CHECK_EQUAL(number_of(&d), NEXT + i);
    }
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_EMPTY);
    get_numbers(q, TAKEN, NEXT - TAKEN + 2);
    end();
}

/* Its word says that it is on its way, and nobody moves: it is passed, as takers pass it. */
TEST(a_word_that_lies_about_a_mover_keeps_no_browser) {
    uint64_t at = begin_on_disk(), place = at;
    put_numbers(q, NEXT, 2);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, at);
    uint64_t word = shmq_load_seq(&slot->word);
    shmq_delivery d;
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word)));
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), NEXT + 1);
    shmq_store_seq(&slot->word, word);
    get_numbers(q, TAKEN, NEXT - TAKEN + 2);
    end();
}

/* ---- the end of who follows ------------------------------------------------------------------------------------------ */

static void put_and_shut_down(void) {
    CHECK_EQUAL(put_number(theirs, NEXT), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_shut_down(theirs, SHMQ_DRAINING), SHMQ_OK);
}

TEST(who_follows_sees_what_was_put_before_the_shutdown_though_it_had_looked) {
    uint64_t place = begin_on_disk();
    shmq_delivery d;
    trap_begin(word_behind_the_scan(), put_and_shut_down);
    CHECK_EQUAL(shmq_browse_wait(q, &place, SHMQ_FOR_EVER), SHMQ_OK);
    trap_end();
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), NEXT);
    place++;
    CHECK_EQUAL(shmq_browse_wait(q, &place, SHMQ_FOR_EVER), SHMQ_SHUT_DOWN);
    get_numbers(q, TAKEN, NEXT - TAKEN + 1);
    end();
}

int main(void) { return run_tests(); }
