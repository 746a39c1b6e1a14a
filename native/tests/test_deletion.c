/* A death in the midst of a deletion: whoever locks next, or reaps, finishes it. */
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 0, false);
    qb = scratch_queue(b, "jobs", 0, false);
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
}

static void end(void) {
    shmq_queue_unbind(qb); /* private memory, which a real death takes along */
    shmq_member_free(b);
    shmq_queue_unbind(qa);
    CHECK_EQUAL(shmq_member_leave(a, true), SHMQ_OK);
    shmq_member_free(a);
    scratch_remove();
}

static uint32_t entries(void) {
    uint32_t found = 0;
    for (uint64_t i = 0; i <= qa->mask; i++) {
        found += shmq_state_is_entry(state_at(qa, i));
    }
    return found;
}

static void take_entry_out(void) {
    shmq_a64 *entry = &b->directory[qb->index].word;
    uint64_t live = shmq_entry_word(qb->incarnation, SHMQ_ENTRY_LIVE);
    CHECK(shmq_cas_seq(entry, live, shmq_entry_word(qb->incarnation, SHMQ_ENTRY_DELETED)));
}

static void check_finished(void) {
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_NOT_FOUND);
    CHECK_EQUAL(put_number(qa, 9), SHMQ_NOT_FOUND);
    CHECK_EQUAL(entries(), 0);
}

static void test_a_queue_whose_page_does_not_say_so_yet_is_deleted_before_there_is_another(void) {
    begin();
    shmq_delivery held = receive(qa, shmq_self(qa));
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    take_entry_out();
    scratch_kill(b); /* in the lock */
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_OK);
    shmq_queue *other = scratch_queue(a, "jobs", 0, false); /* the next who locks */
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_NOT_FOUND);
    reap_all(a, 1);
    check_finished();
    CHECK_EQUAL(shmq_settle(qa, &held), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&a->process->held), 0);
    CHECK_EQUAL(put_number(other, 7), SHMQ_OK);
    CHECK_EQUAL(get_number(other), 7);
    shmq_queue_unbind(other);
    end();
}

/* Shows E15, E16. */
static void test_a_queue_with_entries_left_is_emptied_by_the_reaper(void) {
    begin();
    shmq_delivery held = receive(qa, shmq_self(qa)), stolen;
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    take_entry_out();
    shmq_store_seq(&qb->page->state, SHMQ_QUEUE_DELETED);
    shmq_structure_unlock(b);
    CHECK_EQUAL(shmq_steal(qb, 1, false, &stolen), SHMQ_OK);
    scratch_kill(b); /* before it settles what it stole, and the rest */
    CHECK_EQUAL(entries(), 4);
    reap_all(a, 1);
    check_finished();
    CHECK_EQUAL(shmq_settle(qa, &held), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_load_seq(&a->process->held), 0);
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

/* Shows C14. */
static void test_who_sleeps_at_it_is_woken(void) {
    begin();
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQUAL(get_number(qa), i);
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleep_there, NULL) == 0);
    while (!shmq_anybody_idle(qa)) {
        sched_yield();
    }
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    take_entry_out();
    scratch_kill(b);
    reap_all(a, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    check_finished();
    end();
}

int main(void) {
    test_a_queue_whose_page_does_not_say_so_yet_is_deleted_before_there_is_another();
    test_a_queue_with_entries_left_is_emptied_by_the_reaper();
    test_who_sleeps_at_it_is_woken();
    return 0;
}
