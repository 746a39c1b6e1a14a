/* A queue in the scratch segment, and messages of a few bytes. */
#ifndef SHMQ_TESTS_SCRATCH_QUEUE_H
#define SHMQ_TESTS_SCRATCH_QUEUE_H

#include "check/faults.h"
#include "consumers/sleepers.h"
#include "groups/row_close.h"
#include "lifecycle/declare.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"
#include "limits/count.h"
#include "limits/waiters.h"
#include "look/browse.h"
#include "look/census.h"
#include "put/put.h"
#include "queue/consumer_row.h"
#include "queue/settings.h"
#include "recovery/reap.h"
#include "segment/structure.h"
#include "settle/expire.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "take/take.h"
#include "wake/wait.h"
#include "scratch_segment.h"

#define SECOND UINT64_C(1000000000)

static inline shmq_queue *scratch_declare(shmq_member *m, const char *name, shmq_declaration d, uint64_t maxsize) {
    shmq_queue *q = NULL;
    int differs = -1;
    if (maxsize != 0) {
        d.given |= 1u << SHMQ_SET_MAXSIZE;
        d.maxsize = maxsize;
    }
    shmq_status status = shmq_queue_declare(m, name, (uint32_t)strlen(name), &d, &q, &differs);
    if (status != SHMQ_OK) {
        fprintf(stderr, "declare: %s %s\n", shmq_status_name(status), shmq_trail());
    }
    CHECK_EQUAL(status, SHMQ_OK);
    return q;
}

/* Ring of 1,024 slots; maxsize 0: none. */
static inline shmq_queue *scratch_queue(shmq_member *m, const char *name, uint64_t maxsize, bool checksum) {
    shmq_declaration d = {
        .given = (1u << SHMQ_SET_CHECKSUM) | (1u << SHMQ_SET_MAX_DEATHS), .checksum = checksum, .create = true};
    return scratch_declare(m, name, d, maxsize);
}

/* With so many levels of priority. */
static inline shmq_queue *scratch_levels(shmq_member *m, const char *name, uint64_t maxsize, uint32_t levels) {
    shmq_declaration d = {.given = (1u << SHMQ_SET_PRIORITIES), .priorities = levels, .checksum = true, .create = true};
    return scratch_declare(m, name, d, maxsize);
}

/* The end of a member that uses one queue. */
static inline void scratch_close(shmq_member *m, shmq_queue *q) {
    shmq_queue_unbind(q);
    scratch_detach(m);
}

static inline void scratch_close_unless_dead(shmq_member *m, shmq_queue *q) {
    if (m->lock_fd >= 0) {
        scratch_close(m, q);
    }
}

static inline void scratch_alter(shmq_queue *q, enum shmq_setting setting, uint64_t value) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, setting, value);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_OK);
}

static inline void check_segment(shmq_member *m) {
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    check_no_fault(shmq_segment_fault(m));
    shmq_structure_unlock(m);
}

static inline shmq_status put_bytes(shmq_queue *q, const void *bytes, uint64_t length, uint64_t until_ns) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = length};
    shmq_status status = shmq_put(q, &o, until_ns);
    if (status != SHMQ_OK) {
        shmq_unprepare(q, &o);
    }
    return status;
}

/* On a busy machine the wait is longer than the piece after which a caller looks for signals. */
static inline shmq_status put_patiently(shmq_queue *q, const void *bytes, uint64_t length, uint64_t until_ns) {
    shmq_status status;
    do {
        status = put_bytes(q, bytes, length, until_ns);
    } while (status == SHMQ_INTERRUPTED);
    return status;
}

static inline shmq_status put_number(shmq_queue *q, uint64_t number) {
    return put_bytes(q, &number, sizeof(number), 0);
}

static inline shmq_status put_as(shmq_queue *q, uint64_t number, uint8_t priority) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .priority = priority};
    return shmq_put(q, &o, 0);
}

static inline uint64_t number_of(const shmq_delivery *d) {
    uint64_t number;
    CHECK_EQUAL(d->body_len, sizeof(number));
    memcpy(&number, d->bytes, sizeof(number));
    return number;
}

/* A subscription that wants messages with an even number. */
static inline bool wants_even(void *context, const shmq_ring *level, const shmq_delivery *d) {
    uint64_t number;
    (void)context;
    (void)level;
    memcpy(&number, d->bytes, sizeof number); /* torn, perhaps: who takes it looks again */
    return number % 2 == 0;
}

/* One that wants everything and has a condition has a cursor of its own; one without shares the ring's head. */
static inline bool wants_all(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)context;
    (void)level;
    (void)d;
    return true;
}

static inline shmq_copied copy_number(void *to, const shmq_queue *q, const shmq_delivery *d) {
    (void)q;
    *(uint64_t *)to = number_of(d);
    return SHMQ_COPIED;
}

/* Taken for good, without waiting. */
static inline shmq_status try_number(shmq_queue *q, uint64_t *number) {
    shmq_delivery d;
    const shmq_getting g = {.contents = 256, .copy = copy_number, .to = number};
    return shmq_get(q, &g, &d);
}

/* UINT64_MAX: nothing there. */
static inline uint64_t get_number(shmq_queue *q) {
    uint64_t number;
    shmq_status status = try_number(q, &number);
    if (status == SHMQ_EMPTY || status == SHMQ_SHUT_DOWN) {
        return UINT64_MAX;
    }
    CHECK_EQUAL(status, SHMQ_OK);
    return number;
}

/* The same, waiting up to five seconds; *waited_ns: for how long it did. */
static inline uint64_t await_number(shmq_queue *q, uint64_t *waited_ns) {
    uint64_t begin = shmq_now_ns();
    shmq_delivery d;
    shmq_status status;
    do {
        status = shmq_offer_wait(q, shmq_self(q), 0, begin + 5 * SECOND, &d);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
    *waited_ns = shmq_now_ns() - begin;
    uint64_t number = number_of(&d);
    CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    return number;
}

static inline shmq_delivery receive(shmq_queue *q, uint32_t owner) {
    shmq_delivery d;
    const shmq_taking t = {.owner = owner};
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_OK);
    return d;
}

/* All levels of it. */
static inline void check_ring(shmq_queue *q) {
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        uint64_t where = 0;
        const char *fault = shmq_ring_fault(shmq_level(q, depth), &where);
        if (fault != NULL) {
            fprintf(stderr, "level %u, slot %llu: %s\n", depth, (unsigned long long)where, fault);
        }
        CHECK(fault == NULL);
    }
}

static inline shmq_census census_of(shmq_queue *q) {
    shmq_census c;
    shmq_ring_census(q, &c);
    return c;
}

/* Of a queue at rest, two ways: what the process knows of its stretches is what it finds when it looks at all of them. */
static inline bool counts_agree(shmq_queue *q) {
    shmq_census all, known;
    shmq_ring_sizes(q, &known);
    shmq_ring_count(q, &all);
    return all.ready == known.ready && all.unsettled == known.unsettled && all.delayed == known.delayed &&
           all.flowed == known.flowed && all.bytes == known.bytes && all.memory_bytes == known.memory_bytes &&
           all.oldest_ns == known.oldest_ns && all.first_position == known.first_position &&
           all.next_position == known.next_position && all.broken == known.broken;
}

static inline uint32_t state_at(shmq_queue *q, uint64_t position) {
    return shmq_word_state(shmq_load_seq(&shmq_slot_at(&q->first, position)->word));
}

/* A put up to its claim, and no further: as if the process stood still there. */
static inline uint64_t claim_by_hand(shmq_queue *q) {
    CHECK(shmq_load_seq(&q->page->maxsize) == 0 || shmq_count_take(q, 1));
    uint64_t t = shmq_load_seq(&q->first.shm->tail);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, t);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK_EQUAL(shmq_word_state(word), SHMQ_FREE);
    CHECK_EQUAL(shmq_word_lap(word), shmq_lap_of(&q->first, t));
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word(shmq_lap_of(&q->first, t), 0, shmq_self(q), 0, SHMQ_CLAIMED)));
    CHECK(shmq_cas_seq(&q->first.shm->tail, t, t + 1));
    return t;
}

static inline void join_room(shmq_queue *q, shmq_counters_shm *counters) {
    shmq_waiters waiters = shmq_room_waiters(q, counters);
    shmq_join_count(&waiters);
}

static inline void leave_room(shmq_queue *q, shmq_counters_shm *counters) {
    shmq_waiters waiters = shmq_room_waiters(q, counters);
    shmq_leave_count(&waiters);
}

static inline void reap_all(shmq_member *m, uint32_t expected) {
    uint32_t reaped = 0;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, expected);
}

#endif
