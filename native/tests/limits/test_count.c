/* The count behind maxsize, the handles that tell what a process uses, and what a death does to both. */
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, false);
    qb = scratch_queue(b, "jobs", 0, false);
}

static void end(void) {
    check_ring(qa);
    scratch_close_unless_dead(b, qb);
    scratch_close(a, qa);
    scratch_remove();
}

static uint64_t count(void) { return shmq_load_seq(&qa->page->count) & UINT32_MAX; }

/* Exactly so many fit, and they come out again. */
static void check_room(uint64_t room) {
    for (uint64_t i = 0; i < room; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(qa, room), SHMQ_FULL_COUNT);
    for (uint64_t i = 0; i < room; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    CHECK_EQUAL(count(), 0);
}

TEST(whatever_state_a_message_is_in_it_counts) {
    begin(3);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_delivery taken = receive(qb, shmq_self(qb)), offered;
    CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &offered), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_FULL_COUNT);
    CHECK_EQUAL(shmq_release(qb, &taken, true), SHMQ_OK);
    CHECK_EQUAL(count(), 3);
    CHECK_EQUAL(shmq_offer_finish(qb, &offered), SHMQ_OK);
    CHECK_EQUAL(count(), 2);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 4), SHMQ_FULL_COUNT);
    CHECK_EQUAL(get_number(qa), 0);
    CHECK_EQUAL(get_number(qa), 2);
    CHECK_EQUAL(get_number(qa), 3);
    check_room(3);
    end();
}

/* Shows R13, R20. */
TEST(a_death_between_count_and_slot_is_counted_anew) {
    begin(5);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_moving(qb, 1);
    CHECK(shmq_count_take(qb, 2)); /* and then it dies, before it has a slot */
    scratch_kill(b);
    CHECK_EQUAL(put_number(qa, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 3), SHMQ_OK);
    shmq_store_seq(&qa->page->recount_due, 1);
    CHECK(!shmq_recount(qa)); /* nobody has noticed yet: what moves must not be counted */
    CHECK_EQUAL(put_number(qa, 4), SHMQ_OK); /* who would have to say "full" looks for the dead first, and counts */
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&a->rows[b->row].word)), SHMQ_ROW_FREE);
    CHECK_EQUAL(put_number(qa, 5), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 6), SHMQ_FULL_COUNT);
    CHECK_EQUAL(count(), 5);
    for (uint64_t i = 1; i < 6; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    check_room(5);
    end();
}

/* Shows R20. */
TEST(a_recount_is_not_believed_while_somebody_moves) {
    begin(2);
    shmq_store_seq(&qa->page->recount_due, 1);
    shmq_moving(qb, 1);
    CHECK(!shmq_recount(qa));
    CHECK_EQUAL(shmq_load_seq(&qa->page->recount_due), 1); /* not forgotten */
    shmq_moving(qb, -1);
    CHECK(shmq_recount(qa));
    CHECK_EQUAL(shmq_load_seq(&qa->page->recount_due), 0);
    CHECK(!shmq_recount(qa)); /* nobody asked for it */
    check_room(2);
    end();
}

TEST(a_limit_that_comes_late_counts_what_is_there) {
    begin(0);
    for (uint64_t i = 0; i < 6; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_queue *limited = scratch_queue(b, "jobs", 8, false);
    CHECK_EQUAL(put_number(limited, 6), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 7), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 8), SHMQ_FULL_COUNT);
    CHECK_EQUAL(count(), 8);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    shmq_room_late(qa, SHMQ_LIMITED_COUNT,
                   0); /* a put that had looked before the limit came: one too many, until somebody is stopped by it */
    CHECK_EQUAL(count(), 1);
    check_room(8);
    shmq_queue_unbind(limited);
    end();
}

TEST(a_free_slot_is_found_wherever_it_is) {
    begin(SHMQ_RING_MIN);
    static shmq_delivery taken[SHMQ_RING_MIN];
    for (uint64_t i = 0; i < SHMQ_RING_MIN; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        taken[i] = receive(qa, shmq_self(qa));
    }
    for (uint64_t i = SHMQ_RING_MIN; i-- > 0;) { /* the farthest first */
        CHECK_EQUAL(put_number(qa, i), SHMQ_FULL_COUNT);
        CHECK_EQUAL(shmq_settle(qa, &taken[i]), SHMQ_OK);
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        taken[i] = receive(qa, shmq_self(qa));
    }
    check_ring(qa);
    for (uint64_t i = 0; i < SHMQ_RING_MIN; i++) {
        CHECK_EQUAL(shmq_settle(qa, &taken[i]), SHMQ_OK);
    }
    check_room(SHMQ_RING_MIN);
    end();
}

TEST(waiting_producers_are_counted_without_the_dead) {
    begin(1);
    shmq_ring_shm *ring = qa->first.shm;
    join_room(qa, qa->counters);
    join_room(qb, qb->counters);
    join_room(qb, qb->counters);
    shmq_waiters memory = shmq_memory_waiters(b, b->process);
    shmq_join_count(&memory);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 3);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&a->header->memory_waiters)), 0);
    leave_room(qa, qa->counters);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 0);
    end();
}

/* A process dies amid joining or leaving: its own part says nothing yet, or nothing any more. */
static void die_between(const shmq_waiters *w) {
    shmq_add_seq(w->changing, 1);
    shmq_add_seq(w->sum, (UINT64_C(1) << 32) + 1);
}

TEST(a_death_amid_joining_leaves_no_waiter_too_many) {
    begin(1);
    shmq_ring_shm *ring = qa->first.shm;
    shmq_waiters room = shmq_room_waiters(qb, qb->counters), memory = shmq_memory_waiters(b, b->process);
    join_room(qa, qa->counters);
    die_between(&room);
    die_between(&memory);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&a->header->memory_waiters)), 0);
    leave_room(qa, qa->counters);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 0);
    end();
}

/* Somebody else is in between: what is his cannot be told from what is the dead one's. The next who is reaped tells it. */
TEST(a_recount_of_waiters_takes_nothing_from_who_is_in_between) {
    begin(1);
    shmq_ring_shm *ring = qa->first.shm;
    shmq_member *c = scratch_attach();
    shmq_queue *qc = scratch_queue(c, "jobs", 1, false);
    shmq_waiters ours = shmq_room_waiters(qa, qa->counters), dead = shmq_room_waiters(qb, qb->counters);
    shmq_waiters memory = shmq_memory_waiters(a, a->process), dead_memory = shmq_memory_waiters(b, b->process);
    die_between(&dead);
    die_between(&dead_memory);
    die_between(&ours); /* alive, and about to say so in its line */
    die_between(&memory);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 2);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&a->header->memory_waiters)), 2);
    shmq_add_seq(ours.part, 1);
    shmq_less(ours.changing, 1);
    shmq_add_seq(memory.part, 1);
    shmq_less(memory.changing, 1);
    scratch_kill(c);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 1);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&a->header->memory_waiters)), 1);
    shmq_leave_count(&ours);
    shmq_leave_count(&memory);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&ring->waiters)), 0);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&a->header->memory_waiters)), 0);
    shmq_queue_unbind(qc); /* private memory, which a real death takes along */
    shmq_member_free(c);
    end();
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static uint64_t attached(shmq_member *m, const shmq_queue *q) {
    return shmq_load_seq(&shmq_counters_at(m, m->row, q->index)->attached);
}

TEST(a_process_says_which_queue_it_uses_from_its_first_handle_to_its_last) {
    begin(0);
    shmq_queue *again = NULL;
    CHECK_EQUAL(attached(a, qa), (uint64_t)qa->incarnation + 1);
    CHECK_EQUAL(shmq_queue_bind(a, qa->index, 0, &again), SHMQ_OK);
    CHECK(again == qa);
    shmq_queue_unbind(again);
    CHECK_EQUAL(attached(a, qa), (uint64_t)qa->incarnation + 1);
    uint32_t index = qb->index;
    shmq_queue_unbind(qb);
    CHECK_EQUAL(shmq_load_seq(&shmq_counters_at(b, b->row, index)->attached), 0);
    CHECK_EQUAL(shmq_queue_bind(b, index, 0, &qb), SHMQ_OK);
    CHECK_EQUAL(attached(b, qb), (uint64_t)qb->incarnation + 1);
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_usable(qb), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_bind(b, index, 0, &again), SHMQ_NOT_FOUND);
    CHECK_EQUAL(attached(b, qb), (uint64_t)qb->incarnation + 1); /* a bind that fails takes nothing away */
    end();
}

/* Threads of one process that bind and unbind at once: the word never goes while one of them has a handle. */
static void *bind_and_unbind(void *context) {
    uint32_t index = *(uint32_t *)context;
    for (int i = 0; i < 20000; i++) {
        shmq_queue *q = NULL;
        CHECK_EQUAL(shmq_queue_bind(b, index, 0, &q), SHMQ_OK);
        CHECK_EQUAL(attached(b, q), (uint64_t)q->incarnation + 1);
        shmq_queue_unbind(q);
    }
    return NULL;
}

TEST(threads_that_bind_and_unbind_never_lose_the_word) {
    begin(0);
    uint32_t index = qb->index;
    pthread_t threads[4];
    shmq_queue_unbind(qb);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, bind_and_unbind, &index), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(shmq_queue_bind(b, index, 0, &qb), SHMQ_OK);
    end();
}

/* A child has the handle of its parent and one that it made itself: the word stays until both have gone. */
TEST(a_handle_from_before_a_fork_keeps_the_word_beside_a_new_one) {
    begin(0);
    pid_t child = fork();
    if (child == 0) {
        shmq_queue *fresh = NULL;
        CHECK_EQUAL(shmq_member_after_fork(a), SHMQ_OK);
        CHECK_EQUAL(shmq_queue_bind(a, qa->index, 0, &fresh), SHMQ_OK);
        CHECK(fresh != qa);
        CHECK_EQUAL(shmq_queue_rebind(qa), SHMQ_OK);
        shmq_queue_unbind(fresh);
        CHECK_EQUAL(attached(a, qa), (uint64_t)qa->incarnation + 1);
        CHECK_EQUAL(put_number(qa, 5), SHMQ_OK);
        CHECK_EQUAL(shmq_member_leave(a, false), SHMQ_OK);
        _exit(0);
    }
    scratch_wait(child);
    CHECK_EQUAL(get_number(qa), 5);
    end();
}

static bool is_live(uint32_t index) {
    return shmq_entry_state(shmq_load_seq(&a->directory[index].word)) == SHMQ_ENTRY_LIVE;
}

/* Also when its maker has no handle on it any more. */
TEST(temporary_queues_go_with_their_maker) {
    begin(0);
    for (int way = 0; way < 2; way++) {
        shmq_declaration d = {.given = 1u << SHMQ_SET_TEMPORARY, .temporary = 1, .create = true};
        shmq_queue *q = NULL;
        int differs;
        CHECK_EQUAL(shmq_queue_declare(b, "passing", 7, &d, &q, &differs), SHMQ_OK);
        uint32_t index = q->index;
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
        shmq_queue_unbind(q);
        CHECK(is_live(index));
        if (way == 0) {
            CHECK_EQUAL(shmq_sweep_own(b), SHMQ_OK);
        } else {
            scratch_kill(b);
            reap_all(a, 1);
        }
        CHECK(!is_live(index));
    }
    end();
}

int main(void) { return run_tests(); }
