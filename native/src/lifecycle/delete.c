/* Deletion of a queue, in this order:
 *
 *   D1  page.state LIVE -> DELETED, under the structure lock    processes find it no more, calls answer SHMQ_NOT_FOUND
 *   D2  sleepers are woken, available entries settled           or left to the interpreter, if they become dead letters
 *   D3  entries in a consumer's hand stay there                 settled as ever; what is given back goes as in D2
 *   D4  entry LIVE -> DELETED, under the structure lock         when no entry is left
 *   D5  its memory is given back                                when no member uses it (lifecycle/release.c)
 *
 * Until D4 the directory leads to the queue, so that a reaper finds there what a dead process had in hand. After a
 * death in between the next process that reaps, or makes a queue, goes on. */
#include "lifecycle/delete.h"
#include "base/wait_time.h"
#include "consumers/unused.h"
#include "flow/waiting.h"
#include "limits/room_wake.h"
#include "ring/ring_memory.h"
#include "segment/structure.h"
#include "settle/ending.h"
#include "settle/settle.h"
#include "wake/due.h"

#include <string.h>

static bool is_deleted(const shmq_queue *q) { return shmq_load_seq(&q->page->state) == SHMQ_QUEUE_DELETED; }

typedef bool wanted(uint32_t state);

static bool any(const shmq_queue *q, wanted *is_wanted) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            if (is_wanted(shmq_word_state(shmq_load_seq(&shmq_slot_at(&level, i)->word)))) {
                return true;
            }
        }
    }
    return false;
}

/* In a queue with dead letters, rows on disk become dead letters, too. */
static bool any_rows(const shmq_queue *q) {
    return shmq_has_dead_letter(q) && (shmq_flow_rows(q) != 0 || shmq_waiting_rows(q).count != 0);
}

/* D2 */
static void empty_out(shmq_queue *q) {
    shmq_ring level;
    shmq_notify_all(q);
    if (q->m->process == NULL) { /* only a process row can own an entry; blocks go with the ring then */
        return;
    }
    if (shmq_has_dead_letter(q)) {
        if (any(q, shmq_is_loose) || any_rows(q)) {
            shmq_dead_letters_ask(q->m);
        }
        return;
    }
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            shmq_loose_settle(&level, shmq_slot_at(&level, i));
        }
    }
}

/* D4. The caller holds the structure lock. A producer that publishes after D1 takes its entry back: see
 * shmq_put_in_time. */
static void take_root(shmq_queue *q) {
    if (!any(q, shmq_state_is_entry) && !any_rows(q)) {
        uint64_t live = shmq_entry_word(q->incarnation, SHMQ_ENTRY_LIVE);
        (void)shmq_cas_seq(&q->m->directory[q->index].word, live, shmq_entry_word(q->incarnation, SHMQ_ENTRY_DELETED));
    }
}

/* D1. The caller holds the structure lock. */
static bool mark_deleted(shmq_queue *q) {
    uint64_t live = shmq_entry_word(q->incarnation, SHMQ_ENTRY_LIVE);
    if (shmq_load_seq(&q->m->directory[q->index].word) != live || is_deleted(q)) {
        return false;
    }
    shmq_store_seq(&q->page->state, SHMQ_QUEUE_DELETED);
    return true;
}

/* The process does without the lock all that may take long. If another process holds the lock then, the next process
 * that makes a queue does D4. */
static void end_service(shmq_queue *q) {
    empty_out(q);
    if (!any_rows(q)) {
        shmq_flow_remove(q);
    }
    if (shmq_structure_try(q->m) == SHMQ_OK) {
        take_root(q);
        shmq_structure_unlock(q->m);
    }
    shmq_trail_clear(); /* for the caller nothing has failed */
}

shmq_status shmq_queue_delete(shmq_queue *q) {
    SHMQ_TRY(shmq_structure_lock(q->m));
    bool deleted = mark_deleted(q);
    shmq_structure_unlock(q->m);
    if (!deleted) {
        return SHMQ_NOT_FOUND;
    }
    end_service(q);
    return SHMQ_OK;
}

shmq_status shmq_queue_delete_unused(shmq_queue *q, uint64_t now) {
    SHMQ_TRY(shmq_structure_try(q->m)); /* upkeep does not wait for the lock */
    bool deleted = shmq_unused_due(q) <= now && mark_deleted(q); /* a consumer may have come before the lock was held */
    shmq_structure_unlock(q->m);
    if (!deleted) {
        return SHMQ_NOT_FOUND;
    }
    end_service(q);
    return SHMQ_OK;
}

void shmq_queue_take_out(shmq_queue *q) {
    if (mark_deleted(q)) {
        empty_out(q);
        take_root(q);
    }
}

void shmq_queues_end_deleted(shmq_member *m) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_LIVE &&
            shmq_queue_view(m, index, &q) == SHMQ_OK && is_deleted(&q)) {
            empty_out(&q);
            take_root(&q);
        }
    }
}

bool shmq_is_ending(shmq_member *m, uint32_t index) {
    shmq_queue q;
    uint64_t word = shmq_load_acquire(&m->directory[index].word); /* SYNC directory.entry */
    return shmq_entry_state(word) == SHMQ_ENTRY_LIVE && shmq_queue_look(m, index, &q) == NULL && is_deleted(&q);
}

bool shmq_queue_ending(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation) {
    shmq_queue q;
    uint64_t word = shmq_load_acquire(&m->directory[index].word); /* SYNC directory.entry */
    if (shmq_entry_state(word) != SHMQ_ENTRY_LIVE || shmq_queue_look(m, index, &q) != NULL || !is_deleted(&q)) {
        return false;
    }
    uint32_t len = shmq_name_len(q.page);
    memcpy(name, q.page->name, len);
    name[len] = '\0';
    *incarnation = shmq_entry_incarnation(word);
    bool ending = shmq_has_dead_letter(&q) && (any(&q, shmq_is_loose) || any_rows(&q));
    shmq_fence_acquire(); /* SYNC directory.name: the copy before the second look */
    return ending && shmq_load_seq(&m->directory[index].word) == word;
}

uint64_t shmq_ending_due(const shmq_queue *q, uint64_t now) {
    return SHMQ_UNLIKELY(is_deleted(q)) && (any(q, shmq_is_loose) || any_rows(q)) ? now : SHMQ_DUE_NEVER;
}

uint64_t shmq_ending_look(shmq_queue *q, uint64_t now) {
    empty_out(q);
    return any(q, shmq_is_loose) || any_rows(q) ? now + 10 * SHMQ_TICK_NS : SHMQ_DUE_NEVER;
}

static bool is_left(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    (void)r;
    (void)slot;
    return shmq_word_state(word) == SHMQ_AVAILABLE || shmq_word_state(word) == SHMQ_HELD;
}

static bool bring_any(shmq_queue *q) {
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring *back = shmq_level(q, depth);
        if ((shmq_flow_is_on(shmq_flow_at(back)) && shmq_inhaler_bring(back) == SHMQ_OK) ||
            (shmq_waiting_of(back->shm).count != 0 && shmq_inhaler_bring_waiting(back) == SHMQ_OK)) {
            return true;
        }
    }
    return false;
}

shmq_status shmq_steal_left(shmq_queue *q, shmq_delivery *d) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = 0; depth < q->levels && status == SHMQ_EMPTY; depth++) {
        status = shmq_steal_first(shmq_level(q, depth), is_left, d);
    }
    if (status == SHMQ_EMPTY && any_rows(q) && q->m->backing_of != NULL && bring_any(q)) {
        return shmq_steal_left(q, d); /* a row that has just come back from disk */
    }
    if (status == SHMQ_EMPTY && is_deleted(q) && !any_rows(q)) {
        shmq_flow_remove(q); /* the last of them has come back: no pull will find that nothing is left */
    }
    return status;
}
