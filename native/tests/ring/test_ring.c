/* The ring without Python: order over laps, old entries, claims of the stopped and of the dead, damage, recovery. */
#include <signal.h>
#include <sys/mman.h>

#include "ring/ring.h"
#include "scratch_queue.h"

#define N 1024u

static shmq_member *a, *b; /* two members; they are two processes to everything that matters here */
static shmq_queue *qa, *qb;

static void open_queue(uint64_t maxsize) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, false);
    qb = scratch_queue(b, "jobs", 0, false);
    CHECK_EQUAL(shmq_slot_count(&qa->first), maxsize == 0 ? shmq_slot_count(&qb->first) : N);
}

static void leave_queue(void) {
    shmq_queue_unbind(qa);
    if (b != NULL && b->lock_fd >= 0) {
        scratch_close(b, qb);
    }
    scratch_detach(a);
    scratch_remove();
}

static void close_queue(void) {
    check_ring(qa);
    leave_queue();
}

TEST(order_is_kept_over_many_laps) {
    open_queue(N);
    uint64_t in = 0, out = 0;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 100 + round; i++) {
            CHECK_EQUAL(put_number(i % 2 ? qa : qb, in++), SHMQ_OK);
        }
        for (int i = 0; i < 95 + round; i++) {
            CHECK_EQUAL(get_number(i % 3 ? qb : qa), out++);
        }
        check_ring(qa);
    }
    while (out < in) {
        CHECK_EQUAL(get_number(qa), out++);
    }
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    CHECK(shmq_load_seq(&qa->first.shm->tail) > 4 * N);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 0);
    close_queue();
}

TEST(a_full_ring_says_so_and_uses_its_last_slot) {
    open_queue(N);
    for (uint64_t i = 0; i < N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(qa, N), SHMQ_FULL_COUNT);
    CHECK_EQUAL(get_number(qb), 0);
    CHECK_EQUAL(put_number(qa, N), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, N + 1), SHMQ_FULL_COUNT);
    for (uint64_t i = 1; i <= N; i++) {
        CHECK_EQUAL(get_number(qb), i);
    }
    close_queue();
}

/* Entries that nobody settles are carried from lap to lap, keep their handles, and come back in their order. Shows S2, S78, R2, R17. */
TEST(old_entries_keep_place_and_order) {
    open_queue(N);
    shmq_delivery taken[5];
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        taken[i] = receive(qa, shmq_self(qa));
    }
    for (uint64_t i = 5; i < 5 * N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qb), i);
    }
    check_ring(qa);
    CHECK_EQUAL(census_of(qa).unsettled, 5);
    CHECK_EQUAL(census_of(qa).first_position, 0);
    CHECK_EQUAL(put_number(qa, 5 * N), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qa, &taken[2]), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qa, &taken[2]), SHMQ_SETTLED);
    for (int i = 4; i >= 0; i--) { /* the last one first */
        CHECK_EQUAL(shmq_release(qa, &taken[i], false), i == 2 ? SHMQ_SETTLED : SHMQ_OK);
    }
    for (uint64_t i = 0; i < 5; i++) {
        if (i != 2) {
            shmq_delivery d;
            CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &d), SHMQ_OK);
            CHECK_EQUAL(number_of(&d), i);
            CHECK_EQUAL(d.position, i);
            CHECK(d.word & SHMQ_FLAG_REDELIVERED);
            CHECK_EQUAL(shmq_offer_finish(qb, &d), SHMQ_OK);
        }
    }
    CHECK_EQUAL(get_number(qb), 5 * N);
    CHECK_EQUAL(get_number(qb), UINT64_MAX);
    close_queue();
}

/* A taker that has offered itself an old entry gives it back for one before it that was released meanwhile. Shows
 * R1. */
TEST(the_cell_of_a_release_tells_old_entries_apart) {
    open_queue(N);
    shmq_delivery taken[2];
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        taken[i] = receive(qa, shmq_self(qa));
    }
    for (uint64_t i = 2; i < 3 * N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(shmq_release(qa, &taken[0], false), SHMQ_OK);
    uint64_t e = shmq_load_seq(&qa->first.shm->epoch);
    uint64_t cell = shmq_load_seq(&qa->first.shm->cells[e % SHMQ_CELLS]);
    CHECK_EQUAL(cell >> SHMQ_POSITION_BITS, e & SHMQ_EPOCH_MASK);
    CHECK_EQUAL(cell & SHMQ_POSITION_MASK, 0); /* position 0 itself, and not "somewhere before the ring" */
    CHECK(shmq_head_position(&qa->first, shmq_load_seq(&qa->first.shm->head)) <
          shmq_load_seq(&qa->first.shm->tail) - N);
    shmq_rewind_all(&qa->first);
    e = shmq_load_seq(&qa->first.shm->epoch);
    cell = shmq_load_seq(&qa->first.shm->cells[e % SHMQ_CELLS]);
    CHECK(cell >> SHMQ_POSITION_BITS != (e & SHMQ_EPOCH_MASK)); /* it says nothing: from the beginning */
    CHECK_EQUAL(get_number(qb), 0);
    CHECK_EQUAL(shmq_settle(qa, &taken[1]), SHMQ_OK);
    close_queue();
}

/* The slot under the tail is a claim of the lap before, and there is a free one behind it: no endless loop, patience. */
TEST(a_claim_a_lap_behind_the_tail_is_a_matter_of_patience) {
    open_queue(N);
    CHECK_EQUAL(claim_by_hand(qb), 0);
    for (uint64_t i = 1; i < N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal(&qa->first, 1, false, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, N), SHMQ_FULL_RING);
    uint64_t begin = shmq_now_ns(), number = N;
    shmq_status status;
    do { /* on a busy machine the wait is longer than the piece after which a caller looks for signals */
        status = put_bytes(qa, &number, sizeof(number), begin + 5 * SECOND);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK(shmq_now_ns() - begin < 2 * SECOND);
    CHECK_EQUAL(state_at(qa, 0), SHMQ_QUARANTINED);
    for (uint64_t i = 2; i <= N; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    close_queue();
}

/* With calls that do not wait, or not long enough, patience goes on from call to call. */
TEST(who_only_polls_gets_past_a_stopped_claim_too) {
    open_queue(N);
    CHECK_EQUAL(claim_by_hand(qb), 0);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint64_t begin = shmq_now_ns(), got = UINT64_MAX;
    while (got == UINT64_MAX && shmq_now_ns() - begin < 5 * SECOND) {
        shmq_delivery d;
        uint64_t until = shmq_now_ns() % 2 ? 0 : shmq_now_ns() + 3000000;
        if (shmq_offer_wait(qa, shmq_self(qa), 0, until, &d) == SHMQ_OK) {
            got = number_of(&d);
            CHECK_EQUAL(shmq_offer_finish(qa, &d), SHMQ_OK);
        }
    }
    CHECK_EQUAL(got, 1);
    CHECK(shmq_now_ns() - begin >= a->patience_ns);
    close_queue();
}

/* ---- a real process that stands still between claim and publish -------------------------------------------------- */

static unsigned char *trap; /* a page that stops whoever reads it: put reads a body only after its claim */

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_addr < (void *)trap || info->si_addr >= (void *)(trap + 4096)) {
        _exit(3);
    }
    raise(SIGSTOP);
    mprotect(trap, 4096, PROT_READ | PROT_WRITE);
}

/* A child that puts `before` numbers from 100 on, then one that stops it in its claim, then `after` more. */
static pid_t stopped_in_a_claim(uint32_t before, uint32_t after) {
    trap = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(trap != MAP_FAILED);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid != 0) {
        int status;
        CHECK(waitpid(pid, &status, WUNTRACED) == pid);
        CHECK(WIFSTOPPED(status));
        return pid;
    }
    CHECK_EQUAL(shmq_member_after_fork(a), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_rebind(qa), SHMQ_OK);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    uint64_t numbers[16];
    struct iovec pieces[16];
    shmq_outgoing out[16] = {0};
    uint32_t count = before + 1 + after, done = 0;
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = 100 + i;
        pieces[i] = (struct iovec){.iov_base = &numbers[i], .iov_len = 8};
        out[i] = (shmq_outgoing){.pieces = &pieces[i], .piece_count = 1, .body_len = 8};
        CHECK_EQUAL(shmq_prepare(qa, &out[i], 0), SHMQ_OK);
    }
    memcpy(trap, &numbers[before], 8);
    pieces[before].iov_base = trap;
    mprotect(trap, 4096, PROT_NONE);
    CHECK_EQUAL(shmq_put_some(qa, out, count, &done), SHMQ_OK);
    CHECK_EQUAL(done, count);
    CHECK_EQUAL(shmq_member_leave(a, false), SHMQ_OK);
    _exit(0);
}

TEST(a_producer_stopped_in_its_claim_costs_one_patience_and_loses_nothing) {
    open_queue(N);
    pid_t child = stopped_in_a_claim(0, 0);
    CHECK_EQUAL(state_at(qa, 0), SHMQ_CLAIMED);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint64_t waited;
    CHECK_EQUAL(await_number(qa, &waited), 1);
    CHECK(waited >= a->patience_ns / 2);
    CHECK(waited < a->patience_ns + SECOND);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK); /* the hole costs nothing more */
    CHECK_EQUAL(get_number(qb), 2);
    CHECK_EQUAL(census_of(qa).holes, 1);
    kill(child, SIGCONT);
    CHECK_EQUAL(await_number(qa, &waited), 100);
    scratch_wait(child);
    CHECK_EQUAL(census_of(qa).holes, 0);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 0);
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    close_queue();
}

/* While it stands still the ring turns three times: the hole is passed on, and its slot comes back at last. */
TEST(the_hole_of_a_stopped_producer_is_passed_on_from_lap_to_lap) {
    open_queue(N);
    pid_t child = stopped_in_a_claim(0, 0);
    uint64_t waited, out = 0;
    for (uint64_t i = 0; i < 3 * N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        if (i == 0) {
            CHECK_EQUAL(await_number(qa, &waited), out++);
        } else {
            CHECK_EQUAL(get_number(qa), out++);
        }
    }
    check_ring(qa);
    CHECK_EQUAL(state_at(qa, 0), SHMQ_QUARANTINED);
    kill(child, SIGCONT);
    CHECK_EQUAL(await_number(qa, &waited), 100);
    scratch_wait(child);
    CHECK_EQUAL(state_at(qa, 0), SHMQ_FREE);
    for (uint64_t i = 0; i < 2 * N; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qb), i);
    }
    close_queue();
}

/* A batch of eight stops at its third: all of it comes, in order, at the tail. */
TEST(a_batch_that_became_holes_is_put_again_in_order) {
    open_queue(N);
    pid_t child = stopped_in_a_claim(2, 5);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint64_t waited;
    CHECK_EQUAL(await_number(qa, &waited), 1);
    CHECK_EQUAL(census_of(qa).holes, 8);
    kill(child, SIGCONT);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(await_number(qa, &waited), 100 + i);
    }
    scratch_wait(child);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 0);
    close_queue();
}

/* Shows E3. */
TEST(a_producer_killed_in_its_claim_costs_no_patience) {
    open_queue(N);
    pid_t child = stopped_in_a_claim(1, 3);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    uint64_t waited;
    a->patience_ns = 60 * SECOND;
    CHECK_EQUAL(await_number(qa, &waited), 1);
    CHECK(waited < a->patience_ns);
    CHECK_EQUAL(get_number(qa), 2);
    reap_all(a, 1);
    CHECK_EQUAL(census_of(qa).claimed, 0);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 0);
    close_queue();
}

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

/* One word of each kind that a dead process can leave, some of them carried, one with a block. Shows E13, E14, E17, C12. */
TEST(the_reaper_puts_every_word_of_the_dead_right) {
    open_queue(N);
    static unsigned char large[5000];
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    for (uint64_t i = 2; i < 6; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_delivery settling = receive(qb, row), large_held = receive(qb, row), taken = receive(qb, row);
    shmq_delivery locked = receive(qb, shmq_self(qb)), offered;
    CHECK_EQUAL(shmq_lock(qb, &locked), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(qb, row, &offered), SHMQ_OK);
    shmq_slot_shm *slot = shmq_slot_at(&qb->first, settling.position);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, row, settling.tag))); /* half of a settle */
    uint64_t claimed = claim_by_hand(qb);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 4);
    shmq_block lent;
    CHECK_EQUAL(shmq_block_take(b, 5000, &lent), SHMQ_OK);
    scratch_kill(b);
    reap_all(a, 1);
    reap_all(a, 0);
    check_ring(qa);
    CHECK_EQUAL(state_at(qa, settling.position), SHMQ_FREE);
    CHECK_EQUAL(state_at(qa, claimed), SHMQ_FREE);
    shmq_census c = census_of(qa);
    CHECK_EQUAL(c.ready, 6);
    CHECK_EQUAL(c.unsettled + c.claimed + c.holes, 0);
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 6);
    shmq_delivery first = receive(qa, shmq_self(qa));
    CHECK_EQUAL(first.position, large_held.position);
    CHECK_EQUAL(first.deaths, 1);
    CHECK(first.word & SHMQ_FLAG_REDELIVERED);
    CHECK_EQUAL(shmq_settle(qa, &first), SHMQ_OK);
    first = receive(qa, shmq_self(qa));
    CHECK_EQUAL(first.position, taken.position);
    CHECK_EQUAL(shmq_settle(qa, &first), SHMQ_OK);
    CHECK_EQUAL(get_number(qa), 3); /* locked by the process itself, a stealer: back, no death counted */
    CHECK_EQUAL(get_number(qa), 4);
    CHECK_EQUAL(get_number(qa), 5);
    CHECK_EQUAL(get_number(qa), 7);
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 0);
    CHECK_EQUAL(shmq_load_seq(&qa->page->sleepers[0].used), 0); /* its consumer row is free */
    close_queue();
}

/* Two reapers, one of them late: what the row's next owner has is not taken from it. Shows C12. */
TEST(a_late_reaper_leaves_the_next_owner_alone) {
    open_queue(N);
    uint32_t dead_row, live_row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &dead_row), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    (void)receive(qb, dead_row);
    /* A reaper got as far as the consumer row and died: the row is free, that of its process is not. */
    shmq_consumer_shm *consumer = shmq_row_at(qb, dead_row);
    scratch_kill(b);
    shmq_delivery d = {0};
    CHECK_EQUAL(shmq_steal(&qa->first, 0, false, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_release(qa, &d, false), SHMQ_OK);
    uint32_t generation = shmq_row_generation(shmq_load_seq(&consumer->word));
    shmq_and_seq(&qa->page->sleepers[0].used, ~(UINT64_C(1) << dead_row));
    shmq_store_seq(&consumer->word, shmq_row_word(generation + 1, 0, SHMQ_ROW_FREE));
    CHECK_EQUAL(shmq_row_open(qa, SHMQ_CONSUMER, &live_row), SHMQ_OK);
    CHECK_EQUAL(live_row, dead_row);
    d = receive(qa, live_row);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(qa, live_row), SHMQ_OK);
    close_queue();
}

/* `unsettled` is its process's own word: a stealer that wrote there could meet the row's next owner, or die before. */
TEST(who_is_robbed_holds_the_message_until_it_finds_out) {
    open_queue(N);
    for (int way = 0; way < 3; way++) {
        CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
        shmq_delivery mine = receive(qb, shmq_self(qb)), stolen = {0};
        CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 1);
        CHECK_EQUAL(shmq_steal(&qa->first, mine.position, false, &stolen), SHMQ_OK);
        CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 1);
        CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 1);
        shmq_status found = way == 0   ? shmq_settle(qb, &mine)
                            : way == 1 ? shmq_lock(qb, &mine)
                                       : shmq_release(qb, &mine, true);
        CHECK_EQUAL(found, SHMQ_SETTLED);
        CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 0);
        CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 1);
        shmq_delivery other = {0};
        CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
        other = receive(qb, shmq_self(qb));
        CHECK_EQUAL(shmq_settle(qb, &mine), SHMQ_SETTLED); /* once only: this one is for the other message */
        CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 1);
        CHECK_EQUAL(shmq_settle(qb, &other), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(qa, &stolen), SHMQ_OK);
        CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
        CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 0);
    }
    close_queue();
}

/* A late stealer: the holder has died meanwhile, and its row is another's. */
TEST(one_that_steals_takes_nothing_off_the_next_owner_of_a_row) {
    open_queue(N);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    (void)receive(qb, row);
    /* The word names a consumer row that is not used again while it does, but its process row is. */
    shmq_store_seq(&b->process->unsettled, 5);
    shmq_delivery stolen = {0};
    CHECK_EQUAL(shmq_steal(&qa->first, 0, false, &stolen), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&b->process->unsettled), 5);
    shmq_store_seq(&b->process->unsettled, 0);
    CHECK_EQUAL(shmq_settle(qa, &stolen), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(qb, row), SHMQ_OK);
    close_queue();
}

/* A word that makes no sense is put out of service, told once, and in nobody's way. Shows E20. */
TEST(a_damaged_word_is_told_once_and_passed) {
    open_queue(N);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_a64 *word = &shmq_slot_at(&qa->first, 1)->word;
    shmq_store_seq(word, (shmq_load_seq(word) & ~UINT64_C(15)) | 14);
    CHECK_EQUAL(get_number(qa), 0);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(qa, shmq_self(qa), &d), SHMQ_CORRUPT);
    CHECK_EQUAL(get_number(qa), 2);
    CHECK_EQUAL(get_number(qa), 3);
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 1);
    CHECK_EQUAL(census_of(qa).broken, 1);
    for (uint64_t i = 0; i < 3 * N; i++) { /* for ever */
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(get_number(qb), i);
    }
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 1);
    leave_queue(); /* the slot stays broken */
}

TEST(a_body_that_leads_nowhere_is_damage_and_no_crash) {
    open_queue(N);
    static const uint64_t nonsense[] = {1, UINT64_MAX, UINT64_C(1) << 39, UINT64_C(200) << 40 | 77};
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        shmq_slot_at(&qa->first, shmq_load_seq(&qa->first.shm->tail) - 1)->body = nonsense[i];
    }
    CHECK_EQUAL(put_number(qa, 9), SHMQ_OK);
    for (int i = 0; i < 4; i++) {
        shmq_delivery d;
        CHECK_EQUAL(shmq_offer(qa, shmq_self(qa), &d), SHMQ_CORRUPT);
    }
    CHECK_EQUAL(get_number(qa), 9);
    leave_queue(); /* the slots stay broken */
}

int main(void) { return run_tests(); }
