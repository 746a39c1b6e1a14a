/* Waiting rows: the purger takes delayed entries out of both rings, as a flush takes others. See waiting.h. */
#include "flow/waiting.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "consumers/sleepers.h"
#include "limits/count.h"
#include "queue/cold.h"
#include "ring/ring_memory.h"
#include "segment/alert_time.h"
#include "time/times.h"

#include <stdlib.h>

/* One that goes. */
typedef struct leaving {
    uint64_t ends; /* when it is due, or its life ends; files have rows in this order */
    uint64_t place, position;
    uint64_t at; /* where its row begins in the buffer */
} leaving;

typedef struct batch {
    uint32_t count, room;
    uint64_t bytes; /* headers and bodies */
    leaving *of;
    shmq_row *rows; /* as many */
} batch;

static shmq_status no_memory(void) { return shmq_fail_errno("no memory to write delayed messages to disk"); }

static shmq_status make_room(batch *b) {
    uint32_t room = b->room != 0 ? 2 * b->room : 64;
    leaving *of = b->count < b->room ? b->of : realloc(b->of, room * sizeof *of);
    if (of != NULL && b->count == b->room) {
        b->of = of;
        b->room = room;
    }
    return of != NULL ? SHMQ_OK : no_memory();
}

/* W2 of each entry that is held for long. As long as one of so many slots has one, it pays to go on. */
#define WORTHWHILE 8u

/* SHMQ_FULL_DISK: there is one, and no room. */
static shmq_status collect(shmq_mover *t, shmq_ring *r, batch *b, uint64_t slots, uint64_t room) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), laid = shmq_slots_laid(r), now = shmq_now_ns(), size = 0;
    uint64_t most = room < SHMQ_TURN_BYTES ? room : SHMQ_TURN_BYTES;
    for (uint64_t i = 0; i <= r->mask && (i < slots || b->count * WORTHWHILE > i); i++) {
        uint64_t index = (tail + i) & r->mask;
        if (index >= laid) {
            continue; /* the slot has no memory */
        }
        shmq_slot_shm *slot = shmq_slot_at(r, index);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        if (shmq_word_state(word) != SHMQ_HELD) {
            continue;
        }
        uint64_t until = shmq_held_until(r, slot, now),
                 position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
        if (until <= now + SHMQ_WAITS_LEAST_NS) {
            continue;
        }
        if (room == 0) {
            return SHMQ_FULL_DISK;
        }
        size += shmq_rows_size(t->q->m, 1, shmq_slot_bytes(slot, word));
        if (b->count == SHMQ_FILE_ROWS || (b->count != 0 && size > most)) {
            break; /* the next turn goes on */
        }
        SHMQ_TRY(make_room(b));
        uint64_t moving = shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word)) | SHMQ_FLAG_WAITS;
        if (shmq_cas_seq(&slot->word, word, moving)) { /* T19 */
            uint64_t expires = shmq_expires_of(r, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns));
            b->of[b->count++] = (leaving){.ends = expires != 0 && expires < until ? expires : until,
                                          .place = shmq_slot_place(r, slot, position),
                                          .position = position};
        }
    }
    return SHMQ_OK;
}

static int by_time(const void *a, const void *b) {
    const leaving *left = a, *right = b;
    return left->ends != right->ends ? (left->ends < right->ends ? -1 : 1) : (left->place < right->place ? -1 : 1);
}

/* Their rows into the buffer. One that makes no sense stays, and its taker finds the damage. */
static shmq_status write_all(shmq_mover *t, shmq_ring *r, batch *b) {
    const uint64_t from = shmq_load_relaxed(&t->back->shm->waiting), now = shmq_now_ns();
    uint32_t all = b->count;
    b->count = 0;
    if (all != 0 && (b->rows = malloc(all * sizeof *b->rows)) == NULL) {
        return no_memory();
    }
    for (uint32_t i = 0; i < all; i++) {
        leaving its = b->of[i];
        shmq_slot_shm *slot = shmq_slot_at(r, its.position);
        const shmq_ordinal as = {.count = its.place - 1};
        shmq_row *row = &b->rows[b->count];
        row->place = from + b->count;
        its.at = t->used;
        shmq_status status =
            shmq_row_write(t, r, slot, shmq_load_seq(&slot->word), its.position, &as, row); /* SYNC ring.publish */
        if (status == SHMQ_CORRUPT) {
            shmq_hold_again(r, slot);
            continue;
        }
        SHMQ_TRY(status);
        uint64_t until = shmq_held_until(r, slot, now);
        row->expires_ns = row->expires_ns != 0 && row->expires_ns < until ? row->expires_ns : until;
        b->bytes += shmq_row_weight(row->length);
        b->of[b->count++] = its;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        b->rows[i].bytes = t->buffer + b->of[i].at;
    }
    return SHMQ_OK;
}

/* W3. A file that a dead purger has left has the name of this one. */
static shmq_status write_rows(shmq_mover *t, const batch *b) {
    uint64_t from = shmq_load_relaxed(&t->back->shm->waiting);
    SHMQ_TRY(shmq_disk_claim(t, t->used + b->count * shmq_row_beside(t->q->m)));
    return t->waiting->write(t->waiting->context, false, 0, from, b->rows, b->count);
}

/* W4 and W5. */
static void decide(shmq_mover *t, const batch *b) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t bytes = shmq_load_relaxed(&ring->waiting_bytes) + b->bytes, earliest = SHMQ_NEVER;
    for (uint32_t i = 0; i < b->count; i++) {
        uint64_t ends = shmq_life_end(t->q, b->rows[i].enqueued_ns, b->rows[i].expires_ns);
        earliest = ends < earliest ? ends : earliest;
    }
    shmq_rows_due_by(t->back, &ring->waiting_due, earliest);
    shmq_store_seq(&ring->waiting_to_bytes, bytes);
    shmq_store_seq(&ring->waiting, shmq_load_relaxed(&ring->waiting) + b->count);
    shmq_store_seq(&ring->waiting_bytes, bytes);
    (void)shmq_disk_claim(t, 0);
}

static shmq_status flush(shmq_mover *t, shmq_ring *r, batch *b, uint64_t slots) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t room = shmq_disk_room_of(t);
    t->used = 0;
    shmq_store_seq(&ring->waiting_from, shmq_load_relaxed(&ring->waiting) + 1); /* W1 */
    shmq_status status = collect(t, r, b, slots, room);
    if (status == SHMQ_OK && b->count != 0) {
        qsort(b->of, b->count, sizeof b->of[0], by_time);
        status = write_all(t, r, b);
    }
    if (status == SHMQ_OK && b->count == 0) { /* as in a queue whose messages only expire: nothing is MOVING */
        shmq_store_seq(&ring->waiting_from, 0);
        return SHMQ_EMPTY;
    }
    status = status == SHMQ_OK ? write_rows(t, b) : status;
    if (status != SHMQ_OK) {
        shmq_waiting_recover(t->back, t->front); /* holds all of them again */
        (void)shmq_disk_claim(t, 0);
        return shmq_flow_refused(t, status);
    }
    shmq_flow_named(t->back);
    if (shmq_waiting_of(ring).count == 0) {
        shmq_alerts_hurry(t->q->m);
    }
    decide(t, b);
    for (uint32_t i = 0; i < b->count; i++) {
        shmq_moved_free(r, b->of[i].position); /* W6 */
    }
    shmq_store_seq(&ring->waiting_from, 0); /* W7 */
    shmq_add_seq(&t->q->m->header->flushes, 1);
    if (r == t->front) {
        shmq_notify_starved(t->q);
    }
    return SHMQ_OK;
}

shmq_status shmq_waiting_flush(shmq_mover *t, shmq_ring *r, uint64_t slots) {
    if (shmq_load_relaxed(&r->shm->due) == 0) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_waiting_store(t));
    SHMQ_TRY(shmq_front_ready(t));
    batch b = {.count = 0};
    shmq_status status = flush(t, r, &b, slots);
    free(b.of);
    free(b.rows);
    return status;
}

void shmq_waiting_settle(shmq_mover *t, const shmq_row_life *lives, uint32_t count) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += shmq_row_weight(lives[i].length);
    }
    if (shmq_waiting_store(t) != SHMQ_OK || t->waiting->discard == NULL ||
        t->waiting->discard(t->waiting->context, lives[0].place) != SHMQ_OK) {
        shmq_trail_clear(); /* a later pass tries it again: until then too much is counted, not too little */
        return;
    }
    shmq_store_seq(&ring->waiting_freed, shmq_load_relaxed(&ring->waiting_freed) + count);
    shmq_store_seq(&ring->waiting_freed_bytes, shmq_load_relaxed(&ring->waiting_freed_bytes) + bytes);
}

void shmq_waiting_clear(shmq_mover *t) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t waiting = shmq_load_relaxed(&ring->waiting);
    if (!shmq_may_flow(t->q) || shmq_waiting_of(ring).count != 0 ||
        shmq_load_relaxed(&ring->waiting_freed) >= waiting) {
        return;
    }
    if (shmq_waiting_store(t) != SHMQ_OK || t->waiting->clear(t->waiting->context) != SHMQ_OK) {
        shmq_trail_clear(); /* garbage by now: a failure does no harm */
        return;
    }
    shmq_store_seq(&ring->waiting_low, waiting);
    shmq_store_seq(&ring->waiting_freed, waiting);
    shmq_store_seq(&ring->waiting_freed_bytes, shmq_load_relaxed(&ring->waiting_bytes));
    shmq_alerts_hurry(t->q->m);
}
