/* Browses a queue that has flowed: entries of both of its rings and rows on disk, in the order of their places. */
#include "flow/waiting.h"
#include "look/browse.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"

static bool can_be_seen(uint32_t state) {
    return state != SHMQ_PENDING && state != SHMQ_MOVING && shmq_state_is_entry(state);
}

/* The place of an entry of the front ring that a browser sees; UINT64_MAX: the slot has none. */
static uint64_t seen_place(const shmq_ring *front, const shmq_slot_shm *slot) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
    uint64_t place = can_be_seen(shmq_word_state(word)) ? shmq_front_place(front, slot) : UINT64_MAX;
    return place >> SHMQ_PLACE_BITS == 0 ? place : UINT64_MAX; /* a taker will report a damaged record */
}

/* The same as front_next where positions are in the order of places: from the slot on that was found last, if its place
 * lies below `from`. Only fetched entries are out of order, and those that come in meanwhile lie behind it. False: look
 * at all slots. */
static bool next_in_order(const shmq_ring *front, uint64_t from, uint64_t *position, uint64_t *place) {
    const shmq_ring_shm *ring = front->shm;
    bool scattered = shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->fetched_end) != 0;
    uint64_t tail = shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->tail), p = shmq_load_relaxed(&front->found) - 1;
    bool near = p < tail && p + front->mask >= tail;
    const shmq_slot_shm *slot = shmq_slot_at(front, p);
    if (scattered || !near || (p & front->mask) >= shmq_slots_laid(front) || shmq_front_place(front, slot) >= from ||
        shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position) != p) { /* SYNC ring.publish */
        return false;
    }
    for (*place = UINT64_MAX; p < tail; p++) {
        slot = shmq_slot_at(front, p);
        *place = seen_place(front, slot);
        if (*place != UINT64_MAX && *place >= from) {
            *position = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position); /* SYNC ring.publish */
            return *position == p && !shmq_is_fetched(slot);
        }
    }
    *place = UINT64_MAX;
    return true;
}

/* The entry of the front ring with the lowest place at or above `from`. UINT64_MAX: there is none. */
static uint64_t front_next(shmq_ring *front, uint64_t from, uint64_t *position) {
    uint64_t best;
    if (next_in_order(front, from, position, &best)) {
        shmq_store_relaxed(&front->found, best != UINT64_MAX ? *position + 1 : shmq_load_relaxed(&front->found));
        return best;
    }
    best = UINT64_MAX;
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t place = seen_place(front, slot);
        if (place >= from && place < best) {
            best = place;
            *position = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position); /* SYNC ring.publish */
        }
    }
    if (best != UINT64_MAX) {
        shmq_store_relaxed(&front->found, *position + 1);
    }
    return best;
}

/* The entry of the front ring at this position and place. */
static bool read_front(shmq_ring *front, uint64_t position, uint64_t place, shmq_delivery *d) {
    uint64_t at = position;
    return shmq_browse(front, &at, d) == SHMQ_OK && at == position &&
           shmq_front_place(front, shmq_slot_at(front, position)) == place;
}

/* The first row at or above `from`. *place is UINT64_MAX: there is none, or it cannot be known. `t`: the caller's turn,
 * or NULL. SHMQ_INTERRUPTED: a mover has moved entries for longer than the patience, and does so still. SHMQ_OS,
 * SHMQ_DENIED: files cannot be read. */
static shmq_status row_next(shmq_ring *level, uint64_t from, shmq_mover *t, shmq_delivery *row, uint64_t *place) {
    uint64_t flow = shmq_flow_at(level), at = from;
    bool any = shmq_flow_is_on(flow) && from < shmq_flow_place(flow) && level->queue->m->backing_of != NULL;
    shmq_status status = SHMQ_EMPTY;
    if (any) {
        status = t != NULL ? shmq_row_peek(t, &at, row) : shmq_flow_peek(level, &at, row);
    }
    *place = status == SHMQ_OK ? at : UINT64_MAX;
    if (SHMQ_LIKELY(status == SHMQ_OK || status == SHMQ_EMPTY)) {
        return SHMQ_OK;
    }
    row->word = 0;
    return status == SHMQ_IN_USE ? SHMQ_INTERRUPTED : status;
}

/* The same of waiting rows. */
static shmq_status waiting_next(shmq_ring *level, uint64_t from, shmq_mover *t, shmq_delivery *row, uint64_t *place) {
    uint64_t at = from;
    bool any = level->queue->m->backing_of != NULL;
    shmq_status status = any ? shmq_waiting_peek(level, t, &at, row) : SHMQ_EMPTY;
    *place = status == SHMQ_OK ? at : UINT64_MAX;
    return status == SHMQ_OK || status == SHMQ_EMPTY ? SHMQ_OK : status == SHMQ_IN_USE ? SHMQ_INTERRUPTED : status;
}

/* A run of places at which the back ring has nothing. Below P (the place of the flow word) that stays so: producers put
 * above it, and what a mover gives back lies above it. So a thread that goes over rows looks at the back ring once, not
 * for each row. */
typedef struct clear_run {
    const shmq_ring *level;
    uint64_t serial, from, to;
    uint32_t incarnation, index;
} clear_run;

static _Thread_local clear_run clear;

static bool is_clear(const shmq_ring *level, uint64_t place) {
    const shmq_queue *q = level->queue;
    return clear.level == level && clear.serial == q->serial && clear.index == q->index &&
           clear.incarnation == q->incarnation && clear.from <= place && place < clear.to;
}

static void note_clear(const shmq_ring *level, uint64_t from, uint64_t to) {
    const shmq_queue *q = level->queue;
    clear = (clear_run){level, q->serial, from, to, q->incarnation, q->index};
}

/* The front ring has nothing from this place on. */
static bool is_passed(const shmq_ring *level, uint64_t place) {
    return shmq_load_seq(&level->shm->low) <= place && shmq_load_seq(&shmq_front_of(level)->shm->fetched_end) == 0;
}

/* Finds the next row of a level whose back ring has nothing at this place. False: look at both rings, too. */
static bool browse_rows(shmq_ring *level, uint64_t *place, shmq_delivery *d) {
    uint64_t on_disk;
    shmq_status status = row_next(level, *place, NULL, d, &on_disk);
    bool passed = is_passed(level, *place); /* as in look(): after the look at the disk */
    if (status == SHMQ_OK && passed && on_disk < clear.to) {
        *place = on_disk;
        return true;
    }
    return false;
}

/* Looks at the back ring, the rows and the front ring, in the order in which entries move. So the browser misses none
 * that moves meanwhile. The exception is an entry that is MOVING: until its mover decides, it is neither an entry of
 * the back ring nor a row. SHMQ_IN_USE: such an entry may come before the one that was found. Not in the caller's own
 * turn (`t`), in which no other process moves anything. */
static shmq_status look(shmq_ring *level, shmq_mover *t, uint64_t *place, shmq_delivery *d) {
    shmq_ring *front = shmq_front_of(level);
    for (uint64_t from = *place;;) {
        uint64_t at = from, position = 0, below = shmq_flow_place(shmq_flow_at(level)), on_disk, moving;
        uint64_t low = shmq_load_seq(&level->shm->low); /* no row lies below it, now or later */
        shmq_delivery row, held;
        uint64_t in_wait;
        shmq_status status = shmq_browse_past(level, &at, d, &moving);
        uint64_t in_back = status == SHMQ_OK ? at : UINT64_MAX;
        note_clear(level, from, in_back < below ? in_back : below);
        shmq_status rows = row_next(level, from, t, &row, &on_disk);
        shmq_status waits = waiting_next(level, from, t, &held, &in_wait);
        /* After the look at the disk: rows that had come in by then lie below `low`. */
        bool passed = is_passed(level, from);
        uint64_t in_front = passed ? UINT64_MAX : front_next(front, from, &position);
        if (SHMQ_UNLIKELY(rows != SHMQ_OK) && in_back >= low && in_front >= low) {
            d->word = 0;
            return rows;
        }
        if (SHMQ_UNLIKELY(waits != SHMQ_OK)) {
            d->word = 0;
            return waits;
        }
        if (in_wait < in_back && in_wait < on_disk && in_wait < in_front) {
            *place = in_wait;
            *d = held;
            return SHMQ_OK;
        }
        bool in_memory = in_back <= on_disk || in_front <= on_disk; /* else the first row comes before both */
        /* Entries that were MOVING below P before the look at the disk were rows by then. */
        if (SHMQ_UNLIKELY(moving > below) && t == NULL && in_memory && in_front >= below) {
            return SHMQ_IN_USE;
        }
        if (in_back <= in_front && in_back <= on_disk) {
            *place = at;
            return status;
        }
        if (on_disk < in_front) {
            *place = on_disk;
            *d = row;
            return SHMQ_OK;
        }
        if (read_front(front, position, in_front, d)) {
            *place = in_front;
            return SHMQ_OK;
        }
        from = in_front + 1; /* the entry has gone meanwhile */
    }
}

/* Looks again in a turn of its own. The entry that the browser passed is decided when its mover's turn ends. In this
 * turn nothing is MOVING, and a word that says so is damaged. */
static shmq_status look_in_a_turn(shmq_ring *level, uint64_t *place, shmq_delivery *d) {
    shmq_mover t;
    shmq_status status = shmq_turn_await(&t, level);
    if (status != SHMQ_OK) {
        d->word = 0;
        return status == SHMQ_IN_USE ? SHMQ_INTERRUPTED : status;
    }
    status = look(level, &t, place, d);
    shmq_turn_end(&t);
    return status;
}

shmq_status shmq_browse_place(shmq_ring *level, uint64_t *place, shmq_delivery *d) {
    if (SHMQ_LIKELY(shmq_flow_at(level) == 0)) {
        uint64_t at = *place, moving;
        shmq_status status = shmq_browse_past(level, &at, d, &moving);
        if (SHMQ_LIKELY(shmq_flow_at(level) == 0 && moving == 0)) { /* a failed flow leaves the flow word as it was */
            *place = at;
            return status;
        }
    }
    if (is_clear(level, *place) && shmq_waiting_of(level->shm).count == 0 && browse_rows(level, place, d)) {
        return SHMQ_OK;
    }
    shmq_status status = look(level, NULL, place, d);
    return SHMQ_UNLIKELY(status == SHMQ_IN_USE) ? look_in_a_turn(level, place, d) : status;
}
