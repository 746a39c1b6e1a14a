/* When the broker's memory is used up, a process moves messages of queues to disk until some is free. */
#include "upkeep/relief.h"
#include "flow/flow.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"

#define QUEUES_TRIED 4 /* those with most in memory: the next call for memory tries others */

/* About how many entries of this queue could go to disk; 0: none. Reads each word that others write once. */
static uint64_t depth_in_memory(shmq_member *m, uint32_t index) {
    shmq_queue view;
    if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) != SHMQ_ENTRY_LIVE || /* SYNC directory.entry */
        shmq_queue_look(m, index, &view) != NULL) {
        return 0;
    }
    uint64_t entries = 0;
    shmq_ring level;
    for (uint32_t depth = 0; depth < view.levels && shmq_level_look(&view, depth, &level) == NULL; depth++) {
        entries += shmq_could_go(&level) + (shmq_load_relaxed(&level.shm->due) != 0); /* delayed ones, perhaps */
    }
    return entries;
}

static bool is_among(const uint32_t *tried, uint32_t count, uint32_t index) {
    for (uint32_t i = 0; i < count; i++) {
        if (tried[i] == index) {
            return true;
        }
    }
    return false;
}

/* Chooses the queue that has most in memory and was not tried yet. */
static bool choose(shmq_member *m, const uint32_t *tried, uint32_t count, uint32_t *chosen) {
    uint64_t most = 0;
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        uint64_t depth = is_among(tried, count, index) ? 0 : depth_in_memory(m, index);
        if (depth > most) {
            most = depth;
            *chosen = index;
        }
    }
    return most != 0;
}

shmq_status shmq_relieve(shmq_member *m, shmq_queue *q, bool in_turn) {
    if (m->backing_of == NULL) {
        return SHMQ_EMPTY;
    }
    uint32_t tried[QUEUES_TRIED + 1] = {q != NULL ? q->index : UINT32_MAX};
    shmq_status status = q != NULL && !in_turn ? shmq_purger_make_room(q, NULL) : SHMQ_EMPTY;
    bool in_use = status == SHMQ_IN_USE;
    for (uint32_t count = 1; (status == SHMQ_EMPTY || status == SHMQ_IN_USE) && count <= QUEUES_TRIED; count++) {
        shmq_queue *other;
        if (!choose(m, tried, count, &tried[count])) {
            break;
        }
        if (shmq_queue_counters_try(m, tried[count]) && shmq_queue_bind(m, tried[count], 0, &other) == SHMQ_OK) {
            status = shmq_purger_make_room(other, NULL);
            in_use = in_use || status == SHMQ_IN_USE;
            shmq_queue_unbind(other);
        }
    }
    if (status == SHMQ_OK || status == SHMQ_EMPTY || status == SHMQ_IN_USE) {
        shmq_trail_clear(); /* of a queue that could not be bound: for the caller nothing has failed */
    }
    return status == SHMQ_EMPTY && in_use ? SHMQ_IN_USE : status;
}

uint64_t shmq_fronts_lack(shmq_member *m) {
    uint64_t bytes = 0;
    uint32_t high = m->backing_of != NULL ? shmq_queue_high(m) : 0;
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue view;
        if (depth_in_memory(m, index) < 2 || shmq_queue_look(m, index, &view) != NULL) {
            continue;
        }
        shmq_ring back, front;
        for (uint32_t depth = 0; depth < view.levels && shmq_level_look(&view, depth, &back) == NULL &&
                                 shmq_level_look(&view, view.levels + depth, &front) == NULL;
             depth++) {
            bytes += shmq_could_go(&back) > 1 ? shmq_front_lacks(&front) : 0;
        }
    }
    return bytes;
}

static bool any_rows(shmq_member *m) {
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue view;
        if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) !=
                SHMQ_ENTRY_FREE && /* SYNC directory.entry */
            shmq_queue_look(m, index, &view) == NULL &&
            shmq_flow_rows(&view) != 0) {
            return true;
        }
    }
    return false;
}

void shmq_release_unused(shmq_member *m) {
    shmq_queues_release(m);
    if (shmq_kept_doubt(m) && !any_rows(m)) { /* SYNC block.kept: a purger shows its row, then takes the doubt away */
        (void)shmq_kept_end(m);
    }
}
