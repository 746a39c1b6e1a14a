/* A consumer says that it wants an entry before it looks: then consumers of lower priority leave the entry to it. */
#include "consumers/sleepers.h"
#include "look/census.h"
#include "queue/consumer_row.h"
#include "take/take.h"

void shmq_want(shmq_queue *q, uint32_t row) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    if (consumer != NULL) {
        shmq_add_seq(&consumer->rounds, 1);
        shmq_or_seq(&q->page->sleepers[row / 64].want, UINT64_C(1) << (row & 63));
    }
}

void shmq_want_end(shmq_queue *q, uint32_t row) {
    if (row < SHMQ_CONSUMER_ROWS) { /* a process without a consumer has no row: a damaged word said that ranks matter */
        (void)shmq_and_seq(&q->page->sleepers[row / 64].want, ~(UINT64_C(1) << (row & 63)));
    }
    if (shmq_anybody_idle(q) && shmq_ring_ready(q)) {
        shmq_notify(q); /* consumers of lower priority may have the rest */
    }
}
