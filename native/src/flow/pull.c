/* Rows come back: slots of the front ring are filled while they are FREE, and each is an entry from its T22 on. */
#include "shmq/cold.h"
#include "shmq/due.h"
#include "shmq/flow.h"
#include "shmq/ring_memory.h"

/* The tail of the front ring is the mover's alone, so nothing is claimed there: a slot that is used at its turn was filled, and its
 * mover has died before it moved the tail. There is one such; a damaged tail may see any number. */
uint64_t shmq_front_tail(shmq_ring *front) {
    uint64_t t = shmq_load_seq(&front->shm->tail);
    for (uint64_t steps = 0; steps <= front->mask && t < shmq_load_acquire(&front->shm->laid);
         steps++) { /* SYNC ring.laid */
        uint64_t word = shmq_load_seq(&shmq_slot_at(front, t)->word);
        int32_t ahead = shmq_lap_ahead(word, shmq_turn(front, t));
        if (ahead < 0 || (ahead == 0 && shmq_word_state(word) == SHMQ_FREE)) {
            break;
        }
        shmq_cas_seq(&front->shm->tail, t, t + 1); /* SYNC ring.tail */
        shmq_tail_passed(front, t);
        t = shmq_load_seq(&front->shm->tail);
    }
    return t;
}

/* How many slots from the tail on can be filled at once: at most half of the ring, so that the slot before the tail never is. */
static shmq_status free_slots(shmq_ring *front, uint64_t *tail, uint32_t *count) {
    uint64_t most = shmq_slot_count(front) / 2;
    *count = 0;
    *tail = shmq_load_seq(&front->shm->tail);
    if (*tail + 2 * most >= shmq_load_acquire(&front->shm->laid)) { /* SYNC ring.laid; so far shmq_front_tail may go */
        SHMQ_TRY(shmq_ring_lay(front, *tail + 2 * most));
    }
    *tail = shmq_front_tail(front);
    uint64_t word = shmq_load_seq(&shmq_slot_at(front, *tail)->word);
    if (shmq_lap_ahead(word, shmq_turn(front, *tail)) < 0 && shmq_carry(front, *tail)) {
        *tail = shmq_front_tail(front);
    }
    for (; *count < most; (*count)++) {
        word = shmq_load_seq(&shmq_slot_at(front, *tail + *count)->word); /* SYNC ring.free */
        if (shmq_word_state(word) != SHMQ_FREE || shmq_word_lap(word) != shmq_turn(front, *tail + *count)) {
            break;
        }
    }
    return SHMQ_OK;
}

/* One slot, still FREE. */
static shmq_status fill(shmq_mover *t, const shmq_row *row, uint64_t p, const shmq_ordinal *last, shmq_coming *c) {
    shmq_slot_shm *slot = shmq_slot_at(t->front, p);
    shmq_fence_release(); /* SYNC ring.browse */
    SHMQ_TRY(shmq_row_read(t, row, last, slot, c));
    shmq_store_release(&slot->position, p); /* SYNC ring.publish: all of the slot before its AVAILABLE */
    return SHMQ_OK;
}

/* T22: the row is an entry from here on. */
static void show(shmq_mover *t, uint64_t p, const shmq_coming *c) {
    shmq_ring *front = t->front;
    shmq_slot_shm *slot = shmq_slot_at(front, p);
    uint64_t word = shmq_load_seq(&slot->word);
    uint64_t available = shmq_word(shmq_turn(front, p), 0, 0, c->flags, SHMQ_AVAILABLE);
    uint32_t limited = shmq_load_relaxed(&t->q->page->limited) & SHMQ_LIMITED_RESIDENT;
    uint64_t bytes = limited != 0 ? shmq_slot_bytes(slot, available) : 0;
    if (bytes != 0) {
        shmq_resident_add(t->q,
                          bytes); /* before it is there, like a put's: what is counted is never less than what is */
    }
    if (!shmq_cas_seq(&slot->word, word, available)) { /* T22 */
        shmq_room_give(t->q, limited, 0, bytes);
        return;
    }
    if (c->block.offset != 0) {
        shmq_block_share(t->q->m, &c->block); /* SYNC block.publish: the slot names it before it is SHARED */
    }
    shmq_cas_seq(&front->shm->tail, p, p + 1); /* SYNC ring.tail */
    shmq_tail_passed(front, p);
    if (shmq_word_carried(word)) {
        shmq_and_seq(&front->carried[(p & front->mask) >> 6], ~(UINT64_C(1) << (p & 63)));
    }
    uint64_t expires =
        (shmq_props(slot) & SHMQ_PROP_EXPIRES) != 0 ? shmq_load_relaxed(&shmq_cold_at(front, slot)->expires_ns) : 0;
    if (expires != 0) {
        shmq_make_due(front, expires);
    }
}

static void say_pulled(shmq_mover *t, const shmq_ordinal *as) {
    shmq_store_seq(&t->back->shm->pulled, as->count);
    shmq_store_seq(&t->back->shm->pulled_bytes, as->bytes);
}

/* Fills as many as there is memory for, then shows them. SHMQ_NOT_FOUND: there were others before the first one, which are lost;
 * *first is its ordinal. */
static shmq_status bring_in(shmq_mover *t, const shmq_row *rows, uint32_t count, uint64_t tail, shmq_ordinal *first) {
    static _Thread_local shmq_coming all[SHMQ_TURN_ENTRIES];
    shmq_ring_shm *ring = t->back->shm;
    shmq_ordinal last = {shmq_load_relaxed(&ring->pulled), shmq_load_relaxed(&ring->pulled_bytes)};
    shmq_status status = SHMQ_OK;
    uint32_t filled = 0;
    for (; filled < count; filled++) {
        status = fill(t, &rows[filled], tail + filled, &last, &all[filled]);
        if (status != SHMQ_OK) {
            break;
        }
        last = all[filled].ordinal;
    }
    for (uint32_t i = 0; i < filled; i++) {
        show(t, tail + i, &all[i]);
    }
    if (filled != 0) {
        shmq_store_seq(&ring->low, rows[filled - 1].place + 1);
        say_pulled(t, &last);
        return SHMQ_OK;
    }
    *first = all[0].ordinal;
    return status;
}

/* What lay below `low` is there no more: it is counted out of the queue, and its taker is told. The others go on behind it. */
static shmq_status tell_lost(shmq_mover *t, uint64_t rows, uint64_t bytes) {
    uint64_t low = shmq_load_relaxed(&t->back->shm->low);
    (void)shmq_damage(t->q->m, "messages on disk", low);
    return shmq_fail(SHMQ_CORRUPT, "messages on disk are lost\n%llu of %llu bytes, before position %llu",
                     (unsigned long long)rows, (unsigned long long)bytes, (unsigned long long)low);
}

/* Up to this one, which has not come in. */
static shmq_status lose(shmq_mover *t, const shmq_ordinal *last) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t rows = last->count - shmq_load_relaxed(&ring->pulled);
    uint64_t before = shmq_load_relaxed(&ring->pulled_bytes), bytes = last->bytes > before ? last->bytes - before : 0;
    say_pulled(t, last);
    shmq_rows_gone(t->q, rows, bytes);
    return tell_lost(t, rows, bytes);
}

/* A row that was changed on disk. */
static shmq_status lose_damaged(shmq_mover *t, const shmq_row *row) {
    shmq_ring_shm *ring = t->back->shm;
    const shmq_ordinal its = {shmq_load_relaxed(&ring->pulled) + 1,
                              shmq_load_relaxed(&ring->pulled_bytes) + shmq_row_weight(row->length)};
    shmq_store_seq(&ring->low, row->place + 1);
    return lose(t, &its);
}

/* Those before this row, which is not in the queue yet. */
static shmq_status lose_before(shmq_mover *t, const shmq_row *row, const shmq_ordinal *ordinal) {
    const shmq_ordinal last = {ordinal->count - 1, ordinal->bytes - shmq_row_weight(row->length)};
    return lose(t, &last);
}

/* Behind the decision: what it says, as often as it takes. */
void shmq_drop_end(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm;
    uint64_t below = shmq_load_relaxed(&ring->dropping_at);
    if (below == 0) {
        return;
    }
    shmq_store_seq(&ring->pulled, shmq_load_relaxed(&ring->dropping_count));
    shmq_store_seq(&ring->pulled_bytes, shmq_load_relaxed(&ring->dropping_bytes));
    shmq_store_seq(&ring->low, below);
    shmq_store_seq(&ring->dropping_at, 0);
}

/* The decision, and what follows. Answers how many rows they were. */
static uint64_t drop(shmq_ring *back, uint64_t below, const shmq_ordinal *last) {
    shmq_ring_shm *ring = back->shm;
    uint64_t count = shmq_load_relaxed(&ring->pulled), bytes = shmq_load_relaxed(&ring->pulled_bytes);
    count = last->count > count ? last->count - count : 0;
    bytes = last->bytes > bytes ? last->bytes - bytes : 0;
    shmq_store_seq(&ring->dropping_count, last->count);
    shmq_store_seq(&ring->dropping_bytes, last->bytes);
    shmq_store_seq(&ring->dropping_at, below);
    shmq_drop_end(back);
    shmq_rows_gone(back->queue, count, bytes);
    return count;
}

/* The first row that stays says how many there were before it. */
shmq_status shmq_rows_drop(shmq_mover *t, uint64_t below, uint64_t *dropped) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), place = shmq_flow_place(flow), low = shmq_load_relaxed(&ring->low);
    *dropped = 0;
    shmq_store_seq(&t->q->page->unswept, UINT32_MAX);
    if (!shmq_flow_is_on(flow) || below <= low) {
        return SHMQ_OK;
    }
    shmq_row row;
    shmq_ordinal last = {shmq_load_relaxed(&ring->flushed), shmq_load_relaxed(&ring->flushed_bytes)}, first;
    uint32_t count = below < place ? 1 : 0;
    if (count != 0) {
        SHMQ_TRY(t->backing->read(t->backing->context, low, below, place, 0, &row, &count));
    }
    if (count != 0 && shmq_row_ordinal(&row, &first) && first.count > shmq_load_relaxed(&ring->pulled)) {
        last = (shmq_ordinal){first.count - 1, first.bytes - shmq_row_weight(row.length)};
    } else if (count != 0) { /* it was changed on disk: whoever comes to it says how many are lost */
        last = (shmq_ordinal){shmq_load_relaxed(&ring->pulled), shmq_load_relaxed(&ring->pulled_bytes)};
    }
    *dropped = drop(t->back, count != 0 ? below : place, &last);
    return SHMQ_OK;
}

/* The back ring is the queue again. If there should still be rows, they are lost. */
static shmq_status leave(shmq_mover *t, uint64_t place) {
    shmq_ring_shm *ring = t->back->shm;
    shmq_ordinal rows = shmq_rows_end(t->back);
    shmq_store_seq(&ring->low, place);
    shmq_store_seq(&ring->flow, shmq_flow_word(place, false));
    (void)t->backing->clear(t->backing->context); /* garbage: it may go later */
    return SHMQ_UNLIKELY(rows.count != 0) ? tell_lost(t, rows.count, rows.bytes) : SHMQ_OK;
}

uint64_t shmq_bytes_free(const shmq_queue *q) {
    uint64_t most = shmq_load_relaxed(&q->page->settings.max_memory);
    uint64_t used = shmq_load_relaxed(&q->page->resident) & SHMQ_WEIGHT_MASK;
    uint64_t share = shmq_flow_share(q->m), left = most == 0 ? share : most > used ? most - used : 0;
    return left < share ? left : share;
}

shmq_status shmq_pull(shmq_mover *t) {
    static _Thread_local shmq_row rows[SHMQ_TURN_ENTRIES];
    shmq_ring_shm *ring = t->back->shm;
    uint64_t below = shmq_flow_place(shmq_load_seq(&ring->flow)), tail;
    uint32_t count;
    SHMQ_TRY(free_slots(t->front, &tail, &count));
    if (count == 0) {
        return SHMQ_EMPTY;
    }
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&t->front->shm->cold) == 0) && tail == 0) { /* the flow began without memory */
        SHMQ_TRY(shmq_cold_need(t->front));
    }
    count = count < SHMQ_TURN_ENTRIES ? count : SHMQ_TURN_ENTRIES;
    SHMQ_TRY(t->backing->read(t->backing->context, shmq_load_relaxed(&ring->low), shmq_load_relaxed(&ring->low), below,
                              shmq_bytes_free(t->q), rows, &count));
    if (count == 0) {
        return leave(t, below);
    }
    if (shmq_cold_at(t->front, shmq_slot_at(t->front, tail)) ==
        NULL) { /* no row is at fault: they stay where they are */
        return shmq_damage(t->q->m, "cold records of a front ring", shmq_load_relaxed(&t->front->shm->cold));
    }
    shmq_store_seq(&ring->low, rows[0].place); /* what came back below it needs no room in front */
    shmq_ordinal first;
    shmq_status status = bring_in(t, rows, count, tail, &first);
    if (SHMQ_UNLIKELY(status == SHMQ_NOT_FOUND)) {
        return lose_before(t, &rows[0], &first);
    }
    return status == SHMQ_CORRUPT ? lose_damaged(t, &rows[0]) : status;
}
