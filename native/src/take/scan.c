/* The scan: a taker finds the first available entry, and offers it to itself. */
#include "take/scan.h"
#include "base/clock.h"
#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "groups/group.h"
#include "limits/slot_free.h"
#include "queue/cold.h"
#include "ring/ring_delivery.h"
#include "ring/version.h"
#include "settle/expire.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "time/times.h"

#define SPINS 64 /* about a microsecond: longer than an undisturbed taker needs between its offer and its take */

/* A scan cannot pass an entry that is OFFERED to another taker. It waits for a short time, then it may take the offer
 * over without harm: the other taker has handed nothing out. */
static bool still_offered(shmq_slot_shm *slot, uint64_t word) {
    for (int i = 0; i < SPINS; i++) {
        if (shmq_load_acquire(&slot->word) != word) { /* SYNC ring.offer */
            return false;
        }
        shmq_pause();
    }
    return true;
}

/* A claim in the scan's way. False: it has changed, or was cleared. If it is still there after a short wait, a system
 * call asks whether the claimant lives. */
static bool meet_claim(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    if (!still_offered(slot, word)) {
        return false;
    }
    if (shmq_claim_clear(r, slot, word, false)) {
        shmq_notify(r->queue); /* a taker may sleep behind the new hole */
        return false;
    }
    return true;
}

/* Passes an entry for which this taker does not wait. Another taker has it, or it is on its way here (its mover will
 * turn the head back). Or the place is a hole, or out of service. SHMQ_EMPTY: it changed, look again. SHMQ_CORRUPT. */
static shmq_status pass_by(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t p, shmq_delivery *d) {
    uint32_t state = shmq_word_state(word);
    if (state == SHMQ_QUARANTINED || state == SHMQ_DEQUEUED) {
        return shmq_claim_clear(r, slot, word, false) ? SHMQ_EMPTY : SHMQ_OK;
    }
    if (state == SHMQ_HELD) {
        d->seen.clock_ns = d->seen.clock_ns != 0 ? d->seen.clock_ns : shmq_now_ns(); /* once for all that are held */
        if (shmq_held_until(r, slot, d->seen.clock_ns) > d->seen.clock_ns && shmq_load_seq(&slot->word) == word) {
            return SHMQ_OK;
        }
        if (d->as.by == NULL) {
            shmq_head_advance(r, d->seen.head, p); /* the next scan begins here, not where this one did */
        }
        (void)shmq_hold_end_now(r, slot, word);
        return SHMQ_EMPTY;
    }
    bool nobodys = state == SHMQ_PENDING && (shmq_word_owner(word) & SHMQ_OWNER_PROCESS) == 0;
    if (state > SHMQ_MOVING || nobodys) {
        return shmq_mark_broken(r, slot, word, shmq_word_lap(word)) == SHMQ_OK ? SHMQ_EMPTY : SHMQ_CORRUPT;
    }
    return SHMQ_OK;
}

/* Steps 4 and 5: offer, then look at the epoch again. */
static inline enum shmq_offered offer_now(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t p, uint64_t epoch,
                                          shmq_delivery *d) {
    uint32_t tag = (shmq_word_tag(word) + 1) & SHMQ_TAG_MASK;
    uint64_t offered = shmq_word_to(word, SHMQ_OFFERED, d->owner, tag);
    if (!shmq_cas_seq(&slot->word, word, offered)) { /* T9 */
        return OFFER_CHANGED;
    }
    d->position = p;
    d->word = offered;
    d->tag = tag;
    /* The flow word before the epoch: see scan_flowed.c. */
    uint64_t flow = shmq_flow_at(r);
    uint64_t now = shmq_load_seq(&r->shm->epoch); /* get happens here, unless the offer is cancelled below */
    if (SHMQ_UNLIKELY(flow != d->seen.flow) ||
        (SHMQ_UNLIKELY(now != epoch) && shmq_lowest_released(r, epoch, now) < p)) {
        shmq_offer_cancel(r->queue, d);
        return OFFER_RELEASED;
    }
    return OFFER_OK;
}

/* Offers an entry that may be another taker's for a moment, past its time, for consumers of higher rank, or of a
 * group. */
static enum shmq_offered offer(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t p, uint64_t epoch,
                               shmq_delivery *d) {
    shmq_queue *q = r->queue;
    if (shmq_word_state(word) == SHMQ_OFFERED && !still_offered(slot, word)) {
        return OFFER_CHANGED;
    }
    if (SHMQ_UNLIKELY(shmq_may_expire(q, slot)) && shmq_drop_expired(r, slot, word)) {
        return OFFER_CHANGED;
    }
    if (SHMQ_UNLIKELY(d->as.ranked) && shmq_defer_to_rank(q, d->owner)) {
        return OFFER_LEFT;
    }
    if (d->as.peek) {
        d->position = p;
        d->word = word;
        return OFFER_OK;
    }
    uint32_t group = q->book != NULL ? shmq_group_of(r, slot, shmq_props(slot)) : 0;
    if (group != 0) {
        enum shmq_group_own own = shmq_group_own(shmq_back_of(r), group, shmq_slot_place(r, slot, p), d);
        if (own != SHMQ_GROUP_OURS) {
            return own == SHMQ_GROUP_BUSY ? OFFER_CHANGED : OFFER_RELEASED;
        }
    }
    enum shmq_offered result = offer_now(r, slot, word, p, epoch, d);
    if (result == OFFER_CHANGED) {
        shmq_group_leave(q, d);
    } else if (result == OFFER_OK && group != 0 && !shmq_group_confirm(q, d)) {
        shmq_offer_cancel(q, d);
        return OFFER_RELEASED;
    }
    return result;
}

/* Says whether the entry is for this taker. If not, its group remembers that it was refused. The slot's fields are read
 * before the CAS from `word`, which fails if they were of another entry. An entry with a damaged message is for every
 * taker: the one that takes it reports the damage. */
bool shmq_scan_considers(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, uint64_t p, const shmq_delivery *d) {
    if (SHMQ_LIKELY(d->as.by == NULL)) {
        return true;
    }
    shmq_delivery seen = {.position = p, .depth = r->depth, .word = word, .tag = shmq_word_tag(word)};
    shmq_delivery_read(r, slot, &seen);
    if (shmq_delivery_resolve(r, slot, &seen) && !shmq_is_wanted(d->as.by, r, &seen)) {
        return false;
    }
    uint32_t group = SHMQ_UNLIKELY(r->queue->book != NULL) ? shmq_group_of(r, slot, seen.props) : 0;
    return SHMQ_LIKELY(group == 0) || shmq_group_open(shmq_back_of(r), group, d->owner, shmq_slot_place(r, slot, p));
}

#define LONGEST_SCAN 64 /* laps */

/* Has the scan lost its way? Asked once in a lap of steps. Behind the tail a scan finds nothing but the claim of a
 * producer that died before it moved the tail on. Each lap ends below the tail of its time. Only damaged words lead
 * elsewhere. */
static bool is_astray(const shmq_ring *r, uint64_t p, uint64_t steps) {
    return p > shmq_load_seq(&r->shm->tail) + 1 || steps >> r->shift > LONGEST_SCAN;
}

/* The head has led a taker to a wrong position. The head has only 44 bits, and the process adds the upper ones of the
 * position that it read last. That may be so old that the 44 bits have begun anew since; or the head is damaged.
 * Afterwards the head is right. False: it was damaged. */
static bool find_head(shmq_ring *r) {
    uint64_t head = shmq_load_seq(&r->shm->head), tail = shmq_load_seq(&r->shm->tail);
    bool beyond = (int64_t)(shmq_position_near(tail, head) - tail) > 1;
    shmq_store_relaxed(&r->near, tail);
    if (beyond) {
        shmq_rewind_all(r);
    }
    shmq_head_follow(r);
    return !beyond;
}

static shmq_status led_astray(shmq_ring *r, uint64_t p, const shmq_delivery *d) {
    bool away = d->as.by == NULL && shmq_position_near(shmq_load_seq(&r->shm->tail), p) != p;
    if (d->as.by == NULL && find_head(r) && away) {
        return SHMQ_INTERRUPTED;
    }
    return shmq_damage(r->queue->m, "the position of an entry is beyond the tail", p);
}

/* Says whether an entry was offered at a wrong position: the tail and the slot's lap tell its own one. */
static bool is_elsewhere(const shmq_ring *r, const shmq_slot_shm *slot, const shmq_delivery *d, uint64_t *position) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), near = tail - ((tail - d->position) & r->mask);
    *position = near + ((uint64_t)(int64_t)shmq_lap_ahead(d->word, shmq_lap_of(r, near)) << r->shift);
    return d->as.by == NULL && d->seen.in_turn && *position != d->position &&
           shmq_load_acquire(&((shmq_slot_shm *)(uintptr_t)slot)->position) == *position; /* SYNC ring.publish */
}

/* A taker with a cursor begins where its last scan ended, or at the lowest position released since then. */
static uint64_t cursor_start(shmq_ring *r, uint64_t epoch, shmq_delivery *d) {
    d->seen.cursor = shmq_cursor_of(d->as.by, r);
    uint64_t released =
        epoch != d->seen.cursor.epoch ? shmq_lowest_released(r, d->seen.cursor.epoch, epoch) : UINT64_MAX;
    return released < d->seen.cursor.position ? released : d->seen.cursor.position;
}

/* Ends a scan that has found no entry for this taker before p. */
static shmq_status end_of_scan(shmq_ring *r, uint64_t start, uint64_t p, uint64_t stop_at, shmq_delivery *d) {
    shmq_store_relaxed(&r->near, p);
    if (d->as.by != NULL) {
        shmq_cursor_set(d->as.by, r, d->seen.cursor, p, d->seen.epoch);
    } else if (p != start) {
        shmq_head_advance(r, d->seen.head, p);
    }
    d->position = p;
    d->word = stop_at;
    d->seen.why = stop_at != 0 ? SHMQ_BEHIND_CLAIM : SHMQ_AT_END;
    return SHMQ_EMPTY;
}

/* The entry at p is left to another taker as long as that one wants it, so this scan has not looked at everything. */
static shmq_status left_to_another(shmq_ring *r, uint64_t start, uint64_t p, shmq_delivery *d) {
    d->seen.version = 0;
    (void)end_of_scan(r, start, p, 0, d);
    d->seen.why = SHMQ_LEFT_TO_OTHER;
    return SHMQ_EMPTY;
}

/* The slot at *p has a lap that is ahead; only then can *p lie below tail - N. Producers write the tail all the time,
 * so it is read here and not in every get. True: the scan is over, and *status is its result. */
static bool meet_old(shmq_ring *r, uint64_t start, uint64_t *p, uint64_t epoch, shmq_delivery *d, shmq_status *status) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    if (tail <= count || *p >= tail - count) {
        return false;
    }
    /* The head says nothing of the old region; a cursor does. */
    *status = shmq_offer_old(r, d->as.by != NULL ? *p : 0, tail - count, epoch, d);
    if (*status == SHMQ_TIMEOUT) {
        *status = left_to_another(r, start, *p, d);
        return true;
    }
    *p = tail - count;
    return *status != SHMQ_EMPTY;
}

/* Reads what the scan goes by, and returns where it begins. */
static inline uint64_t start_of_scan(shmq_ring *r, shmq_delivery *d) {
    uint64_t epoch = shmq_load_seq(&r->shm->epoch);
    uint64_t head = shmq_load_seq(&r->shm->head); /* SYNC ring.head */
    d->seen.head = head;
    d->seen.epoch = epoch;
    d->depth = r->depth;
    d->seen.in_turn = true;
    d->seen.clock_ns = 0;
    return d->as.by != NULL ? cursor_start(r, epoch, d) : shmq_head_position(r, head);
}

/* The scan is inlined in both callers: so a get of a plain queue is one function. */
static inline shmq_status scan(shmq_ring *r, shmq_delivery *d, uint64_t limit) __attribute__((always_inline));

/* One scan; a scan by a cursor ends at `limit`. SHMQ_OK. SHMQ_EMPTY: d->position is where it ended, d->word the CLAIMED
 * word there (0: the end). SHMQ_INTERRUPTED: a release forces another scan. SHMQ_CORRUPT. */
static shmq_status scan(shmq_ring *r, shmq_delivery *d, uint64_t limit) {
    uint64_t start = start_of_scan(r, d), p = start, epoch = d->seen.epoch, stop_at = 0;
    bool plain = d->as.by == NULL && !d->as.ranked && !d->as.peek, compared = false; /* with groups all have cursors */
    shmq_status status;
    if (d->as.by != NULL && meet_old(r, start, &p, epoch, d, &status)) {
        return status; /* a cursor may be old, and laps of 32 bits compare only near ones */
    }
    for (uint64_t steps = 0;; steps++) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        /* SYNC ring.publish: all of the slot after its AVAILABLE. Seq, since it is a taker's last look before it
         * sleeps: an acquire may be done before others see the idle bit, and taker and notifier miss each other. */
        uint64_t word = shmq_load_seq(&slot->word);
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
        if (SHMQ_LIKELY(plain && ahead == 0 && state == SHMQ_AVAILABLE && !shmq_word_carried(word)) &&
            SHMQ_LIKELY(!shmq_may_expire(r->queue, slot))) {
            enum shmq_offered result = offer_now(r, slot, word, p, epoch, d);
            if (SHMQ_UNLIKELY(result == OFFER_CHANGED)) {
                compared = false;
                continue;
            }
            return result == OFFER_OK ? SHMQ_OK : SHMQ_INTERRUPTED;
        }
        if (SHMQ_UNLIKELY(ahead < -1 || ((steps & r->mask) == r->mask && is_astray(r, p, steps)))) {
            return led_astray(r, p, d);
        }
        compared = compared && (steps & r->mask) != r->mask; /* the tail may have gone on for laps meanwhile */
        if (ahead < 0 || (ahead == 0 && state == SHMQ_FREE) || SHMQ_UNLIKELY(p >= limit && d->as.by != NULL)) {
            break; /* a lower lap, in any state: p is not claimed yet */
        }
        if (ahead > 0 && !compared) {
            compared = true;
            if (meet_old(r, start, &p, epoch, d, &status)) {
                return status;
            }
            continue;
        }
        if (!shmq_is_here(slot, word, ahead, p)) {
            p++; /* settled, or the place of an older entry: a hole at this lap */
            continue;
        }
        if (state == SHMQ_CLAIMED) {
            if (!meet_claim(r, slot, word)) {
                continue;
            }
            stop_at = word;
            break;
        }
        if (state == SHMQ_AVAILABLE || state == SHMQ_OFFERED) {
            if (!shmq_scan_considers(r, slot, word, p, d)) {
                p++;
                continue;
            }
            enum shmq_offered result = offer(r, slot, word, p, epoch, d);
            if (result == OFFER_CHANGED) {
                continue;
            }
            if (SHMQ_UNLIKELY(result == OFFER_LEFT)) {
                return left_to_another(r, start, p, d);
            }
            return result == OFFER_OK ? SHMQ_OK : SHMQ_INTERRUPTED;
        }
        status = pass_by(r, slot, word, p, d);
        if (status == SHMQ_CORRUPT) {
            return status;
        }
        p += status == SHMQ_OK;
    }
    return end_of_scan(r, start, p, stop_at, d);
}

shmq_status shmq_scan(shmq_ring *r, shmq_delivery *d, uint64_t limit) { return scan(r, d, limit); }

enum shmq_offered shmq_scan_offer(shmq_ring *r, uint64_t word, uint64_t p, uint64_t epoch, shmq_delivery *d) {
    return offer(r, shmq_slot_at(r, p), word, p, epoch, d);
}

/* Scans one level. */
SHMQ_INLINE shmq_status scan_level(shmq_ring *back, shmq_delivery *d, uint64_t *front_epoch) {
    d->seen.flow = shmq_flow_at(back);
    if (SHMQ_UNLIKELY(d->seen.flow != 0)) {
        return shmq_scan_flowed(back, d, front_epoch);
    }
    shmq_status status = scan(back, d, UINT64_MAX);
    if (SHMQ_UNLIKELY(status == SHMQ_EMPTY) && shmq_flow_at(back) != 0) {
        return SHMQ_INTERRUPTED; /* the scan passed an entry on its way to disk, which may be back */
    }
    return status;
}

/* The places at which the scans of more important levels ended. */
typedef struct level_end {
    uint64_t position, epoch, flow, front_epoch;
} level_end;

/* Says whether this claim is the last one of its ring. Behind a claim there may be entries whose puts have returned.
 * They wait for the claim, and so do all entries that are less important. */
static bool is_last_claim(const shmq_ring *r, uint64_t position) {
    return shmq_load_seq(&r->shm->tail) <= position + 1;
}

/* Says whether no producer has published at this end of a scan since. A claim is not an entry yet. */
static bool is_still_the_end(const shmq_ring *r, const level_end *end) {
    uint64_t word = shmq_load_seq(&shmq_slot_at(r, end->position)->word);
    int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, end->position));
    uint32_t state = shmq_word_state(word);
    if (shmq_flow_at(r) != end->flow ||
        (SHMQ_UNLIKELY(end->flow != 0) && shmq_load_seq(&shmq_front_of(r)->shm->epoch) != end->front_epoch)) {
        return false;
    }
    return shmq_load_seq(&r->shm->epoch) == end->epoch &&
           (ahead < 0 ||
            (ahead == 0 && (state == SHMQ_FREE || (state == SHMQ_CLAIMED && is_last_claim(r, end->position)))));
}

/* Notes in `d` that the scan has ended at this claim, or behind it. */
static void meet(shmq_delivery *d, uint64_t word, uint64_t position, uint32_t depth) {
    d->word = word;
    d->position = position;
    d->depth = depth;
    d->seen.why = d->seen.why == SHMQ_AT_END ? SHMQ_BEHIND_CLAIM : d->seen.why;
}

/* One scan over all levels, the most important first. An entry of a lower level counts only if after its offer the
 * levels above still had nothing. Otherwise a get that begins after a put above has returned could get this entry. */
static shmq_status scan_levels(shmq_queue *q, shmq_delivery *d) {
    level_end ends[SHMQ_LEVELS_MAX];
    uint64_t stop_at = 0, stop_position = 0;
    uint32_t stop_depth = 0;
    if (SHMQ_UNLIKELY(shmq_has_flowed(q)) && d->seen.version == 0) {
        d->seen.version = shmq_version(q);
    }
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring *level = shmq_level(q, depth);
        uint64_t front_epoch = 0;
        shmq_status status = scan_level(level, d, &front_epoch);
        for (uint32_t above = 0; status == SHMQ_OK && !d->as.peek && above < depth; above++) {
            if (!is_still_the_end(shmq_level(q, above), &ends[above])) {
                shmq_offer_cancel(level->queue, d);
                status = SHMQ_INTERRUPTED;
            }
        }
        if (status != SHMQ_EMPTY || (d->word != 0 && !is_last_claim(level, d->position))) {
            return status;
        }
        if (SHMQ_UNLIKELY(d->seen.why >= SHMQ_LEFT_TO_OTHER)) {
            break; /* rows of this level, or what was left, come before all that is less important */
        }
        ends[depth] = (level_end){
            .position = d->position, .epoch = d->seen.epoch, .flow = d->seen.flow, .front_epoch = front_epoch};
        if (d->word != 0 && stop_at == 0) {
            stop_at = d->word;
            stop_position = d->position;
            stop_depth = depth;
        }
    }
    if (stop_at != 0) {
        meet(d, stop_at, stop_position, stop_depth); /* its entry is in the version already, and comes first */
    }
    return SHMQ_EMPTY;
}

/* Finds the first entry for this owner or subscription. The caller has set d->as.peek. */
static shmq_status find(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d) {
    shmq_status status;
    shmq_subscription *given = by;
    by = shmq_taker(q, given);
    d->owner = owner;
    d->as.by = by;
    d->group = 0;
    d->fate = SHMQ_KEPT;
    d->seen.version = by != NULL ? shmq_version(q) : 0;
    d->counted = false;
    d->held_until_ns = 0;
    d->receipt = 0;
    uint32_t terms = shmq_load_relaxed(&q->page->terms);
    d->as.ranked = (terms & SHMQ_TERM_RANKED) != 0;
    bool soon = false;
    if (SHMQ_UNLIKELY(terms != 0) && (status = shmq_ranks_admit(q, owner, &soon)) != SHMQ_OK) {
        d->position = d->word = d->seen.version = 0;
        d->depth = 0;
        d->seen.why = soon ? SHMQ_NOT_SERVED : SHMQ_AT_END;
        return status;
    }
    for (;;) {
        do {
            uint64_t front_epoch;
            status = SHMQ_LIKELY(q->levels == 1) ? scan_level(&q->first, d, &front_epoch) : scan_levels(q, d);
        } while (status == SHMQ_INTERRUPTED);
        if (status != SHMQ_OK) {
            return status;
        }
        if (SHMQ_UNLIKELY(by == NULL && given != NULL) && shmq_choose(q, given, d)) {
            by = given;
            continue;
        }
        shmq_ring *level = shmq_level(q, d->depth);
        shmq_slot_shm *slot = shmq_slot_at(level, d->position);
        shmq_delivery_read(level, slot, d);
        if (SHMQ_LIKELY(shmq_delivery_resolve(level, slot, d)) || d->as.peek) {
            return SHMQ_OK; /* after a peek it may be torn or damaged: the taker will see that */
        }
        uint64_t elsewhere;
        if (is_elsewhere(level, slot, d, &elsewhere)) {
            d->position = elsewhere;
            shmq_offer_cancel(q, d);
            if (find_head(level)) {
                continue;
            }
            return shmq_damage(q->m, "the head of a ring is beyond the tail and the entry at position", elsewhere);
        }
        shmq_group_leave(q, d);
        /* The entry is damaged; or its slot was taken over and used again meanwhile, and what was read is another
         * entry's. Then on to the next one. */
        uint64_t word = shmq_load_seq(&slot->word);
        if (shmq_word_state(word) == SHMQ_OFFERED && shmq_word_owner(word) == owner && shmq_word_tag(word) == d->tag &&
            (status = shmq_mark_broken(shmq_level(q, d->depth), slot, word, shmq_word_lap(word))) != SHMQ_OK) {
            return status;
        }
    }
}

shmq_status shmq_offer_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d) {
    d->as.peek = false;
    return find(q, owner, by, d);
}

shmq_status shmq_peek_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d) {
    d->as.peek = true;
    return find(q, owner, by, d);
}

shmq_status shmq_offer(shmq_queue *q, uint32_t owner, shmq_delivery *d) { return shmq_offer_to(q, owner, NULL, d); }
