/* Waiting for an entry: announce, look once more, sleep, withdraw. */
#include "shmq/group.h"
#include "shmq/ranks.h"
#include "shmq/ring.h"
#include "shmq/sleepers.h"
#include "shmq/wait.h"
#include "shmq/ring_wait.h"
#include "shmq/watch.h"

static shmq_status offer_to(shmq_queue *q, const shmq_waiter *w, shmq_delivery *d) {
    return SHMQ_UNLIKELY(w->peek) ? shmq_peek_to(q, w->owner, w->by, d) : shmq_offer_to(q, w->owner, w->by, d);
}

shmq_status shmq_look(shmq_queue *q, const shmq_waiter *w, bool *claimed, shmq_delivery *d) {
    shmq_status status = offer_to(q, w, d);
    *claimed = status == SHMQ_EMPTY && d->word != 0;
    shmq_ring *level = *claimed ? shmq_level(q, d->depth) : NULL;
    if (level != NULL && shmq_patience_over(level, &level->taking, d->position, d->word)) {
        shmq_notify(q);
        status = offer_to(q, w, d);
        *claimed = status == SHMQ_EMPTY && d->word != 0;
    }
    return status;
}

static shmq_status spin(shmq_queue *q, const shmq_waiter *w, bool *claimed, shmq_delivery *d) {
    uint64_t until_ns = w->until_ns == 0 ? UINT64_MAX : w->until_ns;
    uint64_t start = shmq_now_ns();
    uint64_t end = until_ns < start + SHMQ_SPIN_NS ? until_ns : start + SHMQ_SPIN_NS;
    for (;;) {
        shmq_status status = shmq_look(q, w, claimed, d);
        if (status != SHMQ_EMPTY || shmq_now_ns() >= end) {
            return status;
        }
        for (int i = 0; i < 16; i++) {
            shmq_pause();
        }
    }
}

void shmq_rescue_count(shmq_queue *q, const shmq_delivery *d) {
    if (shmq_now_ns() - d->enqueued_ns > q->m->patience_ns / 2 && !shmq_reap_now(q->m)) {
        shmq_add_relaxed(&q->m->header->rescues, 1);
    }
}

void shmq_progress_publish(const shmq_waiter *w, uint64_t version) {
    if (version != 0 || SHMQ_UNLIKELY(shmq_load_relaxed(&w->consumer->progress) != 0)) {
        shmq_store_seq(&w->consumer->progress, version);
    }
}

void shmq_wake_pass_on(shmq_queue *q, const shmq_waiter *w, shmq_status status) {
    if (status != SHMQ_EMPTY || (shmq_taker(q, w->by) != NULL && shmq_anybody_idle(q) && shmq_ring_ready(q))) {
        shmq_notify(q);
    }
}

bool shmq_is_closing(shmq_queue *q, uint32_t owner) {
    shmq_consumer_shm *row = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    return row != NULL && shmq_row_state(shmq_load_acquire(&row->word)) != SHMQ_ROW_LIVE; /* SYNC row.owner */
}

uint64_t shmq_look_limit(shmq_queue *q, bool left) {
    uint64_t limit = shmq_sleep_limit(q), passed = q->m->patience_ns + SHMQ_ROUNDING_NS;
    return SHMQ_UNLIKELY(left) && passed < limit ? passed : limit;
}

/* One round: announce, look, sleep, withdraw. SHMQ_TIMEOUT: go on with another round. */
static shmq_status wait_round(shmq_queue *q, const shmq_waiter *w, shmq_delivery *d) {
    bool claimed = false;
    uint32_t seen = shmq_load_seq(&w->consumer->wake); /* before all that a wake may be for */
    if (shmq_is_closing(q, w->owner)) {
        return SHMQ_CLOSED;
    }
    bool served = shmq_ranks_take_up(q, w->owner); /* else nobody is to wake it for an entry */
    if (served) {
        (void)shmq_announce(q, w->row, false);
    }
    shmq_status status = shmq_look(q, w, &claimed, d);
    uint64_t now = shmq_now_ns();
    shmq_status slept = SHMQ_OK;
    bool slept_at_all = false;
    shmq_progress_publish(w, status == SHMQ_EMPTY && !claimed ? d->version : 0);
    shmq_ranks_step(q, w->owner);
    if (status == SHMQ_EMPTY && now < w->until_ns && shmq_load_seq(&q->page->shut_down) == SHMQ_OPEN) {
        uint64_t limit = claimed ? SHMQ_SHORT_SLEEP_NS : shmq_look_limit(q, d->left);
        uint64_t until = w->until_ns - now > limit ? now + limit : w->until_ns;
        slept = shmq_sleep(q->m, &w->consumer->wake, seen, until);
        slept_at_all = true;
    }
    bool woken = shmq_load_seq(&w->consumer->wake) != seen;
    /* Notified, but not woken: who claimed the bit was stopped before the wake. */
    bool notified = served && shmq_withdraw(q, w->row, false);
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
    status = offer_to(q, w, d);
    if (status == SHMQ_OK && served && slept_at_all && !woken && slept == SHMQ_TIMEOUT && !claimed) {
        shmq_rescue_count(q, d);
    } else if (status != SHMQ_OK && notified) {
        shmq_progress_publish(w, status == SHMQ_EMPTY && d->word == 0 ? d->version : 0);
        shmq_wake_pass_on(q, w, status);
    }
    return status == SHMQ_EMPTY ? SHMQ_TIMEOUT : status;
}

/* Rounds until something comes, the time is over, or there is a reason not to wait. */
static shmq_status wait_rounds(shmq_queue *q, const shmq_waiter *w, shmq_delivery *d) {
    uint64_t slice_end = shmq_slice_end(q->m);
    for (;;) {
        shmq_status status = wait_round(q, w, d);
        if (status != SHMQ_TIMEOUT) {
            return status;
        }
        SHMQ_TRY(shmq_queue_usable(q));
        uint32_t shut = shmq_load_seq(&q->page->shut_down);
        if (shut != SHMQ_OPEN) {
            status = shut == SHMQ_STOPPED ? SHMQ_EMPTY : offer_to(q, w, d);
            return status == SHMQ_EMPTY ? SHMQ_SHUT_DOWN : status;
        }
        if (shmq_now_ns() >= w->until_ns) {
            return SHMQ_EMPTY;
        }
        if (shmq_now_ns() >= slice_end) {
            return shmq_slice_over(q->m);
        }
    }
}

static shmq_status wait_as(shmq_queue *q, shmq_waiter *w, shmq_delivery *d) {
    bool claimed = false, borrowed = w->row == 0;
    SHMQ_TRY(shmq_queue_usable(q));
    if (shmq_load_seq(&q->page->shut_down) == SHMQ_STOPPED) {
        return SHMQ_SHUT_DOWN;
    }
    shmq_status status = offer_to(q, w, d);
    if (status == SHMQ_EMPTY && !w->peek && (w->until_ns != 0 || d->word != 0)) { /* who peeks is in no hurry */
        status = spin(q, w, &claimed, d);
    }
    if (status != SHMQ_EMPTY) {
        return status;
    }
    if (w->until_ns == 0 || shmq_now_ns() >= w->until_ns) {
        shmq_look_for_dead(q->m); /* who only polls never sleeps, so it does here what sleepers do */
        status = offer_to(q, w, d);
        return status == SHMQ_EMPTY && shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN ? SHMQ_SHUT_DOWN : status;
    }
    if (w->row == 0) {
        SHMQ_TRY(shmq_row_borrow(q, &w->row));
    }
    w->consumer = shmq_row_at(q, w->row);
    status =
        w->consumer != NULL ? wait_rounds(q, w, d) : shmq_damage(q->m, "offset of a chunk of consumer rows", w->row);
    if (borrowed) {
        shmq_row_return(q, w->row);
    }
    return status;
}

shmq_status shmq_offer_wait(shmq_queue *q, uint32_t owner, uint32_t consumer_row, uint64_t until_ns, shmq_delivery *d) {
    return shmq_offer_wait_to(q, owner, NULL, consumer_row, until_ns, d);
}

shmq_status shmq_offer_wait_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, uint32_t consumer_row,
                               uint64_t until_ns, shmq_delivery *d) {
    shmq_waiter w = {.owner = owner, .by = by, .row = consumer_row, .until_ns = until_ns};
    return wait_as(q, &w, d);
}

shmq_status shmq_peek_wait(shmq_queue *q, uint32_t owner, shmq_subscription *by, uint32_t consumer_row,
                           uint64_t until_ns) {
    shmq_delivery d;
    shmq_waiter w = {.owner = owner, .by = by, .row = consumer_row, .until_ns = until_ns, .peek = true};
    return wait_as(q, &w, &d);
}

void shmq_peek_pass_on(shmq_queue *q) {
    if (shmq_anybody_idle(q) && shmq_ring_ready(q)) {
        shmq_notify(q);
    }
}
