/* Browsing: the slot word serves as a sequence lock. The browser takes nothing and writes nothing. */
#include "look/browse.h"
#include "consumers/sleepers.h"
#include "groups/row_close.h"
#include "limits/slot_free.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/ring_delivery.h"
#include "ring/ring_memory.h"
#include "ring/ring_old.h"
#include "wake/wait.h"

static bool read_entry(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t p, shmq_delivery *d) {
    d->position = p;
    d->depth = r->depth;
    d->word = word;
    d->tag = shmq_word_tag(word);
    d->owner = 0;
    shmq_delivery_read(r, slot, d);
    return shmq_load_acquire(&slot->position) == p && shmq_delivery_resolve(r, slot, d) && /* SYNC ring.publish */
           shmq_browse_valid(r, d);
}

/* On its way to the rows, where browsers find it. */
static bool is_flushed(uint64_t word) { return shmq_word_state(word) == SHMQ_MOVING && (word & SHMQ_FLAG_WAITS) == 0; }

static bool next_old(shmq_ring *r, uint64_t from, uint64_t limit, uint64_t *position) {
    shmq_old_small small;
    shmq_old_list *list = shmq_old_begin(r, false, &small);
    bool any = shmq_old_next(r, list, from, limit, position);
    shmq_old_end(list);
    return any;
}

shmq_status shmq_browse(shmq_ring *r, uint64_t *position, shmq_delivery *d) {
    uint64_t moving;
    return shmq_browse_past(r, position, d, &moving);
}

shmq_status shmq_browse_past(shmq_ring *r, uint64_t *position, shmq_delivery *d, uint64_t *moving) {
    uint64_t p = *position, count = shmq_slot_count(r);
    *moving = 0;
    if (SHMQ_UNLIKELY(shmq_is_front(r)) && shmq_slots_laid(r) == 0) {
        return SHMQ_EMPTY; /* it has no memory yet, and a read would give it some */
    }
    for (;;) {
        uint64_t tail = shmq_load_seq(&r->shm->tail);
        shmq_slot_shm *slot;
        if (tail > count && p < tail - count) {
            uint64_t old;
            if (!next_old(r, p, tail - count, &old)) {
                p = tail - count;
                continue;
            }
            p = old;
            slot = shmq_slot_at(r, p);
            uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
            if (read_entry(r, slot, word, p, d)) {
                *position = p;
                return SHMQ_OK;
            }
            if (shmq_load_seq(&slot->word) == word) { /* else it may have gone while it was read */
                *moving = is_flushed(word) ? p + 1 : *moving;
                p++;
            }
            continue;
        }
        /* Only a damaged word leads here, or a start in the future. Position UINT64_MAX ends the look: 0 would follow
         * it. */
        if (SHMQ_UNLIKELY(p > tail || p == UINT64_MAX)) {
            *position = p;
            d->word = 0;
            return SHMQ_EMPTY;
        }
        slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish; seq: the last look before a sleep */
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
        if (ahead < 0 || (ahead == 0 && (state == SHMQ_FREE || state == SHMQ_CLAIMED))) {
            if (ahead == 0 && state == SHMQ_CLAIMED && shmq_claim_clear(r, slot, word, false)) {
                continue; /* its claimant is dead */
            }
            *position = p;
            d->word =
                ahead == 0 && state == SHMQ_CLAIMED ? word : 0; /* never passed: else two browsers see two orders */
            return SHMQ_EMPTY;
        }
        bool carried = shmq_word_carried(word);
        bool here = ahead == 0 ? !carried : carried && shmq_load_acquire(&slot->position) == p; /* SYNC ring.publish */
        if (here && shmq_state_is_seen(state)) {
            if (read_entry(r, slot, word, p, d)) {
                *position = p;
                return SHMQ_OK;
            }
            if (shmq_load_seq(&slot->word) == word) {
                p++; /* the word is the same, so the message is damaged; a taker will mark the slot */
            }
            continue;
        }
        *moving = here && is_flushed(word) ? p + 1 : *moving;
        p++;
    }
}

static bool is_held(const shmq_ring *r, uint64_t p, bool or_gone) {
    const shmq_slot_shm *slot = shmq_slot_at(r, p);
    uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
    int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
    return (or_gone && ahead > 0 && !shmq_word_carried(word)) ||
           (shmq_state_is_in_hand(shmq_word_state(word)) && shmq_is_here(slot, word, ahead, p));
}

static uint64_t pass(const shmq_ring *r, uint64_t p, bool or_gone) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), laid = shmq_slots_laid(r);
    while (p < tail && p + count >= tail && (p & r->mask) < laid && is_held(r, p, or_gone)) {
        p++;
    }
    return p;
}

/* An entry that comes back raises the epoch. One that is held for a time makes the ring due. A flow, which carries
 * entries elsewhere, names itself before. */
uint64_t shmq_pass_held(shmq_ring *r, uint64_t position) {
    uint64_t epoch = shmq_load_seq(&r->shm->epoch);
    shmq_passed *known = &r->passed;
    const bool whole = shmq_flow_at(r) == 0; /* else entries that have gone from here may lie elsewhere */
    const bool remembers = whole && shmq_load_seq(&r->shm->due) == 0 && shmq_cas32_seq(&known->busy, 0, 1);
    bool valid = remembers && known->epoch == epoch;
    bool again = valid && position >= known->from && position < known->to;
    uint64_t p = pass(r, again ? known->to : position, whole);
    if (SHMQ_UNLIKELY(whole && shmq_flow_at(r) != 0)) {
        p = position;
    }
    if (remembers && (again || !valid || p - position > known->to - known->from)) { /* the longest is worth most */
        known->from = again ? known->from : position;
        known->to = p;
        known->epoch = epoch;
    }
    if (remembers) {
        shmq_store_seq(&known->busy, 0);
    }
    return p;
}

bool shmq_browse_valid(const shmq_ring *r, const shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    shmq_fence_acquire(); /* SYNC ring.browse: the copy before the second look */
    uint64_t word = shmq_load_relaxed(&slot->word);
    uint32_t laps = shmq_word_lap(word) - shmq_word_lap(d->word);
    return shmq_state_is_seen(shmq_word_state(word)) && (laps == 0 || shmq_word_carried(word)) &&
           shmq_load_relaxed(&slot->position) == d->position && shmq_read_once(&slot->message_id) == d->message_id;
}

/* Is there an entry at these positions, one a level? SHMQ_EMPTY: no. *claimed and `claim`: the level, position and word
 * of a claim at one of them. */
static shmq_status anything_at(shmq_queue *q, const uint64_t *positions, shmq_ring **claimed, shmq_delivery *claim) {
    *claimed = NULL;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring *level = shmq_level(q, depth);
        shmq_delivery d;
        uint64_t p = positions[depth];
        shmq_status status = shmq_browse_place(level, &p, &d);
        if (status != SHMQ_EMPTY) {
            return status;
        }
        if (d.word != 0 && *claimed == NULL) {
            *claimed = level;
            claim->position = p;
            claim->word = d.word;
        }
    }
    return SHMQ_EMPTY;
}

/* Waits until an entry may be at one of these positions, one a level. Notifiers wake sleeping browsers for every
 * entry. */
shmq_status shmq_browse_wait(shmq_queue *q, const uint64_t *positions, uint64_t until_ns) {
    uint32_t row;
    SHMQ_TRY(shmq_queue_enter(q));
    SHMQ_TRY(shmq_row_borrow(q, &row));
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    shmq_status status = consumer != NULL
                             ? SHMQ_OK
                             : shmq_damage(q->m, "the offset of a chunk of consumer rows makes no sense, at row", row);
    uint64_t slice_end = shmq_slice_end(q->m);
    while (status == SHMQ_OK) {
        shmq_ring *level;
        shmq_delivery d = {0};
        uint32_t seen = shmq_announce(q, row, true);
        /* Read before the look: so the look finds all that was put before the shutdown. */
        bool shut = shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN;
        status = anything_at(q, positions, &level, &d);
        bool moves =
            status ==
            SHMQ_INTERRUPTED; /* a mover has moved entries for longer than the patience, and may go on for long */
        if (status != SHMQ_EMPTY && !moves) {
            break;
        }
        uint64_t now = shmq_now_ns();
        if (shut && level == NULL && !moves) { /* behind a claim there may be entries put before the shutdown */
            status = SHMQ_SHUT_DOWN;
        } else if (now >= until_ns) {
            status = SHMQ_EMPTY;
        } else {
            status = shmq_queue_enter(q);
        }
        if (status != SHMQ_OK) {
            break;
        }
        if (level != NULL && shmq_patience_over(level, &level->browsing, d.position, d.word)) {
            shmq_notify(q);
        }
        uint64_t limit = level != NULL || moves ? SHMQ_SHORT_SLEEP_NS : q->m->patience_ns;
        status = shmq_sleep(q->m, &consumer->wake, seen, until_ns - now < limit ? until_ns : now + limit);
        (void)shmq_withdraw(q, row, true);
        if (status == SHMQ_INTERRUPTED || shmq_now_ns() >= slice_end) {
            status = shmq_slice_over(q->m);
            break;
        }
        status = SHMQ_OK; /* woken, or time for another look */
    }
    (void)shmq_withdraw(q, row, true);
    shmq_row_return(q, row);
    return status;
}
