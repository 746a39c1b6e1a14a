/* Faults of counters: all processes' counters against their rows and the queues. */
#include "base/fault_text.h"
#include "check/faults.h"
#include "layout/waiters.h"
#include "segment/process_table.h"

#define MANY_THREADS (1u << 20)

static const char *check_counters(shmq_member *m, uint32_t row, uint32_t index, bool free) {
    shmq_counters_shm *counters = shmq_counters_at(m, row, index);
    if (counters == NULL) { /* asked of each: it may be damaged behind the look at another one */
        return shmq_fault_text("process row %u has an offset of counter chunk %u that makes no sense", row,
                               index / SHMQ_COUNTERS_A_CHUNK);
    }
    uint64_t attached = shmq_load_seq(&counters->attached);
    if (shmq_load_seq(&counters->moving) > MANY_THREADS || shmq_load_seq(&counters->waiting) > MANY_THREADS) {
        return shmq_fault_text("process row %u counts more threads in calls on queue %u than a process can have", row,
                               index);
    }
    if (free && (shmq_load_seq(&counters->moving) | shmq_load_seq(&counters->waiting) |
                 shmq_load_seq(&counters->changing)) != 0) {
        return shmq_fault_text("process row %u counts threads in calls on queue %u, but no process owns the row", row,
                               index);
    }
    if (attached == 0) {
        return NULL;
    }
    /* A process that counts there has seen an entry of that incarnation; incarnations only grow. */
    uint64_t entry = shmq_load_seq(&m->directory[index].word);
    if (attached > UINT64_C(1) << 32 || index >= shmq_queue_high(m) ||
        (int32_t)(shmq_entry_incarnation(entry) - (uint32_t)(attached - 1)) < 0) {
        return shmq_fault_text("process row %u uses queue %u, which was never made", row, index);
    }
    return NULL;
}

static const char *check_process(shmq_member *m, uint32_t row) {
    const shmq_process_page_shm *page = shmq_process_page(m, row);
    bool free = shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE;
    for (uint32_t chunk = 0; page != NULL && chunk < SHMQ_COUNTER_CHUNKS; chunk++) {
        uint32_t first = chunk * SHMQ_COUNTERS_A_CHUNK;
        if (shmq_load_seq(&page->chunks[chunk]) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < SHMQ_COUNTERS_A_CHUNK; i++) {
            const char *wrong = check_counters(m, row, first + i, free);
            if (wrong != NULL) {
                return wrong;
            }
        }
    }
    return NULL;
}

/* ring.waiters against its parts: it is never too low, except between two reads. */
static const char *check_waiters(shmq_member *m, uint32_t index) {
    shmq_queue q;
    uint32_t sum = 0, parts = 0, rows = shmq_process_high(m);
    if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_LIVE ||
        shmq_queue_look(m, index, &q) != NULL) {
        return NULL;
    }
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        parts = 0;
        sum = shmq_waiters_in(shmq_load_seq(&q.first.shm->waiters));
        for (uint32_t row = 0; row < rows; row++) {
            shmq_counters_shm *counters = shmq_counters_at(m, row, index);
            parts += counters != NULL && shmq_load_seq(&counters->attached) == (uint64_t)q.incarnation + 1
                         ? shmq_load_seq(&counters->waiting)
                         : 0;
        }
        if (parts <= sum || shmq_waiters_in(shmq_load_seq(&q.first.shm->waiters)) != sum) {
            return NULL;
        }
        shmq_pause();
    }
    return shmq_fault_text("queue %u: %u threads wait for room, but only %u are counted", index, parts, sum);
}

const char *shmq_counters_fault(shmq_member *m) {
    const char *wrong = NULL;
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS && wrong == NULL; row++) {
        wrong = check_process(m, row);
    }
    uint32_t queues = shmq_queue_high(m);
    for (uint32_t index = 0; index < queues && wrong == NULL; index++) {
        wrong = check_waiters(m, index);
    }
    return wrong;
}
