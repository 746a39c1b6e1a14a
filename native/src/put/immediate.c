#include "put/immediate.h"
#include "consumers/sleepers.h"
#include "settle/settle.h"
#include "time/receipt.h"
#include "wake/wait.h"

uint64_t shmq_immediate_until(shmq_queue *q) {
    return shmq_now_ns() + (shmq_anybody_idle(q) ? q->m->patience_ns : SHMQ_AWAKE_NS);
}

enum fate { WAITS, IS_OFFERED, IS_LOCKED, IS_TAKEN, IS_GONE };

/* Returns the fate of the message. The flag R says that a consumer had it and gave it back: it counts as taken. */
static enum fate fate_of(const shmq_ring *r, shmq_slot_shm *slot, uint64_t position, uint64_t *word) {
    *word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
    if (shmq_load_acquire(&slot->position) != position ||
        (!shmq_word_carried(*word) && shmq_word_lap(*word) != shmq_lap_of(r, position))) { /* SYNC ring.publish */
        return IS_GONE;
    }
    if ((*word & SHMQ_FLAG_REDELIVERED) != 0) {
        return IS_TAKEN;
    }
    switch (shmq_word_state(*word)) {
    case SHMQ_AVAILABLE:
        return WAITS;
    case SHMQ_OFFERED:
        return IS_OFFERED;
    case SHMQ_LOCKED: /* by a process that takes it out of the queue, or that lends it in a moment */
        return (shmq_word_owner(*word) & SHMQ_OWNER_PROCESS) != 0 ? IS_LOCKED : IS_TAKEN;
    case SHMQ_ACQUIRED:
        return IS_TAKEN;
    default:
        return IS_GONE;
    }
}

/* Locked by a process that has not gone on for the patience. No other taker can have the message, and its producer
 * cannot know what becomes of it. */
static bool is_stuck(const shmq_queue *q, uint64_t word, shmq_lock_seen *seen, uint64_t now) {
    if (word != seen->word) {
        *seen = (shmq_lock_seen){word, now};
    }
    return now - seen->since_ns >= q->m->patience_ns;
}

/* Withdraws the message by a CAS from the word that says that no taker had it: one CAS wins, taker's or producer's. */
static bool withdraw(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position) {
    shmq_delivery d = {0};
    if (!shmq_seize(r, slot, word, position, &d)) {
        return false;
    }
    return shmq_entry_ends(r, &d, SHMQ_END_PURGED) == SHMQ_OK;
}

shmq_status shmq_immediate(shmq_queue *q, const shmq_outgoing *o, uint64_t until_ns, shmq_lock_seen *seen) {
    shmq_ring *r = shmq_level_for(q, o->priority);
    shmq_slot_shm *slot = shmq_slot_at(r, o->made.position);
    shmq_ring_shm *home = &q->page->ring;
    uint64_t step = 1000, slice_end = shmq_slice_end(q->m);
    for (;;) {
        uint64_t word, now = shmq_now_ns();
        enum fate fate = fate_of(r, slot, o->made.position, &word);
        if (fate == IS_GONE) {
            return shmq_receipt_says_returned(q->m, o->receipt) ? SHMQ_SETTLED : SHMQ_OK; /* P3 */
        }
        if (fate == IS_TAKEN || (fate == IS_LOCKED && is_stuck(q, word, seen, now))) {
            return SHMQ_OK;
        }
        if (fate == WAITS && now >= until_ns) {
            if (withdraw(r, slot, word, o->made.position)) {
                return SHMQ_EMPTY;
            }
            continue;
        }
        if (now >= slice_end) {
            return shmq_slice_over(q->m);
        }
        uint64_t until = fate == WAITS && until_ns - now < step ? until_ns : now + step;
        if (shmq_sleep(q->m, &home->drained, shmq_load_seq(&home->drained), until) == SHMQ_INTERRUPTED) {
            return SHMQ_INTERRUPTED;
        }
        step = step < SHMQ_SHORT_SLEEP_NS ? step * 2 : step;
    }
}
