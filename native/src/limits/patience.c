/* The patience with claims: a claim that is older than it becomes a hole. */
#include "base/clock.h"
#include "limits/slot_free.h"

/* Every claim below `below` was made before this caller began to wait. So all of them are overdue at once, and many
 * stopped producers (a frozen container) cost one patience together. */
static bool quarantine_overdue(shmq_ring *r, uint64_t below) {
    bool changed = false;
    uint64_t first = below > shmq_slot_count(r) ? below - shmq_slot_count(r) : 0;
    for (uint64_t p = first; p < below; p++) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.claim */
        if (shmq_word_state(word) == SHMQ_CLAIMED && shmq_word_lap(word) == shmq_lap_of(r, p)) {
            changed |= shmq_claim_clear(r, slot, word, true);
        }
    }
    return changed;
}

bool shmq_patience_over(shmq_ring *r, shmq_patience *wait, uint64_t position, uint64_t word) {
    uint64_t now = shmq_now_ns(), below = 0;
    if (!shmq_cas32_seq(&wait->busy, 0, 1)) {
        return false;
    }
    if (wait->since_ns == 0 || wait->position != position || wait->word != word) {
        wait->since_ns = now;
        wait->position = position;
        wait->word = word;
        wait->below = shmq_load_seq(&r->shm->tail);
    } else if (now - wait->since_ns >= r->queue->m->patience_ns) {
        wait->since_ns = 0;
        below = wait->below;
    }
    shmq_store_seq(&wait->busy, 0);
    return below != 0 && quarantine_overdue(r, below);
}
