/* The front ring: its slots are filled while they are FREE, and each is an entry from its T22 on. An entry came in order, or
 * was fetched by itself. */
#include "flow/flow.h"
#include "limits/count.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"
#include "wake/due.h"

shmq_ordinal shmq_front_ordinal(const shmq_ring *front, const shmq_slot_shm *slot) {
    shmq_cold_shm *cold = shmq_cold_at(front, slot);
    return (shmq_ordinal){shmq_load_relaxed(&cold->ordinal), shmq_load_relaxed(&cold->ordinal_bytes),
                          shmq_read_once(&cold->fetched), shmq_read_once(&cold->fetched_bytes)};
}

bool shmq_is_fetched(const shmq_slot_shm *slot) { return (shmq_props(slot) & SHMQ_PROP_FETCHED) != 0; }

bool shmq_is_next_of_group(const shmq_slot_shm *slot) { return (shmq_props(slot) & SHMQ_PROP_NEXT) != 0; }

/* The words that count how many rows came in by themselves: of all rows, or of those that waited. */
typedef struct fetch_words {
    shmq_a64 *count, *bytes;
} fetch_words;

static fetch_words words_of(const shmq_ring *front, uint32_t props) {
    shmq_ring_shm *back = shmq_level_ring(front->queue, shmq_depth_at(front));
    bool waited = (props & SHMQ_PROP_WAITED) != 0;
    return waited ? (fetch_words){&back->came, &back->came_bytes}
                  : (fetch_words){&front->shm->fetched, &front->shm->fetched_bytes};
}

shmq_ordinal shmq_last_fetched(const shmq_ring *front, uint32_t props) {
    const fetch_words said = words_of(front, props);
    return (shmq_ordinal){.erased = shmq_load_relaxed(said.count), .erased_bytes = shmq_load_relaxed(said.bytes)};
}

void shmq_erased_say(shmq_ring *front, const shmq_slot_shm *slot) {
    const shmq_ordinal its = shmq_front_ordinal(front, slot);
    const fetch_words said = words_of(front, shmq_props(slot));
    if (its.erased > shmq_load_relaxed(said.count)) { /* else the tail was carried back to an older one */
        shmq_store_seq(said.bytes, its.erased_bytes);
        shmq_store_seq(said.count, its.erased);
    }
}

/* Counts entries of a front ring: those that were fetched, or those that came in order. */
static uint32_t count_entries(const shmq_ring *front, bool fetched) {
    uint32_t there = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
        there += shmq_state_is_entry(shmq_word_state(word)) && shmq_is_fetched(slot) == fetched;
    }
    return there;
}

/* Counts how many more fetched entries one part of so many of the front ring's slots has room for. */
uint32_t shmq_fetched_room(shmq_mover *t, uint32_t part) {
    uint64_t most = shmq_slot_count(t->front) / part;
    if (t->fetched == 0) { /* once in a turn: meanwhile takers may have had some */
        t->fetched = 1 + (shmq_load_relaxed(&t->front->shm->fetched_end) != 0 ? count_entries(t->front, true) : 0);
    }
    most += most == 0;
    return most >= t->fetched ? (uint32_t)(most - t->fetched + 1) : 0;
}

/* Only movers move the front ring's tail, and no producer claims slots there. So a used slot at the tail was filled
 * by a mover that died before it moved the tail. There is one such slot; behind a damaged tail there may be any
 * number. */
uint64_t shmq_front_tail(shmq_ring *front) {
    uint64_t t = shmq_load_seq(&front->shm->tail);
    for (uint64_t steps = 0; steps <= front->mask && t < shmq_load_acquire(&front->shm->laid);
         steps++) { /* SYNC ring.laid */
        uint64_t word = shmq_load_seq(&shmq_slot_at(front, t)->word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(front, t));
        if (ahead < 0 || (ahead == 0 && shmq_word_state(word) == SHMQ_FREE)) {
            break;
        }
        shmq_cas_seq(&front->shm->tail, t, t + 1); /* SYNC ring.tail */
        shmq_tail_passed(front, t);
        t = shmq_load_seq(&front->shm->tail);
    }
    return t;
}

uint64_t shmq_front_lacks(const shmq_ring *front) {
    uint64_t laid = shmq_slots_laid(front), slots = shmq_slot_count(front);
    uint64_t granules =
        shmq_granules_of((slots - laid) * front->slot_size) + (laid < slots ? 1 : 0); /* it may begin within one */
    granules += shmq_load_relaxed((shmq_a64 *)(uintptr_t)&front->shm->cold) == 0 ? shmq_cold_granules(front->shift) : 0;
    return granules << SHMQ_GRANULE_SHIFT;
}

/* A front ring has its memory before there are rows, so that each of them can come back whatever has all other memory,
 * and no taker waits for the structure lock. Bodies leave that memory free (kept_for_rings), but for many queues of a
 * small broker. Then a flush has to free it, which needs as much room on disk as the broker has memory. */
shmq_status shmq_front_need(shmq_mover *t) {
    SHMQ_TRY(shmq_cold_need(t->front));
    return shmq_load_relaxed(&t->front->shm->laid) <= t->front->mask ? shmq_ring_lay(t->front, t->front->mask)
                                                                     : SHMQ_OK;
}

shmq_status shmq_front_ready(shmq_mover *t) {
    shmq_status status = shmq_front_need(t);
    bool later = shmq_is_short(status) && shmq_disk_room(t->q->m) >= t->q->m->memory;
    return status == SHMQ_OK || later ? SHMQ_OK : shmq_is_short(status) ? SHMQ_EMPTY : status;
}

void shmq_flow_named(shmq_ring *back) {
    if (shmq_load_relaxed(&back->shm->flow) == 0) {
        shmq_store_seq(&back->shm->low, 1);
        shmq_store_seq(&back->shm->flow, shmq_flow_word(1, false));
    }
}

/* Counts the slots from the tail on that can be filled in one turn: at most half of the ring. So the slot before the
 * tail stays. */
shmq_status shmq_front_room(shmq_ring *front, uint64_t *tail, uint32_t *count) {
    uint64_t most = shmq_slot_count(front) / 2, wanted = *count < most ? *count : most;
    *count = 0;
    *tail = shmq_load_seq(&front->shm->tail);
    if (*tail + 2 * most >= shmq_load_acquire(&front->shm->laid)) { /* SYNC ring.laid; shmq_front_tail goes so far */
        SHMQ_TRY(shmq_ring_lay(front, *tail + 2 * most));
    }
    *tail = shmq_front_tail(front);
    uint64_t word = shmq_load_seq(&shmq_slot_at(front, *tail)->word);
    if (shmq_lap_ahead(word, shmq_lap_of(front, *tail)) < 0 && shmq_carry(front, *tail, false)) {
        *tail = shmq_front_tail(front);
    }
    for (; *count < wanted; (*count)++) {
        word = shmq_load_seq(&shmq_slot_at(front, *tail + *count)->word); /* SYNC ring.free */
        if (shmq_word_state(word) != SHMQ_FREE || shmq_word_lap(word) != shmq_lap_of(front, *tail + *count)) {
            break;
        }
    }
    return SHMQ_OK;
}

/* Looks whether all fetched entries have left the front ring: then its positions are in the order of places. */
void shmq_front_look_at_order(shmq_ring *front) {
    if (SHMQ_LIKELY(shmq_load_relaxed(&front->shm->fetched_end) == 0)) {
        return;
    }
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
        if (shmq_state_is_entry(shmq_word_state(word)) && shmq_is_fetched(slot)) {
            return;
        }
    }
    shmq_store_seq(&front->shm->fetched_end, 0);
}

/* With groups the rows that come in order may all be of one group, which a consumer has. Then takers fetch rows of
 * other groups from behind them. So rows in order have a quarter of the front ring, and fetched ones another: the tail
 * can be carried over both. Entries that were handed over have a quarter, too: takers that want some only may pass all
 * of them. */
shmq_status shmq_front_order_room(shmq_mover *t, bool rows, uint64_t *tail, uint32_t *count) {
    shmq_front_look_at_order(t->front);
    *count = UINT32_MAX;
    SHMQ_TRY(shmq_front_room(t->front, tail, count));
    if (!rows || SHMQ_UNLIKELY(t->q->grouping != SHMQ_GROUPS_NONE)) {
        uint64_t most = shmq_slot_count(t->front) / 4, used = count_entries(t->front, false);
        uint64_t left = shmq_left_of(most != 0 ? most : 1, used);
        *count = *count < left ? *count : (uint32_t)left;
    }
    return SHMQ_OK;
}

/* Fills one slot, which stays FREE. */
shmq_status shmq_front_fill(shmq_mover *t, const shmq_row *row, uint64_t p, const shmq_ordinal *last, uint32_t props,
                            shmq_coming *c) {
    shmq_slot_shm *slot = shmq_slot_at(t->front, p);
    shmq_fence_release(); /* SYNC ring.browse */
    SHMQ_TRY(shmq_row_read(t, row, last, props, slot, c));
    shmq_store_release(&slot->position, p); /* SYNC ring.publish: all of the slot before its AVAILABLE */
    return SHMQ_OK;
}

/* Takes T22: from here on the row is an entry. */
bool shmq_front_show(shmq_mover *t, uint64_t p, const shmq_coming *c) {
    shmq_ring *front = t->front;
    shmq_slot_shm *slot = shmq_slot_at(front, p);
    uint64_t word = shmq_load_seq(&slot->word);
    uint32_t state = SHMQ_UNLIKELY(c->held_until_ns != 0) ? SHMQ_HELD : SHMQ_AVAILABLE;
    uint64_t there = shmq_word(shmq_lap_of(front, p), 0, 0, c->flags, state);
    bool is_free = shmq_word_state(word) == SHMQ_FREE && shmq_word_lap(word) == shmq_lap_of(front, p);
    uint32_t limited = shmq_load_relaxed(&t->q->page->limited) & SHMQ_LIMITED_RESIDENT;
    uint64_t bytes = limited != 0 ? shmq_slot_bytes(slot, there) : 0;
    if (bytes != 0) {
        shmq_resident_add(t->q, bytes); /* before the entry is there, as a put does: the count is never too low */
    }
    if (SHMQ_UNLIKELY(!is_free) || !shmq_cas_seq(&slot->word, word, there)) { /* T22 */
        shmq_room_give(t->q, limited, 0, bytes);
        if (c->block.offset != 0) {
            shmq_block_drop(t->q->m, c->block.offset, c->block.generation, 0);
        }
        shmq_recount_ask(t->q); /* the row is lost */
        (void)shmq_damage(t->q->m, "a slot of a front ring was in use, at position", p);
        return false;
    }
    shmq_changed(front, slot);
    if (c->block.offset != 0) {
        shmq_block_share(t->q->m, &c->block); /* SYNC block.publish: the slot names it before it is SHARED */
    }
    shmq_cas_seq(&front->shm->tail, p, p + 1); /* SYNC ring.tail */
    shmq_tail_passed(front, p);
    if (shmq_word_carried(word)) {
        shmq_and_seq(&front->carried[(p & front->mask) >> 6], ~shmq_carried_bit(front, p));
    }
    uint64_t expires = shmq_expires_of(front, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns));
    if (expires != 0) {
        shmq_make_due(front, expires);
    }
    if (SHMQ_UNLIKELY(c->held_until_ns != 0)) {
        shmq_make_due(front, c->held_until_ns);
    }
    return true;
}
