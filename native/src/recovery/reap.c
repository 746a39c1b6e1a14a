/* The reaper. Order for one dead row (row, g):
 *
 *   1 row word -> REAPING of the same generation              by any process, repeatable
 *   2 in every queue that it used: its moves are decided      exact CAS, the row's generation looked at after each word
 *     then in each again: every word that names it
 *     then rewind, wake sleepers without a bit, notify, wake producers
 *   3 under the structure lock, if the generation still is g: its temporary queues are deleted, its blocks and pins, its
 *     counters' claims, its consumer rows given back; so is what no process uses then (deleted queues, slabs); last the
 *     row word -> FREE, g + 1
 *
 * After step 2, which waits for no process, its messages are back in their queues. A death in any step leaves a dead
 * row, with which the next reaper begins anew. The look at the generation after each word makes that safe. With one
 * look before the sweep, a reaper that stalls while another one finishes would go on to take the entries of the row's
 * next owner. */
#include "recovery/reap.h"
#include "base/futex.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"
#include "limits/waiters.h"
#include "put/move.h"
#include "queue/level.h"
#include "queue/settings.h"
#include "recovery/recover.h"
#include "ring/ring_memory.h"
#include "segment/structure.h"

typedef struct sweep {
    shmq_member *m;
    uint32_t row, generation;
    bool own; /* this process' own row at close: nothing died */
    bool locked; /* the caller holds the structure lock */
} sweep;

static bool still_dead(const sweep *s) {
    uint64_t word = shmq_load_acquire(&s->m->rows[s->row].word); /* SYNC row.owner */
    return s->own || shmq_row_generation(word) == s->generation;
}

/* Each repair asks this: only this one row, and only while no other reaper has finished it. */
static bool is_this_row(void *context, uint32_t row) {
    const sweep *s = context;
    return row == s->row && still_dead(s);
}

static shmq_liveness this_row(sweep *s) {
    return (shmq_liveness){.is_dead = is_this_row, .context = s, .leaving = s->own};
}

static bool used_by(shmq_member *m, uint32_t row, uint32_t index) {
    shmq_counters_shm *counters = shmq_counters_at(m, row, index);
    return counters != NULL && shmq_load_seq(&counters->attached) != 0;
}

typedef shmq_status visit(sweep *s, shmq_queue *q);

/* Step 2. Without a process row this process cannot say that it uses a queue, so the caller holds the structure lock.
 * False: a queue could not be visited, or another reaper has finished the row. */
static bool visit_queues(sweep *s, bool locked, visit *each) {
    shmq_member *m = s->m;
    uint32_t high = shmq_queue_high(m); /* SYNC directory.entry */
    for (uint32_t index = 0; index < high; index++) {
        if (!used_by(m, s->row, index) && !shmq_is_ending(m, index)) {
            continue; /* any process empties a deleted queue, also without a claim on its memory */
        }
        shmq_queue view, *q = &view;
        shmq_status status = locked ? shmq_queue_view(m, index, &view) : shmq_queue_bind(m, index, 0, &q);
        if (status == SHMQ_NOT_FOUND || status == SHMQ_CORRUPT) {
            continue; /* deleted or damaged: no process waits there */
        }
        if (status != SHMQ_OK) {
            return false; /* the entries there must not be forgotten: the row stays for the next reaper */
        }
        s->locked = locked;
        status = each(s, q);
        if (!locked) {
            shmq_queue_unbind(q);
        }
        if (status != SHMQ_OK || !still_dead(s)) {
            return false; /* a failure, or another reaper has finished the row */
        }
    }
    return true;
}

/* The queue that the intent names. The dead process used it, too, so its memory is still there. If another incarnation
 * is there by now, the queue was deleted, and the entry with it. */
static shmq_status look_at_source(void *context, uint64_t intent, uint64_t place, uint32_t owner, bool *there) {
    sweep *s = context;
    shmq_queue view, *q = &view;
    uint32_t index = shmq_intent_index(intent), incarnation = shmq_intent_incarnation(intent);
    *there = false;
    if (index >= shmq_queue_high(s->m) ||
        shmq_load_seq(&s->m->directory[index].word) != shmq_entry_word(incarnation, SHMQ_ENTRY_LIVE)) {
        return SHMQ_OK;
    }
    shmq_status status =
        s->locked ? shmq_queue_view(s->m, index, &view) : shmq_queue_bind(s->m, index, incarnation, &q);
    if (status == SHMQ_NOT_FOUND || status == SHMQ_CORRUPT) {
        return SHMQ_OK;
    }
    SHMQ_TRY(status);
    *there = shmq_move_source(q, intent, place, owner);
    if (!s->locked) {
        shmq_queue_unbind(q);
    }
    return SHMQ_OK;
}

static shmq_status decide_moves(sweep *s, shmq_queue *q) {
    shmq_liveness l = this_row(s);
    return shmq_moves_decide(q, &l, look_at_source, s);
}

static shmq_status recover(sweep *s, shmq_queue *q) {
    shmq_liveness l = this_row(s);
    shmq_ring_recover(q, &l);
    return SHMQ_OK;
}

/* At close no thread of this process is in a move: close waits for its calls. */
static bool sweep_queues(sweep *s, bool locked) {
    return (s->own || visit_queues(s, locked, decide_moves)) && visit_queues(s, locked, recover);
}

static uint32_t named_in(const shmq_ring *r, uint64_t offset, uint32_t generation) {
    uint32_t bits = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
        uint64_t body = shmq_read_once(&slot->body);
        if ((shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) && shmq_body_offset(body) == offset &&
            shmq_read_once(&slot->body_gen) == generation) {
            bits |= UINT32_C(1) << (shmq_body_bit(body) & 31);
        }
    }
    return bits;
}

/* Which reference bits of this block do slots name? The caller has read the block's word before: later on bits can only
 * go. */
static uint32_t named(void *context, uint64_t offset, uint32_t generation) {
    shmq_member *m = ((sweep *)context)->m;
    uint32_t bits = 0, high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue q;
        shmq_ring level;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_FREE ||
            shmq_queue_view(m, index, &q) != SHMQ_OK) {
            continue;
        }
        for (uint32_t depth = 0; depth < q.rings && shmq_level_look(&q, depth, &level) == NULL; depth++) {
            bits |= named_in(&level, offset, generation);
        }
    }
    return bits;
}

/* The dead process' rows on every queue, and its claims on their memory. The caller holds the structure lock. */
static void close_queues(sweep *s) {
    shmq_member *m = s->m;
    shmq_liveness l = this_row(s);
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_FREE &&
            used_by(m, s->row, index) && shmq_queue_view(m, index, &q) == SHMQ_OK) {
            shmq_consumers_recover(&q, &l);
        }
    }
    shmq_counters_recover(m, &l);
}

/* Deletes queues that are temporary of the row's process, or of an earlier one in the row. The caller holds the
 * structure lock. */
static void delete_temporaries(sweep *s) {
    shmq_member *m = s->m;
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_LIVE &&
            shmq_queue_view(m, index, &q) == SHMQ_OK && shmq_load_relaxed(&q.page->temporary) != 0 &&
            shmq_settings_sealed(q.page) && q.page->temporary_row == s->row &&
            (int32_t)(q.page->temporary_generation - s->generation) <= 0) {
            shmq_queue_take_out(&q);
        }
    }
}

/* Step 3. The caller holds the structure lock. */
static void finish_row(sweep *s) {
    shmq_process_shm *row = &s->m->rows[s->row];
    uint64_t reaping = shmq_row_word(s->generation, 0, SHMQ_ROW_REAPING);
    if (shmq_load_seq(&row->word) != reaping) {
        return;
    }
    shmq_liveness l = this_row(s);
    delete_temporaries(s);
    shmq_pins_recover(s->m, s->row, &l);
    (void)shmq_blocks_sweep(s->m, l.is_dead, named, s);
    close_queues(s);
    shmq_queues_release(s->m); /* also ends deletions that the dead process has left half done */
    shmq_blocks_unretire(s->m);
    (void)shmq_blocks_reclaim(s->m);
    shmq_watch_recover(s->m, &l);
    shmq_store_seq(&row->unsettled, 0);
    shmq_store_seq(&row->privileges, 0);
    shmq_store_seq(&row->inside, 0);
    shmq_store_seq(&row->pinned_bytes, 0);
    shmq_add_relaxed(&s->m->header->deaths, 1);
    shmq_memory_waiters_recover(s->m, row);
    shmq_add_seq(&s->m->header->memory_full, 1);
    shmq_futex_wake(&s->m->header->memory_full, INT32_MAX);
    shmq_cas_seq(&row->word, reaping, shmq_row_word(s->generation + 1, 0, SHMQ_ROW_FREE));
}

/* `wait` waits for the structure lock, if another process has it. Else the row stays: its messages are back in their
 * queues, and the next reaper does the rest. A sleeper that reaps must not wait behind a stopped process. */
static shmq_status reap_row(shmq_member *m, uint32_t row, const shmq_liveness *l, bool wait) {
    shmq_process_shm *process = &m->rows[row];
    uint64_t word = shmq_load_acquire(&process->word); /* SYNC row.owner */
    if (shmq_row_state(word) == SHMQ_ROW_FREE || !shmq_is_dead(l, row)) {
        return SHMQ_OK;
    }
    sweep s = {.m = m, .row = row, .generation = shmq_row_generation(word)};
    if (shmq_row_state(word) != SHMQ_ROW_REAPING &&
        !shmq_cas_seq(&process->word, word, shmq_row_word(s.generation, 0, SHMQ_ROW_REAPING))) {
        return SHMQ_OK; /* another reaper begins with this row */
    }
    bool member = m->process != NULL;
    if (member && !sweep_queues(&s, false)) {
        return SHMQ_OK;
    }
    SHMQ_TRY(wait ? shmq_structure_lock(m) : shmq_structure_try(m));
    if (member || sweep_queues(&s, true)) {
        finish_row(&s);
    }
    shmq_structure_unlock(m);
    return SHMQ_OK;
}

shmq_status shmq_reap_row(shmq_member *m, uint32_t row) {
    shmq_liveness by_lock = shmq_liveness_by_lock(m);
    return row < SHMQ_PROCESS_ROWS ? reap_row(m, row, &by_lock, false) : SHMQ_OK;
}

shmq_status shmq_reap(shmq_member *m, const shmq_liveness *l, uint32_t *reaped) {
    uint32_t high = shmq_process_high(m);
    *reaped = 0;
    for (uint32_t row = 0; row < high; row++) {
        bool ours = m->process != NULL && row == m->row;
        if (!ours && shmq_row_state(shmq_load_seq(&m->rows[row].word)) != SHMQ_ROW_FREE && shmq_is_dead(l, row)) {
            SHMQ_TRY(reap_row(m, row, l, true));
            ++*reaped;
        } else if (!ours && shmq_process_life(m, row) == SHMQ_LOCKLESS) {
            shmq_lockless_begin(m, row);
        }
    }
    shmq_structure_mend(m);
    return SHMQ_OK;
}

shmq_status shmq_reap_dead(shmq_member *m, uint32_t *reaped) {
    shmq_liveness by_lock = shmq_liveness_by_lock(m);
    return shmq_reap(m, &by_lock, reaped);
}

shmq_status shmq_sweep_own(shmq_member *m) {
    sweep s = {.m = m, .row = m->row, .generation = m->row_generation, .own = true};
    shmq_status status;
    bool swept = sweep_queues(&s, false);
    do {
        status = shmq_structure_lock(m);
    } while (status == SHMQ_INTERRUPTED); /* a close must be finished; signals are seen after it */
    SHMQ_TRY(status);
    if (!swept) { /* without private memory for a handle: as a process without a row does it */
        (void)sweep_queues(&s, true);
    }
    shmq_queues_end_deleted(m);
    delete_temporaries(&s);
    close_queues(&s);
    shmq_liveness l = this_row(&s);
    shmq_watch_recover(m, &l);
    shmq_structure_unlock(m);
    return SHMQ_OK;
}
