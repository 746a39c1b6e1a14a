/* Takes messages that have failed, or died with their takers, too often, for a caller that moves them to the dead
 * letters. It takes those of each level in the order of places, those on disk among them. A taker would do so when it
 * comes to them; who waits until the queue is empty cannot count on takers.
 *
 * Rows never change, and `tried` says up to where some may have failed. So each process looks at each row once, as long
 * as the settings stay as they are. A row among them comes in by itself, and is then an entry as any other. */
#include <sched.h>

#include "base/clock.h"
#include "consumers/sleepers.h"
#include "flow/flow.h"
#include "limits/count.h"
#include "ring/ring_delivery.h"
#include "settle/expire.h"
#include "settle/settle.h"

/* Counts of attempts and deaths only grow, and those whose life is over go another way (shmq_steal_expired). */
static bool is_poisoned(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_word_state(word) != SHMQ_AVAILABLE) {
        return false;
    }
    shmq_delivery d;
    shmq_delivery_read(r, slot, &d);
    return shmq_poison_of(r->queue, &d) != SHMQ_LIVES && (d.expires_ns == 0 || shmq_now_ns() < d.expires_ns);
}

static shmq_row_use considers(void *context, const shmq_delivery *row) {
    const shmq_queue *q = context;
    bool poisoned = shmq_poison_of(q, row) != SHMQ_LIVES;
    return poisoned && shmq_now_ns() < shmq_life_end(q, row->enqueued_ns, row->expires_ns) ? SHMQ_ROW_WANTED
                                                                                           : SHMQ_ROW_PASSED;
}

/* Returns a word for the settings by which rows are looked at. The seal is another one after each change; the limits
 * themselves tell a change whose process died before it sealed them. */
static uint64_t terms_of(const shmq_queue *q) {
    const shmq_queue_shm *page = q->page;
    uint64_t terms = shmq_load_seq(&page->settings.seal);
    const uint64_t limits[] = {shmq_load_seq(&page->max_attempts), shmq_load_seq(&page->max_deaths),
                               shmq_load_seq(&page->settings.max_ttl_ns)};
    for (uint32_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        terms = (terms ^ limits[i]) * UINT64_C(0x9e3779b97f4a7c15);
        terms ^= terms >> 29;
    }
    return terms;
}

static uint64_t first_to_look_at(shmq_ring *level, uint64_t terms) {
    return shmq_load_seq(&level->sound_terms) == terms ? shmq_load_seq(&level->sound_below) : 0;
}

/* Only the holder of the mover's lock calls this. */
static void note_sound(shmq_ring *level, uint64_t terms, uint64_t below) {
    shmq_store_seq(&level->sound_below, 0);
    shmq_store_seq(&level->sound_terms, terms);
    shmq_store_seq(&level->sound_below, below);
}

/* Rows that have come in by themselves, with none before them: their space on disk is free at once, since the dead
 * letters need some. True: there were some. */
static bool drop_gone(shmq_mover *t) {
    static _Thread_local shmq_row_life lives[SHMQ_TURN_ENTRIES];
    uint64_t flow = shmq_load_seq(&t->back->shm->flow), low = shmq_load_relaxed(&t->back->shm->low);
    uint32_t count = SHMQ_TURN_ENTRIES, gone = 0;
    if (t->unmarked || !shmq_flow_is_on(flow) || low >= shmq_flow_place(flow) ||
        t->backing->list(t->backing->context, low, shmq_flow_place(flow), lives, &count) != SHMQ_OK) {
        return false;
    }
    while (gone < count && lives[gone].gone) {
        gone++;
    }
    if (gone != 0) {
        shmq_rows_drop_first(t, lives, gone);
    }
    return gone != 0;
}

/* The first such row below `end` comes in. SHMQ_NOT_FOUND: there is none. SHMQ_TIMEOUT: there are more to look at.
 * SHMQ_EMPTY: there is no slot for it. SHMQ_IN_USE: other processes moved entries for the patience. */
static shmq_status bring(shmq_ring *level, uint64_t end) {
    shmq_queue *q = level->queue;
    uint64_t flow = shmq_flow_at(level), terms = terms_of(q), tried = shmq_load_seq(&level->shm->tried);
    uint64_t at = first_to_look_at(level, terms), low = shmq_load_seq(&level->shm->low);
    end = tried < end ? tried : end;
    if (!shmq_flow_is_on(flow) || !shmq_may_flow(q) || low >= end || at >= end) {
        return SHMQ_NOT_FOUND;
    }
    shmq_mover t;
    SHMQ_TRY(shmq_turn_await(&t, level));
    at = first_to_look_at(level, terms);
    shmq_status status = shmq_fetch(&t, &at, end, considers, q);
    note_sound(level, terms, status == SHMQ_CORRUPT ? at + 1 : at); /* of damage the caller is told once */
    flow = shmq_load_seq(&level->shm->flow);
    bool changed = drop_gone(&t);
    shmq_rows_end_flow(&t);
    changed = changed || shmq_load_seq(&level->shm->flow) != flow; /* takers can have what lies behind */
    shmq_turn_end(&t);
    if (changed) {
        shmq_wake_waiters(q);
        shmq_notify_starved(q);
    }
    return status == SHMQ_NOT_FOUND && at < end ? SHMQ_TIMEOUT : status;
}

/* Brings the first such row of all below `end`, until `until`. */
static shmq_status bring_first(shmq_ring *level, uint64_t end, uint64_t until) {
    shmq_status status;
    while ((status = bring(level, end)) == SHMQ_TIMEOUT && shmq_now_ns() < until) {
        sched_yield(); /* others want the lock, too */
    }
    return status;
}

/* SHMQ_EMPTY: there is none that can be had. SHMQ_TIMEOUT, SHMQ_IN_USE: as above, and `until` is over. */
static shmq_status steal_of(shmq_ring *level, uint64_t until, shmq_delivery *d) {
    for (;;) {
        shmq_met f;
        bool any = shmq_first_of(level, is_poisoned, &f);
        shmq_status status = bring_first(level, any ? f.place : UINT64_MAX, until);
        if (status == SHMQ_OK) {
            continue;
        }
        if (status == SHMQ_TIMEOUT || status == SHMQ_IN_USE || status == SHMQ_CORRUPT) {
            return status; /* where rows may come first the queue is not empty in any case */
        }
        if (!any) {
            return status == SHMQ_NOT_FOUND ? SHMQ_EMPTY : status;
        }
        if (shmq_seize(f.ring, f.slot, f.word, f.position, d)) {
            return SHMQ_OK;
        }
    }
}

shmq_status shmq_steal_poisoned(shmq_queue *q, shmq_delivery *d) {
    uint64_t until = shmq_now_ns() + q->m->patience_ns;
    shmq_status failed = SHMQ_EMPTY;
    if (shmq_load_relaxed(&q->page->max_attempts) == 0 && shmq_load_relaxed(&q->page->max_deaths) == 0) {
        return SHMQ_EMPTY;
    }
    shmq_flow_mend(q); /* what a dead mover has left on its way is AVAILABLE again, or a row */
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_status status = steal_of(shmq_level(q, depth), until, d);
        if (status == SHMQ_OK) {
            return SHMQ_OK;
        }
        if (status == SHMQ_IN_USE) {
            break; /* one lock for all levels */
        }
        failed = status != SHMQ_EMPTY && status != SHMQ_TIMEOUT ? status : failed;
    }
    return failed;
}
