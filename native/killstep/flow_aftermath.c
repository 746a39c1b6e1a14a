#include "flow/flow_alert.h"
#include "limits/count.h"
#include "look/census.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "wake/due.h"
#include "flow_aftermath.h"

#include <fcntl.h>
#include <stdio.h>

#include "rows.h"
#include "virtual.h"

#define MARGIN_NS (PATIENCE_NS * 3 / 10)
#define MOST 16u /* messages of others while a victim stands still */
#define FIRST_MOVER (UINT64_C(1) << 41) /* byte of the first queue's lock: docs/protocol-flow.md */

static char fault[256];

static const char *say(const char *text, uint64_t a, uint64_t b) {
    snprintf(fault, sizeof(fault), "%s: %llu and %llu", text, (unsigned long long)a, (unsigned long long)b);
    return fault;
}

static uint64_t peek(const shmq_a64 *word) { return shmq_load_seq((shmq_a64 *)(uintptr_t)word); }

/* How many slots say so. */
static uint64_t count_state(const shmq_ring *r, uint32_t state) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        count += shmq_word_state(peek(&shmq_slot_at(r, i)->word)) == state;
    }
    return count;
}

/* The places of entries grow with their positions, and none is at or above `limit`; but for those that were fetched. */
static const char *look_at_front(const shmq_ring *front, uint64_t limit) {
    uint64_t tail = peek(&front->shm->tail), count = shmq_slot_count(front), before = 0;
    for (uint64_t p = tail > count ? tail - count : 0; p < tail; p++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, p);
        uint64_t word = peek(&slot->word), place;
        if (!shmq_state_is_entry(shmq_word_state(word)) || peek(&slot->position) != p) {
            continue;
        }
        place = shmq_front_place(front, slot);
        if (shmq_is_fetched(slot)) {
            uint64_t key = ROWS_WAITING | shmq_front_ordinal(front, slot).count;
            bool waits = (shmq_props(slot) & SHMQ_PROP_WAITED) != 0 && rows_count(key, key + 1) != 0;
            if (waits || rows_count(place, place + 1) != 0) {
                return say("an entry that was fetched is a row, too", place, limit);
            }
            continue;
        }
        if (place >= limit) {
            return say("an entry of the front ring is a row, too: its place, and the lowest row", place, limit);
        }
        if (before != 0 && place < before) {
            return say("entries of the front ring are not in order", before, place);
        }
        before = place;
    }
    return NULL;
}

const char *flow_look(const stage *s) {
    const shmq_queue *q = s->survivor.q[QUEUE_A];
    const shmq_ring_shm *ring = q->first.shm;
    uint64_t flow = peek(&ring->flow), low = peek(&ring->low), place = shmq_flow_place(flow);
    uint64_t flushed = peek(&ring->flushed), pulled = peek(&ring->pulled);
    bool on = shmq_flow_is_on(flow);
    bool unfinished = shmq_load_seq((shmq_a32 *)(uintptr_t)&q->page->unfinished) != 0;
    if (on && low > place && !(unfinished && low - place <= SHMQ_TURN_ENTRIES)) { /* handed over: `low` comes first */
        return say("the rows begin above their end", low, place);
    }
    if (pulled > flushed) {
        return say("more rows have left than came", pulled, flushed);
    }
    uint64_t ends = on ? rows_life_end(q, low, place) : SHMQ_NEVER, due = shmq_due_time(peek(&ring->rows_due));
    if (ends != SHMQ_NEVER && due > ends) {
        return say("the life of a row ends before anybody looks: ns, and ns", ends, due);
    }
    uint64_t tried = on ? rows_tried_end(low, place) : 0;
    if (tried > peek(&ring->tried)) {
        return say("a row that has failed lies where nobody looks for it", tried, peek(&ring->tried));
    }
    if (unfinished) {
        return NULL; /* the next mover puts the rest right */
    }
    uint64_t rows = on ? rows_count(low, place) : 0, moving = count_state(&q->first, SHMQ_MOVING);
    if (rows != shmq_flow_rows(q)) {
        return say("rows, and how many there are by the queue's count", rows, shmq_flow_rows(q));
    }
    uint64_t waiting = peek(&ring->waiting);
    uint64_t wait = rows_count(ROWS_WAITING | peek(&ring->waiting_low), ROWS_WAITING | waiting);
    if (wait != shmq_waiting_of(ring).count) {
        return say("waiting rows, and how many there are by the queue's count", wait, shmq_waiting_of(ring).count);
    }
    ends = rows_life_end(q, ROWS_WAITING, ROWS_WAITING | waiting);
    if (ends != SHMQ_NEVER && shmq_due_time(peek(&ring->waiting_due)) > ends) {
        return say("a waiting row is due before anybody looks: ns, and ns", ends, peek(&ring->waiting_due));
    }
    if (moving != 0) {
        return say("entries that nobody moves are MOVING", moving, 0);
    }
    return look_at_front(shmq_level(q, q->levels), on ? low : UINT64_MAX);
}

/* A process may have died as it told. The next one that looks when `repeat` is over tells that the queue has recovered;
 * or it was told. */
static const char *look_at_alerts(shmq_queue *q) {
    shmq_a64 *gap = &q->page->settings.alerts[SHMQ_ALERT_KINDS];
    const shmq_alerts_shm *alerts = &q->page->alerts;
    bool was_told = (peek(&alerts->flow) & 1) == 0 && peek(&alerts->flushed) == peek(&q->first.shm->flushed);
    uint64_t kept = shmq_load_seq(gap);
    shmq_store_seq(gap, 0);
    bool silent = shmq_alert_flow(q) == SHMQ_FLOW_SILENT;
    shmq_store_seq(gap, kept);
    return silent && !was_told ? say("nobody is told that the queue has recovered", peek(&alerts->flow), kept) : NULL;
}

const char *flow_look_at_end(stage *s) {
    shmq_queue *q = s->survivor.q[QUEUE_A];
    (void)shmq_purger_make_room(q, NULL);
    const char *wrong = flow_look(s);
    if (wrong != NULL) {
        return wrong;
    }
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        return say("a turn does not end", shmq_load_seq(&q->page->unfinished), 0);
    }
    shmq_census c;
    shmq_ring_census(q, &c);
    if (c.ready + c.unsettled + c.flowed != 0) {
        return say("an emptied queue has messages: in all, and on disk", c.ready + c.unsettled, c.flowed);
    }
    if (shmq_load_seq(&q->page->recount_due) != 0) {
        (void)shmq_recount(q);
    }
    uint64_t bytes = shmq_load_seq(&q->page->resident) & SHMQ_WEIGHT_MASK;
    return bytes != 0 ? say("an emptied queue has bytes in memory", bytes, 0) : look_at_alerts(q);
}

const char *flow_look_at_missed(const stage *s) {
    const shmq_queue *q = s->survivor.q[QUEUE_A];
    uint32_t missed = shmq_load_seq(&q->page->missed);
    return missed != 0 ? say("a process that found the mover's lock taken is not told that it is free", missed, 0)
                       : NULL;
}

static bool is_amid_turn(const stage *s) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)FIRST_MOVER, .l_len = 0};
    return fcntl(s->survivor.m->map_fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Entries that a taker may have now, and that nobody took. One that came in by itself is there for others when the tail has passed
 * it, as an entry that is given back is when the head has turned. */
static uint64_t left_below(const stage *s) {
    const shmq_queue *q = s->survivor.q[QUEUE_A];
    const shmq_ring_shm *ring = q->first.shm;
    uint64_t limit = shmq_flow_is_on(peek(&ring->flow)) ? peek(&ring->low) : UINT64_MAX, left = 0;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        const shmq_ring *r = shmq_level(q, depth);
        for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
            const shmq_slot_shm *slot = shmq_slot_at(r, i);
            bool passed = depth == 0 || peek(&slot->position) < peek(&r->shm->tail);
            bool there = shmq_word_state(peek(&slot->word)) == SHMQ_AVAILABLE && passed;
            left += there && (depth == 0 ? peek(&slot->position) : shmq_front_place(r, slot)) < limit;
        }
    }
    return left;
}

/* Memory and disk are full, and the block that is kept for rows is in the hand of one who is stopped. */
static bool has_no_block(const act *a) {
    shmq_block block;
    bool free = shmq_block_take_kept(a->m, 1, &block);
    if (free) {
        shmq_block_drop(a->m, block.offset, block.generation, 0);
    }
    return rows_full && !free;
}

static bool took_long(uint64_t begin) { return virtual_clock() - begin > PATIENCE_NS + MARGIN_NS; }

static bool is_full(shmq_status status) { return status == SHMQ_FULL_RESIDENT || status == SHMQ_FULL_RING; }

static const char *others_put(act *a, uint64_t *value) {
    for (uint32_t i = 0; i < MOST; i++) {
        uint64_t begin = virtual_clock();
        act_put(a, QUEUE_A, (*value)++, SMALL_BYTES, 0);
        if (took_long(begin)) {
            return say("another process waits too long for its put: ms, and how many were put",
                       (virtual_clock() - begin) / 1000000, i);
        }
        if (a->last != SHMQ_OK) {
            return is_full(a->last) ? NULL : say("another process cannot put", (uint64_t)a->last, i);
        }
    }
    return NULL;
}

const char *flow_others_work(stage *s, uint64_t *value) {
    act *a = &s->survivor;
    uint64_t first = *value, puts;
    const char *wrong = others_put(a, value);
    puts = *value - first;
    if (wrong != NULL) {
        return wrong;
    }
    do {
        uint64_t begin = virtual_clock();
        act_get(a, QUEUE_A, begin + PATIENCE_NS + MARGIN_NS / 2);
        if (took_long(begin)) {
            return say("another process waits too long for its get: ms", (virtual_clock() - begin) / 1000000, 0);
        }
    } while (a->last == SHMQ_OK);
    if (a->last != SHMQ_EMPTY) {
        return say("another process cannot get", (uint64_t)a->last, 0);
    }
    uint64_t left =
        is_amid_turn(s) ? left_below(s) : 0; /* a releaser, too, may be stopped before others see what it gave back */
    if (left != 0) {
        return say("another process does not get what lies below the rows", left, puts);
    }
    if (!is_amid_turn(s) && !has_no_block(a) && shmq_flow_rows(a->q[QUEUE_A]) != 0) {
        return say("another process does not get what is on disk", shmq_flow_rows(a->q[QUEUE_A]), puts);
    }
    return NULL;
}
