/* The consumers of a queue, how many of them sleep, and how many producers wait. */
#include "consumers/who_waits.h"
#include "layout/waiters.h"
#include "queue/consumer_row.h"

/* Returns the consumer in this row; NULL: no consumer has the row, or the row has no memory. */
static const shmq_consumer_shm *consumer_in(const shmq_queue *q, uint32_t row) {
    const shmq_consumer_shm *consumer = shmq_row_at(q, row);
    return consumer != NULL && shmq_load_relaxed(&consumer->kind) == SHMQ_CONSUMER ? consumer : NULL;
}

void shmq_queue_waiters(const shmq_queue *q, shmq_waiter_counts *waiters) {
    *waiters = (shmq_waiter_counts){.producers_waiting = shmq_waiters_in(shmq_load_seq(&q->first.shm->waiters))};
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t used = shmq_load_seq(&q->page->sleepers[chunk].used);
        waiters->asleep += (uint32_t)__builtin_popcountll(shmq_load_seq(&q->page->sleepers[chunk].idle));
        for (; used != 0; used &= used - 1) {
            waiters->consumers += consumer_in(q, chunk * 64 + (uint32_t)__builtin_ctzll(used)) != NULL;
        }
    }
}

bool shmq_next_taker(const shmq_queue *q, uint32_t *row, uint32_t *pid) {
    for (; *row < SHMQ_CHUNKS * 64; ++*row) {
        bool used = shmq_load_seq(&q->page->sleepers[*row / 64].used) >> (*row & 63) & 1;
        const shmq_consumer_shm *consumer = used ? consumer_in(q, *row) : NULL;
        uint64_t word = consumer != NULL ? shmq_load_acquire(&consumer->word) : 0; /* SYNC row.owner */
        if (consumer != NULL && shmq_row_state(word) != SHMQ_ROW_FREE && shmq_row_inner(word) < SHMQ_PROCESS_ROWS) {
            *pid = q->m->rows[shmq_row_inner(word)].pid;
            ++*row;
            return true;
        }
    }
    return false;
}
