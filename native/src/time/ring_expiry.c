/* Time to live: what is past it is delivered to nobody who looks afterwards. */
#include "shmq/cold.h"
#include "shmq/ring_time.h"
#include "shmq/sleepers.h"
#include "shmq/ring_memory.h"

static bool are_buried(const shmq_queue *q) { return shmq_load_relaxed(&q->page->settings.dead_letter_expired) != 0; }

static bool is_past(const shmq_delivery *d) { return d->expires_ns != 0 && shmq_now_ns() >= d->expires_ns; }

bool shmq_expires_now(const shmq_queue *q, const shmq_delivery *d) { return is_past(d) && !are_buried(q); }

bool shmq_is_past_for_the_grave(const shmq_queue *q, const shmq_delivery *d) { return are_buried(q) && is_past(d); }

shmq_status shmq_expire(shmq_queue *q, shmq_delivery *d) {
    SHMQ_TRY(shmq_settle(q, d));
    if (q->counters != NULL) {
        shmq_add_relaxed(&q->counters->expired, 1);
    }
    return SHMQ_OK;
}

bool shmq_drop_expired(shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint64_t expires = shmq_expires_of(q, slot, shmq_props(slot), shmq_peek(&slot->enqueued_ns));
    uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    if (expires == 0 || shmq_word_state(word) != SHMQ_AVAILABLE || are_buried(q) || shmq_now_ns() < expires) {
        return false;
    }
    shmq_delivery d = {0};
    if (shmq_seize(q, slot, word, position, &d)) {
        (void)shmq_expire(q, &d);
    }
    return true;
}

/* Is this entry available, and past its time? */
static bool is_expired(const shmq_queue *q, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_word_state(word) != SHMQ_AVAILABLE || !shmq_may_expire(q, slot)) {
        return false;
    }
    uint64_t expires = shmq_expires_of(q, slot, shmq_props(slot), shmq_peek(&slot->enqueued_ns));
    return expires != 0 && shmq_now_ns() >= expires;
}

shmq_status shmq_steal_expired(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->levels && status == SHMQ_EMPTY; depth++) {
        status = shmq_steal_first(shmq_level(q, depth), is_expired, d);
    }
    return status;
}

/* In order, and so they are buried. Counts only grow, so what was poisoned when it was seen still is. */
static shmq_status steal_poisoned_of(shmq_queue *q, shmq_delivery *d) {
    for (uint64_t p = 0; shmq_browse(q, &p, d) == SHMQ_OK; p++) {
        bool expired = d->expires_ns != 0 && shmq_now_ns() >= d->expires_ns; /* that goes another way */
        if (shmq_word_state(d->word) == SHMQ_AVAILABLE && shmq_is_poisoned(q, d) && !expired &&
            shmq_steal(q, p, true, d) == SHMQ_OK) {
            return SHMQ_OK;
        }
    }
    return SHMQ_EMPTY;
}

shmq_status shmq_steal_poisoned(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->levels && status == SHMQ_EMPTY; depth++) {
        status = steal_poisoned_of(shmq_level(q, depth), d);
    }
    return status;
}
