/* Entries and time: held until, not delivered after, taken back after. All times are of the monotonic clock. */
#ifndef SHMQ_TIME_TIMES_H
#define SHMQ_TIME_TIMES_H

#include "queue/queue_facts.h"
#include "ring/outgoing.h"
#include "ring/ring.h"
#include "wake/due.h"

/* Is it to be held when it is published? */
static inline bool shmq_is_delayed(const shmq_outgoing *o) { return o->not_before_ns != 0; }
/* Has it times of its own? */
static inline bool shmq_is_timed(const shmq_outgoing *o) { return (o->not_before_ns | o->expires_ns) != 0; }
/* Does it need a cold record? */
static inline bool shmq_is_recorded(const shmq_outgoing *o) {
    return (o->not_before_ns | o->expires_ns | o->intent | o->made.group | o->receipt) != 0;
}
/* Before a claim: the cold record that this message needs, and when it is due. */
shmq_status shmq_time_plan(shmq_ring *r, shmq_outgoing *o);
static inline shmq_status shmq_time_prepare(shmq_ring *r, shmq_outgoing *o) {
    return SHMQ_LIKELY(!shmq_is_recorded(o) && !shmq_ring_ages(r->queue)) ? SHMQ_OK : shmq_time_plan(r, o);
}
/* Between claim and publish: what is to be in its record. Answers slot.props. */
uint32_t shmq_time_fill(shmq_ring *r, shmq_slot_shm *slot, const shmq_outgoing *o);
/* After the publish. */
static inline void shmq_time_published(shmq_ring *r, const shmq_outgoing *o) {
    if (SHMQ_UNLIKELY(o->made.due_ns != 0)) {
        shmq_make_due(r, o->made.due_ns);
    }
}
/* The time at which this state ends by its cold record; 0: it cannot be read, or no process writes such a time. */
uint64_t shmq_held_until(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t now);

/* Has this entry a time to live? Asked of each that is about to be offered: two loads of lines that are read anyway. */
static inline bool shmq_may_expire(const shmq_queue *q, const shmq_slot_shm *slot) {
    return (shmq_read_once(&slot->props) & SHMQ_PROP_EXPIRES) != 0 || shmq_ring_ages(q);
}
/* Is it past its time, and to be dropped (shmq_expires_now), or to go to the dead letters (shmq_is_for_dead_letter)? */
bool shmq_expires_now(const shmq_queue *q, const shmq_delivery *d);
bool shmq_is_past_for_dead_letter(const shmq_queue *q, const shmq_delivery *d);
static inline bool shmq_is_for_dead_letter(const shmq_queue *q, const shmq_delivery *d) {
    return SHMQ_UNLIKELY(d->expires_ns != 0) && shmq_is_past_for_dead_letter(q, d);
}
/* Do the expired of this queue go to its dead? */
static inline bool shmq_expired_are_dead_letters(const shmq_queue *q) {
    return shmq_load_relaxed(&q->page->settings.dead_letter_expired) != 0;
}
/* The fate of a message that a consumer would take: the one place that decides whether it failed too often. */
static inline shmq_why shmq_why_dead(const shmq_queue *q, const shmq_delivery *d) {
    if (shmq_is_for_dead_letter(q, d)) {
        return SHMQ_WHY_EXPIRED;
    }
    return SHMQ_UNLIKELY((d->deaths | d->delivery) != 0) ? shmq_poison_of(q, d) : SHMQ_LIVES;
}

/* Is this entry, when it is acquired, to be noted in its record first? */
static inline bool shmq_is_leased(const shmq_queue *q, const shmq_delivery *d) {
    return shmq_load_relaxed(&q->page->settings.lease_ns) != SHMQ_NEVER || (d->props & SHMQ_PROP_NOT_BEFORE) != 0;
}
/* After a declaration has set what ages messages, or lends them for a time. */
shmq_status shmq_time_declared(shmq_queue *q, uint32_t given);

#endif
