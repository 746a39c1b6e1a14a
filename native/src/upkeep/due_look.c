/* What is due is done: by the watcher, by whoever polls, or walks into it. */
#include "shmq/queue_ending.h"
#include "shmq/level.h"
#include "shmq/ring_time.h"
#include "shmq/structure.h"
#include "shmq/unused.h"
#include "shmq/watch.h"

/* The earliest of its levels. */
static uint64_t due_of(const shmq_queue *q, uint64_t now) {
    uint64_t earliest = SHMQ_DUE_NEVER;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        uint64_t due = shmq_due_time(shmq_load_seq(&shmq_level_ring(q, depth)->due));
        due = shmq_is_due(due, now) ? now : due;
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}

/* When it is to go by itself, or, deleted, has something left to do away with. */
static uint64_t end_of(const shmq_queue *q, uint64_t now) {
    bool in_service = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE;
    return in_service ? shmq_unused_due(q) : shmq_ending_due(q, now);
}

/* One queue; answers when it is to be looked at next. `view` is for a look only: memory that others use is not written to
 * before the queue is bound. */
static uint64_t look_at(shmq_member *m, uint32_t index, uint64_t now) {
    shmq_queue view, *q;
    if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) != SHMQ_ENTRY_LIVE || /* SYNC directory.entry */
        shmq_queue_look(m, index, &view) != NULL) {
        return SHMQ_DUE_NEVER;
    }
    uint64_t due = due_of(&view, now), end = end_of(&view, now);
    if (due > now && end > now) {
        return due < end ? due : end;
    }
    if (!shmq_queue_line_try(m, index)) {
        return now + SHMQ_TICK_NS;
    }
    shmq_status status = shmq_queue_bind(m, index, 0, &q);
    if (status != SHMQ_OK) {
        return status == SHMQ_NOT_FOUND || status == SHMQ_CORRUPT ? SHMQ_DUE_NEVER : now + SHMQ_TICK_NS;
    }
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        shmq_ring_time(shmq_level(q, depth), now);
    }
    due = due_of(q, now);
    if (end <= now) {
        end = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE ? shmq_unused_end(q, now) : shmq_ending_look(q, now);
    }
    shmq_queue_unbind(q);
    return due < end ? due : end;
}

void shmq_due_look(shmq_member *m) {
    uint64_t word = shmq_load_relaxed(&m->header->due), mark, earliest = SHMQ_DUE_NEVER;
    if (SHMQ_LIKELY(word == 0) || m->process == NULL) {
        return;
    }
    uint64_t now = shmq_now_ns();
    if (!shmq_due_begin(&m->header->due, now, m->patience_ns, &mark)) {
        return;
    }
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        uint64_t due = look_at(m, index, now);
        earliest = due < earliest ? due : earliest;
    }
    shmq_due_end(&m->header->due, mark, earliest);
}
