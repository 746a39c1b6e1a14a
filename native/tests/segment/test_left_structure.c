/* A process that dies while it changes the structure, before it has a row: no reaper comes for it. Others who put, get or
 * sleep mend the map, though they change nothing of the structure themselves. */
#include "segment/process_table.h"
#include "scratch_queue.h"

#define OPERATIONS 4096 /* who never sleeps looks for the dead once in some of them */

/* Without a row, pages of it marked as used that no root names, and the structure left dirty. */
static void die_without_a_row(void) {
    shmq_member *m = scratch_attach();
    uint64_t page = 0, run = 0;
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK_EQUAL(shmq_page_take(m, &page), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(m, 2, SHMQ_GRANULE_RING, &run), SHMQ_OK);
    shmq_row_give(m);
    CHECK(shmq_load_seq(&m->header->dirty) != 0);
    scratch_kill(m);
    m->process = NULL;
    shmq_store_seq(&m->closed, SHMQ_MEMBER_LEFT);
    shmq_member_free(m);
}

static void check_mended(shmq_member *m) {
    CHECK_EQUAL(shmq_load_seq(&m->header->dirty), 0);
    shmq_moment moment = shmq_moment_begin(m);
    CHECK_EQUAL(moment.calm, SHMQ_CALM);
    CHECK(shmq_structure_fault(m) == NULL);
    CHECK(shmq_moment_lasts(m, &moment));
}

static void begin(shmq_member **m, shmq_queue **q) {
    scratch_create_patient();
    *m = scratch_attach();
    *q = scratch_queue(*m, "a", 0, true);
    CHECK_EQUAL(put_number(*q, 1), SHMQ_OK); /* what a put needs of the structure is there */
    CHECK_EQUAL(get_number(*q), 1);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_wait(*q, shmq_self(*q), 0, shmq_now_ns() + 1000000, &d), SHMQ_EMPTY); /* and a sleep */
    die_without_a_row();
}

static void end(shmq_member *m, shmq_queue *q) {
    check_mended(m);
    shmq_queue_unbind(q);
    shmq_member_free(m);
    scratch_remove();
}

/* Shows G7. */
TEST(test_who_sleeps_mends_it) {
    shmq_member *m;
    shmq_queue *q;
    begin(&m, &q);
    shmq_delivery d;
    shmq_status status = SHMQ_INTERRUPTED;
    uint64_t until = shmq_now_ns() + SECOND / 2;
    while (status == SHMQ_INTERRUPTED) { /* a piece of the sleep is over */
        status = shmq_offer_wait(q, shmq_self(q), 0, until, &d);
    }
    CHECK_EQUAL(status, SHMQ_EMPTY);
    end(m, q);
}

TEST(test_who_puts_and_gets_mends_it) {
    shmq_member *m;
    shmq_queue *q;
    begin(&m, &q);
    shmq_store_relaxed(&m->looked_ns, 0); /* the last look was a while ago */
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(get_number(q), i);
    }
    end(m, q);
}

TEST(test_a_reaper_mends_it) {
    shmq_member *m;
    shmq_queue *q;
    uint32_t reaped = 0;
    begin(&m, &q);
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 0);
    end(m, q);
}

TEST(test_who_is_inside_is_left_alone) {
    scratch_create_patient();
    shmq_member *m = scratch_attach(), *inside = scratch_attach();
    CHECK_EQUAL(shmq_structure_lock(inside), SHMQ_OK);
    uint64_t dirty = shmq_load_seq(&m->header->dirty), turns = shmq_load_seq(&m->header->turns);
    shmq_structure_mend(m);
    CHECK(dirty != 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->dirty), dirty);
    CHECK_EQUAL(shmq_load_seq(&m->header->turns), turns);
    CHECK_EQUAL(shmq_trail()[0], 0);
    shmq_structure_unlock(inside);
    shmq_member_free(inside);
    shmq_member_free(m);
    scratch_remove();
}

int main(void) { return run_tests(); }
