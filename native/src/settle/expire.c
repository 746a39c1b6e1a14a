/* A message that is past its time is settled, or becomes a dead letter. */
#include "settle/expire.h"
#include "base/clock.h"
#include "queue/cold.h"
#include "settle/settle.h"
#include "time/times.h"

shmq_status shmq_expire(shmq_queue *q, shmq_delivery *d) {
    return shmq_entry_ends(shmq_level(q, d->depth), d, SHMQ_END_EXPIRED);
}

bool shmq_drop_expired(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    uint64_t expires = shmq_expires_of(r, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns));
    uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    if (expires == 0 || shmq_word_state(word) != SHMQ_AVAILABLE || shmq_expired_are_dead_letters(r->queue) ||
        shmq_now_ns() < expires) {
        return false;
    }
    shmq_delivery d = {0};
    if (shmq_seize(r, slot, word, position, &d)) {
        (void)shmq_expire(r->queue, &d);
    }
    return true;
}

/* Says whether this entry is available and past its time. */
static bool is_expired(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_word_state(word) != SHMQ_AVAILABLE || !shmq_may_expire(r->queue, slot)) {
        return false;
    }
    uint64_t expires = shmq_expires_of(r, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns));
    return expires != 0 && shmq_now_ns() >= expires;
}

shmq_status shmq_steal_expired(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->levels && status == SHMQ_EMPTY; depth++) {
        status = shmq_steal_first(shmq_level(q, depth), is_expired, d);
    }
    return status;
}
