/* The ends of an offer: the taker takes and settles it at once, acquires it, or gives it back. And the baton of a
 * taker that leaves with an entry. */
#include "take/offer.h"
#include "consumers/sleepers.h"
#include "groups/group.h"
#include "limits/slot_free.h"
#include "ring/ring_delivery.h"
#include "ring/stretch.h"
#include "ring/version.h"
#include "settle/ending.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "time/times.h"
#include "wake/watch.h"

#define LOOK_BEHIND 64 /* slots */

/* The word that says "OFFERED to this taker, by this offer"; 0: another taker took it over. */
static uint64_t own_offer(shmq_queue *q, const shmq_slot_shm *slot, const shmq_delivery *d) {
    (void)q;
    uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
    bool ours = shmq_word_state(word) == SHMQ_OFFERED && shmq_word_owner(word) == d->owner &&
                shmq_word_tag(word) == d->tag &&
                shmq_load_acquire(&slot->position) == d->position; /* SYNC ring.publish */
    return ours ? word : 0;
}

/* Says whether an available entry lies behind p, for a sleeper. Holes and entries of other takers are passed, as by a
 * scan. A claim ends the look: its producer wakes a sleeper itself. After LOOK_BEHIND slots a needless wake is cheaper
 * than to look on. */
static bool more_behind(shmq_ring *r, uint64_t p) {
    for (uint32_t i = 0; i < LOOK_BEHIND; i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, ++p);
        uint64_t word = shmq_load_seq(&slot->word);
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
        if (ahead < 0 || (ahead == 0 && (state == SHMQ_FREE || state == SHMQ_CLAIMED))) {
            return false;
        }
        if (state == SHMQ_AVAILABLE && shmq_is_here(slot, word, ahead, p)) {
            return true;
        }
    }
    return true;
}

/* Looks for such an entry in the less important levels, from their heads on. Where a level may have carried entries, or
 * has flowed, the answer is yes without a look. The more important levels had nothing when this taker looked, and for
 * what has come since, a producer has woken a sleeper. */
static bool more_below(const shmq_ring *r) {
    shmq_ring level;
    for (uint32_t depth = r->depth + 1; depth < r->queue->levels && shmq_level_look(r->queue, depth, &level) == NULL;
         depth++) {
        uint64_t head = shmq_head_position(&level, shmq_load_seq(&level.shm->head));
        uint64_t tail = shmq_load_seq(&level.shm->tail), count = shmq_slot_count(&level);
        if (SHMQ_UNLIKELY(shmq_flow_at(&level) != 0) || (tail > count && head < tail - count) ||
            more_behind(&level, head - 1)) {
            return true;
        }
    }
    return false;
}

static void took(shmq_ring *r, const shmq_delivery *d) {
    if (d->as.by != NULL) {
        shmq_cursor_set(d->as.by, r, d->seen.cursor, d->position + 1, d->seen.epoch);
    } else if (d->seen.in_turn) {
        shmq_head_advance(r, d->seen.head, d->position + 1);
    }
    shmq_store_relaxed(&r->near, d->position);
    /* The baton: a taker that leaves with an entry looks whether there is one more for a sleeper. */
    if (shmq_anybody_idle(r->queue) &&
        (!d->seen.in_turn || d->seen.flow != 0 || more_behind(r, d->position) || more_below(r))) {
        shmq_notify(r->queue);
    }
}

shmq_status shmq_offer_finish(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint64_t word;
    while ((word = own_offer(q, slot, d)) != 0) { /* a loop: the tail may carry the entry meanwhile */
        if (shmq_slot_free(r, slot, word)) { /* T10: taken and settled at once */
            shmq_entries_ended(q, 1, SHMQ_END_GOT);
            if (word & SHMQ_FLAG_REDELIVERED) {
                shmq_add_relaxed(&q->counters->redelivered, 1);
            }
            took(r, d);
            shmq_group_leave(q, d);
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(q, d);
}

shmq_status shmq_offer_acquire(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint64_t word;
    shmq_add_unsettled(q->m, 1); /* before the CAS, so that no watcher misses that this process holds a message */
    while ((word = own_offer(q, slot, d)) != 0) {
        bool leased = SHMQ_UNLIKELY(shmq_is_leased(q, d));
        uint64_t acquired = shmq_word_to(word, leased ? SHMQ_LOCKED : SHMQ_ACQUIRED, d->owner, d->tag);
        if (!shmq_cas_seq(&slot->word, word, acquired)) { /* T10 */
            continue;
        }
        shmq_changed(r, slot);
        d->word = acquired;
        d->counted = true;
        if (leased && shmq_lease_begin(r, d) != SHMQ_OK) {
            return shmq_taken_away(q, d); /* a stealer took it */
        }
        shmq_delivery_read(r, slot, d); /* delivery and deaths cannot change any more */
        took(r, d);
        if (shmq_why_dead(q, d) != SHMQ_LIVES) {
            return SHMQ_POISONED; /* no consumer gets it: it becomes a dead letter, which is no delivery */
        }
        if (word & SHMQ_FLAG_REDELIVERED) {
            shmq_add_relaxed(&q->counters->redelivered, 1);
        }
        return SHMQ_OK;
    }
    d->counted = true; /* as it was announced above */
    return shmq_taken_away(q, d);
}

shmq_status shmq_offer_seize(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint32_t group = d->group;
    uint64_t word;
    while ((word = own_offer(q, slot, d)) != 0) {
        bool ours = shmq_seize(r, slot, word, d->position, d); /* T13 */
        d->group = group; /* from this taker's own offer: it keeps the group, and took nothing from another taker */
        d->fate = SHMQ_KEPT;
        if (ours) {
            took(r, d);
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(q, d);
}

void shmq_offer_cancel(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint64_t word;
    while ((word = own_offer(q, slot, d)) != 0) {
        if (shmq_cas_seq(&slot->word, word,
                         shmq_word_to(word, SHMQ_AVAILABLE, 0, d->tag))) { /* T11: no scan passed it */
            shmq_group_leave(q, d);
            shmq_notify(q);
            shmq_came_back(r, slot);
            return;
        }
    }
    (void)shmq_taken_away(q, d);
}

bool shmq_choose(shmq_queue *q, shmq_subscription *by, shmq_delivery *d) {
    if (shmq_taker(q, by) == NULL) {
        return false;
    }
    if (!d->as.peek) {
        shmq_offer_cancel(q, d);
    }
    d->as.by = by;
    d->seen.version = shmq_version(q);
    return true;
}
