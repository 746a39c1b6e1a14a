/* Claims entries for another queue. Each entry is offered to this process (T9), seized from that offer (T13), then
 * moved in the four steps of a move. Until T13 other takers may take the offer over. From then on the entry is LOCKED
 * by the process. If the mover dies, no attempt and no death is counted, and the entry comes back. */
#include "take/claim.h"
#include "put/move.h"
#include "put/put.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "take/wait_any.h"
#include "time/times.h"
#include "wake/watch.h"

#define PIECE 1024u /* entries: half a millisecond or so */

static shmq_status move_one(shmq_queue *from, shmq_delivery *d, shmq_queue *to, shmq_claimed *result) {
    struct iovec body = {.iov_base = (void *)(uintptr_t)d->bytes, .iov_len = d->body_len};
    shmq_outgoing o = {
        .pieces = &body,
        .piece_count = 1,
        .body_len = d->body_len,
        .content = d->content,
        .headers = d->headers,
        .headers_len = d->headers_len,
        .priority = d->priority,
        .kept_id = d->message_id,
        .enqueued_ns = d->enqueued_ns,
        .wait = {.turn = result->room, .relief = result->relief},
    };
    shmq_status status = shmq_move_held(from, d, to, &o);
    result->room = o.wait.turn;
    result->relief = o.wait.relief;
    shmq_unprepare(to, &o);
    return status;
}

/* A damaged message stays in the queue, so that the consumer that takes it is told; this mover does not look at it
 * again. The mover notes that before it gives the message back: another thread's scan by this subscription that looks
 * after that sees both. */
static shmq_status leave_damaged(shmq_queue *from, shmq_subscription *by, shmq_delivery *d) {
    bool noted = shmq_refuse(by, from, shmq_place_of(from, d));
    (void)shmq_put_back(from, d);
    return noted ? SHMQ_SETTLED : shmq_fail_errno("no memory for a subscription");
}

/* Moves the entry that was offered. SHMQ_SETTLED: go on to the next one. */
static shmq_status take(shmq_queue *from, shmq_queue *to, shmq_subscription *by, shmq_delivery *d,
                        shmq_claimed *result) {
    SHMQ_TRY(shmq_offer_seize(from, d));
    if (shmq_why_dead(from, d) != SHMQ_LIVES) {
        result->dead = *d;
        result->dead.as.by = NULL;
        return SHMQ_POISONED;
    }
    if (SHMQ_UNLIKELY(!shmq_delivery_intact(from, d))) {
        return leave_damaged(from, by, d);
    }
    uint64_t bytes = (uint64_t)d->headers_len + d->body_len;
    shmq_status status = move_one(from, d, to, result);
    if (status == SHMQ_OK) {
        result->entries++;
        result->bytes += bytes;
    } else if (status != SHMQ_SETTLED) {
        (void)shmq_put_back(from, d);
    }
    return status;
}

static bool fits(const shmq_claim_limits *limits, const shmq_claimed *result, const shmq_delivery *d) {
    return result->entries == 0 ||
           (result->bytes <= limits->bytes && (uint64_t)d->headers_len + d->body_len <= limits->bytes - result->bytes);
}

static shmq_status end(shmq_claimed *result, shmq_status why) {
    if (why == SHMQ_INTERRUPTED || why == SHMQ_POISONED) {
        return why;
    }
    result->ended = why;
    if (why != SHMQ_OK && why != SHMQ_EMPTY && result->entries == 0) {
        return why;
    }
    shmq_trail_clear();
    return SHMQ_OK;
}

/* The next entry, as by a get that does not wait, which does wait for movers that get on.
 * SHMQ_FULL_MEMORY: rows are left that it could not bring for want of memory or of the mover's lock, or entries that it
 * has left to a consumer of higher rank, so this is not the end of the queue. */
static shmq_status next(shmq_queue_wait *of, shmq_delivery *d) {
    uint32_t which;
    shmq_status status = shmq_load_relaxed(&of->q->page->shut_down) != SHMQ_STOPPED
                             ? shmq_offer_to(of->q, of->owner, of->by, d)
                             : SHMQ_EMPTY;
    if (SHMQ_LIKELY(status != SHMQ_EMPTY)) {
        return status;
    }
    status = shmq_offer_wait_any(of, 1, 0, 0, &which, d);
    if (status != SHMQ_EMPTY && status != SHMQ_SHUT_DOWN) {
        return status;
    }
    return SHMQ_UNLIKELY(shmq_is_partial(of)) ? SHMQ_FULL_MEMORY : SHMQ_EMPTY;
}

static shmq_status claim_piece(shmq_queue_wait *of, shmq_queue *to, const shmq_claim_limits *limits,
                               shmq_claimed *result) {
    shmq_queue *from = of->q;
    for (uint32_t looks = 0; result->entries < limits->entries; looks++) {
        shmq_delivery d;
        shmq_status status = looks == PIECE ? SHMQ_INTERRUPTED : next(of, &d);
        result->turn = of->turn;
        if (status == SHMQ_OK && !fits(limits, result, &d)) {
            shmq_offer_cancel(from, &d);
            break;
        }
        if (status == SHMQ_OK) {
            status = take(from, to, of->by, &d, result);
        }
        if (status != SHMQ_OK && status != SHMQ_SETTLED) {
            return status;
        }
    }
    return SHMQ_OK;
}

shmq_status shmq_claim(shmq_queue *from, shmq_queue *to, const shmq_claim_limits *limits, shmq_subscription *by,
                       shmq_claimed *result) {
    shmq_queue_wait of = {.q = from, .owner = shmq_self(from), .by = by, .turn = result->turn};
    if (result->entries == 0) {
        (void)shmq_reap_now(from->m); /* what a dead process had in hand is in its place before the first look */
    }
    shmq_status status = shmq_queue_enter(from);
    if (status == SHMQ_OK) {
        shmq_add_unsettled(from->m, 1); /* once for all: there is always an entry that is not there for all yet */
        status = claim_piece(&of, to, limits, result);
        shmq_add_unsettled(from->m, -1);
    }
    return end(result, status);
}
