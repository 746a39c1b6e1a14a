/* get and receive. The taker makes its first look, which is short, with the caller's lock held; it waits without that
 * lock. */
#include "take/take.h"
#include "consumers/ranks.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "time/times.h"

#include <string.h>

#define LONG_CHECK 65536u /* bytes; longer checksums are computed without the caller's lock */

static void leave(const shmq_caller *c) {
    if (c != NULL) {
        c->leave(c->self);
    }
}

static void enter(const shmq_caller *c) {
    if (c != NULL) {
        c->enter(c->self);
    }
}

static bool goes_on(const shmq_caller *c, bool offered) { return c == NULL || c->goes_on(c->self, offered); }

static shmq_status wait_for_any(shmq_queue_wait *of, uint32_t count, uint32_t first, const shmq_taking *t,
                                uint32_t *from, shmq_delivery *d) {
    shmq_status status;
    do {
        leave(t->caller);
        status = shmq_offer_wait_any(of, count, first, t->until_ns, from, d);
        enter(t->caller);
    } while (status == SHMQ_INTERRUPTED && goes_on(t->caller, false));
    if (status == SHMQ_OK && !goes_on(t->caller, true)) { /* a signal came during the wait: nothing is taken */
        shmq_offer_cancel(of[*from].q, d);
        status = SHMQ_INTERRUPTED;
    }
    return status;
}

static shmq_status wait_for(shmq_queue *q, const shmq_taking *t, shmq_delivery *d) {
    shmq_queue_wait of = {.q = q, .owner = t->owner, .row = t->row, .by = t->by};
    uint32_t from;
    return wait_for_any(&of, 1, 0, t, &from, d);
}

/* Offers an entry to `owner`, without a wait. */
SHMQ_INLINE shmq_status offer_at_once(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d) {
    SHMQ_TRY(shmq_queue_enter(q));
    return SHMQ_LIKELY(shmq_load_relaxed(&q->page->shut_down) != SHMQ_STOPPED) ? shmq_offer_to(q, owner, by, d)
                                                                               : SHMQ_EMPTY;
}

/* Offers the next entry to the taker, at once or after a wait. */
static shmq_status next_offer(shmq_queue *q, const shmq_taking *t, shmq_delivery *d) {
    shmq_status status = offer_at_once(q, t->owner, t->by, d);
    return SHMQ_LIKELY(status != SHMQ_EMPTY) ? status : wait_for(q, t, d);
}

/* The checksum does not fit. SHMQ_SETTLED: a stealer or a deletion took the message meanwhile, and the bytes that were
 * read are another message's. SHMQ_CORRUPT: damage. The consumer takes the slot out of service and drops the block's
 * reference; the damage is reported once. */
static shmq_status damaged(shmq_queue *q, shmq_delivery *d) {
    uint64_t word;
    shmq_ring *level = shmq_level(q, d->depth);
    do {
        word = shmq_own_word(q, d);
        if (word == 0) {
            return shmq_taken_away(q, d);
        } /* a loop: the tail may carry the entry meanwhile */
    } while (shmq_mark_broken(level, shmq_slot_at(level, d->position), word, shmq_word_lap(word)) == SHMQ_OK);
    shmq_let_go(level->queue, d);
    if (d->body != 0) {
        shmq_block_drop(q->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));
    }
    return shmq_fail(SHMQ_CORRUPT, "the checksum of the message at position %llu does not match its %u bytes",
                     (unsigned long long)d->position, d->body_len);
}

static bool is_intact(shmq_queue *q, const shmq_taking *t, shmq_delivery *d) {
    uint32_t bytes = d->headers_len + d->body_len;
    if (t->copy != NULL && d->body == 0 && bytes <= SHMQ_COPY_BYTES) {
        const unsigned char *headers = d->headers, *body = d->bytes;
        memcpy(t->copy, headers, bytes);
        d->headers = t->copy;
        d->bytes = t->copy + d->headers_len;
        bool intact = shmq_delivery_intact(q, d);
        d->headers = headers;
        d->bytes = body;
        return intact;
    }
    if (d->body_len <= LONG_CHECK) {
        return shmq_delivery_intact(q, d);
    }
    leave(t->caller);
    bool intact = shmq_delivery_intact(q, d);
    enter(t->caller);
    return intact;
}

/* Checks a message after its acquisition. SHMQ_SETTLED: the consumer holds nothing, as before. */
static shmq_status received(shmq_queue *q, const shmq_taking *t, shmq_delivery *d, shmq_status status) {
    if (status != SHMQ_OK) {
        return status;
    }
    shmq_add_relaxed(&q->counters->received, 1);
    return SHMQ_LIKELY(is_intact(q, t, d)) ? SHMQ_OK : damaged(q, d);
}

static bool is_ranked(const shmq_queue *q) {
    return SHMQ_UNLIKELY((shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_RANKED) != 0);
}

shmq_status shmq_receive(shmq_queue *q, const shmq_taking *t, shmq_delivery *d) {
    shmq_status status;
    do {
        bool ranked = is_ranked(q);
        if (ranked) {
            shmq_want(q, t->owner);
        }
        status = next_offer(q, t, d);
        bool offered = status == SHMQ_OK;
        if (SHMQ_LIKELY(offered)) {
            status = shmq_offer_acquire(q, d);
        }
        if (ranked) {
            shmq_want_end(q, t->owner);
        }
        status = offered ? received(q, t, d, status) : status;
    } while (status == SHMQ_SETTLED);
    return status;
}

shmq_status shmq_receive_offered(shmq_queue *q, const shmq_taking *t, shmq_delivery *d) {
    return received(q, t, d, shmq_offer_acquire(q, d));
}

void shmq_want_any(shmq_queue_wait *of, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        of[i].wants = is_ranked(of[i].q);
        if (of[i].wants) {
            shmq_want(of[i].q, of[i].owner);
        }
    }
}

void shmq_want_any_end(shmq_queue_wait *of, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (of[i].wants) {
            shmq_want_end(of[i].q, of[i].owner);
        }
    }
}

static shmq_status next_of_any(shmq_queue_wait *of, uint32_t count, uint32_t first, const shmq_taking *t,
                               uint32_t *from, shmq_delivery *d) {
    shmq_status status = shmq_offer_any(of, count, first, from, d);
    return status != SHMQ_EMPTY ? status : wait_for_any(of, count, first, t, from, d);
}

shmq_status shmq_receive_any(shmq_queue_wait *of, uint32_t count, uint32_t first, const shmq_taking *t, uint32_t *from,
                             shmq_delivery *d) {
    shmq_status status;
    for (uint32_t i = 0; i < count; i++) {
        of[i].turn.since_ns = 0;
    }
    do {
        shmq_want_any(of, count);
        status = next_of_any(of, count, first, t, from, d);
        shmq_queue *q = of[*from].q;
        bool offered = status == SHMQ_OK;
        if (offered) {
            status = shmq_offer_acquire(q, d);
        }
        shmq_want_any_end(of, count);
        status = offered ? received(q, t, d, status) : status;
    } while (status == SHMQ_SETTLED);
    return status;
}

/* Leaves a message acquired that the taker cannot copy: the caller decodes and settles it, or gives it back. */
static shmq_status left_acquired(shmq_queue *q) {
    shmq_add_relaxed(&q->counters->received, 1);
    return SHMQ_OK;
}

/* Gets an inline body: the taker copies it while OFFERED, then takes and settles it by one CAS. */
SHMQ_INLINE shmq_status get_offered(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    shmq_copied copied = g->copy(g->to, q, d);
    if (SHMQ_LIKELY(copied == SHMQ_COPIED)) {
        return shmq_offer_finish(q, d);
    }
    if (copied == SHMQ_COPIED_NOTHING) {
        shmq_offer_cancel(q, d);
        return SHMQ_INTERRUPTED;
    }
    SHMQ_TRY(shmq_offer_acquire(q, d)); /* SHMQ_SETTLED: the copy was of another message */
    return copied == SHMQ_COPIED_STRANGE ? left_acquired(q) : damaged(q, d);
}

/* All other bodies: the taker acquires the message first, so that no other one takes it over during a long copy or a
 * decoder. */
static shmq_status get_acquired(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    SHMQ_TRY(shmq_offer_acquire(q, d));
    if (d->content >= g->contents) {
        return left_acquired(q);
    }
    shmq_copied copied = g->copy(g->to, q, d);
    if (copied == SHMQ_COPIED_STRANGE) {
        return left_acquired(q);
    }
    if (copied == SHMQ_COPIED_NOTHING) {
        (void)shmq_release(q, d, false);
        return SHMQ_INTERRUPTED;
    }
    if (copied == SHMQ_COPIED_DAMAGE) {
        return damaged(q, d);
    }
    return shmq_entry_ends(shmq_level(q, d->depth), d, SHMQ_END_GOT); /* SHMQ_SETTLED: stolen, or purged meanwhile */
}

SHMQ_INLINE shmq_status get_found(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    bool simple = d->body == 0 && d->content < g->contents && shmq_why_dead(q, d) == SHMQ_LIVES;
    return SHMQ_LIKELY(simple) ? get_offered(q, g, d) : get_acquired(q, g, d);
}

shmq_status shmq_get_at_once(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    shmq_status status;
    do {
        SHMQ_TRY(offer_at_once(q, shmq_self(q), NULL, d));
        status = get_found(q, g, d);
    } while (status == SHMQ_SETTLED);
    return status;
}

shmq_status shmq_get_later(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    const shmq_taking t = {.owner = shmq_self(q), .until_ns = g->until_ns, .caller = g->caller};
    shmq_status status;
    do {
        SHMQ_TRY(wait_for(q, &t, d));
        status = get_found(q, g, d);
    } while (status == SHMQ_SETTLED);
    return status;
}

shmq_status shmq_get(shmq_queue *q, const shmq_getting *g, shmq_delivery *d) {
    shmq_status status = shmq_get_at_once(q, g, d);
    return status == SHMQ_EMPTY ? shmq_get_later(q, g, d) : status;
}
