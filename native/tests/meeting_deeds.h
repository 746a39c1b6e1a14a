/* The deeds of the two in a meeting: each tells the tally which messages it took, or how many are gone. */
#ifndef SHMQ_TESTS_MEETING_DEEDS_H
#define SHMQ_TESTS_MEETING_DEEDS_H

#include "put/move.h"
#include "take/claim.h"
#include "meeting.h"

static inline void is_gone(uint64_t count) { shmq_add_relaxed(&tally->gone, count); }

static inline void get_one(actor *by) {
    uint64_t number;
    shmq_status status = try_number(by->q, &number);
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY || status == SHMQ_NOT_FOUND);
    if (status == SHMQ_OK) {
        took(number);
    }
}

static inline void receive_one(actor *by) {
    const shmq_taking t = {.owner = shmq_self(by->q)};
    shmq_status status = shmq_receive(by->q, &t, &by->held);
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY || status == SHMQ_NOT_FOUND);
    by->holds = status == SHMQ_OK;
}

static inline void release_it(actor *by) {
    if (by->holds) {
        by->holds = false;
        shmq_status status = shmq_release(by->q, &by->held, true);
        CHECK(status == SHMQ_OK || status == SHMQ_SETTLED);
    }
}

static inline void lock_it(actor *by) {
    if (by->holds) {
        shmq_status status = shmq_lock(by->q, &by->held);
        CHECK(status == SHMQ_OK || status == SHMQ_SETTLED);
    }
}

/* For a moment, which is over when the accounts are settled. */
static inline void hold_it(actor *by) {
    if (by->holds) {
        by->holds = false;
        shmq_status status = shmq_release_until(by->q, &by->held, true, shmq_now_ns() + 1);
        CHECK(status == SHMQ_OK || status == SHMQ_SETTLED);
    }
}

static inline void take_stolen(actor *by, shmq_status status) {
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY || status == SHMQ_IN_USE || status == SHMQ_NOT_FOUND ||
          status == SHMQ_CLOSED);
    by->holds = status == SHMQ_OK;
}

static uint64_t first_place;

static inline void see_first(actor *by) {
    shmq_delivery d;
    first_place = 0;
    (void)shmq_browse_place(&by->q->first, &first_place, &d);
}

/* Also from a hand. */
static inline void steal_first(actor *by) {
    take_stolen(by, shmq_steal_at(&by->q->first, first_place, false, &by->held));
}

static inline void purge_all(actor *by) {
    uint64_t purged = 0;
    shmq_status status;
    while ((status = shmq_purge(by->q, &purged)) == SHMQ_INTERRUPTED) {
    }
    CHECK(status == SHMQ_OK || status == SHMQ_IN_USE);
    is_gone(purged);
}

static inline void discard_two(actor *by) {
    uint64_t discarded = 0;
    shmq_status status;
    while ((status = shmq_discard_below(&by->q->first, first_place + 2, &discarded)) == SHMQ_INTERRUPTED) {
    }
    CHECK_EQUAL(status, SHMQ_OK);
    is_gone(discarded);
}

static inline void claim_all(actor *by) {
    static shmq_subscription all;
    const shmq_claim_limits none = {.entries = UINT64_MAX, .bytes = UINT64_MAX};
    shmq_claimed result = {0};
    shmq_status status;
    shmq_subscription_begin(&all, NULL, NULL);
    while ((status = shmq_claim(by->q, by->to, &none, &all, &result)) == SHMQ_INTERRUPTED) {
    }
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY);
    shmq_subscription_end(&all);
}

static inline void move_it(actor *by) {
    if (!by->holds) {
        return;
    }
    uint64_t number = number_of(&by->held);
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number};
    shmq_status status;
    while ((status = shmq_move(by->q, &by->held, by->to, &o)) == SHMQ_INTERRUPTED) {
    }
    CHECK(status == SHMQ_OK || status == SHMQ_SETTLED);
    by->holds = false;
}

/* Places rise, and no message is seen twice. */
static inline void browse_all(actor *by) {
    bool seen[MEETING_NUMBERS] = {false};
    uint64_t place = first_place, before = 0;
    shmq_delivery d;
    for (; shmq_browse_place(&by->q->first, &place, &d) == SHMQ_OK; place++) {
        CHECK(place >= before);
        before = place + 1;
        uint64_t number;
        CHECK_EQUAL(d.body_len, sizeof number);
        memcpy(&number, d.bytes, sizeof number);
        if (shmq_browse_valid(shmq_level(by->q, 0), &d) || d.depth == SHMQ_ON_DISK) {
            CHECK(number < MEETING_NUMBERS && !seen[number]);
            seen[number] = true;
        }
    }
}

static const deed gets = {.act = get_one}, receives = {.act = receive_one},
                  settles = {.before = receive_one, .act = settle_held},
                  releases = {.before = receive_one, .act = release_it},
                  locks = {.before = receive_one, .act = lock_it}, holds = {.before = receive_one, .act = hold_it},
                  steals = {.before = see_first, .act = steal_first}, purges = {.act = purge_all},
                  discards = {.before = see_first, .act = discard_two}, claims = {.act = claim_all},
                  moves = {.before = receive_one, .act = move_it}, browses = {.before = see_first, .act = browse_all};

#define MEET(mine, others, spread) meet(&(mine), &(others), spread)

#endif
