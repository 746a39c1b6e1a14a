/* The purger takes the oldest entries out of the back ring. It writes them to disk: it commits their rows, then one word
 * decides, then it frees their slots. Or it hands them over to the front ring, where there are no rows. */
#include "flow/flow.h"
#include "limits/slot_free.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_walk.h"

typedef struct batch {
    shmq_row rows[SHMQ_TURN_ENTRIES];
    uint64_t at[SHMQ_TURN_ENTRIES]; /* where their bytes begin in the buffer */
    uint32_t count, most;
    shmq_ordinal last; /* of the last row */
    uint64_t from, end; /* the places that the flush looked at */
    uint64_t life_end; /* when the first of their lives ends */
    uint64_t tried; /* behind the last one that has failed */
} batch;

/* The step of a flush at the slot of a place. */
enum step { STEP_END, STEP_PASS, STEP_AGAIN, STEP_TAKE };

/* Says whether an entry may go to disk. A put that waits for its taker stays in the back ring, which alone knows it. */
static bool can_leave(const shmq_slot_shm *slot) { return (shmq_props(slot) & SHMQ_PROP_IMMEDIATE) == 0; }

static enum step step_at(shmq_mover *t, shmq_slot_shm *slot, uint64_t word, uint64_t p) {
    uint32_t state = shmq_word_state(word);
    int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(t->back, p));
    if (ahead < 0 || (ahead == 0 && state == SHMQ_FREE)) {
        return STEP_END; /* no producer has claimed p yet */
    }
    if (!shmq_is_here(slot, word, ahead, p)) {
        return STEP_PASS;
    }
    if (state == SHMQ_CLAIMED) {
        bool cleared =
            shmq_claim_clear(t->back, slot, word, false) || shmq_patience_over(t->back, &t->back->flushing, p, word);
        return cleared ? STEP_AGAIN : STEP_END; /* entries behind a claim must not overtake it */
    }
    return state == SHMQ_AVAILABLE && can_leave(slot) ? STEP_TAKE : STEP_PASS;
}

/* Leaves an entry in the ring: one that makes no sense, whose taker finds the damage, or one for which the disk has no
 * room. */
static void leave(shmq_mover *t, shmq_slot_shm *slot, uint64_t p) {
    uint64_t word;
    do {
        word = shmq_load_seq(&slot->word);
    } while (shmq_word_state(word) == SHMQ_MOVING &&
             !shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word)))); /* T21 */
    shmq_rewind(t->back, p);
}

static uint64_t size_of(const shmq_mover *t, uint32_t rows) { return t->used + rows * shmq_row_beside(t->q->m); }

/* Takes T19 for each entry that can go, and writes its row into the buffer, as long as the disk has room. */
static shmq_status collect(shmq_mover *t, batch *b, uint64_t room) {
    uint64_t most = room < SHMQ_TURN_BYTES ? room : SHMQ_TURN_BYTES;
    for (b->end = b->from; b->end < b->from + SHMQ_TURN_ENTRIES && t->used < most && b->count < b->most;) {
        shmq_slot_shm *slot = shmq_slot_at(t->back, b->end);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        enum step step = step_at(t, slot, word, b->end);
        if (step == STEP_END) {
            return SHMQ_OK;
        }
        if (step == STEP_AGAIN) {
            continue;
        }
        if (step == STEP_TAKE) {
            uint64_t moving = shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word));
            if (!shmq_cas_seq(&slot->word, word, moving)) { /* T19 */
                continue;
            }
            b->at[b->count] = t->used;
            b->rows[b->count].place = b->end;
            shmq_status status = shmq_row_write(t, t->back, slot, word, b->end, &b->last, &b->rows[b->count]);
            if (status == SHMQ_CORRUPT) {
                leave(t, slot, b->end);
            } else if (status != SHMQ_OK) {
                return status; /* the purger gives the entry back with the others */
            }
            if (SHMQ_UNLIKELY(size_of(t, b->count + 1) > room) && b->count != 0) {
                leave(t, slot, b->end);
                t->used = b->at[b->count];
                return SHMQ_OK;
            }
            if (status == SHMQ_OK) {
                uint64_t ends = shmq_life_end(t->q, b->rows[b->count].enqueued_ns, b->rows[b->count].expires_ns);
                b->life_end = ends < b->life_end ? ends : b->life_end;
                b->tried = b->rows[b->count].tried ? b->end + 1 : b->tried;
                b->last.count++;
                b->last.bytes += shmq_row_weight(b->rows[b->count++].length);
            }
        }
        b->end++;
    }
    return SHMQ_OK;
}

static bool is_seen(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    (void)r;
    (void)slot;
    return shmq_state_is_seen(shmq_word_state(word));
}

/* The flow's place, made safe against damage. More than a ring below the tail there are only carried entries, and more
 * than a ring above it there is nothing; a damaged flow word may still point there. */
static shmq_status first_to_look_at(shmq_ring *back, uint64_t *from) {
    uint64_t place = shmq_flow_place(shmq_load_seq(&back->shm->flow)), tail = shmq_load_seq(&back->shm->tail);
    uint64_t slots = shmq_slot_count(back);
    shmq_met old;
    *from = place;
    if (SHMQ_UNLIKELY(tail >> SHMQ_PLACE_BITS !=
                      0)) { /* a flow word cannot hold such a place: no flush would ever end */
        return shmq_damage(back->queue->m, "the tail of a ring is beyond all positions", tail);
    }
    if (SHMQ_UNLIKELY(place > tail + slots)) {
        return shmq_damage(back->queue->m, "the place up to which messages are on disk is beyond the tail", place);
    }
    if (SHMQ_UNLIKELY(place + 2 * slots < tail)) {
        *from = shmq_first_old(back, place, tail - slots, is_seen, &old) ? old.position : tail - slots;
    }
    return SHMQ_OK;
}

/* Garbage on disk comes only from a purge or from a turn that did not end. The purger deletes it only then (`unswept`):
 * a search at each flush would cost more, the more files there are. */
static shmq_status write_rows(shmq_mover *t, const batch *b) {
    shmq_a32 *unswept = &t->q->page->unswept;
    uint32_t bit = UINT32_C(1) << t->back->depth;
    bool sweeps = (shmq_load_seq(unswept) & bit) != 0;
    uint64_t low = shmq_load_relaxed(&t->back->shm->low);
    if (SHMQ_UNLIKELY(sweeps)) {
        SHMQ_TRY(shmq_erase_last(t)); /* else the unmarked row would be forgotten */
    }
    shmq_status status = t->backing->write(t->backing->context, sweeps, low, b->from, b->rows, b->count);
    if (SHMQ_UNLIKELY(sweeps) && status == SHMQ_OK) {
        shmq_store_seq(unswept, shmq_load_relaxed(unswept) & ~bit);
        shmq_disk_settle(t);
    }
    return status;
}

static _Thread_local batch b;

static void begin(shmq_mover *t, uint32_t most) {
    shmq_ring_shm *ring = t->back->shm;
    b.count = 0;
    b.most = most;
    b.life_end = SHMQ_NEVER;
    b.tried = shmq_load_relaxed(&ring->tried);
    b.last =
        (shmq_ordinal){.count = shmq_load_relaxed(&ring->flushed), .bytes = shmq_load_relaxed(&ring->flushed_bytes)};
    t->used = 0;
}

static void set_bytes(const shmq_mover *t) {
    for (uint32_t i = 0; i < b.count; i++) {
        b.rows[i].bytes = t->buffer + b.at[i];
    }
}

/* An entry that is handed over is no row: a mover that finds its slot after a death counts as many rows as before. */
static shmq_status fill(shmq_mover *t, uint32_t i, uint64_t position, const shmq_ordinal *last, shmq_coming *coming) {
    shmq_cold_shm *cold = shmq_cold_at(t->front, shmq_slot_at(t->front, position));
    SHMQ_TRY(shmq_front_fill(t, &b.rows[i], position, last, 0, coming));
    shmq_store_relaxed(&cold->ordinal, last->count);
    shmq_store_relaxed(&cold->ordinal_bytes, last->bytes);
    return SHMQ_OK;
}

shmq_status shmq_hand_over(shmq_mover *t) {
    static _Thread_local shmq_coming all[SHMQ_TURN_ENTRIES];
    shmq_ring_shm *ring = t->back->shm;
    uint64_t tail;
    uint32_t room, filled = 0;
    SHMQ_TRY(shmq_front_order_room(t, false, &tail, &room));
    if (room == 0) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_cold_need(t->front));
    begin(t, room);
    b.from = shmq_flow_place(shmq_load_seq(&ring->flow));
    shmq_status status = collect(t, &b, SHMQ_TURN_BYTES);
    set_bytes(t);
    const shmq_ordinal last = shmq_last_pulled(t->back);
    while (status == SHMQ_OK && filled < b.count) {
        status = fill(t, filled, tail + filled, &last, &all[filled]);
        filled += status == SHMQ_OK;
    }
    if (filled == 0) {
        shmq_flow_recover(t->back, t->front); /* makes them available again */
        return SHMQ_EMPTY;
    }
    uint64_t end = filled < b.count ? b.rows[filled].place : b.end;
    /* Overwrites what a dead purger's flush has left, which may name the same place. */
    shmq_flushing_say(ring, end, last.count, last.bytes);
    for (uint32_t i = 0; i < filled; i++) {
        (void)shmq_front_show(t, tail + i, &all[i]); /* T22: the decision for this entry */
    }
    shmq_store_seq(&ring->low, end);
    shmq_store_seq(&ring->flow, shmq_flow_word(end, true));
    for (uint32_t i = 0; i < b.count; i++) {
        if (i < filled) {
            shmq_moved_free(t->back, b.rows[i].place);
        } else {
            leave(t, shmq_slot_at(t->back, b.rows[i].place), b.rows[i].place);
        }
    }
    shmq_rows_end_flow(t);
    return SHMQ_OK;
}

shmq_status shmq_flush(shmq_mover *t) {
    shmq_ring_shm *ring = t->back->shm;
    begin(t, SHMQ_TURN_ENTRIES);
    SHMQ_TRY(first_to_look_at(t->back, &b.from));
    if (SHMQ_UNLIKELY(b.from != shmq_flow_place(shmq_load_seq(&ring->flow)))) {
        /* No entry lies in between. Recovery looks for MOVING slots near the flow's place, so the word comes first. */
        shmq_flushing_say(ring, b.from, shmq_load_relaxed(&ring->flushed), shmq_load_relaxed(&ring->flushed_bytes));
        shmq_store_seq(&ring->flow, shmq_flow_word(b.from, true));
    }
    uint64_t room = shmq_disk_room_of(t);
    if (SHMQ_UNLIKELY(room == 0)) {
        return shmq_flow_refused(t, shmq_load_seq(&ring->tail) > b.from ? SHMQ_FULL_DISK : SHMQ_EMPTY);
    }
    shmq_status status = collect(t, &b, room);
    status = status == SHMQ_OK && size_of(t, b.count) > room ? SHMQ_FULL_DISK : status;
    status = status == SHMQ_OK ? shmq_disk_claim(t, size_of(t, b.count)) : status;
    if (status == SHMQ_OK && b.end == b.from) {
        return SHMQ_EMPTY;
    }
    set_bytes(t);
    if (status == SHMQ_OK) {
        status = write_rows(t, &b);
    }
    if (status != SHMQ_OK) {
        shmq_flow_recover(t->back, t->front); /* makes all entries of the flush available again */
        (void)shmq_disk_claim(t, 0);
        return shmq_flow_refused(t, status);
    }
    if (b.life_end != SHMQ_NEVER) {
        shmq_rows_due_by(t->back, &ring->rows_due,
                         b.life_end); /* before they are rows, so the due word is never too late */
    }
    shmq_store_seq(&ring->tried, b.tried); /* likewise: join() looks no further for those */
    shmq_flushing_say(ring, b.end, b.last.count, b.last.bytes);
    shmq_store_seq(&ring->flow, shmq_flow_word(b.end, true)); /* the decision: from here on the rows are the entries */
    shmq_store_seq(&ring->flushed, b.last.count);
    shmq_store_seq(&ring->flushed_bytes, b.last.bytes);
    (void)shmq_disk_claim(t, 0);
    for (uint32_t i = 0; i < b.count; i++) {
        shmq_moved_free(t->back, b.rows[i].place);
    }
    shmq_add_seq(&t->q->m->header->flushes, 1);
    return SHMQ_OK;
}
