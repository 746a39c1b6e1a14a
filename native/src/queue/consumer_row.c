/* Where the row of a consumer lies, by its number. */
#include "queue/consumer_row.h"

shmq_consumer_shm *shmq_row_at(const shmq_queue *q, uint32_t row) {
    uint64_t offset = row < SHMQ_CONSUMER_ROWS ? shmq_load_acquire(&q->page->chunks[row / SHMQ_ROWS_A_CHUNK])
                                               : 0; /* SYNC row.chunk */
    if (row == 0 || offset == 0 || (offset & (SHMQ_PAGE_BYTES - 1)) != 0 ||
        !shmq_inside(q->m, offset, SHMQ_PAGE_BYTES)) {
        return NULL;
    }
    return (shmq_consumer_shm *)shmq_at(q->m, offset) + row % SHMQ_ROWS_A_CHUNK;
}
