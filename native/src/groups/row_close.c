/* A consumer leaves: its groups go to others, then its row is free. Rows of threads that wait without a consumer are
 * kept for the next one. */
#include "groups/row_close.h"
#include "consumers/privilege.h"
#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "consumers/unused.h"
#include "groups/group.h"
#include "queue/consumer_row.h"
#include "segment/structure.h"

shmq_status shmq_row_close(shmq_queue *q, uint32_t row) {
    shmq_member *m = q->m;
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    if (consumer == NULL) {
        return SHMQ_OK; /* damaged: there is nothing to give back */
    }
    if (shmq_load_relaxed(&consumer->kind) == SHMQ_CONSUMER) {
        shmq_groups_leave(q, row);
    }
    SHMQ_TRY(shmq_structure_lock(m));
    uint64_t word = shmq_load_relaxed(&consumer->word);
    if (shmq_row_state(word) != SHMQ_ROW_FREE && shmq_row_inner(word) == m->row) {
        shmq_privilege_leave(q, row);
        shmq_and_seq(&q->page->sleepers[row / 64].used, ~(UINT64_C(1) << (row & 63))); /* first: as at open */
        shmq_store_release(&consumer->word,
                           shmq_row_word(shmq_row_generation(word) + 1, 0, SHMQ_ROW_FREE)); /* SYNC row.owner */
        if (shmq_load_relaxed(&consumer->kind) == SHMQ_CONSUMER && !shmq_ranks_are_plain(q)) {
            shmq_ranks_settle(q);
        }
    }
    shmq_structure_unlock(m);
    if (shmq_load_relaxed(&consumer->kind) == SHMQ_CONSUMER) {
        shmq_unused_begin(q);
    }
    return SHMQ_OK;
}

shmq_status shmq_row_borrow(shmq_queue *q, uint32_t *row) {
    shmq_member *m = q->m;
    pthread_mutex_lock(&m->handles_lock);
    *row = q->spare_count != 0 ? q->spare_rows[--q->spare_count] : 0;
    pthread_mutex_unlock(&m->handles_lock);
    return *row != 0 ? SHMQ_OK : shmq_row_open(q, SHMQ_GETTER, row);
}

void shmq_row_return(shmq_queue *q, uint32_t row) {
    shmq_member *m = q->m;
    bool kept = false;
    pthread_mutex_lock(&m->handles_lock);
    if (q->spare_count < SHMQ_SPARE_ROWS) {
        q->spare_rows[q->spare_count++] = row;
        kept = true;
    }
    pthread_mutex_unlock(&m->handles_lock);
    if (!kept) {
        (void)shmq_row_close(q, row);
    }
}
