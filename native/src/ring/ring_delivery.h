/* A message as its slot describes it. The slot's memory may be damaged. Inline: every taker reads it once a message. */
#ifndef SHMQ_RING_RING_DELIVERY_H
#define SHMQ_RING_RING_DELIVERY_H

#include "queue/queue_facts.h"
#include "ring/ring.h"

/* Copies each field once; all checks use the copies. */
static inline void shmq_delivery_read(const shmq_ring *r, const shmq_slot_shm *slot, shmq_delivery *d) {
    uint64_t tally = shmq_load_relaxed((shmq_a64 *)&slot->tally);
    uint64_t summary = shmq_load_relaxed((shmq_a64 *)&slot->summary);
    d->message_id = shmq_read_once(&slot->message_id);
    d->enqueued_ns = shmq_read_once(&slot->enqueued_ns);
    d->body = shmq_read_once(&slot->body);
    d->body_gen = shmq_read_once(&slot->body_gen);
    d->body_len = shmq_read_once(&slot->body_len);
    d->crc = (uint32_t)summary;
    d->headers_len = shmq_summary_headers_len(summary);
    d->delivery = shmq_summary_delivery(summary);
    d->deaths = (uint16_t)tally;
    d->content = (uint8_t)(tally >> 16);
    d->priority = (uint8_t)(tally >> 24);
    d->props = (uint16_t)(tally >> 32);
    d->expires_ns = SHMQ_UNLIKELY((d->props & SHMQ_PROP_EXPIRES) != 0 || shmq_ring_ages(r->queue))
                        ? shmq_expires_of(r, slot, d->props, d->enqueued_ns)
                        : 0;
}

bool shmq_delivery_resolve_block(const shmq_ring *r, shmq_delivery *d);

/* Where its bytes are. False: the slot is another entry's by now, or damaged. */
static inline bool shmq_delivery_resolve(const shmq_ring *r, const shmq_slot_shm *slot, shmq_delivery *d) {
    if (shmq_load_relaxed((shmq_a64 *)&slot->position) != d->position) {
        return false; /* no later step would find the entry again */
    }
    if (SHMQ_UNLIKELY(d->body != 0)) {
        return shmq_delivery_resolve_block(r, d);
    }
    d->headers = slot->inline_area;
    d->bytes = slot->inline_area + d->headers_len;
    return (uint64_t)d->headers_len + d->body_len <= r->inline_bytes;
}

#endif
