/* What a mover has left without a mark on disk: rows that have come in by themselves. The next one marks them before
 * anything is read. */
#include "shmq/cold.h"
#include "shmq/waiting.h"

/* Has this slot a row that came in by itself, of those that waited or of the others? */
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

/* If its mover died, the row that was fetched last may still be unmarked on disk: it is marked now. */
shmq_status shmq_erase_last(shmq_mover *t) {
    uint64_t tail = shmq_front_tail(t->front), erased = shmq_load_relaxed(&t->front->shm->flushed);
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
