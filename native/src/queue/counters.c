/* Counter lines: one per process and queue, in chunks of 64 queues that hang on the process page. */
#include "segment/process_table.h"
#include "shmq/reap.h"
#include "shmq/sleepers.h"
#include "shmq/structure.h"
#include "shmq/verdict.h"
#include "shmq/waiters.h"
#include "shmq/wait.h"

static shmq_counters_shm *line_of(const shmq_member *m, const shmq_process_page_shm *page, uint32_t queue_index) {
    uint64_t offset = shmq_load_seq(&page->chunks[queue_index / SHMQ_COUNTERS_A_CHUNK]);
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 || !shmq_inside(m, offset, SHMQ_PAGE_BYTES)) {
        return NULL;
    }
    shmq_counters_shm *lines = shmq_at(m, offset);
    return &lines[queue_index % SHMQ_COUNTERS_A_CHUNK];
}

static_assert(SHMQ_COUNTERS_A_CHUNK * sizeof(shmq_counters_shm) == SHMQ_PAGE_BYTES, "a chunk is a page");

shmq_counters_shm *shmq_counters_at(const shmq_member *m, uint32_t row, uint32_t queue_index) {
    if (row >= SHMQ_PROCESS_ROWS || queue_index >= SHMQ_QUEUES) {
        return NULL;
    }
    const shmq_process_page_shm *page = shmq_process_page(m, row);
    return page == NULL ? NULL : line_of(m, page, queue_index);
}

shmq_status shmq_counters_make(shmq_member *m, uint32_t queue_index, shmq_counters_shm **line) {
    SHMQ_ASSERT(queue_index < SHMQ_QUEUES);
    shmq_a64 *chunk = &m->page->chunks[queue_index / SHMQ_COUNTERS_A_CHUNK];
    uint64_t found = shmq_load_seq(chunk);
    if (found == 0) {
        uint64_t offset;
        SHMQ_TRY(shmq_page_take(m, &offset));
        shmq_store_seq(chunk, offset); /* the root: the page comes zeroed */
    }
    *line = line_of(m, m->page, queue_index);
    return *line != NULL ? SHMQ_OK : shmq_damage(m, "offset of a counter chunk", found);
}

shmq_status shmq_counters_of(shmq_member *m, uint32_t queue_index, shmq_counters_shm **line) {
    SHMQ_ASSERT(queue_index < SHMQ_QUEUES);
    *line = line_of(m, m->page, queue_index);
    if (*line != NULL) {
        return SHMQ_OK;
    }
    SHMQ_TRY(shmq_structure_lock(m));
    shmq_status status = shmq_counters_make(m, queue_index, line);
    shmq_structure_unlock(m);
    return status;
}

/* Nobody has a handle on what was at this entry before, so nobody counts there meanwhile. Relaxed: the entry's root, which
 * its maker writes afterwards, shows it to the others. */
void shmq_counters_clear(shmq_member *m, uint32_t queue_index) {
    SHMQ_ASSERT(m->structure_held);
    uint32_t rows = shmq_process_high(m);
    for (uint32_t row = 0; row < rows; row++) {
        shmq_counters_shm *line = shmq_counters_at(m, row, queue_index);
        if (line == NULL) {
            continue;
        }
        shmq_a64 *const counts[] = {&line->put,         &line->got,           &line->received, &line->acked,
                                    &line->redelivered, &line->dead_lettered, &line->purged,   &line->died,
                                    &line->expired,     &line->dropped};
        for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            shmq_store_relaxed(counts[i], 0);
        }
    }
}

static void recover_line(shmq_member *m, shmq_counters_shm *line, uint32_t index, bool leaving) {
    shmq_queue q;
    bool used = shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_FREE &&
                shmq_load_seq(&line->attached) != 0 && shmq_queue_view(m, index, &q) == SHMQ_OK;
    shmq_store_seq(&line->moving, 0);
    if (used) { /* after `moving`: who is stopped by the count looks at this first */
        shmq_room_waiters_recover(&q, line);
        shmq_store_seq(&q.page->recount_due, 1);
        shmq_wake_producers(&q);
    }
    shmq_store_seq(&line->waiting, 0);
    shmq_store_seq(&line->changing, 0);
    if (!leaving) { /* who leaves gives up its claims one by one, with its handles */
        shmq_store_seq(&line->attached, 0);
    }
}

void shmq_counters_recover(shmq_member *m, const shmq_liveness *l) {
    SHMQ_ASSERT(m->structure_held);
    uint32_t rows = shmq_process_high(m), queues = shmq_queue_high(m);
    for (uint32_t row = 0; row < rows; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE || !shmq_is_dead(l, row)) {
            continue;
        }
        for (uint32_t index = 0; index < queues; index++) {
            shmq_counters_shm *line = shmq_counters_at(m, row, index);
            if (line != NULL) {
                recover_line(m, line, index, l->leaving);
            }
        }
    }
}

#define MANY_THREADS (1u << 20)

static const char *check_line(shmq_member *m, uint32_t row, uint32_t index, bool free) {
    shmq_counters_shm *line = shmq_counters_at(m, row, index);
    uint64_t attached = shmq_load_seq(&line->attached);
    if (shmq_load_seq(&line->moving) > MANY_THREADS || shmq_load_seq(&line->waiting) > MANY_THREADS) {
        return shmq_verdict("process row %u, queue %u: more threads in a call than there can be", row, index);
    }
    if (free && (shmq_load_seq(&line->moving) | shmq_load_seq(&line->waiting) | shmq_load_seq(&line->changing)) != 0) {
        return shmq_verdict("process row %u, queue %u: somebody is in a call, but the row is FREE", row, index);
    }
    if (attached == 0) {
        return NULL;
    }
    /* Whoever says so has seen the entry with that incarnation; the entry only goes on to later ones. */
    uint64_t entry = shmq_load_seq(&m->directory[index].word);
    if (attached > UINT64_C(1) << 32 || index >= shmq_queue_high(m) ||
        (int32_t)(shmq_entry_incarnation(entry) - (uint32_t)(attached - 1)) < 0) {
        return shmq_verdict("process row %u uses a queue %u that has not been", row, index);
    }
    return NULL;
}

static const char *check_lines(shmq_member *m, uint32_t row) {
    const shmq_process_page_shm *page = shmq_process_page(m, row);
    bool free = shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE;
    for (uint32_t chunk = 0; page != NULL && chunk < SHMQ_COUNTER_CHUNKS; chunk++) {
        uint32_t first = chunk * SHMQ_COUNTERS_A_CHUNK;
        if (shmq_load_seq(&page->chunks[chunk]) == 0) {
            continue;
        }
        if (line_of(m, page, first) == NULL) {
            return shmq_verdict("process row %u: chunk %u of its counters lies nowhere", row, chunk);
        }
        for (uint32_t i = 0; i < SHMQ_COUNTERS_A_CHUNK; i++) {
            const char *wrong = check_line(m, row, first + i, free);
            if (wrong != NULL) {
                return wrong;
            }
        }
    }
    return NULL;
}

/* ring.waiters against the parts: never too low, but for the time between two looks. */
static const char *check_waiters(shmq_member *m, uint32_t index) {
    shmq_queue q;
    uint32_t sum = 0, parts = 0, rows = shmq_process_high(m);
    if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_LIVE ||
        shmq_queue_look(m, index, &q) != NULL) {
        return NULL;
    }
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        parts = 0;
        sum = shmq_waiters_in(shmq_load_seq(&q.ring->waiters));
        for (uint32_t row = 0; row < rows; row++) {
            shmq_counters_shm *line = shmq_counters_at(m, row, index);
            parts += line != NULL && shmq_load_seq(&line->attached) == (uint64_t)q.incarnation + 1
                         ? shmq_load_seq(&line->waiting)
                         : 0;
        }
        if (parts <= sum || shmq_waiters_in(shmq_load_seq(&q.ring->waiters)) != sum) {
            return NULL;
        }
        shmq_pause();
    }
    return shmq_verdict("queue %u: %u threads wait for room, %u are counted", index, parts, sum);
}

const char *shmq_counters_valid(shmq_member *m) {
    const char *wrong = NULL;
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS && wrong == NULL; row++) {
        wrong = check_lines(m, row);
    }
    uint32_t queues = shmq_queue_high(m);
    for (uint32_t index = 0; index < queues && wrong == NULL; index++) {
        wrong = check_waiters(m, index);
    }
    return wrong;
}
