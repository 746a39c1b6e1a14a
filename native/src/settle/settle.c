/* The outcomes of a delivery in terms of the ring: settle, release (with or without an attempt); and steals. */
#include "settle/settle.h"
#include "base/clock.h"
#include "consumers/sleepers.h"
#include "flow/flow.h"
#include "groups/group.h"
#include "limits/slot_free.h"
#include "look/browse.h"
#include "queue/cold.h"
#include "ring/ring_delivery.h"
#include "ring/stretch.h"
#include "settle/ending.h"
#include "settle/expire.h"
#include "time/receipt.h"
#include "time/times.h"
#include "wake/watch.h"

#include <string.h>

static uint64_t own_word(const shmq_slot_shm *slot, const shmq_delivery *d) {
    uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
    uint32_t state = shmq_word_state(word);
    bool ours = shmq_state_is_in_hand(state) && shmq_word_owner(word) == d->owner && shmq_word_tag(word) == d->tag &&
                shmq_load_acquire(&slot->position) == d->position; /* SYNC ring.publish */
    return ours ? word : 0;
}

uint64_t shmq_own_word(const shmq_queue *q, const shmq_delivery *d) {
    shmq_fence_acquire(); /* SYNC ring.browse: what was copied before, then the word */
    return own_word(shmq_slot_at(shmq_level(q, d->depth), d->position), d);
}

/* The taker does not have the delivery any more. A stolen delivery counts as held until its taker finds out: each
 * process alone writes its `unsettled`. A stealer that lowered it could lower that of the row's next owner, or die
 * before it did. */
void shmq_let_go(shmq_queue *q, shmq_delivery *d) {
    shmq_group_leave(q, d); /* before: a process that holds nothing keeps no other out */
    if (d->counted) {
        d->counted = false;
        shmq_add_unsettled(q->m, -1);
    }
}

shmq_status shmq_taken_away(shmq_queue *q, shmq_delivery *d) {
    d->fate = d->fate == SHMQ_KEPT ? SHMQ_LOST : d->fate;
    shmq_let_go(q, d);
    return SHMQ_SETTLED;
}

/* Takes T16 for the owner: drops the reference, then frees the slot. After its death any reaper repeats this. */
static void clean_up(shmq_ring *r, shmq_slot_shm *slot, const shmq_delivery *d) {
    shmq_block_drop(r->queue->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
        if (shmq_word_state(word) != SHMQ_DEQUEUED || shmq_word_owner(word) != d->owner ||
            shmq_word_tag(word) != d->tag || shmq_slot_free(r, slot, word)) { /* T16 */
            return;
        }
    }
}

shmq_status shmq_entry_ends(shmq_ring *r, shmq_delivery *d, shmq_end why) {
    shmq_queue *q = r->queue;
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    shmq_status status = SHMQ_SETTLED;
    uint64_t word;
    if (SHMQ_UNLIKELY(d->receipt != 0)) {
        shmq_receipt_return(q->m, d->receipt); /* before the entry is gone: it is LOCKED by this process */
    }
    /* A loop over the word as it is now: a carry changes its lap, and then the word of the delivery does not fit. */
    while (status != SHMQ_OK && (word = own_word(slot, d)) != 0) {
        if (d->body == 0) {
            status = shmq_slot_free(r, slot, word) ? SHMQ_OK : SHMQ_SETTLED; /* T14: settled here */
        } else if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, d->owner, d->tag))) { /* T14 */
            shmq_changed(r, slot);
            clean_up(r, slot, d);
            status = SHMQ_OK;
        }
    }
    if (status != SHMQ_OK) {
        return shmq_taken_away(q, d);
    }
    shmq_entries_ended(q, 1, why);
    shmq_let_go(q, d);
    return SHMQ_OK;
}

shmq_status shmq_lock(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint64_t word;
    while ((word = own_word(slot, d)) != 0) {
        if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_LOCKED, d->owner, d->tag))) { /* T12 */
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(q, d);
}

/* R0. A stealer may take the entry at any time, and its slot may be used again. So the attempt is counted by a CAS from
 * what was read while the slot was this consumer's: another message has another checksum. */
void shmq_attempt_count(shmq_slot_shm *slot, const shmq_delivery *d) {
    uint64_t summary;
    do {
        summary = shmq_load_seq(&slot->summary);
        if (own_word(slot, d) == 0 || shmq_summary_delivery(summary) == UINT16_MAX) {
            return;
        }
    } while (!shmq_cas_seq(&slot->summary, summary, summary + SHMQ_ONE_ATTEMPT));
}

/* Returns the flag for a released message. One with a receipt was in no consumer's hands, and its put waits on. */
static uint64_t flag_of(const shmq_delivery *d) { return d->receipt == 0 ? SHMQ_FLAG_REDELIVERED : 0; }

/* R1. The delivery still counts as held, since the head is to be turned back yet. False: a stealer took it, and this
 * process has let go of it. */
static bool make_available(shmq_queue *q, shmq_slot_shm *slot, shmq_delivery *d, uint64_t flag) {
    uint64_t word;
    while ((word = own_word(slot, d)) != 0) {
        uint64_t available = shmq_word_to(word, SHMQ_AVAILABLE, 0, d->tag) | flag;
        if (shmq_cas_seq(&slot->word, word, available)) { /* R1, T15 */
            shmq_changed(shmq_level(q, d->depth), slot);
            return true;
        }
    }
    (void)shmq_taken_away(q, d);
    return false;
}

static shmq_status give_back(shmq_queue *q, shmq_delivery *d, bool attempt, uint64_t flag) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    if (SHMQ_UNLIKELY(d->expires_ns != 0) && shmq_expires_now(q, d)) {
        return shmq_expire(q, d);
    }
    if (attempt) {
        shmq_attempt_count(slot, d);
    }
    if (!make_available(q, slot, d, flag)) {
        return SHMQ_SETTLED;
    }
    shmq_rewind(r, d->position);
    shmq_let_go(q, d); /* after the head: a process that holds nothing has turned it back for all its releases */
    shmq_notify(q); /* R5 */
    shmq_came_back(r, slot);
    return SHMQ_OK;
}

shmq_status shmq_release(shmq_queue *q, shmq_delivery *d, bool attempt) { return give_back(q, d, attempt, flag_of(d)); }

shmq_status shmq_put_back(shmq_queue *q, shmq_delivery *d) { return give_back(q, d, false, 0); }

/* The entries that have come back to one level. */
typedef struct came_back {
    uint64_t lowest, lowest_old;
    uint32_t old;
} came_back;

/* Says whether the position is old, or about to be. The tail follows the mark. A process that has seen the tail may
 * have seen the word as it was between the mark and this release. */
static bool is_old(shmq_ring *r, uint64_t position) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    return shmq_word_carried(shmq_load_seq(&shmq_slot_at(r, position)->word)) ||
           (tail > count && position < tail - count);
}

/* Takes R1 for each. The entries that became available are then at the front of the array; returns how many. */
static uint32_t make_all_available(shmq_queue *q, shmq_delivery **all, uint32_t count, came_back *levels) {
    uint32_t back = 0;
    for (uint32_t i = 0; i < count; i++) {
        shmq_delivery *d = all[i];
        shmq_ring *level = shmq_level(q, d->depth);
        if (SHMQ_UNLIKELY(d->expires_ns != 0) && shmq_expires_now(q, d)) {
            (void)shmq_expire(q, d);
        } else if (make_available(q, shmq_slot_at(level, d->position), d, flag_of(d))) {
            came_back *c = &levels[d->depth];
            c->lowest = d->position < c->lowest ? d->position : c->lowest;
            if (is_old(level, d->position)) {
                c->lowest_old = d->position < c->lowest_old ? d->position : c->lowest_old;
                c->old++;
            }
            all[back++] = d;
        }
    }
    return back;
}

/* One R2 to R4 for all of a level. Until then the head is behind them, and no taker meets them. From then on every
 * taker meets the first one first. The more important levels come first, in the order in which a scan looks at them. A
 * cell can name one old entry only (ring_old.h). The tail may have passed a lower one behind its R1, which takers find
 * by the tail then, while a higher one was old before its own. */
void shmq_release_all(shmq_queue *q, shmq_delivery **all, uint32_t count) {
    came_back levels[SHMQ_RINGS_MAX];
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        levels[depth] = (came_back){.lowest = UINT64_MAX, .lowest_old = UINT64_MAX};
    }
    uint32_t back = make_all_available(q, all, count, levels);
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        const came_back *c = &levels[depth];
        if (c->old > 1 || (c->old == 1 && c->lowest_old != c->lowest)) {
            shmq_rewind_all(shmq_level(q, depth));
        } else if (c->lowest != UINT64_MAX) {
            shmq_rewind(shmq_level(q, depth), c->lowest);
        }
    }
    for (uint32_t i = 0; i < back; i++) {
        shmq_let_go(q, all[i]); /* after the heads, as in give_back() */
    }
    for (uint32_t i = 0; i < back; i++) {
        shmq_ring *level = shmq_level(q, all[i]->depth);
        shmq_notify(q); /* R5 */
        shmq_came_back(level, shmq_slot_at(level, all[i]->position));
    }
}

/* The receipt of a message whose put waits for a consumer, and which no consumer has had; 0: there is none. A taker of
 * an offer does not have the message yet. */
static uint64_t receipt_of(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t before, uint32_t props) {
    uint32_t state = shmq_word_state(before);
    bool unseen = (before & SHMQ_FLAG_REDELIVERED) == 0 && state != SHMQ_ACQUIRED && state != SHMQ_LOCKED;
    shmq_cold_shm *cold = unseen && (props & SHMQ_PROP_IMMEDIATE) != 0 ? shmq_cold_at(r, slot) : NULL;
    return cold != NULL ? shmq_read_once(&cold->receipt) : 0;
}

/* Takes T13 from exactly this word: the owner's next CAS fails. */
bool shmq_seize(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, shmq_delivery *d) {
    shmq_queue *q = r->queue;
    uint32_t tag = (shmq_word_tag(word) + 1) & SHMQ_TAG_MASK;
    uint64_t locked = shmq_word_to(word, SHMQ_LOCKED, shmq_self(q), tag);
    shmq_add_unsettled(q->m, 1);
    if (!shmq_cas_seq(&slot->word, word, locked)) { /* T13 */
        shmq_add_unsettled(q->m, -1);
        return false;
    }
    shmq_changed(r, slot);
    d->position = position;
    d->depth = r->depth;
    d->word = locked;
    d->tag = tag;
    d->owner = shmq_self(q);
    shmq_delivery_read(r, slot, d);
    uint32_t before = shmq_word_state(word);
    bool stolen = before == SHMQ_OFFERED || before == SHMQ_ACQUIRED || before == SHMQ_LOCKED;
    d->fate = stolen ? SHMQ_STOLEN : SHMQ_KEPT;
    d->group = stolen ? shmq_group_of(r, slot, d->props) : 0;
    d->receipt = receipt_of(r, slot, word, d->props);
    d->counted = shmq_delivery_resolve(r, slot, d);
    if (!d->counted) {
        shmq_add_unsettled(q->m, -1);
        (void)shmq_mark_broken(r, slot, locked, shmq_word_lap(locked));
    }
    return d->counted;
}

/* Takes an entry from its owner, or (ready) only if it has none. */
shmq_status shmq_steal(shmq_ring *r, uint64_t position, bool ready, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(r, position);
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        bool held = state == SHMQ_OFFERED || state == SHMQ_ACQUIRED || state == SHMQ_LOCKED;
        if (shmq_load_acquire(&slot->position) != position || /* SYNC ring.publish */
            (state != SHMQ_AVAILABLE && state != SHMQ_HELD && (ready || !held))) {
            return SHMQ_EMPTY;
        }
        if (shmq_seize(r, slot, word, position, d)) {
            d->held_until_ns = state == SHMQ_HELD ? shmq_held_until(r, slot, shmq_now_ns()) : 0;
            return SHMQ_OK;
        }
        if (shmq_word_state(shmq_load_seq(&slot->word)) == SHMQ_BROKEN) {
            return SHMQ_CORRUPT;
        }
    }
}

shmq_status shmq_steal_first(shmq_ring *level, shmq_wanted *wanted, shmq_delivery *d) {
    shmq_met met;
    while (shmq_first_of(level, wanted, &met)) {
        if (shmq_seize(met.ring, met.slot, met.word, met.position,
                       d)) { /* either another process's CAS wins or this one */
            return SHMQ_OK;
        }
    }
    return SHMQ_EMPTY;
}

static shmq_status purge_level(shmq_ring *r, uint64_t *purged) {
    uint64_t end = shmq_load_seq(&r->shm->tail); /* newcomers stay: otherwise a busy queue's purge would never end */
    shmq_delivery d;
    for (uint64_t p = 0; shmq_browse(r, &p, &d) == SHMQ_OK && p < end; p++) {
        shmq_status status = shmq_steal(r, p, true, &d);
        if (status != SHMQ_OK && status != SHMQ_EMPTY) {
            return status;
        }
        *purged += status == SHMQ_OK && shmq_entry_ends(r, &d, SHMQ_END_PURGED) == SHMQ_OK;
    }
    return SHMQ_OK;
}

static shmq_status purge_rings(shmq_queue *q, uint64_t *purged) {
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        SHMQ_TRY(purge_level(shmq_level(q, depth), purged));
    }
    return SHMQ_OK;
}

/* A purge would miss entries that a mover moves meanwhile. So in a queue that has flowed, rings and rows go in one turn
 * of the mover. SHMQ_INTERRUPTED: another process moves entries just now. */
shmq_status shmq_purge(shmq_queue *q, uint64_t *purged) {
    *purged = 0;
    if (SHMQ_LIKELY(!shmq_has_flowed(q))) {
        shmq_status status = purge_rings(q, purged);
        if (status != SHMQ_OK || SHMQ_LIKELY(!shmq_has_flowed(q))) {
            return status;
        }
    }
    shmq_status status = shmq_flow_purge(q, purge_rings, purged);
    return status == SHMQ_IN_USE ? SHMQ_INTERRUPTED : status;
}
