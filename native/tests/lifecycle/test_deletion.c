/* Deletion: what is in nobody's hand goes, what is in somebody's hand stays his, a death in the midst of it is made good. */
#include "upkeep/duty.h"
#include "wake/due.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static void begin_with(const char *dead_letter) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    shmq_declaration d = {.create = true};
    if (dead_letter != NULL) {
        d.given = 1u << SHMQ_SET_DEAD_LETTER;
        d.dead_letter = dead_letter;
        d.dead_letter_len = (uint32_t)strlen(dead_letter);
    }
    qa = scratch_declare(a, "jobs", d, 0);
    qb = scratch_declare(b, "jobs", d, 0);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
}

static void begin(void) { begin_with(NULL); }

static void let_go_of_b(void) { /* private memory, which a real death takes along */
    shmq_queue_unbind(qb);
    shmq_member_free(b);
}

static void leave_a(void) {
    scratch_close(a, qa);
    scratch_remove();
}

static void end(void) {
    let_go_of_b();
    leave_a();
}

static void leave_both(void) {
    shmq_queue_unbind(qb);
    CHECK_EQUAL(shmq_member_leave(b, false), SHMQ_OK);
    shmq_member_free(b);
    leave_a();
}

static uint32_t entries(void) {
    uint32_t found = 0;
    for (uint64_t i = 0; i <= qa->first.mask; i++) {
        found += shmq_state_is_entry(state_at(qa, i));
    }
    return found;
}

static uint32_t root(void) { return shmq_entry_state(shmq_load_seq(&a->directory[qa->index].word)); }

static void make_and_forget(const char *name) {
    shmq_queue *other = scratch_queue(a, name, 0, false);
    CHECK(other != qa && put_number(other, 7) == SHMQ_OK && get_number(other) == 7);
    shmq_queue_unbind(other);
}

static void check_out_of_service(void) {
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_NOT_FOUND);
    CHECK_EQUAL(put_number(qa, 9), SHMQ_NOT_FOUND);
}

static void check_finished(void) {
    check_out_of_service();
    CHECK_EQUAL(entries(), 0);
    CHECK_EQUAL(root(), SHMQ_ENTRY_DELETED);
}

static void begin_deletion_and_die(void) {
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    shmq_store_seq(&qb->page->state, SHMQ_QUEUE_DELETED);
    scratch_kill(b); /* in the lock */
}

TEST(test_a_death_behind_the_first_step_leaves_a_queue_that_nobody_finds) {
    begin();
    shmq_delivery taken = receive(qa, shmq_self(qa));
    begin_deletion_and_die();
    check_out_of_service();
    make_and_forget("jobs"); /* the next who locks goes on */
    CHECK_EQUAL(entries(), 1);
    reap_all(a, 1);
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    CHECK_EQUAL(shmq_settle(qa, &taken), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    make_and_forget("other");
    check_finished();
    end();
}

/* Shows E15, E16, R16. */
TEST(test_a_queue_with_entries_left_is_emptied_by_the_reaper) {
    begin();
    shmq_delivery stolen;
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    shmq_store_seq(&qb->page->state, SHMQ_QUEUE_DELETED);
    shmq_structure_unlock(b);
    CHECK_EQUAL(shmq_steal(&qb->first, 1, false, &stolen), SHMQ_OK);
    scratch_kill(b); /* before it settles what it stole, and the rest */
    CHECK_EQUAL(entries(), 4);
    reap_all(a, 1);
    check_finished();
    end();
}

/* Shows R16. */
TEST(test_what_is_in_hand_can_be_settled_and_then_the_memory_goes_back) {
    begin();
    uint64_t free_before = shmq_granules_free(a);
    shmq_delivery taken = receive(qa, shmq_self(qa));
    CHECK_EQUAL(shmq_queue_delete(qb), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(qb), SHMQ_NOT_FOUND);
    check_out_of_service();
    CHECK_EQUAL(entries(), 1);
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    make_and_forget("jobs"); /* the name is free at once, the memory is not */
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    CHECK(shmq_own_word(qa, &taken) != 0 && number_of(&taken) == 0);
    CHECK_EQUAL(shmq_settle(qa, &taken), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qa, &taken), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    shmq_queue *next = scratch_queue(a, "next", 0, false);
    check_finished();
    shmq_queue_unbind(qa);
    shmq_queue_unbind(qb);
    CHECK(shmq_granules_free(a) < free_before);
    qa = scratch_queue(a, "last", 0, false); /* gives back what nobody uses any more */
    qb = scratch_queue(b, "last", 0, false);
    CHECK(shmq_granules_free(a) >= free_before - 2 * (uint64_t)qa->first.shm->run_granules);
    shmq_queue_unbind(next);
    leave_both();
}

/* Shows E15, R16. */
TEST(test_what_comes_back_goes_with_its_queue) {
    begin();
    shmq_delivery first = receive(qa, shmq_self(qa)), second = receive(qb, shmq_self(qb));
    shmq_delivery third = receive(qa, shmq_self(qa));
    CHECK_EQUAL(shmq_queue_delete(qb), SHMQ_OK);
    CHECK_EQUAL(entries(), 3);
    CHECK_EQUAL(shmq_release(qb, &second, true), SHMQ_OK);
    CHECK_EQUAL(entries(), 2);
    CHECK_EQUAL(shmq_release_until(qa, &first, false, shmq_now_ns() + SECOND), SHMQ_OK);
    CHECK_EQUAL(entries(), 1);
    CHECK_EQUAL(shmq_lock(qa, &third), SHMQ_OK); /* as before a move */
    CHECK_EQUAL(shmq_release(qa, &third, false), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled) + shmq_load_seq(&b->process->unsettled), 0);
    make_and_forget("next");
    check_finished();
    leave_both();
}

TEST(test_what_was_only_offered_goes_with_its_queue) {
    begin();
    shmq_delivery offered, late;
    CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &offered), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(qb, &offered), SHMQ_SETTLED);
    check_finished();
    /* A put that began before, and a taker that does: each is done with in the end. */
    shmq_store_seq(&qa->page->state, SHMQ_QUEUE_LIVE);
    CHECK_EQUAL(put_number(qa, 5), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(qb, shmq_self(qb), &late), SHMQ_OK);
    shmq_store_seq(&qa->page->state, SHMQ_QUEUE_DELETED);
    shmq_offer_cancel(qb, &late);
    check_finished();
    leave_both();
}

static uint64_t blocks_in_use(void) {
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    return usage.used;
}

static shmq_outgoing outgoing(struct iovec *piece, const void *bytes, size_t length) {
    *piece = (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    shmq_outgoing o = {.pieces = piece, .piece_count = 1, .body_len = length};
    CHECK_EQUAL(shmq_prepare(qa, &o, 0), SHMQ_OK);
    return o;
}

/* Shows R16. A put that looked at the queue before it was deleted, and publishes behind it. */
TEST(test_a_put_that_comes_too_late_takes_its_message_back) {
    begin_with("dead_letters");
    static const unsigned char big[1000];
    struct iovec pieces[4];
    shmq_outgoing one = outgoing(&pieces[0], big, sizeof big), some[3];
    for (int i = 0; i < 3; i++) {
        some[i] = outgoing(&pieces[1 + i], big, i == 1 ? sizeof big : 8);
    }
    uint64_t used = blocks_in_use();
    uint32_t done = 7;
    shmq_store_seq(&qa->page->state, SHMQ_QUEUE_DELETED);
    CHECK_EQUAL(entries(), 4);
    CHECK_EQUAL(shmq_put_now(qa, &one), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_put_some(qa, some, 3, &done), SHMQ_NOT_FOUND);
    CHECK_EQUAL(done, 0);
    CHECK_EQUAL(entries(), 4);
    shmq_unprepare(qa, &one);
    for (int i = 0; i < 3; i++) {
        shmq_unprepare(qa, &some[i]);
    }
    CHECK_EQUAL(blocks_in_use(), used - 2);
    CHECK_EQUAL(shmq_load_seq(&a->process->unsettled), 0);
    leave_both();
}

/* Shows R3, R16, E13. */
TEST(test_what_a_dead_holder_had_goes_with_its_queue) {
    begin();
    (void)receive(qb, shmq_self(qb));
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    (void)receive(qb, row);
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(entries(), 2);
    scratch_kill(b);
    reap_all(a, 1);
    check_finished();
    end();
}

TEST(test_who_leaves_with_messages_in_hand_leaves_nothing_there) {
    begin();
    (void)receive(qb, shmq_self(qb));
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    CHECK_EQUAL(shmq_sweep_own(b), SHMQ_OK);
    check_finished();
    leave_both();
}

static uint64_t due(void) { return shmq_due_time(shmq_load_seq(&a->header->due)); }

/* Shows E15, R16. */
TEST(test_where_the_dead_go_to_a_queue_what_comes_back_waits_for_its_burial) {
    begin_with("dead_letters");
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    shmq_delivery taken = receive(qb, shmq_self(qb)), left;
    CHECK(!shmq_queue_ending(a, qa->index, name, &incarnation));
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(entries(), 4);
    CHECK_EQUAL(shmq_load_seq(&a->upcalls), 1);
    CHECK(due() != SHMQ_DUE_NEVER);
    for (int i = 0; i < 3; i++) {
        CHECK(shmq_queue_ending(b, qa->index, name, &incarnation) && incarnation == qa->incarnation);
        CHECK(strcmp(name, "jobs") == 0);
        CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(qa, &left), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_EMPTY);
    CHECK(!shmq_queue_ending(a, qa->index, name, &incarnation));
    CHECK_EQUAL(shmq_ending_due(qa, shmq_now_ns()), SHMQ_DUE_NEVER);
    shmq_store_seq(&b->upcalls, 0);
    CHECK_EQUAL(shmq_release(qb, &taken, true), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&b->upcalls), 1);
    CHECK_EQUAL(entries(), 1);
    uint64_t now = shmq_now_ns();
    CHECK_EQUAL(shmq_ending_due(qa, now), now);
    shmq_store_seq(&a->upcalls, 0);
    shmq_store_seq(&a->header->due, 2);
    shmq_due_look(a);
    CHECK_EQUAL(shmq_load_seq(&a->upcalls), 1);
    CHECK(due() > now && due() < now + 10 * SECOND); /* and it is looked at again */
    CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_OK);
    CHECK_EQUAL(left.delivery, 1);
    make_and_forget("jobs");
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    CHECK_EQUAL(shmq_settle(qa, &left), SHMQ_OK);
    make_and_forget("next");
    check_finished();
    leave_both();
}

/* The ring turns under the oldest: the next ones lie in slots before its own. */
TEST(test_what_is_left_is_buried_in_order_however_the_ring_has_turned) {
    begin_with("dead_letters");
    shmq_delivery old = {0}, left;
    for (uint64_t i = 0; i < 4; i++) {
        old = receive(qb, shmq_self(qb));
        if (i < 3) {
            CHECK_EQUAL(shmq_settle(qb, &old), SHMQ_OK);
        }
    }
    for (uint64_t p = 4; p <= qa->first.mask; p++) {
        CHECK_EQUAL(put_number(qa, p), SHMQ_OK);
        CHECK_EQUAL(get_number(qa), p);
    }
    for (uint64_t i = 0; i < 8; i++) { /* one place is left out for the oldest */
        CHECK_EQUAL(put_number(qa, 1000 + i), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_release(qb, &old, false), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_OK);
    CHECK_EQUAL(number_of(&left), 3);
    CHECK_EQUAL(shmq_settle(qa, &left), SHMQ_OK);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_OK);
        CHECK_EQUAL(number_of(&left), 1000 + i);
        CHECK_EQUAL(shmq_settle(qa, &left), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_left(qa, &left), SHMQ_EMPTY);
    leave_both();
}

TEST(test_what_a_dead_holder_had_waits_for_its_burial) {
    begin_with("dead_letters");
    shmq_delivery left;
    for (int i = 0; i < 4; i++) {
        (void)receive(qb, shmq_self(qb));
    }
    CHECK_EQUAL(shmq_queue_delete(qa), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&a->upcalls), 0);
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_load_seq(&a->upcalls), 1);
    CHECK_EQUAL(entries(), 4);
    while (shmq_steal_left(qa, &left) == SHMQ_OK) {
        CHECK_EQUAL(left.deaths, 1);
        CHECK_EQUAL(shmq_settle(qa, &left), SHMQ_OK);
    }
    make_and_forget("jobs");
    check_finished();
    end();
}

static void *sleep_there(void *nothing) {
    (void)nothing;
    shmq_delivery d;
    shmq_status status;
    do {
        status = shmq_offer_wait(qa, shmq_self(qa), 0, shmq_now_ns() + 60 * SECOND, &d);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_NOT_FOUND);
    return NULL;
}

/* Shows C14, G4. */
TEST(test_who_sleeps_at_it_is_woken) {
    begin();
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_there, NULL) == 0);
    while (!shmq_anybody_idle(qa)) {
        sched_yield();
    }
    begin_deletion_and_die();
    reap_all(a, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    check_finished();
    end();
}

int main(void) { return run_tests(); }
