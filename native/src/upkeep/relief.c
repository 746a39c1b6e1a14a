/* The broker's memory is used up: messages go to disk until there is some. */
#include "shmq/flow.h"
#include "shmq/handle.h"
#include "shmq/level.h"
#include "shmq/upkeep.h"

#define QUEUES_TRIED 4 /* of those that have most in memory: a call that waits for memory tries others the next time */

/* About how many entries of this queue could go; 0: it stays in memory. Nothing that others write is read twice. */
static uint64_t depth_in_memory(shmq_member *m, uint32_t index) {
    shmq_queue view;
    if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) != SHMQ_ENTRY_LIVE || /* SYNC directory.entry */
        shmq_queue_look(m, index, &view) != NULL) {
        return 0;
    }
    uint64_t entries = 0;
    shmq_ring level;
    for (uint32_t depth = 0; depth < view.levels && shmq_level_look(&view, depth, &level) == NULL; depth++) {
        entries += shmq_could_go(&level);
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

/* The one that has most in memory, and was not tried. */
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
    shmq_status status = q != NULL && !in_turn ? shmq_flow_make_room(q, NULL) : SHMQ_EMPTY;
    for (uint32_t count = 1; (status == SHMQ_EMPTY || status == SHMQ_IN_USE) && count <= QUEUES_TRIED; count++) {
        shmq_queue *other;
        if (!choose(m, tried, count, &tried[count])) {
            break;
        }
        if (shmq_queue_counters_try(m, tried[count]) && shmq_queue_bind(m, tried[count], 0, &other) == SHMQ_OK) {
            status = shmq_flow_make_room(other, NULL);
            shmq_queue_unbind(other);
        }
    }
    shmq_trail_clear(); /* of who could not be bound: nothing has failed for who called */
    return status;
}
