/* A queue that flows to disk, and two processes of which one stands still at each step: also amid its turn as the mover. */
#include "meeting_deeds.h"

static shmq_queue *flowing(shmq_member *m, const char *name) { return scratch_flowing(m, name, 30); }

/* More than fits into memory. */
static void some(shmq_queue *q) {
    for (int i = 0; i < 8; i++) {
        add_number(q);
    }
    CHECK(shmq_flow_rows(q) != 0);
}

/* The messages in memory are gone: the next one comes from disk. */
static void take_from_memory(actor *by) {
    for (int i = 0; i < 3; i++) {
        get_one(by);
    }
    see_first(by);
}

static const deed brings = {.before = take_from_memory, .act = get_one},
                  steals_from_disk = {.before = take_from_memory, .act = steal_first};

/* ---- a taker that does not wait, and a mover that ends the flow meanwhile ---- */

static void a_few(shmq_queue *q) {
    for (int i = 0; i < 4; i++) {
        add_number(q);
    }
}

/* The rest fits into memory, but is on disk. */
static void leave_only_rows(actor *by) {
    uint64_t left = shmq_load_relaxed(&tally->put);
    for (; left > shmq_flow_rows(by->q); left--) {
        get_one(by);
    }
    CHECK(left != 0);
}

static void lock_as_mover(const actor *by, short how) {
    struct flock lock = {
        .l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)(UINT64_C(1) << 41) + by->q->index, .l_len = 1};
    CHECK(fcntl(by->m->lock_fd, F_OFD_SETLK, &lock) == 0);
}

static void begin_turn(actor *by) { lock_as_mover(by, F_WRLCK); }

static void end_the_flow(actor *by) {
    lock_as_mover(by, F_UNLCK);
    for (int turns = 0; turns < 4 && shmq_flows(by->q); turns++) {
        CHECK_EQUAL(shmq_inhaler_bring(&by->q->first), SHMQ_OK);
    }
    CHECK(!shmq_flows(by->q));
}

static void look_for_one(actor *by) {
    uint64_t number;
    shmq_status status = try_number(by->q, &number);
    CHECK(status == SHMQ_OK || (status == SHMQ_EMPTY && their_part != THROUGH));
    if (status == SHMQ_OK) {
        took(number);
    }
}

/* Shows S144, S182. */
TEST(a_taker_that_does_not_wait_finds_what_a_mover_brings_meanwhile) {
    const deed looks = {.before = leave_only_rows, .act = look_for_one},
               ends = {.before = begin_turn, .act = end_the_flow};
    meetings_begin(flowing, a_few);
    child_begin(&ends);
    actor_begin(&ours);
    for (long at = 0; at < 4000; at += 23) {
        round_of(&looks, at);
    }
    actor_end(&ours);
    child_end();
    meetings_end();
}

/* Shows S106, S202. */
TEST(takers_meet_movers) {
    meetings_begin(flowing, some);
    MEET(brings, gets, 2);
    MEET(brings, browses, 2);
    MEET(steals_from_disk, gets, 2);
    meetings_end();
}

int main(void) { return run_tests(); }
