/* Entries that wait for a time. What ends, ends by one CAS of whoever sees it first, and is then a release: rewind, notify. */
#include "shmq/ring_time.h"

#include "shmq/cold.h"
#include "shmq/ending.h"
#include "shmq/sleepers.h"
#include "shmq/watch.h"

static uint64_t sooner(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t later_by(uint64_t since, uint64_t ns) { return since + ns < since ? SHMQ_NEVER : since + ns; }

shmq_status shmq_time_plan(shmq_queue *q, shmq_outgoing *o) {
    uint64_t max_ttl = shmq_load_relaxed(&q->page->settings.max_ttl_ns);
    uint64_t due = max_ttl == SHMQ_NEVER ? SHMQ_NEVER : later_by(o->enqueued_ns, max_ttl);
    due = sooner(due, o->not_before_ns != 0 ? o->not_before_ns : SHMQ_NEVER);
    due = sooner(due, o->expires_ns != 0 ? o->expires_ns : SHMQ_NEVER);
    o->due_ns = due == SHMQ_NEVER ? 0 : due;
    return shmq_is_recorded(o) ? shmq_cold_need(q) : SHMQ_OK;
}

uint32_t shmq_time_fill(shmq_queue *q, shmq_slot_shm *slot, const shmq_outgoing *o) {
    shmq_cold_shm *cold = shmq_cold_at(q, slot);
    if (cold == NULL) {
        return 0; /* damaged since the prepare: an entry without a record is available, and never expires */
    }
    uint32_t props = 0;
    if (o->not_before_ns != 0) {
        shmq_store_relaxed(&cold->not_before_ns, o->not_before_ns);
        props |= SHMQ_PROP_NOT_BEFORE;
    }
    if (o->expires_ns != 0) {
        shmq_store_relaxed(&cold->expires_ns, o->expires_ns);
        props |= SHMQ_PROP_EXPIRES;
    }
    if (o->group != 0) {
        shmq_poke(&cold->group, (uint64_t)o->group);
        props |= SHMQ_PROP_GROUP;
    }
    if (o->intent != 0) {
        shmq_poke(&cold->place, o->source);
        shmq_poke(&cold->intent, o->intent);
        props |= SHMQ_PROP_INTENT;
    } else if (o->receipt != 0) {
        shmq_poke(&cold->place, o->receipt);
        props |= SHMQ_PROP_IMMEDIATE;
    }
    return props;
}

/* ---- held -------------------------------------------------------------------------------------------------------- */

/* Until when is it held? 0: its record cannot be read, or says what nobody writes; rather early than never. */
uint64_t shmq_held_until(const shmq_queue *q, const shmq_slot_shm *slot, uint64_t now) {
    shmq_cold_shm *cold = (shmq_props(slot) & SHMQ_PROP_NOT_BEFORE) != 0 ? shmq_cold_at(q, slot) : NULL;
    uint64_t until = cold != NULL ? shmq_load_relaxed(&cold->not_before_ns) : 0;
    return until <= now || until - now <= SHMQ_DUE_LONGEST ? until : 0;
}

/* HELD -> AVAILABLE. The position was read behind the word: it is this entry's if the CAS succeeds. Counted as held by us
 * meanwhile, so that a death in the midst of it is noticed, and its reaper turns the head back. */
bool shmq_hold_end_now(shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    shmq_hold(q->m, 1);
    bool ended = shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word))); /* T18 */
    if (ended && shmq_slot_at(q, p) == slot) {
        shmq_rewind(q, p); /* whoever has passed it while it was held turns back, as after a release */
    } else if (ended) {
        shmq_rewind_all(q);
    }
    shmq_hold(q->m, -1);
    if (ended) {
        shmq_notify(q);
    }
    return ended;
}

bool shmq_hold_end(shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint64_t now = shmq_now_ns();
    if (shmq_held_until(q, slot, now) > now && shmq_load_seq(&slot->word) == word) {
        return false;
    }
    (void)shmq_hold_end_now(q, slot, word);
    return true;
}

shmq_status shmq_release_until(shmq_queue *q, shmq_delivery *d, bool attempt, uint64_t until_ns) {
    q = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    shmq_status status = shmq_cold_need(q);
    if (status == SHMQ_INTERRUPTED) {
        return status; /* nothing has changed: the caller lets signal handlers run, and calls again */
    }
    shmq_cold_shm *cold = status == SHMQ_OK ? shmq_cold_at(q, slot) : NULL;
    if (cold == NULL) {
        return shmq_release(q, d, attempt);
    }
    SHMQ_TRY(shmq_lock(q, d)); /* what is locked is not taken by time: the record stays ours while we write it */
    if (attempt) {
        shmq_attempt_count(slot, d);
    }
    shmq_store_relaxed(&cold->not_before_ns, until_ns);
    shmq_props_change(slot, SHMQ_PROP_NOT_BEFORE, 0);
    for (uint64_t word = shmq_own_word(q, d); word != 0; word = shmq_own_word(q, d)) {
        uint64_t held = shmq_word_to(word, SHMQ_HELD, 0, d->tag) | SHMQ_FLAG_REDELIVERED;
        if (shmq_cas_seq(&slot->word, word, held)) { /* T15 */
            shmq_make_due(q, until_ns);
            shmq_let_go(q, d); /* after the due word: who holds nothing owes nobody anything */
            shmq_came_back(q, slot);
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(q, d);
}

shmq_status shmq_time_declared(shmq_queue *q, uint32_t given) {
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        if (given & (1u << SHMQ_SET_LEASE) && shmq_load_relaxed(&q->page->settings.lease_ns) != SHMQ_NEVER) {
            SHMQ_TRY(shmq_cold_need(shmq_level(q, depth))); /* said by who sets it, not by who receives */
        }
        if (given & (1u << SHMQ_SET_MAX_TTL)) {
            shmq_due_recover(shmq_level(q, depth)); /* what is there already has an age, too */
        }
    }
    return SHMQ_OK;
}
