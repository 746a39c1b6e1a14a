/* A message that is past its time is settled, or becomes a dead letter; a message that has failed too often becomes
 * one. */
#include "shmq/level.h"
#include "shmq/ring_time.h"
#include "shmq/cold.h"

shmq_status shmq_expire(shmq_queue *q, shmq_delivery *d) {
    SHMQ_TRY(shmq_settle(q, d));
    if (q->counters != NULL) {
        shmq_add_relaxed(&q->counters->expired, 1);
    }
    return SHMQ_OK;
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

/* Is this entry available, and past its time? */
static bool is_expired(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_word_state(word) != SHMQ_AVAILABLE || !shmq_may_expire(r->queue, slot)) {
        return false;
    }
    uint64_t expires = shmq_expires_of(r, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns));
    return expires != 0 && shmq_now_ns() >= expires;
}

shmq_status shmq_steal_expired(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->rings && status == SHMQ_EMPTY; depth++) {
        status = shmq_steal_first(shmq_level(q, depth), is_expired, d);
    }
    return status;
}

/* Steals in the order of positions, in which the messages become dead letters. Counts of attempts and deaths only grow,
 * so a message that was poisoned when it was read still is. */
static shmq_status steal_poisoned_of(shmq_ring *r, shmq_delivery *d) {
    for (uint64_t p = 0; shmq_browse(r, &p, d) == SHMQ_OK; p++) {
        bool expired = d->expires_ns != 0 && shmq_now_ns() >= d->expires_ns; /* shmq_steal_expired takes those */
        if (shmq_word_state(d->word) == SHMQ_AVAILABLE && shmq_poison_of(r->queue, d) != SHMQ_LIVES && !expired &&
            shmq_steal(r, p, true, d) == SHMQ_OK) {
            return SHMQ_OK;
        }
    }
    return SHMQ_EMPTY;
}

shmq_status shmq_steal_poisoned(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->rings && status == SHMQ_EMPTY; depth++) {
        status = steal_poisoned_of(shmq_level(q, depth), d);
    }
    return status;
}
