/* Waiting for an entry: announce, look once more, sleep, withdraw. */
#include "shmq/ring.h"
#include "shmq/sleepers.h"
#include "shmq/wait.h"

#define SPIN_NS UINT64_C(20000)         /* about what a sleep and a wake cost */
#define CLAIM_LOOK_NS UINT64_C(1000000) /* how often a waiter behind a claim asks whether the claimant lives */

/* Offer, or say why there is nothing. *claimed: a claim is in the way, not the end of the queue. */
static shmq_status look(shmq_queue *q, uint32_t owner, bool *claimed, shmq_delivery *d) {
    shmq_status status = shmq_offer(q, owner, d);
    *claimed = status == SHMQ_EMPTY && d->word != 0;
    if (*claimed && shmq_patience_over(q, &q->taking, d->position, d->word)) {
        shmq_notify(q);
        status = shmq_offer(q, owner, d);
        *claimed = status == SHMQ_EMPTY && d->word != 0;
    }
    return status;
}

static shmq_status spin(shmq_queue *q, uint32_t owner, uint64_t until_ns, bool *claimed, shmq_delivery *d) {
    uint64_t start = shmq_now_ns();
    uint64_t end = until_ns < start + SPIN_NS ? until_ns : start + SPIN_NS;
    for (;;) {
        shmq_status status = look(q, owner, claimed, d);
        if (status != SHMQ_EMPTY || shmq_now_ns() >= end) {
            return status;
        }
        for (int i = 0; i < 16; i++) {
            shmq_pause();
        }
    }
}

/* Did a sleep that nobody ended find something that had been there for long? Then somebody owed a wake and was stopped. */
static void count_rescue(shmq_queue *q, const shmq_delivery *d) {
    if (shmq_now_ns() - d->enqueued_ns > q->m->patience_ns / 2) {
        shmq_add_relaxed(&q->m->header->rescues, 1);
    }
}

/* One round: announce, look, sleep, withdraw. SHMQ_TIMEOUT: go on with another round. */
static shmq_status wait_round(shmq_queue *q, uint32_t owner, uint32_t row, uint64_t until_ns, shmq_delivery *d) {
    bool claimed = false;
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    if (SHMQ_UNLIKELY(consumer == NULL)) {
        return shmq_damage(q->m, "offset of a chunk of consumer rows", row);
    }
    uint32_t seen = shmq_announce(q, row, false);
    shmq_status status = look(q, owner, &claimed, d);
    uint64_t now = shmq_now_ns();
    shmq_status slept = SHMQ_OK;
    bool slept_at_all = false;
    if (status == SHMQ_EMPTY && now < until_ns && shmq_load_seq(&q->page->shut_down) == SHMQ_OPEN) {
        uint64_t limit = claimed ? CLAIM_LOOK_NS : shmq_sleep_limit(q);
        uint64_t until = until_ns - now > limit ? now + limit : until_ns;
        slept = shmq_sleep(q->m, &consumer->wake, seen, until);
        slept_at_all = true;
    }
    bool woken = shmq_load_seq(&consumer->wake) != seen;
    bool notified = shmq_withdraw(q, row, false); /* but not woken: who claimed the bit was stopped before the wake */
    if (status == SHMQ_OK) {
        if (notified) {
            shmq_notify(q); /* the wake-up meant another entry: pass it on */
        }
        return SHMQ_OK;
    }
    if (status != SHMQ_EMPTY || slept == SHMQ_INTERRUPTED) {
        if (notified) {
            shmq_notify(q);
        }
        return status != SHMQ_EMPTY ? status : SHMQ_INTERRUPTED;
    }
    status = shmq_offer(q, owner, d);
    if (status == SHMQ_OK && slept_at_all && !woken && slept == SHMQ_TIMEOUT && !claimed) {
        count_rescue(q, d);
    } else if (status != SHMQ_OK && status != SHMQ_EMPTY && notified) {
        shmq_notify(q);
    }
    return status == SHMQ_EMPTY ? SHMQ_TIMEOUT : status;
}

/* Another thread closes the consumer that this one waits for. */
static bool is_closing(shmq_queue *q, uint32_t owner) {
    shmq_consumer_shm *row = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    return row != NULL && shmq_row_state(shmq_load_acquire(&row->word)) != SHMQ_ROW_LIVE; /* SYNC row.owner */
}

shmq_status shmq_offer_wait(shmq_queue *q, uint32_t owner, uint32_t consumer_row, uint64_t until_ns, shmq_delivery *d) {
    bool claimed = false;
    SHMQ_TRY(shmq_queue_usable(q));
    if (shmq_load_seq(&q->page->shut_down) == SHMQ_STOPPED) {
        return SHMQ_SHUT_DOWN;
    }
    shmq_status status = shmq_offer(q, owner, d);
    if (status == SHMQ_EMPTY && (until_ns != 0 || d->word != 0)) {
        status = spin(q, owner, until_ns == 0 ? shmq_now_ns() + SPIN_NS : until_ns, &claimed, d);
    }
    if (status != SHMQ_EMPTY) {
        return status;
    }
    if (until_ns == 0 || shmq_now_ns() >= until_ns) {
        shmq_look_for_dead(q->m); /* who only polls never sleeps, so it does here what sleepers do */
        status = shmq_offer(q, owner, d);
        return status == SHMQ_EMPTY && shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN ? SHMQ_SHUT_DOWN : status;
    }
    uint32_t row = consumer_row;
    if (row == 0) {
        SHMQ_TRY(shmq_row_borrow(q, &row));
    }
    uint64_t slice_end = shmq_slice_end(q->m);
    for (;;) {
        if (is_closing(q, owner)) {
            status = SHMQ_CLOSED;
            break;
        }
        status = wait_round(q, owner, row, until_ns, d);
        if (status != SHMQ_TIMEOUT) {
            break;
        }
        if ((status = shmq_queue_usable(q)) != SHMQ_OK) {
            break;
        }
        uint32_t shut = shmq_load_seq(&q->page->shut_down);
        if (shut != SHMQ_OPEN) {
            status = shut == SHMQ_STOPPED ? SHMQ_EMPTY : shmq_offer(q, owner, d);
            status = status == SHMQ_EMPTY ? SHMQ_SHUT_DOWN : status;
            break;
        }
        if (shmq_now_ns() >= until_ns) {
            status = SHMQ_EMPTY;
            break;
        }
        if (shmq_now_ns() >= slice_end) {
            status = shmq_slice_over(q->m);
            break;
        }
    }
    if (consumer_row == 0) {
        shmq_row_return(q, row);
    }
    return status;
}
