/* The mover fetches one row by itself, before the rows below it. A taker asks for that: it wants none of the rows
 * below, or it knows the place of the one. The mover puts the row into the front ring, at or above the ring's `low`,
 * where takers that take in order pass it until all rows below have come in, too. The mover marks the row on disk as
 * gone; a pull passes it later. */
#include "shmq/cold.h"
#include "shmq/flow.h"
#include "shmq/ring_memory.h"
#include "shmq/upkeep.h"
#include "shmq/wait_time.h"

#define AT_ONCE 64u /* rows of one read */

shmq_ordinal shmq_front_ordinal(const shmq_ring *front, const shmq_slot_shm *slot) {
    shmq_cold_shm *cold = shmq_cold_at(front, slot);
    return (shmq_ordinal){shmq_load_relaxed(&cold->ordinal), shmq_load_relaxed(&cold->ordinal_bytes),
                          shmq_read_once(&cold->place), shmq_read_once(&cold->intent)};
}

bool shmq_is_fetched(const shmq_slot_shm *slot) { return (shmq_props(slot) & SHMQ_PROP_FETCHED) != 0; }

bool shmq_is_next_of_group(const shmq_slot_shm *slot) { return (shmq_props(slot) & SHMQ_PROP_NEXT) != 0; }

void shmq_erased_say(shmq_ring *front, const shmq_slot_shm *slot) {
    const shmq_ordinal its = shmq_front_ordinal(front, slot);
    if (its.erased > shmq_load_relaxed(&front->shm->flushed)) { /* else the tail was carried back to an older one */
        shmq_store_seq(&front->shm->flushed, its.erased);
        shmq_store_seq(&front->shm->flushed_bytes, its.erased_bytes);
    }
}

/* Fetched entries may use a quarter of the front ring. The rows below them need slots, too: without one no taker would
 * get past the fetched ones. */
#define FETCHED_SHARE 4u

bool shmq_fetched_have(const shmq_ring *front, uint32_t part) {
    uint64_t there = 0, most = shmq_slot_count(front) / part;
    for (uint64_t i = 0; i < shmq_slots_laid(front) && shmq_load_relaxed(&front->shm->low) != 0; i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
        there += shmq_state_is_entry(shmq_word_state(word)) && shmq_is_fetched(slot);
    }
    return there >= (most != 0 ? most : 1);
}

/* T22 is the decision. If the mover dies behind it, the next mover does the rest: the slot before the tail says that
 * its row was fetched. */
static shmq_status fetch_row(shmq_mover *t, const shmq_row *row) {
    shmq_ring_shm *front = t->front->shm;
    uint64_t tail, place = row->place, erased = shmq_load_relaxed(&front->flushed);
    uint32_t room;
    SHMQ_TRY(shmq_front_room(t->front, &tail, &room));
    if (room == 0 || shmq_fetched_have(t->front, FETCHED_SHARE)) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_cold_need(t->front));
    shmq_coming coming;
    const shmq_ordinal with = {.erased = erased + 1,
                               .erased_bytes = shmq_load_relaxed(&front->flushed_bytes) + shmq_row_weight(row->length)};
    SHMQ_TRY(shmq_front_fill(t, row, tail, &with, SHMQ_PROP_FETCHED | t->fetched_as, &coming));
    shmq_store_seq(&front->low,
                   tail + 1); /* stored before the entry is shown: from now on takers go by places, not by positions */
    if (!shmq_front_show(t, tail, &coming)) {
        return SHMQ_CORRUPT;
    }
    if (t->backing->erase(t->backing->context, erased, place) != SHMQ_OK) {
        shmq_store_seq(&t->q->page->unswept, UINT32_MAX); /* this turn ends, and the next one begins with the mark */
        t->unmarked = true;
    }
    shmq_erased_say(t->front, shmq_slot_at(t->front, tail));
    return SHMQ_OK;
}

static shmq_status find_and_fetch(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context) {
    const shmq_ring_shm *ring = t->back->shm;
    shmq_row rows[AT_ONCE];
    shmq_delivery d;
    uint64_t low = shmq_load_relaxed((shmq_a64 *)(uintptr_t)&ring->low), until = shmq_now_ns() + SHMQ_SEARCH_NS;
    uint64_t below = shmq_flow_place(shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->flow));
    below = end < below ? end : below;
    *place = *place > low ? *place : low;
    for (bool first = true; *place < below && (first || shmq_now_ns() < until); first = false) {
        uint32_t count = AT_ONCE;
        SHMQ_TRY(shmq_read_rows(t, *place, below, SHMQ_TURN_BYTES, rows, &count));
        if (count == 0) {
            *place = below;
        }
        for (uint32_t i = 0; i < count; i++) {
            bool there = rows[i].bytes != NULL && shmq_row_parse(&rows[i], &d); /* the taker of a changed row is told */
            *place = rows[i].place;
            d.depth = t->back->depth;
            shmq_row_use use = there ? wants(context, &d) : SHMQ_ROW_PASSED;
            if (use != SHMQ_ROW_PASSED) {
                return use == SHMQ_ROW_WANTED ? fetch_row(t, &rows[i]) : SHMQ_INTERRUPTED;
            }
            *place = rows[i].place + 1;
        }
    }
    return SHMQ_NOT_FOUND;
}

shmq_status shmq_fetch(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context) {
    if (shmq_bytes_free(t->q) < shmq_flow_share(t->q->m)) {
        (void)shmq_make_way(t);
    }
    shmq_status status = find_and_fetch(t, place, end, wants, context);
    if (SHMQ_UNLIKELY(shmq_is_short(status)) &&
        (shmq_make_way(t) == SHMQ_OK || shmq_upkeep.relieve(t->q->m, t->q, true) == SHMQ_OK)) {
        status = find_and_fetch(t, place, end, wants, context);
    }
    if (SHMQ_UNLIKELY(shmq_is_short(status) || status == SHMQ_IN_USE)) { /* memory and disk are full, or locked */
        t->has_kept = true;
        status = find_and_fetch(t, place, end, wants, context);
    }
    return shmq_is_short(status) ? SHMQ_EMPTY : status;
}

static shmq_row_use any(void *context, const shmq_delivery *row) {
    (void)context;
    (void)row;
    return SHMQ_ROW_WANTED;
}

shmq_status shmq_fetch_at(shmq_mover *t, uint64_t place) {
    uint64_t at = place;
    return shmq_fetch(t, &at, place + 1, any, NULL);
}

shmq_status shmq_flow_fetch(shmq_ring *back, uint64_t place) {
    shmq_mover t;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    bool on = shmq_flow_is_on(shmq_load_seq(&back->shm->flow));
    shmq_status status = on ? shmq_fetch_at(&t, place) : SHMQ_NOT_FOUND;
    shmq_turn_end(&t);
    return status;
}
