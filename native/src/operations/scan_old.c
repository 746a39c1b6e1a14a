/* Entries older than a lap. The tail has carried each of them, so its bit is set. */
#include "operations/scan.h"

shmq_status shmq_offer_old(shmq_ring *r, uint64_t from, uint64_t limit, uint64_t epoch, shmq_delivery *d) {
    uint64_t words = (shmq_slot_count(r) + 63) / 64;
    for (;;) {
        uint64_t best = UINT64_MAX, best_word = 0;
        for (uint64_t w = 0; w < words; w++) {
            for (uint64_t bits = shmq_load_seq(&r->carried[w]); bits != 0; bits &= bits - 1) {
                shmq_slot_shm *slot = shmq_slot_at(r, w * 64 + (uint64_t)__builtin_ctzll(bits));
                uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
                uint32_t state = shmq_word_state(word);
                if (!shmq_word_carried(word) || (state != SHMQ_AVAILABLE && state != SHMQ_OFFERED)) {
                    continue;
                }
                uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
                /* As in shmq_is_here: an entry that is offered to another taker may come back, so the scan does not
                 * pass it. */
                if (position >= from && position < limit && position < best && shmq_slot_at(r, position) == slot &&
                    shmq_scan_considers(r, slot, word, position, d)) {
                    best = position;
                    best_word = word;
                }
            }
        }
        if (best == UINT64_MAX) {
            return SHMQ_EMPTY;
        }
        switch (shmq_scan_offer(r, best_word, best, epoch, d)) {
        case OFFER_OK:
            d->in_turn = false;
            return SHMQ_OK;
        case OFFER_RELEASED:
            return SHMQ_INTERRUPTED; /* scan again from the start */
        case OFFER_LEFT:
            return SHMQ_TIMEOUT;
        case OFFER_CHANGED:
            break;
        }
    }
}
