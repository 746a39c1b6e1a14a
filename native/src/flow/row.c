/* Makes a row of an entry, and an entry of a row. */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "flow/flow.h"
#include "groups/group.h"
#include "queue/cold.h"
#include "ring/outgoing.h"
#include "ring/ring_delivery.h"
#include "wake/due.h"
#include "wake/watch.h"

/* The head of a row, before headers and body. In the machine's byte order: rows do not outlive the segment. */
typedef struct row_head {
    uint32_t sum; /* CRC-32C of all that follows: a row that was changed on disk is never delivered */
    uint32_t crc; /* checksum of the message */
    uint64_t place, message_id, enqueued_ns;
    uint64_t expires_ns; /* 0: never */
    uint64_t ordinal, ordinal_bytes; /* of a waiting row, whose `place` is its key: its place, and nothing */
    uint32_t body_len;
    uint16_t head_len;
    uint16_t delivery;
    uint16_t deaths;
    uint8_t content, priority;
    uint32_t redelivered;
} row_head;

#define SUMMED offsetof(row_head, crc)

uint64_t shmq_rows_size(const shmq_member *m, uint64_t rows, uint64_t bytes) {
    return rows * (sizeof(row_head) + shmq_row_beside(m)) + bytes;
}

uint64_t shmq_life_end(const shmq_queue *q, uint64_t enqueued_ns, uint64_t expires_ns) {
    uint64_t max_ttl = shmq_load_relaxed(&q->page->settings.max_ttl_ns),
             end = expires_ns != 0 ? expires_ns : SHMQ_NEVER;
    if (SHMQ_UNLIKELY(end != SHMQ_NEVER && end > enqueued_ns && end - enqueued_ns > SHMQ_DUE_LONGEST)) {
        end = SHMQ_NEVER; /* damaged: each look would find it due */
    }
    bool ages = max_ttl != SHMQ_NEVER && enqueued_ns + max_ttl >= enqueued_ns;
    return ages && enqueued_ns + max_ttl < end ? enqueued_ns + max_ttl : end;
}

void shmq_rows_due_by(shmq_ring *back, shmq_a64 *word, uint64_t at) {
    shmq_member *m = back->queue->m;
    (void)shmq_due_at(word, at);
    if (shmq_due_at(&m->header->due, at)) {
        shmq_watch_hurry(m);
    }
}

uint64_t shmq_row_weight(uint64_t length) { return length > sizeof(row_head) ? length - sizeof(row_head) : 0; }

static bool grow(shmq_mover *t, uint64_t bytes) {
    uint64_t wanted = t->used + bytes;
    if (wanted <= t->room) {
        return true;
    }
    uint64_t room = t->room * 2 > wanted ? t->room * 2 : wanted;
    unsigned char *buffer = realloc(t->buffer, room);
    if (buffer == NULL) {
        return false;
    }
    t->buffer = buffer;
    t->room = room;
    return true;
}

shmq_status shmq_row_write(shmq_mover *t, shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, uint64_t position,
                           const shmq_ordinal *last, shmq_row *row) {
    shmq_delivery d = {.position = position};
    shmq_delivery_read(r, slot, &d);
    if (!shmq_delivery_resolve(r, slot, &d)) {
        return SHMQ_CORRUPT;
    }
    if (!grow(t, sizeof(row_head) + d.headers_len + d.body_len)) {
        return shmq_fail_errno("no memory to write messages to disk");
    }
    shmq_cold_shm *cold = (d.props & SHMQ_PROP_EXPIRES) != 0 ? shmq_cold_at(r, slot) : NULL;
    row_head head = {
        .crc = d.crc,
        .place = row->place,
        .message_id = d.message_id,
        .enqueued_ns = d.enqueued_ns,
        .expires_ns = cold != NULL ? shmq_load_relaxed(&cold->expires_ns) : 0,
        .ordinal = last->count + 1,
        .ordinal_bytes = last->bytes + d.headers_len + d.body_len,
        .body_len = d.body_len,
        .head_len = d.headers_len,
        .delivery = d.delivery,
        .deaths = d.deaths,
        .content = d.content,
        .priority = d.priority,
        .redelivered = (word & SHMQ_FLAG_REDELIVERED) != 0,
    };
    unsigned char *at = t->buffer + t->used;
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, d.headers, d.headers_len);
    memcpy(at + sizeof head + d.headers_len, d.bytes, d.body_len);
    row->enqueued_ns = head.enqueued_ns;
    row->expires_ns = head.expires_ns;
    row->tried = (d.delivery | d.deaths) != 0;
    row->length = sizeof head + d.headers_len + d.body_len;
    head.sum = shmq_crc32c(0, at + SUMMED, row->length - SUMMED);
    memcpy(at, &head.sum, sizeof head.sum);
    row->bytes = NULL; /* the buffer may still move: the caller sets it at the end */
    t->used += row->length;
    return SHMQ_OK;
}

static bool is_sound(const shmq_row *row, row_head *head) {
    if (row->length < sizeof *head) {
        return false;
    }
    memcpy(head, row->bytes, sizeof *head);
    return head->place == row->place && row->length == sizeof *head + head->head_len + head->body_len &&
           head->sum == shmq_crc32c(0, row->bytes + SUMMED, row->length - SUMMED);
}

bool shmq_row_ordinal(const shmq_row *row, shmq_ordinal *ordinal) {
    row_head head;
    bool sound = is_sound(row, &head);
    if (sound) {
        *ordinal = (shmq_ordinal){.count = head.ordinal, .bytes = head.ordinal_bytes};
    }
    return sound;
}

bool shmq_row_parse(const shmq_row *row, shmq_delivery *d) {
    row_head head;
    if (!is_sound(row, &head)) {
        return false;
    }
    *d = (shmq_delivery){
        .position = head.place,
        .depth = SHMQ_ON_DISK,
        .word = head.redelivered != 0 ? SHMQ_FLAG_REDELIVERED : 0,
        .message_id = head.message_id,
        .enqueued_ns = head.enqueued_ns,
        .body_len = head.body_len,
        .crc = head.crc,
        .headers_len = head.head_len,
        .delivery = head.delivery,
        .deaths = head.deaths,
        .content = head.content,
        .priority = head.priority,
        .expires_ns = head.expires_ns,
        .headers = row->bytes + sizeof head,
        .bytes = row->bytes + sizeof head + head.head_len,
    };
    return true;
}

/* A stopped process may have the structure lock: the inhaler waits for it only where it has no other way. */
static shmq_status take_block(shmq_mover *t, uint64_t bytes, shmq_block *block) {
    shmq_status status = shmq_block_try(t->q->m, bytes, block);
    if (status == SHMQ_OK || !t->has_kept) {
        return status;
    }
    if (shmq_block_take_kept(t->q->m, bytes, block)) {
        t->has_kept = false;
        return SHMQ_OK;
    }
    return status == SHMQ_IN_USE ? shmq_block_take(t->q->m, bytes, block) : status;
}

/* Copies headers and body into the slot, or into a block. */
static shmq_status place_bytes(shmq_mover *t, const row_head *head, const unsigned char *bytes, shmq_slot_shm *slot,
                               shmq_block *block) {
    unsigned char *headers = slot->inline_area, *body = headers + head->head_len;
    block->offset = 0;
    if ((uint64_t)head->head_len + head->body_len > t->front->inline_bytes) {
        uint64_t start = shmq_body_start(head->head_len);
        SHMQ_TRY(take_block(t, start + head->body_len, block));
        headers = shmq_at(t->q->m, block->offset);
        body = headers + start;
    }
    memcpy(headers, bytes, head->head_len);
    memcpy(body, bytes + head->head_len, head->body_len);
    shmq_write_once(&slot->body, block->offset != 0 ? shmq_body_ref(block->offset, 0) : 0);
    shmq_write_once(&slot->body_gen, block->offset != 0 ? block->generation : 0);
    return SHMQ_OK;
}

/* An ordinal beyond all flushed rows does not mean lost rows: the words of the queue are wrong. */
static bool follows(const shmq_mover *t, const row_head *head, const shmq_ordinal *last) {
    return head->ordinal <= last->count + 1 || head->ordinal > shmq_load_relaxed(&t->back->shm->flushed);
}

shmq_status shmq_row_read(shmq_mover *t, const shmq_row *row, const shmq_ordinal *last, uint32_t as,
                          shmq_slot_shm *slot, shmq_coming *c) {
    row_head head;
    if (!is_sound(row, &head)) {
        return SHMQ_CORRUPT;
    }
    c->ordinal = *last;
    c->ordinal.count = head.ordinal;
    c->ordinal.bytes = head.ordinal_bytes;
    if (SHMQ_UNLIKELY((as & SHMQ_PROP_FETCHED) == 0 && !follows(t, &head, last))) {
        return SHMQ_NOT_FOUND;
    }
    shmq_cold_shm *cold = shmq_cold_at(t->front, slot);
    if (cold == NULL) {
        return SHMQ_CORRUPT;
    }
    SHMQ_TRY(place_bytes(t, &head, row->bytes + sizeof head, slot, &c->block));
    const shmq_queue *q = t->q;
    uint32_t group =
        q->grouping != SHMQ_GROUPS_NONE ? shmq_group_of_headers(q, row->bytes + sizeof head, head.head_len) : 0;
    uint64_t props = (head.expires_ns != 0 ? SHMQ_PROP_EXPIRES : 0) | as | (group != 0 ? SHMQ_PROP_GROUP : 0);
    bool waited = (as & SHMQ_PROP_WAITED) != 0;
    shmq_write_once(&cold->group, (uint64_t)group);
    shmq_write_once(&cold->back, waited ? head.ordinal : row->place);
    shmq_store_relaxed(&cold->ordinal, waited ? row->place : head.ordinal);
    shmq_store_relaxed(&cold->ordinal_bytes, head.ordinal_bytes);
    shmq_write_once(&cold->fetched, last->erased);
    shmq_write_once(&cold->fetched_bytes, last->erased_bytes);
    shmq_store_relaxed(&cold->expires_ns, head.expires_ns);
    shmq_write_once(&slot->message_id, head.message_id);
    shmq_write_once(&slot->enqueued_ns, head.enqueued_ns);
    shmq_write_once(&slot->body_len, head.body_len);
    shmq_store_relaxed(&slot->summary, shmq_summary(head.crc, head.head_len) | (uint64_t)head.delivery << 48);
    shmq_store_relaxed(&slot->tally, (uint64_t)head.deaths | (uint64_t)head.content << 16 |
                                         (uint64_t)head.priority << 24 | props << 32);
    c->flags = head.redelivered != 0 ? SHMQ_FLAG_REDELIVERED : 0;
    c->held_until_ns = 0;
    return SHMQ_OK;
}
