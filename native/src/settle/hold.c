/* Entries that are held until a time. The process that first sees that the time is over ends the hold by one CAS; what
 * follows is a release: rewind, notify. */
#include "settle/hold.h"
#include "consumers/sleepers.h"
#include "queue/cold.h"
#include "ring/stretch.h"
#include "settle/ending.h"
#include "settle/settle.h"
#include "time/times.h"
#include "wake/watch.h"

/* Takes HELD -> AVAILABLE. The position was read after the word: it is this entry's if the CAS succeeds. The process
 * counts the entry as held meanwhile, so that its death amid this is noticed, and its reaper turns the head back. */
bool shmq_hold_end_now(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    shmq_queue *q = r->queue;
    uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    shmq_add_unsettled(q->m, 1);
    bool ended = shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word))); /* T18 */
    if (ended) {
        shmq_changed(r, slot);
    }
    if (ended && shmq_slot_at(r, p) == slot) {
        shmq_rewind(r, p); /* takers that passed it while it was held turn back, as after a release */
    } else if (ended) {
        shmq_rewind_all(r);
    }
    shmq_add_unsettled(q->m, -1);
    if (ended) {
        shmq_notify(q);
    }
    return ended;
}

bool shmq_hold_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t now) {
    if (shmq_held_until(r, slot, now) > now && shmq_load_seq(&slot->word) == word) {
        return false;
    }
    (void)shmq_hold_end_now(r, slot, word);
    return true;
}

shmq_status shmq_release_until(shmq_queue *q, shmq_delivery *d, bool attempt, uint64_t until_ns) {
    shmq_ring *r = shmq_level(q, d->depth);
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    shmq_status status = shmq_cold_need(r);
    if (status == SHMQ_INTERRUPTED) {
        return status; /* nothing has changed: the caller lets signal handlers run, and calls again */
    }
    shmq_cold_shm *cold = status == SHMQ_OK ? shmq_cold_at(r, slot) : NULL;
    if (cold == NULL) {
        return shmq_release(q, d, attempt);
    }
    SHMQ_TRY(shmq_lock(q, d)); /* a LOCKED message does not expire: its record stays this consumer's while it writes */
    if (attempt) {
        shmq_attempt_count(slot, d);
    }
    shmq_store_relaxed(&cold->not_before_ns, until_ns);
    shmq_props_change(slot, SHMQ_PROP_NOT_BEFORE, 0);
    for (uint64_t word = shmq_own_word(q, d); word != 0; word = shmq_own_word(q, d)) {
        uint64_t held = shmq_word_to(word, SHMQ_HELD, 0, d->tag) | SHMQ_FLAG_REDELIVERED;
        if (shmq_cas_seq(&slot->word, word, held)) { /* T15 */
            shmq_changed(r, slot);
            shmq_make_due(r, until_ns);
            shmq_let_go(q, d); /* after the due word: a process that holds nothing owes nothing */
            shmq_came_back(r, slot);
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(q, d);
}
