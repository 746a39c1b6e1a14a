/* Queues that flow, whose messages expire; in a broker in which time stands still but where a test lets it pass. Links with
 * --wrap=shmq_now_ns and --wrap=shmq_wall_ns. */
#ifndef SHMQ_TESTS_MORTAL_ROWS_H
#define SHMQ_TESTS_MORTAL_ROWS_H

#include "upkeep/duty.h"
#include "faulty_backing.h"
#include "flow_select.h"

#define MS UINT64_C(1000000)

static uint64_t stands_at;

uint64_t __real_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) { return stands_at != 0 ? stands_at : __real_shmq_now_ns(); }
uint64_t __wrap_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void) { return __wrap_shmq_now_ns(); }

/* A put asks the wall clock, which goes with the other one. */
uint64_t __real_shmq_wall_ns(void);
uint64_t __wrap_shmq_wall_ns(void);
uint64_t __wrap_shmq_wall_ns(void) {
    static uint64_t apart;
    if (apart == 0) {
        apart = __real_shmq_wall_ns() - __real_shmq_now_ns();
    }
    return stands_at != 0 ? stands_at + apart : __real_shmq_wall_ns();
}

static inline void begin_still(void) {
    stands_at = __real_shmq_now_ns();
    begin();
}

static inline shmq_outgoing timed(const struct iovec *piece, uint64_t expires_ns) {
    return (shmq_outgoing){.pieces = piece, .piece_count = 1, .body_len = piece->iov_len, .expires_ns = expires_ns};
}

/* expires_ns 0: never. */
static inline void put_timed(shmq_queue *to, uint64_t number, uint64_t expires_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = timed(&piece, expires_ns);
    CHECK_EQUAL(shmq_put(to, &o, 0), SHMQ_OK);
}

static inline void put_many(uint64_t from, uint64_t below, uint64_t expires_ns) {
    for (uint64_t i = from; i < below; i++) {
        put_timed(q, i, expires_ns);
    }
}

static inline shmq_ring_shm *words(void) { return q->first.shm; }

static inline uint64_t expired(void) {
    return shmq_load_relaxed(&q->counters->expired) + shmq_load_relaxed(&theirs->counters->expired);
}

static inline bool flows(void) { return shmq_flow_is_on(shmq_load_seq(&words()->flow)); }

/* All that is due now, as who counts does it; and once more, for what lies below is looked for when others were fetched. */
static inline void look(void) {
    shmq_due_look(m);
    shmq_due_look(m);
    scratch_examine_queue(q->index, true);
}

static inline void dead_letter_the_expired(bool on) { scratch_alter(q, SHMQ_SET_DEAD_LETTER_EXPIRED, on); }

static inline void set_max_ttl(uint64_t ns) { scratch_alter(q, SHMQ_SET_MAX_TTL, ns); }

#endif
