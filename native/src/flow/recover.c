/* A slot that is MOVING leaves its ring by T20, or is an entry again by T21. The mover does so last, or the next one,
 * if it has died or failed. So do the words that follow from others. */
#include "consumers/sleepers.h"
#include "flow/waiting.h"
#include "limits/count.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"
#include "wake/due.h"

/* Like shmq_slot_free, but without a wake: the purger wakes once for all. The queue has one entry less in memory, and as
 * many as before. */
void shmq_moved_free(shmq_ring *r, uint64_t position) {
    shmq_queue *q = r->queue;
    shmq_slot_shm *slot = shmq_slot_at(r, position);
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
        if (shmq_word_state(word) != SHMQ_MOVING ||
            shmq_load_acquire(&slot->position) != position) { /* SYNC ring.publish */
            return;
        }
        uint64_t body = shmq_read_once(&slot->body);
        if (body != 0) {
            shmq_block_keep(q->m, shmq_body_offset(body), shmq_read_once(&slot->body_gen), shmq_body_bit(body));
            shmq_block_drop(q->m, shmq_body_offset(body), shmq_read_once(&slot->body_gen), shmq_body_bit(body));
        }
        uint64_t bytes = shmq_slot_bytes(slot, word);
        if (shmq_cas_seq(&slot->word, word, shmq_word_freed(word))) { /* T20 */
            shmq_changed(r, slot);
            shmq_room_give(q, shmq_load_relaxed(&q->page->limited) & SHMQ_LIMITED_RESIDENT, 0, bytes);
            return;
        }
    }
}

/* Makes the entry HELD again, and due: a look at due entries may have passed it meanwhile. */
void shmq_hold_again(shmq_ring *r, shmq_slot_shm *slot) {
    uint64_t word = shmq_load_seq(&slot->word);
    while (shmq_word_state(word) == SHMQ_MOVING && (word & SHMQ_FLAG_WAITS) != 0) {
        uint64_t held = shmq_word_to(word & ~SHMQ_FLAG_WAITS, SHMQ_HELD, 0, shmq_word_tag(word));
        if (shmq_cas_seq(&slot->word, word, held)) { /* T21 */
            shmq_make_due(r, 1);
        }
        word = shmq_load_seq(&slot->word);
    }
}

static void recover_slots(shmq_ring *r, bool rows) {
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint64_t word = shmq_load_seq(&slot->word);
        bool waits = shmq_word_state(word) == SHMQ_MOVING && (word & SHMQ_FLAG_WAITS) != 0;
        if (waits && rows) {
            shmq_moved_free(r, shmq_load_acquire(&slot->position)); /* SYNC ring.publish */
        } else if (waits) {
            shmq_hold_again(r, slot);
        }
    }
}

void shmq_waiting_recover(shmq_ring *back, shmq_ring *front) {
    shmq_ring_shm *ring = back->shm;
    if (shmq_load_relaxed(&ring->waiting_from) != 0) {
        bool rows = shmq_waiting_is_row(ring);
        if (rows) {
            shmq_store_seq(&ring->waiting_bytes, shmq_load_relaxed(&ring->waiting_to_bytes));
        }
        recover_slots(back, rows);
        recover_slots(front, rows);
        shmq_store_seq(&ring->waiting_from, 0);
    }
    if (shmq_load_relaxed(&ring->waiting_low) >= shmq_load_relaxed(&ring->waiting)) {
        (void)shmq_waiting_end(back);
    }
}

/* If an inhaler that died has filled the slot before the front ring's tail, its row has come in, but words are behind.
 * They are the tail after a death behind T22, `pulled` after a death behind `low`. The next mover sets them. */
static void recover_front(shmq_ring *back, shmq_ring *front) {
    shmq_ring_shm *ring = back->shm;
    uint64_t last = shmq_front_tail(front);
    if (last == 0) {
        return;
    }
    const shmq_slot_shm *slot = shmq_slot_at(front, last - 1);
    shmq_cold_shm *cold = shmq_cold_at(front, slot);
    if (cold == NULL) {
        return;
    }
    if (SHMQ_UNLIKELY(shmq_is_fetched(slot))) { /* all that came in before it did so in turns that have ended */
        shmq_erased_say(front, slot);
        shmq_rewind_all(front); /* takers may have passed its place, */
        shmq_make_due(front, 1); /* and a look at what is due this slot, at the tail */
        shmq_notify(front->queue);
    } else if (shmq_read_once(&cold->back) + 1 >= shmq_load_relaxed(&ring->low)) {
        const shmq_ordinal its = shmq_front_ordinal(front, slot);
        shmq_store_seq(&ring->low, shmq_read_once(&cold->back) + 1);
        shmq_pulled_say(back, &its);
    }
}

/* A purger that died while it handed entries over has put them into the front ring, at or above P. They have left the
 * back ring, and their slots must not be made available. Answers the flow word. */
static uint64_t derive_place(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), low = shmq_load_relaxed(&ring->low), place = shmq_flow_place(flow);
    if (shmq_flow_is_on(flow) && low > place && low - place <= SHMQ_TURN_ENTRIES) { /* else `low` is damaged */
        flow = shmq_flow_word(low, true);
        shmq_store_seq(&ring->flow, flow);
    }
    return flow;
}

/* Takes T20 or T21 for each slot that a dead or failed mover has left MOVING, and sets the words that follow. */
void shmq_flow_recover(shmq_ring *back, shmq_ring *front) {
    shmq_ring_shm *ring = back->shm;
    shmq_waiting_recover(back, front);
    recover_front(back, front);
    shmq_drop_end(back); /* no entry of the front ring lay beyond `low`, so this place is higher */
    uint64_t flow = derive_place(back), place = shmq_flow_place(flow), lowest = place;
    uint32_t back_again = 0;
    uint64_t from = place > SHMQ_TURN_ENTRIES ? place - SHMQ_TURN_ENTRIES : 0, laid = shmq_slots_laid(back);
    for (uint64_t p = from; p < place + SHMQ_TURN_ENTRIES; p++) {
        if ((p & back->mask) >= laid) {
            continue; /* the slot has no memory, and a look would lay it */
        }
        shmq_slot_shm *slot = shmq_slot_at(back, p);
        uint64_t word = shmq_load_seq(&slot->word);
        while (shmq_word_state(word) == SHMQ_MOVING &&
               shmq_load_acquire(&slot->position) == p) { /* SYNC ring.publish */
            if (p < place) {
                shmq_moved_free(back, p);
            } else if (shmq_cas_seq(&slot->word, word,
                                    shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word)))) { /* T21 */
                lowest = back_again++ == 0 ? p : lowest;
            }
            word = shmq_load_seq(&slot->word);
        }
    }
    if (back_again > 1) {
        shmq_rewind_all(back); /* a cell can name one old entry only (ring_old.h) */
    } else {
        shmq_rewind(back, lowest);
    }
    if (shmq_load_relaxed(&ring->flushing_at) == place) {
        shmq_store_seq(&ring->flushed, shmq_load_relaxed(&ring->flushing_count));
        shmq_store_seq(&ring->flushed_bytes, shmq_load_relaxed(&ring->flushing_bytes));
    }
    if (!shmq_flow_is_on(flow) || shmq_load_relaxed(&ring->low) >= place) {
        (void)shmq_rows_end(back);
    }
}

/* Says whether this slot has a row that came in by itself, of those that waited or of the others. */
static bool has_fetched(const shmq_ring *front, const shmq_slot_shm *slot, bool waited) {
    return shmq_is_fetched(slot) && shmq_cold_at(front, slot) != NULL &&
           ((shmq_props(slot) & SHMQ_PROP_WAITED) != 0) == waited;
}

/* Waiting rows come in together: each that may have done so with the last one. */
static shmq_status erase_waiting(shmq_mover *t, uint64_t tail) {
    uint64_t came = shmq_load_relaxed(&t->back->shm->came), most = SHMQ_WAITED_AT_ONCE;
    most = most < came ? most : came;
    uint64_t count = 0;
    while (count < most && count < tail && has_fetched(t->front, shmq_slot_at(t->front, tail - 1 - count), true)) {
        count++;
    }
    SHMQ_TRY(shmq_waiting_store(t));
    for (; count != 0; count--) {
        uint64_t key = shmq_front_ordinal(t->front, shmq_slot_at(t->front, tail - count)).count;
        SHMQ_TRY(t->waiting->erase(t->waiting->context, came - count, key));
    }
    return SHMQ_OK;
}

/* If its inhaler died, the row that was fetched last may still be unmarked on disk: it is marked now. */
shmq_status shmq_erase_last(shmq_mover *t) {
    uint64_t tail = shmq_front_tail(t->front), erased = shmq_load_relaxed(&t->front->shm->fetched);
    const shmq_slot_shm *slot = tail != 0 ? shmq_slot_at(t->front, tail - 1) : NULL;
    if (slot != NULL && has_fetched(t->front, slot, true)) {
        shmq_a32 *unswept = &t->q->page->unswept;
        uint32_t bit = SHMQ_UNMARKED << t->back->depth;
        if ((shmq_load_seq(unswept) & bit) != 0) {
            SHMQ_TRY(erase_waiting(t, tail));
            shmq_store_seq(unswept, shmq_load_relaxed(unswept) & ~bit);
        }
        return SHMQ_OK;
    }
    if (slot == NULL || erased == 0 || !has_fetched(t->front, slot, false)) {
        return SHMQ_OK;
    }
    uint64_t place = shmq_front_place(t->front, slot);
    bool passed = place < shmq_load_relaxed(&t->back->shm->low);
    return passed ? SHMQ_OK : t->backing->erase(t->backing->context, erased - 1, place);
}
