/* Counters: one for each process and queue, in chunks of 64 queues, whose offsets lie in the process page. */
#include "segment/process_table.h"
#include "segment/structure.h"

static shmq_counters_shm *counters_of(const shmq_member *m, const shmq_process_page_shm *page, uint32_t queue_index) {
    uint64_t offset = shmq_load_seq(&page->chunks[queue_index / SHMQ_COUNTERS_A_CHUNK]);
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 || !shmq_inside(m, offset, SHMQ_PAGE_BYTES)) {
        return NULL;
    }
    shmq_counters_shm *all_counters = shmq_at(m, offset);
    return &all_counters[queue_index % SHMQ_COUNTERS_A_CHUNK];
}

static_assert(SHMQ_COUNTERS_A_CHUNK * sizeof(shmq_counters_shm) == SHMQ_PAGE_BYTES, "a chunk is a page");

shmq_counters_shm *shmq_counters_at(const shmq_member *m, uint32_t row, uint32_t queue_index) {
    if (row >= SHMQ_PROCESS_ROWS || queue_index >= SHMQ_QUEUES) {
        return NULL;
    }
    const shmq_process_page_shm *page = shmq_process_page(m, row);
    return page == NULL ? NULL : counters_of(m, page, queue_index);
}

shmq_status shmq_counters_make(shmq_member *m, uint32_t queue_index, shmq_counters_shm **counters) {
    SHMQ_ASSERT(queue_index < SHMQ_QUEUES);
    shmq_a64 *chunk = &m->page->chunks[queue_index / SHMQ_COUNTERS_A_CHUNK];
    uint64_t found = shmq_load_seq(chunk);
    if (found == 0) {
        uint64_t offset;
        SHMQ_TRY(shmq_page_take(m, &offset));
        shmq_store_seq(chunk, offset); /* the root: the page comes zeroed */
    }
    *counters = counters_of(m, m->page, queue_index);
    return *counters != NULL ? SHMQ_OK : shmq_damage(m, "the offset of a chunk of counters makes no sense", found);
}

shmq_status shmq_counters_of(shmq_member *m, uint32_t queue_index, shmq_counters_shm **counters) {
    SHMQ_ASSERT(queue_index < SHMQ_QUEUES);
    *counters = counters_of(m, m->page, queue_index);
    if (*counters != NULL) {
        return SHMQ_OK;
    }
    SHMQ_TRY(shmq_structure_lock(m));
    shmq_status status = shmq_counters_make(m, queue_index, counters);
    shmq_structure_unlock(m);
    return status;
}

/* No process has a handle on the queue that had this entry before, so none counts there meanwhile. Relaxed: the entry's
 * root, which its maker stores afterwards, shows the zeros to the others. */
void shmq_counters_clear(shmq_member *m, uint32_t queue_index) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t rows = shmq_process_high(m);
    for (uint32_t row = 0; row < rows; row++) {
        shmq_counters_shm *counters = shmq_counters_at(m, row, queue_index);
        if (counters == NULL) {
            continue;
        }
        shmq_a64 *const counts[] = {&counters->put,    &counters->got,         &counters->received,
                                    &counters->acked,  &counters->redelivered, &counters->dead_lettered,
                                    &counters->purged, &counters->died,        &counters->expired,
                                    &counters->dropped};
        for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            shmq_store_relaxed(counts[i], 0);
        }
    }
}
