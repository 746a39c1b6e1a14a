/* Frees a slot, with its place under the limits; and clears what a dead or late producer has left in a slot. */
#include "limits/slot_free.h"
#include "blocks/block.h"
#include "consumers/sleepers.h"
#include "limits/count.h"
#include "limits/room_wake.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/stretch.h"

bool shmq_slot_free(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    shmq_queue *q = r->queue;
    uint32_t limited = shmq_load_relaxed(&q->page->limited), now;
    uint64_t bytes = limited & SHMQ_WEIGHED ? shmq_slot_bytes(slot, word) : 0;
    if (limited != 0) {
        shmq_moving(q, 1);
    }
    bool freed =
        shmq_cas_seq(&slot->word, word, shmq_word_freed(word)); /* T3, T6, T8, T10, T14, T16: the caller says */
    if (limited != 0) {
        if (freed && q->counters != NULL) { /* without counters `moving` cannot show it: the count stays one too high */
            shmq_room_give(q, limited, 1, bytes == SHMQ_UNWEIGHED ? 0 : bytes);
        }
        shmq_moving(q, -1);
    }
    if (freed) {
        shmq_changed(r, slot);
        now = shmq_load_seq(&q->page->limited);
        if (SHMQ_UNLIKELY((now & ~limited) != 0 || bytes == SHMQ_UNWEIGHED)) {
            shmq_recount_ask(q); /* a limit came between the look and the CAS, or the slot's bytes are not known */
        }
        shmq_wake_full(r, slot);
        if (SHMQ_UNLIKELY(shmq_is_front(r)) && shmq_flow_is_on(shmq_flow_at(r))) {
            shmq_notify_starved(q); /* a taker that found no room in the front ring brings more */
        }
    }
    return freed;
}

bool shmq_owner_dead(shmq_queue *q, uint32_t owner) {
    if (owner & SHMQ_OWNER_PROCESS) {
        return shmq_process_dead(q->m, owner & 0xfffu);
    }
    shmq_consumer_shm *row = shmq_row_at(q, owner);
    if (row == NULL) {
        return false;
    }
    uint64_t word = shmq_load_acquire(&row->word); /* SYNC row.owner */
    return shmq_row_state(word) != SHMQ_ROW_FREE && shmq_process_dead(q->m, shmq_row_inner(word));
}

bool shmq_claim_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    uint64_t body = shmq_word_state(word) == SHMQ_DEQUEUED ? shmq_read_once(&slot->body) : 0;
    if (body != 0) {
        uint32_t generation = shmq_read_once(&slot->body_gen);
        if (shmq_load_seq(&slot->word) != word) {
            return true;
        }
        shmq_block_drop(r->queue->m, shmq_body_offset(body), generation, shmq_body_bit(body));
    }
    return shmq_slot_free(r, slot, word); /* T3: a tombstone, at the next lap, never FREE of the same one; T6; T16 */
}

bool shmq_claim_clear(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, bool overdue) {
    shmq_queue *q = r->queue;
    uint32_t state = shmq_word_state(word);
    uint32_t owner = shmq_word_owner(word);
    switch (state) {
    case SHMQ_CLAIMED:
        if (shmq_owner_dead(q, owner)) {
            return shmq_claim_end(r, slot, word);
        }
        return overdue && owner != shmq_self(q) &&
               shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_QUARANTINED, owner, 0)); /* T4, SYNC ring.hole */
    case SHMQ_QUARANTINED:
    case SHMQ_DEQUEUED:
        return shmq_owner_dead(q, owner) && shmq_claim_end(r, slot, word);
    default:
        return false;
    }
}
