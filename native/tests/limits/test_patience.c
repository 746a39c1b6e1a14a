/* A producer that is stopped between its claim and its publish: what it costs others, and how it goes on. The stopped one
 * is a second member of this process whose claims are written by hand: alive, and never moving. Shows G4. */
#include <sys/uio.h>

#include "check/faults.h"
#include "lifecycle/declare.h"
#include "lifecycle/handle_bind.h"
#include "look/browse.h"
#include "put/put.h"
#include "recovery/reap.h"
#include "take/offer.h"
#include "take/wait_any.h"
#include "wake/wait.h"
#include "scratch_segment.h"

#define MS UINT64_C(1000000)
#define PATIENCE_MS 100u
#define CLAIMS 20u

static shmq_member *worker, *stopped;
static shmq_queue *q, *q_stopped;

static shmq_queue *declare(shmq_member *m) {
    shmq_queue *queue = NULL;
    int differs = -1;
    shmq_declaration d = {.create = true};
    CHECK_EQUAL(shmq_queue_declare(m, "jobs", 4, &d, &queue, &differs), SHMQ_OK);
    return queue;
}

static void begin(void) {
    scratch_create(false);
    worker = scratch_attach();
    stopped = scratch_attach();
    q = declare(worker);
    q_stopped = declare(stopped);
}

static void end(void) {
    uint64_t where = 0;
    const char *fault = shmq_ring_fault(&q->first, &where);
    if (fault != NULL) {
        fprintf(stderr, "slot %llu: %s\n", (unsigned long long)where, fault);
    }
    CHECK(fault == NULL);
    CHECK_EQUAL(shmq_load_seq(&worker->header->damage), 0);
    shmq_queue_unbind(q);
    shmq_queue_unbind(q_stopped);
    shmq_member_leave(stopped, true);
    shmq_member_leave(worker, true);
    scratch_remove();
}

/* The traces of a put that was stopped right after its claim. */
static uint64_t claim_and_stop(void) {
    uint64_t t = shmq_load_seq(&q->first.shm->tail);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, t);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_word_state(word) == SHMQ_FREE && shmq_lap_ahead(word, shmq_lap_of(&q->first, t)) == 0);
    CHECK(shmq_cas_seq(&slot->word, word,
                       shmq_word(shmq_lap_of(&q->first, t), 0, shmq_self(q_stopped), 0, SHMQ_CLAIMED)));
    CHECK(shmq_cas_seq(&q->first.shm->tail, t, t + 1));
    return t;
}

static uint64_t put(unsigned char value) {
    struct iovec piece = {.iov_base = &value, .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1};
    CHECK_EQUAL(shmq_put(q, &o, shmq_now_ns() + 5000 * MS), SHMQ_OK);
    return o.made.position;
}

/* Takes one for good and answers its position. */
static uint64_t take(void) {
    for (;;) {
        shmq_delivery d;
        shmq_status status = shmq_offer_wait(q, shmq_self(q), 0, shmq_now_ns() + 5000 * MS, &d);
        if (status == SHMQ_INTERRUPTED) {
            continue; /* the wait was cut into pieces */
        }
        CHECK_EQUAL(status, SHMQ_OK);
        if (shmq_offer_finish(q, &d) == SHMQ_OK) {
            return d.position;
        }
    }
}

static uint32_t state_at(uint64_t position) {
    return shmq_word_state(shmq_load_seq(&shmq_slot_at(&q->first, position)->word));
}

static void test_many_stopped_claims_delay_a_taker_by_one_patience_together(void) {
    begin();
    uint64_t first = claim_and_stop();
    for (uint32_t i = 1; i < CLAIMS; i++) {
        claim_and_stop();
    }
    uint64_t behind = put(7), start = shmq_now_ns();
    CHECK_EQUAL(take(), behind);
    uint64_t waited = (shmq_now_ns() - start) / MS;
    CHECK(waited >= PATIENCE_MS);
    CHECK(waited < 10 * PATIENCE_MS); /* and not 20 times the patience; a busy machine may add to it */
    for (uint32_t i = 0; i < CLAIMS; i++) {
        CHECK_EQUAL(state_at(first + i), SHMQ_QUARANTINED);
    }
    /* From now on they are in nobody's way. */
    put(8);
    worker->patience_ns = 60000 * MS;
    start = shmq_now_ns();
    take();
    CHECK(shmq_now_ns() - start < worker->patience_ns);
    end();
}

static void test_holes_are_passed_on_for_as_long_as_their_owner_is_stopped(void) {
    begin();
    uint64_t hole = claim_and_stop(), last = put(0);
    CHECK_EQUAL(take(), last);
    for (uint64_t i = 0; i < 3 * shmq_slot_count(&q->first); i++) {
        uint64_t position = put((unsigned char)i);
        CHECK(position > last && (position & q->first.mask) != (hole & q->first.mask));
        last = position;
        CHECK_EQUAL(take(), last);
    }
    CHECK_EQUAL(state_at(hole), SHMQ_QUARANTINED);
    CHECK(shmq_word_lap(shmq_load_seq(&shmq_slot_at(&q->first, hole)->word)) >= 2);
    end();
}

static void test_the_hole_of_a_stopped_producer_that_is_killed_is_a_slot_again(void) {
    begin();
    uint64_t hole = claim_and_stop();
    put(1);
    take();
    CHECK_EQUAL(state_at(hole), SHMQ_QUARANTINED);
    uint32_t reaped = 0;
    scratch_kill(stopped);
    CHECK_EQUAL(shmq_reap_dead(worker, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 1);
    CHECK_EQUAL(state_at(hole), SHMQ_FREE);
    end();
}

static void test_a_claim_of_the_dead_delays_nobody(void) {
    begin();
    claim_and_stop();
    uint64_t behind = put(1);
    scratch_kill(stopped);
    uint64_t start = shmq_now_ns();
    worker->patience_ns = 60000 * MS;
    CHECK_EQUAL(take(), behind);
    CHECK(shmq_now_ns() - start < worker->patience_ns);
    end();
}

/* Nothing can come any more, and what was put before the shutdown comes when the claim before it has been passed. */
static void test_who_drains_or_follows_a_queue_goes_on_behind_a_stopped_claim(bool follows) {
    begin();
    uint64_t place = claim_and_stop(), behind = put(1);
    CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_DRAINING), SHMQ_OK);
    shmq_delivery d;
    shmq_status status;
    if (follows) {
        while ((status = shmq_browse_wait(q, &place, SHMQ_FOR_EVER)) == SHMQ_INTERRUPTED) {
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
        CHECK_EQUAL(place++, behind);
        CHECK_EQUAL(shmq_browse_wait(q, &place, SHMQ_FOR_EVER), SHMQ_SHUT_DOWN);
    } else {
        status = shmq_offer_wait(q, shmq_self(q), 0, 0, &d);
        CHECK(status == SHMQ_EMPTY || status == SHMQ_OK); /* on a busy machine the claim has been passed already */
        if (status == SHMQ_OK) {
            shmq_offer_cancel(q, &d);
        }
    }
    CHECK_EQUAL(take(), behind);
    CHECK_EQUAL(shmq_offer_wait(q, shmq_self(q), 0, SHMQ_FOR_EVER, &d), SHMQ_SHUT_DOWN);
    end();
}

int main(void) {
    test_many_stopped_claims_delay_a_taker_by_one_patience_together();
    test_holes_are_passed_on_for_as_long_as_their_owner_is_stopped();
    test_the_hole_of_a_stopped_producer_that_is_killed_is_a_slot_again();
    test_a_claim_of_the_dead_delays_nobody();
    test_who_drains_or_follows_a_queue_goes_on_behind_a_stopped_claim(false);
    test_who_drains_or_follows_a_queue_goes_on_behind_a_stopped_claim(true);
    return 0;
}
