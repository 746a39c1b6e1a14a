/* An entry as its slot and its cold record describe it, apart from its state. */
#include "queue/cold.h"
#include "ring/ring.h"

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

void shmq_entries_ended(shmq_queue *q, uint64_t count, shmq_end why) {
    shmq_counters_shm *c = q->counters;
    if (SHMQ_UNLIKELY(c == NULL || why == SHMQ_END_DELETED)) {
        return;
    }
    shmq_a64 *counter = why == SHMQ_END_GOT       ? &c->got
                        : why == SHMQ_END_ACKED   ? &c->acked
                        : why == SHMQ_END_DROPPED ? &c->dropped
                        : why == SHMQ_END_EXPIRED ? &c->expired
                        : why >= SHMQ_END_DEAD    ? &c->dead_lettered
                                                  : &c->purged;
    shmq_add_relaxed(counter, count);
    if (why == SHMQ_END_EXPIRED_DEAD) {
        shmq_add_relaxed(&c->expired, count);
    }
}
