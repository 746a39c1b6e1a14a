/* A broker of two members in which time stands still but where a test lets it pass, so that steps can be counted. Links with
 * --wrap=shmq_now_ns. */
#ifndef SHMQ_TESTS_STILL_BROKER_H
#define SHMQ_TESTS_STILL_BROKER_H

#include "upkeep/duty.h"
#include "scratch_queue.h"

#define MS UINT64_C(1000000)

static shmq_member *a, *b;
static shmq_queue *qa; /* of a, with 1,024 slots */

static uint64_t stands_at; /* time, but where a test lets it pass */

static uint64_t patience = 100 * MS;
static void (*at_clock)(void); /* called when somebody reads the clock, once */

uint64_t __real_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) {
    void (*call)(void) = at_clock;
    if (call != NULL) {
        at_clock = NULL;
        call();
    }
    return stands_at != 0 ? stands_at : __real_shmq_now_ns();
}
uint64_t __wrap_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void) { return stands_at != 0 ? stands_at : __real_shmq_now_ns(); }

static inline void begin(void) {
    stands_at = __real_shmq_now_ns();
    scratch_room = 0;
    shmq_segment_plan plan = scratch_plan(false);
    plan.memory = UINT64_C(64) << 20;
    plan.patience_ns = patience;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 1000, true);
    shmq_store_relaxed(&a->looked_ns, stands_at);
    shmq_store_relaxed(&a->gone_looked_ns, stands_at);
}

static inline void leave(shmq_member *m) {
    if (m->lock_fd >= 0) {
        scratch_leave(m);
    }
}

static inline void end(void) {
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 0);
    leave(b);
    shmq_queue_unbind(qa);
    leave(a);
    scratch_remove();
}

static inline uint32_t round_of(uint32_t number) { return shmq_upkeep_round(a, SHMQ_DUTY(number)); }

static inline bool is_due(uint32_t number) { return shmq_duties[number].is_due(a, shmq_now_ns()); }

static inline void put_until(shmq_queue *q, uint64_t number, uint64_t until_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .not_before_ns = until_ns};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

static inline uint64_t held_in(shmq_queue *q) {
    uint64_t held = 0;
    for (uint64_t p = 0; p < shmq_slot_count(&q->first) && p < shmq_load_seq(&q->first.shm->tail); p++) {
        held += state_at(q, p) == SHMQ_HELD;
    }
    return held;
}

#endif
