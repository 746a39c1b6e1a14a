/* The reaper undoes what a dead process has claimed in its counters: a place among the waiters, a slot that is not
 * counted yet, the use of the queue's memory. */
#include "limits/room_wake.h"
#include "limits/waiters.h"
#include "recovery/reap.h"

static void recover_counters(shmq_member *m, shmq_counters_shm *counters, uint32_t index, bool leaving) {
    shmq_queue q;
    bool used = shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_FREE &&
                shmq_load_seq(&counters->attached) != 0 && shmq_queue_view(m, index, &q) == SHMQ_OK;
    shmq_store_seq(&counters->moving, 0);
    if (used) { /* after `moving`: a producer that the count stops looks at `moving` first */
        shmq_room_waiters_recover(&q, counters);
        shmq_store_seq(&q.page->recount_due, 1);
        shmq_wake_producers(&q);
    }
    shmq_store_seq(&counters->waiting, 0);
    shmq_store_seq(&counters->changing, 0);
    if (!leaving) { /* a leaving process gives up its claims one by one, with its handles */
        shmq_store_seq(&counters->attached, 0);
    }
}

void shmq_counters_recover(shmq_member *m, const shmq_liveness *l) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t rows = shmq_process_high(m), queues = shmq_queue_high(m);
    for (uint32_t row = 0; row < rows; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE || !shmq_is_dead(l, row)) {
            continue;
        }
        for (uint32_t index = 0; index < queues; index++) {
            shmq_counters_shm *counters = shmq_counters_at(m, row, index);
            if (counters != NULL) {
                recover_counters(m, counters, index, l->leaving);
            }
        }
    }
}
