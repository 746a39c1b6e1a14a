/* Leases: a process takes a message from a consumer that has held it for too long, though the consumer lives. */
#include "base/clock.h"
#include "queue/cold.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "time/times.h"

shmq_status shmq_lease_begin(shmq_ring *r, const shmq_delivery *d) {
    shmq_queue *q = r->queue;
    shmq_slot_shm *slot = shmq_slot_at(r, d->position);
    uint64_t lease = shmq_load_relaxed(&q->page->settings.lease_ns);
    shmq_cold_shm *cold = shmq_cold_at(r, slot);
    uint64_t until = lease == SHMQ_NEVER || cold == NULL ? 0 : shmq_now_ns() + lease;
    if (until != 0) {
        shmq_store_relaxed(&cold->not_before_ns, until);
        shmq_props_change(slot, SHMQ_PROP_NOT_BEFORE, 0);
    } else {
        shmq_props_change(slot, 0, SHMQ_PROP_NOT_BEFORE); /* of a hold that has ended, not of this delivery */
    }
    for (uint64_t word = shmq_own_word(q, d); word != 0; word = shmq_own_word(q, d)) {
        if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_ACQUIRED, d->owner, d->tag))) { /* T30 */
            if (until != 0) {
                shmq_make_due(r, until);
            }
            return SHMQ_OK;
        }
    }
    return SHMQ_SETTLED;
}

shmq_status shmq_touch(shmq_queue *q, shmq_delivery *d) {
    shmq_ring *r = shmq_level(q, d->depth);
    if (!shmq_is_leased(q, d)) {
        return shmq_own_word(q, d) != 0 ? SHMQ_OK : SHMQ_SETTLED;
    }
    SHMQ_TRY(shmq_lock(q, d));
    return shmq_lease_begin(r, d);
}
