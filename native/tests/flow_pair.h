/* A queue that flows, as two members see it. */
#ifndef SHMQ_TESTS_FLOW_PAIR_H
#define SHMQ_TESTS_FLOW_PAIR_H

#include "scratch_flow.h"

#define MEMORY (UINT64_C(1) << 30) /* so that only the ring is full */

static shmq_member *m, *other;
static shmq_queue *q, *theirs;

static inline void begin(void) {
    scratch_create_flowing();
    scratch_spill_begin();
    m = scratch_attach_flowing();
    other = scratch_attach_flowing();
    q = scratch_flowing(m, "jobs", MEMORY);
    theirs = scratch_flowing(other, "jobs", MEMORY);
}

static inline void end(void) {
    check_ring(q);
    scratch_examine_queue(q->index, true);
    scratch_examine_parts(true);
    shmq_queue_unbind(q);
    shmq_queue_unbind(theirs);
    shmq_member_leave(m, true);
    shmq_member_leave(other, true);
    shmq_member_free(m);
    shmq_member_free(other);
    scratch_remove();
    scratch_spill_end();
}

static inline void put_numbers(shmq_queue *to, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) {
        CHECK_EQUAL(put_number(to, i), SHMQ_OK);
    }
}

static inline void get_numbers(shmq_queue *of, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) {
        CHECK_EQUAL(get_number(of), i);
    }
}

#endif
