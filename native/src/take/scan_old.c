/* Entries older than a lap. The tail has carried each of them, so its bit is set. */
#include "ring/ring_old.h"
#include "take/scan.h"

static shmq_status offer_old(shmq_ring *r, shmq_old_list *list, uint64_t from, uint64_t limit, uint64_t epoch,
                             shmq_delivery *d) {
    uint64_t p;
    while (shmq_old_next(r, list, from, limit, &p)) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        if (!shmq_word_carried(word) || (state != SHMQ_AVAILABLE && state != SHMQ_OFFERED) ||
            shmq_load_acquire(&slot->position) != p) { /* SYNC ring.publish */
            continue; /* it has gone just now: the list is asked again */
        }
        if (!shmq_scan_considers(r, slot, word, p, d)) {
            from = p + 1;
            continue;
        }
        switch (shmq_scan_offer(r, word, p, epoch, d)) {
        case OFFER_OK:
            d->seen.in_turn = false;
            return SHMQ_OK;
        case OFFER_RELEASED:
            return SHMQ_INTERRUPTED; /* scan again from the start */
        case OFFER_LEFT:
            return SHMQ_TIMEOUT;
        case OFFER_CHANGED:
            break;
        }
    }
    return SHMQ_EMPTY;
}

shmq_status shmq_offer_old(shmq_ring *r, uint64_t from, uint64_t limit, uint64_t epoch, shmq_delivery *d) {
    shmq_old_small small;
    shmq_old_list *list = shmq_old_begin(r, true, &small);
    shmq_old_follow(r, list, epoch);
    if (d->seen.head >> SHMQ_POSITION_BITS != (epoch & SHMQ_EPOCH_MASK)) {
        shmq_old_forget(list); /* a releaser is between R2 and R3: the head knows of an entry that no epoch tells yet */
    }
    shmq_status status = offer_old(r, list, from, limit, epoch, d);
    shmq_old_end(list);
    return status;
}
