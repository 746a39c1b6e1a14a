/* The walk: the first available entry, offered to a taker. */
#include "shmq/ring.h"
#include "shmq/sleepers.h"

#define SPINS 64 /* about a microsecond: longer than an undisturbed taker needs between its offer and its take */

uint64_t shmq_head_position(shmq_queue *q, uint64_t head) {
    uint64_t near = shmq_load_relaxed(&q->near);
    uint64_t forward = ((head & SHMQ_POSITION_MASK) - near) & SHMQ_POSITION_MASK;
    return forward <= SHMQ_POSITION_MASK / 2 ? near + forward : near - (SHMQ_POSITION_MASK + 1 - forward);
}

/* The lowest position released in the epochs (from, to]; 0 ("from the beginning") when a cell does not say. */
static uint64_t lowest_released(shmq_queue *q, uint64_t from, uint64_t to) {
    uint64_t lowest = UINT64_MAX;
    if (to - from > SHMQ_CELLS) {
        return 0;
    }
    for (uint64_t e = from + 1; e != to + 1; e++) {
        uint64_t cell = shmq_load_acquire(&q->ring->cells[e % SHMQ_CELLS]); /* SYNC ring.cell */
        if (cell >> SHMQ_POSITION_BITS != (e & SHMQ_EPOCH_MASK)) {
            return 0; /* not written yet, or written over */
        }
        uint64_t position = shmq_head_position(q, cell);
        lowest = position < lowest ? position : lowest;
    }
    return lowest;
}

/* The entry at p while its slot says so: at its own turn, or carried with p as its true position. Positions of a slot only
 * grow, so p found behind the word is p at the time of the word. Whether the word still stands is not asked: an entry whose
 * state has just changed is here all the same, and who passed it would leave it behind. The CAS from the word asks. */
static bool is_here(const shmq_slot_shm *slot, uint64_t word, int32_t ahead, uint64_t p) {
    if (ahead == 0) {
        return !shmq_word_carried(word);
    }
    return shmq_word_carried(word) && shmq_load_acquire(&slot->position) == p; /* SYNC ring.publish */
}

/* OFFERED by another cannot be passed. A short wait, then it may be taken over without harm: nothing was handed out. */
static bool still_offered(shmq_slot_shm *slot, uint64_t word) {
    for (int i = 0; i < SPINS; i++) {
        if (shmq_load_acquire(&slot->word) != word) { /* SYNC ring.offer */
            return false;
        }
        shmq_pause();
    }
    return true;
}

/* False: it changed. Still CLAIMED after a short wait, it is worth a system call to ask whether the claimant lives. */
static bool is_still_claimed(shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    if (!still_offered(slot, word)) {
        return false;
    }
    if (shmq_claim_clear(q, slot, word, false)) {
        shmq_notify(q); /* whoever sleeps behind what is a hole now */
        return false;
    }
    return true;
}

/* What nobody waits for: somebody's, a hole, out of service. SHMQ_EMPTY: it changed, look again. SHMQ_CORRUPT. */
static shmq_status pass_by(shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint32_t state = shmq_word_state(word);
    if (state == SHMQ_QUARANTINED || state == SHMQ_DEQUEUED) {
        return shmq_claim_clear(q, slot, word, false) ? SHMQ_EMPTY : SHMQ_OK;
    }
    if (state == SHMQ_PENDING || state == SHMQ_HELD || state > SHMQ_BROKEN) {
        return shmq_mark_broken(q, slot, word, shmq_word_lap(word)) == SHMQ_OK ? SHMQ_EMPTY : SHMQ_CORRUPT;
    }
    return SHMQ_OK;
}

enum offer_result { OFFER_OK, OFFER_CHANGED, OFFER_RELEASED };

/* Steps 4 and 5: offer, then look at the epoch again. */
static enum offer_result offer(shmq_queue *q, shmq_slot_shm *slot, uint64_t word, uint64_t p, uint64_t epoch,
                               shmq_delivery *d) {
    if (shmq_word_state(word) == SHMQ_OFFERED && !still_offered(slot, word)) {
        return OFFER_CHANGED;
    }
    uint32_t tag = (shmq_word_tag(word) + 1) & SHMQ_TAG_MASK;
    uint64_t offered = shmq_word_to(word, SHMQ_OFFERED, d->owner, tag);
    if (!shmq_cas_seq(&slot->word, word, offered)) { /* T9 */
        return OFFER_CHANGED;
    }
    d->position = p;
    d->word = offered;
    d->tag = tag;
    uint64_t now = shmq_load_seq(&q->ring->epoch); /* get happens here, if nothing forces a return */
    if (SHMQ_UNLIKELY(now != epoch) && lowest_released(q, epoch, now) < p) {
        shmq_offer_cancel(q, d);
        return OFFER_RELEASED;
    }
    return OFFER_OK;
}

/* Entries older than a lap. Every one below tail - N is carried already, and its bit is set. */
static shmq_status offer_old(shmq_queue *q, uint64_t limit, uint64_t epoch, shmq_delivery *d) {
    uint64_t words = (shmq_slot_count(q) + 63) / 64;
    for (;;) {
        uint64_t best = UINT64_MAX, best_word = 0;
        for (uint64_t w = 0; w < words; w++) {
            for (uint64_t bits = shmq_load_seq(&q->carried[w]); bits != 0; bits &= bits - 1) {
                shmq_slot_shm *slot = shmq_slot_at(q, w * 64 + (uint64_t)__builtin_ctzll(bits));
                uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
                uint32_t state = shmq_word_state(word);
                if (!shmq_word_carried(word) || (state != SHMQ_AVAILABLE && state != SHMQ_OFFERED)) {
                    continue;
                }
                uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
                /* As in is_here: what is offered to another just now may come back, so it is not passed. */
                if (position < limit && position < best && shmq_slot_at(q, position) == slot) {
                    best = position;
                    best_word = word;
                }
            }
        }
        if (best == UINT64_MAX) {
            return SHMQ_EMPTY;
        }
        switch (offer(q, shmq_slot_at(q, best), best_word, best, epoch, d)) {
        case OFFER_OK:
            d->in_turn = false;
            return SHMQ_OK;
        case OFFER_RELEASED:
            return SHMQ_INTERRUPTED; /* walk again from the start */
        case OFFER_CHANGED:
            break;
        }
    }
}

/* Nothing available lies between the head that was read at the start and p: later walks may begin at p. A release in
 * between raised head's epoch, and the CAS fails. */
static void advance(shmq_queue *q, uint64_t head, uint64_t p) {
    shmq_cas_seq(&q->ring->head, head, (head & ~SHMQ_POSITION_MASK) | (p & SHMQ_POSITION_MASK));
}

#define LONGEST_WALK 64 /* laps */

/* Asked once in a lap of steps. Behind the tail there is nothing to walk over but the claim of a producer that died before
 * it moved the tail on; each lap ends below the tail of its time: only damaged words lead elsewhere. */
static bool is_astray(const shmq_queue *q, uint64_t p, uint64_t steps) {
    return p > shmq_load_seq(&q->ring->tail) + 1 || steps >> q->shift > LONGEST_WALK;
}

/* One walk. SHMQ_OK; SHMQ_EMPTY with d->position = where it ended and d->word = the CLAIMED word there (0: the end);
 * SHMQ_INTERRUPTED: a release forces another walk; SHMQ_CORRUPT. */
static shmq_status walk(shmq_queue *q, shmq_delivery *d) {
    shmq_ring_shm *ring = q->ring;
    uint64_t epoch = shmq_load_seq(&ring->epoch);
    uint64_t head = shmq_load_seq(&ring->head);
    uint64_t start = shmq_head_position(q, head), p = start;
    uint64_t stop_at = 0;
    bool compared = false;
    d->head_seen = head;
    d->in_turn = true;
    for (uint64_t steps = 0;; steps++) {
        shmq_slot_shm *slot = shmq_slot_at(q, p);
        /* SYNC ring.publish: all of the slot after its AVAILABLE. Seq, since this is the last look of who is about to
         * sleep: an acquire may be done before the idle bit is seen by others, and then both miss each other. */
        uint64_t word = shmq_load_seq(&slot->word);
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_turn(q, p));
        if (SHMQ_UNLIKELY(ahead < -1 || ((steps & q->mask) == q->mask && is_astray(q, p, steps)))) {
            return shmq_damage(q->m, "a position that the ring has not reached", p);
        }
        compared = compared && (steps & q->mask) != q->mask; /* the tail may have gone on for laps meanwhile */
        if (ahead < 0 || (ahead == 0 && state == SHMQ_FREE)) {
            break; /* a lower lap, whatever its state: nobody has claimed p yet */
        }
        if (ahead > 0 && !compared) {
            /* Only a slot whose lap is ahead can lie below tail - N: the tail, which producers write all the time, is
             * read here and not in every get. */
            uint64_t tail = shmq_load_seq(&ring->tail);
            compared = true;
            if (tail > shmq_slot_count(q) && p < tail - shmq_slot_count(q)) {
                shmq_status old = offer_old(q, tail - shmq_slot_count(q), epoch, d);
                if (old != SHMQ_EMPTY) {
                    return old;
                }
                p = tail - shmq_slot_count(q);
            }
            continue;
        }
        if (!is_here(slot, word, ahead, p)) {
            p++; /* settled, or the place of an older entry: a hole at this turn */
            continue;
        }
        if (state == SHMQ_CLAIMED) {
            if (!is_still_claimed(q, slot, word)) {
                continue;
            }
            stop_at = word;
            break;
        }
        if (state == SHMQ_AVAILABLE || state == SHMQ_OFFERED) {
            enum offer_result result = offer(q, slot, word, p, epoch, d);
            if (result == OFFER_CHANGED) {
                continue;
            }
            return result == OFFER_OK ? SHMQ_OK : SHMQ_INTERRUPTED;
        }
        shmq_status status = pass_by(q, slot, word);
        if (status == SHMQ_CORRUPT) {
            return status;
        }
        p += status == SHMQ_OK;
    }
    shmq_store_relaxed(&q->near, p);
    if (p != start) {
        advance(q, head, p);
    }
    d->position = p;
    d->word = stop_at;
    return SHMQ_EMPTY;
}

shmq_status shmq_offer(shmq_queue *q, uint32_t owner, shmq_delivery *d) {
    shmq_status status;
    d->owner = owner;
    for (;;) {
        while ((status = walk(q, d)) == SHMQ_INTERRUPTED) {
        }
        if (status != SHMQ_OK) {
            return status;
        }
        shmq_slot_shm *slot = shmq_slot_at(q, d->position);
        shmq_delivery_read(q, slot, d);
        if (SHMQ_LIKELY(shmq_delivery_resolve(q, slot, d))) {
            return SHMQ_OK;
        }
        /* Damaged; or taken over and used again while we read, and what we read was another's: then the next one. */
        uint64_t word = shmq_load_seq(&slot->word);
        if (shmq_word_state(word) == SHMQ_OFFERED && shmq_word_owner(word) == owner && shmq_word_tag(word) == d->tag &&
            (status = shmq_mark_broken(q, slot, word, shmq_word_lap(word))) != SHMQ_OK) {
            return status;
        }
    }
}

/* The word that says "OFFERED to us, this time"; 0: somebody took it over. */
static uint64_t own_offer(shmq_queue *q, const shmq_slot_shm *slot, const shmq_delivery *d) {
    (void)q;
    uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
    bool ours = shmq_word_state(word) == SHMQ_OFFERED && shmq_word_owner(word) == d->owner &&
                shmq_word_tag(word) == d->tag &&
                shmq_load_acquire(&slot->position) == d->position; /* SYNC ring.publish */
    return ours ? word : 0;
}

/* Does an entry for somebody else stand behind p? Holes and what others hold are passed, as by a walk. A claim ends the
 * look: its publisher wakes somebody. Far behind, a wake too many is cheaper than the look. */
static bool more_behind(shmq_queue *q, uint64_t p) {
    for (uint32_t i = 0; i < SPINS; i++) {
        shmq_slot_shm *slot = shmq_slot_at(q, ++p);
        uint64_t word = shmq_load_seq(&slot->word);
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_turn(q, p));
        if (ahead < 0 || (ahead == 0 && (state == SHMQ_FREE || state == SHMQ_CLAIMED))) {
            return false;
        }
        if (state == SHMQ_AVAILABLE && is_here(slot, word, ahead, p)) {
            return true;
        }
    }
    return true;
}

static void took(shmq_queue *q, const shmq_delivery *d) {
    if (d->in_turn) {
        advance(q, d->head_seen, d->position + 1);
    }
    shmq_store_relaxed(&q->near, d->position);
    /* The baton: whoever leaves with an entry looks whether there is one more for a sleeper. */
    if (shmq_anybody_idle(q) && (!d->in_turn || more_behind(q, d->position))) {
        shmq_notify(q);
    }
}

shmq_status shmq_offer_finish(shmq_queue *q, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word;
    while ((word = own_offer(q, slot, d)) != 0) { /* a loop: the tail may carry it under us */
        if (shmq_slot_free(q, slot, word)) { /* T10: taken and settled at once */
            shmq_add_relaxed(&q->counters->got, 1);
            if (shmq_word_state(word) == SHMQ_OFFERED && (word & SHMQ_FLAG_REDELIVERED)) {
                shmq_add_relaxed(&q->counters->redelivered, 1);
            }
            took(q, d);
            return SHMQ_OK;
        }
    }
    return SHMQ_SETTLED;
}

shmq_status shmq_offer_acquire(shmq_queue *q, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word;
    shmq_hold(q->m, 1); /* before it is ours, so that no watcher can miss that we hold something */
    while ((word = own_offer(q, slot, d)) != 0) {
        uint64_t acquired = shmq_word_to(word, SHMQ_ACQUIRED, d->owner, d->tag);
        if (!shmq_cas_seq(&slot->word, word, acquired)) { /* T10 */
            continue;
        }
        d->word = acquired;
        shmq_delivery_read(q, slot, d); /* delivery and deaths cannot change any more */
        if (word & SHMQ_FLAG_REDELIVERED) {
            shmq_add_relaxed(&q->counters->redelivered, 1);
        }
        took(q, d);
        uint32_t max_deaths = shmq_load_relaxed(&q->page->max_deaths);
        uint32_t max_deliveries = shmq_load_relaxed(&q->page->max_deliveries);
        bool poisoned =
            (max_deaths != 0 && d->deaths >= max_deaths) || (max_deliveries != 0 && d->delivery >= max_deliveries);
        return poisoned ? SHMQ_POISONED : SHMQ_OK;
    }
    shmq_hold(q->m, -1);
    return SHMQ_SETTLED;
}

void shmq_offer_cancel(shmq_queue *q, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word;
    while ((word = own_offer(q, slot, d)) != 0) {
        if (shmq_cas_seq(&slot->word, word,
                         shmq_word_to(word, SHMQ_AVAILABLE, 0, d->tag))) { /* T11: nobody passed it */
            shmq_notify(q);
            return;
        }
    }
}
