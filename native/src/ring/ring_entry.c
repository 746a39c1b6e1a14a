/* What an entry's slot and its cold record say, apart from its state. */
#include "shmq/cold.h"
#include "shmq/ring_time.h"

uint64_t shmq_expires_of(const shmq_ring *r, const shmq_slot_shm *slot, uint32_t props, uint64_t enqueued_ns) {
    uint64_t expires = SHMQ_NEVER, max_ttl = shmq_load_relaxed(&r->queue->page->settings.max_ttl_ns);
    if ((props & SHMQ_PROP_EXPIRES) != 0) {
        shmq_cold_shm *cold = shmq_cold_at(r, slot);
        expires = cold != NULL ? shmq_load_relaxed(&cold->expires_ns) : SHMQ_NEVER;
    }
    if (max_ttl != SHMQ_NEVER && enqueued_ns + max_ttl >= enqueued_ns && enqueued_ns + max_ttl < expires) {
        expires = enqueued_ns + max_ttl;
    }
    return expires == SHMQ_NEVER ? 0 : expires == 0 ? 1 : expires;
}
