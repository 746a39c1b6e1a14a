/* The inhaler fetches rows by themselves, before those below them. A taker asks for that: it wants none of the rows
 * below, or it knows the place of the one. Or a delayed one is due. It puts such a row into the front ring, at or above
 * the ring's `low`, where takers that take in order pass it until all rows below have come in, too. The inhaler marks
 * the row on disk as gone; a pull passes it later. */
#include "base/clock.h"
#include "base/wait_time.h"
#include "consumers/sleepers.h"
#include "flow/waiting.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "wake/due.h"

#define AT_ONCE 64u /* rows of one read */

/* Fetched entries may use a quarter of the front ring. The rows below them need slots, too: without one no taker would
 * get past the fetched ones. */
#define FETCHED_SHARE 4u
/* Of these, so few may have waited, since takers that search need slots for others. */
#define WAITED_SHARE 8u

/* Rows that come in by themselves together. */
typedef struct fetched {
    const shmq_row *rows;
    const shmq_row_life *lives; /* of waiting rows, as their backing listed them */
    uint32_t count;
    uint32_t as; /* props */
} fetched;

/* Returns until when an entry of a waiting row is held; 0: it is not held. */
static uint64_t held_until(const shmq_mover *t, const fetched *f, uint32_t i) {
    const shmq_row_life *life = f->lives != NULL ? &f->lives[i] : NULL;
    return life != NULL && shmq_life_end(t->q, life->enqueued_ns, life->expires_ns) > shmq_now_ns() ? life->expires_ns
                                                                                                    : 0;
}

/* Reads rows into slots from the tail on, as many as there is memory for. */
static shmq_status fill(shmq_mover *t, fetched *f, uint64_t tail, shmq_coming *coming) {
    shmq_ordinal with = shmq_last_fetched(t->front, f->as);
    shmq_status status = SHMQ_OK;
    for (uint32_t i = 0; i < f->count; i++) {
        with.erased++;
        with.erased_bytes += shmq_row_weight(f->rows[i].length);
        status = shmq_front_fill(t, &f->rows[i], tail + i, &with, SHMQ_PROP_FETCHED | f->as, &coming[i]);
        if (status != SHMQ_OK) {
            f->count = i;
            break;
        }
        uint64_t held = held_until(t, f, i);
        if (held != 0) {
            shmq_store_relaxed(&shmq_cold_at(t->front, shmq_slot_at(t->front, tail + i))->not_before_ns, held);
            shmq_props_change(shmq_slot_at(t->front, tail + i), SHMQ_PROP_NOT_BEFORE, 0);
            coming[i].held_until_ns = held;
            shmq_make_due(t->front, held); /* also before it is shown: a death behind that leaves it to nobody else */
        }
    }
    return f->count != 0 ? SHMQ_OK : status;
}

/* They are entries now: the backing marks them as gone. If it fails this turn ends, and the next one begins with the
 * marks. */
static void mark(shmq_mover *t, const fetched *f, uint32_t count) {
    uint64_t erased = shmq_last_fetched(t->front, f->as).erased;
    const shmq_backing *from = f->lives != NULL ? t->waiting : t->backing;
    bool at_once = f->lives != NULL && from->drop != NULL;
    shmq_status status = at_once ? from->drop(from->context, f->lives, count) : SHMQ_OK;
    for (uint32_t i = 0; i < count && status == SHMQ_OK && !at_once; i++) {
        status = from->erase(from->context, erased + i, f->rows[i].place);
    }
    if (status != SHMQ_OK) {
        shmq_store_seq(&t->q->page->unswept, UINT32_MAX);
        t->unmarked = true;
    }
}

/* T22 is the decision for each. If the inhaler dies behind one, the next mover does the rest. The slots before the tail
 * say that their rows were fetched. f->count: how many have come. */
static shmq_status fetch_rows(shmq_mover *t, fetched *f) {
    shmq_coming coming[SHMQ_WAITED_AT_ONCE];
    uint32_t most = shmq_fetched_room(t, f->lives != NULL ? WAITED_SHARE : FETCHED_SHARE), shown = 0, wanted = f->count;
    uint64_t tail;
    f->count = 0;
    SHMQ_TRY(shmq_front_room(t->front, &tail, &wanted));
    wanted = wanted < most ? wanted : most;
    if (wanted == 0) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_cold_need(t->front));
    f->count = wanted;
    SHMQ_TRY(fill(t, f, tail, coming));
    /* Stored before an entry is shown: from now on takers go by places, not by positions. */
    shmq_store_seq(&t->front->shm->fetched_end, tail + f->count);
    while (shown < f->count && shmq_front_show(t, tail + shown, &coming[shown])) {
        shown++;
    }
    for (uint32_t i = shown + 1; i < f->count; i++) { /* behind a slot that was changed */
        if (coming[i].block.offset != 0) {
            shmq_block_drop(t->q->m, coming[i].block.offset, coming[i].block.generation, 0);
        }
    }
    bool all = shown == f->count;
    f->count = shown;
    if (shown != 0) {
        t->fetched += shown;
        mark(t, f, shown);
        shmq_erased_say(t->front, shmq_slot_at(t->front, tail + shown - 1));
    }
    return all ? SHMQ_OK : SHMQ_CORRUPT;
}

shmq_status shmq_fetch_first(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context) {
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
                fetched f = {.rows = &rows[i], .count = 1, .as = t->fetched_as};
                return use == SHMQ_ROW_WANTED ? fetch_rows(t, &f) : SHMQ_INTERRUPTED;
            }
            *place = rows[i].place + 1;
        }
    }
    return SHMQ_NOT_FOUND;
}

/* It is counted out of the queue. */
static shmq_status lose_waiting(shmq_mover *t, const shmq_row_life *row) {
    shmq_ring_shm *back = t->back->shm;
    uint64_t weight = shmq_row_weight(row->length);
    SHMQ_TRY(t->waiting->erase(t->waiting->context, shmq_load_relaxed(&back->came), row->place));
    shmq_store_seq(&back->came_bytes, shmq_load_relaxed(&back->came_bytes) + weight);
    shmq_store_seq(&back->came, shmq_load_relaxed(&back->came) + 1);
    shmq_rows_gone(t->q, 1, weight);
    (void)shmq_damage(t->q->m, "a delayed message on disk was changed, and is lost; its key", row->place);
    return SHMQ_OK;
}

static shmq_status pick(shmq_mover *t, const shmq_row_life *lives, shmq_row *rows, uint32_t count) {
    const shmq_backing *from = t->waiting;
    if (from->pick != NULL) {
        return from->pick(from->context, lives, rows, count);
    }
    for (uint32_t i = 0, one = 1; i < count; i++, one = 1) {
        SHMQ_TRY(from->read(from->context, shmq_load_relaxed(&t->back->shm->came), lives[i].place, lives[i].place + 1,
                            0, &rows[i], &one));
        rows[i].bytes = one != 0 ? rows[i].bytes : NULL;
    }
    return SHMQ_OK;
}

/* Takers that have passed their places turn back, as after a release. */
shmq_status shmq_fetch_waiting(shmq_mover *t, const shmq_row_life *lives, uint32_t count, uint32_t *passed) {
    shmq_row rows[SHMQ_WAITED_AT_ONCE];
    shmq_row_life there[SHMQ_WAITED_AT_ONCE];
    uint32_t of[SHMQ_WAITED_AT_ONCE]; /* which of `lives` */
    fetched f = {.rows = rows, .lives = there, .as = SHMQ_PROP_WAITED};
    uint64_t tail = shmq_front_tail(t->front);
    SHMQ_TRY(shmq_waiting_store(t)); /* a look for memory, at other levels, may have left it */
    shmq_status status = pick(t, lives, rows, count);
    *passed = status == SHMQ_NOT_FOUND ? count : 0;
    SHMQ_TRY(status);
    for (uint32_t i = 0; i < count; i++) {
        shmq_delivery d;
        if (rows[i].bytes == NULL) {
            continue;
        }
        if (!shmq_row_parse(&rows[i], &d)) {
            SHMQ_TRY(lose_waiting(t, &lives[i]));
            continue;
        }
        of[f.count] = i;
        there[f.count] = lives[i];
        rows[f.count++] = rows[i];
    }
    uint32_t all = f.count;
    if (all == 0) {
        *passed = count;
        return SHMQ_NOT_FOUND;
    }
    status = fetch_rows(t, &f);
    *passed = f.count == all ? count : of[f.count];
    if (f.count != 0) {
        shmq_rewind(t->front, tail);
    }
    for (uint32_t i = 0; i < f.count; i++) {
        shmq_notify(t->q);
    }
    return status;
}
