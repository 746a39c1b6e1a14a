/* A message as its slot describes it. The slot's memory may be damaged. */
#include "ring/ring_delivery.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "layout/block.h"
#include "ring/outgoing.h"

#include <string.h>

shmq_why shmq_poison_of(const shmq_queue *q, const shmq_delivery *d) {
    uint32_t max_deaths = shmq_load_relaxed(&q->page->max_deaths);
    uint32_t max_attempts = shmq_load_relaxed(&q->page->max_attempts);
    if (d->deaths != 0 && max_deaths != 0 && d->deaths >= max_deaths) {
        return SHMQ_WHY_DEATHS;
    }
    bool failed = d->delivery != 0 && max_attempts != 0 && d->delivery >= max_attempts;
    return failed ? SHMQ_WHY_DELIVERIES : SHMQ_LIVES;
}

bool shmq_is_last_attempt(const shmq_queue *q, const shmq_delivery *d) {
    uint32_t max_attempts = shmq_load_relaxed(&q->page->max_attempts);
    return max_attempts != 0 && d->delivery + UINT32_C(1) >= max_attempts;
}

bool shmq_delivery_resolve_block(const shmq_ring *r, shmq_delivery *d) {
    uint64_t start = shmq_body_start(d->headers_len);
    unsigned char *at = shmq_block_at(r->queue->m, shmq_body_offset(d->body), start + d->body_len);
    d->headers = at;
    d->bytes = at + start;
    return at != NULL && shmq_body_bit(d->body) < SHMQ_ENTRY_BITS;
}

/* It begins with the queue. For damage to the map of the memory may give the memory of one queue to another one, and a
 * message that is sound in its own queue must not come out of the other one. */
uint32_t shmq_crc_of(const shmq_queue *q, const shmq_delivery *d) {
    unsigned char fields[24] = {0};
    memcpy(fields, &d->message_id, 8);
    memcpy(fields + 8, &d->enqueued_ns, 8);
    memcpy(fields + 16, &d->body_len, 4);
    memcpy(fields + 20, &d->headers_len, 2);
    fields[22] = d->content;
    fields[23] = d->priority;
    uint32_t crc = shmq_crc32c(q->checksum_start, fields, sizeof fields);
    if (d->headers_len != 0) {
        crc = shmq_crc32c(crc, d->headers, d->headers_len);
    }
    return d->body_len != 0 ? shmq_crc32c(crc, d->bytes, d->body_len) : crc;
}

/* In a queue without checksums each message has 0 there. Both have to agree: the setting is one word, which may be
 * damaged. */
bool shmq_delivery_intact(const shmq_queue *q, const shmq_delivery *d) {
    return (d->crc == 0 && !q->checksum) || shmq_crc_of(q, d) == d->crc;
}

/* A delivery that ended with its process is counted once, however many reapers repair it and however often. Bytes 56 to
 * 63 change by one CAS, and death_tag names the delivery that was counted last. True: this call counted it. */
bool shmq_death_count(shmq_queue *q, shmq_slot_shm *slot, uint64_t word, uint32_t pid) {
    uint64_t mark = SHMQ_DEATH_COUNTED | shmq_word_tag(word);
    uint64_t tally = shmq_load_seq(&slot->tally);
    uint64_t id = shmq_read_once(&slot->message_id);
    uint64_t deaths = tally & 0xffff;
    if (tally >> 48 == mark || shmq_load_seq(&slot->word) != word) {
        return false;
    }
    uint64_t counted = (tally & UINT64_C(0x0000ffffffff0000)) | (deaths < 0xffff ? deaths + 1 : deaths) | (mark << 48);
    if (!shmq_cas_seq(&slot->tally, tally, counted)) {
        return false;
    }
    shmq_death_record_add(q->m, id, pid, 0);
    return true;
}

void shmq_death_record_add(shmq_member *m, uint64_t id, uint32_t pid, int32_t signal) {
    shmq_segment_shm *header = m->header;
    shmq_death_record_shm *o =
        &header->death_records[shmq_add_seq(&header->death_records_next, 1) % SHMQ_DEATH_RECORDS];
    shmq_store_seq(&o->message_id, 0); /* readers skip the record while it is being written */
    o->at_ns = shmq_wall_ns();
    o->pid = pid;
    o->signal = signal;
    shmq_store_seq(&o->message_id, id);
}
