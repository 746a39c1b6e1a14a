/* The first look of every call. Whoever is always busy never sleeps, so housekeeping is done here now and then. */
#include "shmq/alert.h"
#include "shmq/handle.h"
#include "shmq/upkeep.h"
#include "shmq/watch.h"

shmq_status shmq_queue_usable(shmq_queue *q) {
    shmq_member *m = q->m;
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&m->closed) != 0)) {
        return SHMQ_CLOSED;
    }
    uint32_t ops = shmq_load_relaxed(&m->ops);
    shmq_store_relaxed(&m->ops, ops + 1); /* a hint: threads may lose a count to each other */
    if (SHMQ_UNLIKELY((ops & 1023) == 1023)) {
        shmq_reap_met(m);
        shmq_look_for_dead(m);
        (void)shmq_member_gone(m);
        shmq_alerts_tick(m);
    }
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&m->header->due) != 0)) {
        shmq_upkeep.look_for_due(m); /* whoever is always busy never sleeps, so nobody else may look */
    }
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&m->header->state) != SHMQ_SEGMENT_LIVE) && shmq_member_gone(m)) {
        return shmq_fail(SHMQ_GONE, "this broker was deleted");
    }
    return SHMQ_LIKELY(shmq_load_relaxed(&q->page->state) == SHMQ_QUEUE_LIVE) ? SHMQ_OK : SHMQ_NOT_FOUND;
}
