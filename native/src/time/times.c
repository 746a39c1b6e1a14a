/* The times of an entry: its producer plans them before the claim and writes them before the publish. */
#include "time/times.h"
#include "queue/cold.h"
#include "queue/level.h"

static uint64_t sooner(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t later_by(uint64_t since, uint64_t ns) { return since + ns < since ? SHMQ_NEVER : since + ns; }

shmq_status shmq_time_plan(shmq_ring *r, shmq_outgoing *o) {
    uint64_t max_ttl = shmq_load_relaxed(&r->queue->page->settings.max_ttl_ns);
    uint64_t due = max_ttl == SHMQ_NEVER ? SHMQ_NEVER : later_by(o->enqueued_ns, max_ttl);
    due = sooner(due, o->not_before_ns != 0 ? o->not_before_ns : SHMQ_NEVER);
    due = sooner(due, o->expires_ns != 0 ? o->expires_ns : SHMQ_NEVER);
    o->made.due_ns = due == SHMQ_NEVER ? 0 : due;
    return shmq_is_recorded(o) ? shmq_cold_need(r) : SHMQ_OK;
}

uint32_t shmq_time_fill(shmq_ring *r, shmq_slot_shm *slot, const shmq_outgoing *o) {
    shmq_cold_shm *cold = shmq_cold_at(r, slot);
    if (cold == NULL) {
        return 0; /* damaged since the prepare: an entry without a record is available, and never expires */
    }
    uint32_t props = 0;
    if (o->not_before_ns != 0) {
        shmq_store_relaxed(&cold->not_before_ns, o->not_before_ns);
        props |= SHMQ_PROP_NOT_BEFORE;
    }
    if (o->expires_ns != 0) {
        shmq_store_relaxed(&cold->expires_ns, o->expires_ns);
        props |= SHMQ_PROP_EXPIRES;
    }
    if (o->made.group != 0) {
        shmq_write_once(&cold->group, (uint64_t)o->made.group);
        props |= SHMQ_PROP_GROUP;
    }
    if (o->intent != 0) {
        shmq_write_once(&cold->source, o->source);
        shmq_write_once(&cold->intent, o->intent);
        props |= SHMQ_PROP_INTENT;
    } else if (o->receipt != 0) {
        shmq_write_once(&cold->receipt, o->receipt);
        props |= SHMQ_PROP_IMMEDIATE;
    }
    return props;
}

/* Until when is the entry held? 0: its record cannot be read, or has a time that no process writes; better early than
 * never. */
uint64_t shmq_held_until(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t now) {
    shmq_cold_shm *cold = (shmq_props(slot) & SHMQ_PROP_NOT_BEFORE) != 0 ? shmq_cold_at(r, slot) : NULL;
    uint64_t until = cold != NULL ? shmq_load_relaxed(&cold->not_before_ns) : 0;
    return until <= now || until - now <= SHMQ_DUE_LONGEST ? until : 0;
}

shmq_status shmq_time_declared(shmq_queue *q, uint32_t given) {
    for (uint32_t depth = 0; depth < q->rings && (given & (1u << SHMQ_SET_MAX_TTL)) != 0; depth++) {
        shmq_due_recover(shmq_level(q, depth)); /* messages that are there already have an age, too */
    }
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        if (given & (1u << SHMQ_SET_LEASE) && shmq_load_relaxed(&q->page->settings.lease_ns) != SHMQ_NEVER) {
            SHMQ_TRY(shmq_cold_need(shmq_level(q, depth))); /* the setter of a lease gets the error */
        }
    }
    return SHMQ_OK;
}
