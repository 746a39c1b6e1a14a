/* Consumer rows come and go while their messages are taken, given back and stolen: an owner's number is not its next
 * owner's, and what an owner had is back before its number is another's. */
#include "small_ring.h"

#define EACH 4u

static void set_up(void) { ring_set_up(0); }

/* The first row lays out a page of rows, as in a new queue. */
static void begin(void) {
    shmq_queue_shm *page = ring_queues[0]->page;
    ring_begin();
    shmq_store_relaxed(&page->chunks[0], 0);
    shmq_store_relaxed(&page->chunk_count, 0);
    shmq_store_relaxed(&page->sleepers[0].used, 0);
}

static bool open_row(shmq_queue *q, uint32_t *row) {
    shmq_status status;
    while ((status = shmq_row_open(q, SHMQ_CONSUMER, row)) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
    return status == SHMQ_OK;
}

/* A row of its own for each message; its generation goes on with each use. */
static void consume(int t) {
    shmq_queue *q = ring_queues[t];
    uint32_t row;
    shmq_delivery d;
    WEAK_CHECK(open_row(q, &row));
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    WEAK_CHECK(consumer != NULL);
    uint64_t mine = shmq_load_relaxed(&consumer->word);
    WEAK_CHECK(shmq_row_inner(mine) == q->m->row && shmq_row_state(mine) == SHMQ_ROW_LIVE);
    if (ring_receive(q, row, 0, &d)) {
        uint64_t number = ring_read(&d);
        if (weak_chance(80)) {
            (void)shmq_release(q, &d, false); /* SHMQ_SETTLED: it was stolen */
        } else if (shmq_settle(q, &d) == SHMQ_OK) {
            ring_note_got(number);
        }
    }
    WEAK_CHECK(shmq_load_relaxed(&consumer->word) == mine);
    while (shmq_row_close(q, row) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
}

static void steal(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    uint64_t tail = shmq_load_seq(&q->first.shm->tail);
    if (tail != 0 && shmq_steal(&q->first, weak_random(tail), false, &d) == SHMQ_OK) {
        uint64_t number = ring_read(&d);
        if (shmq_settle(q, &d) == SHMQ_OK) {
            ring_note_got(number);
        }
    }
}

static void thread(int t) {
    if (t == 0) {
        for (uint64_t i = 0; i < EACH; i++) {
            while (!ring_put(0, i, 0)) {
                weak_yield();
            }
        }
        return;
    }
    for (int i = 0; i < 6; i++) {
        if (t == 3) {
            steal(t);
        } else {
            consume(t);
        }
        weak_yield();
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, EACH);
    ring_check_words();
    const char *fault = shmq_consumers_fault(ring_queues[0]);
    if (fault != NULL) {
        weak_fail("%s", fault);
    }
    for (int t = 0; t < WEAK_THREADS; t++) {
        WEAK_CHECK(shmq_load_seq(&ring_members[t]->process->unsettled) == 0);
    }
}

const weak_scenario weak_rows = {"rows", "consumer rows open, close, are robbed", 4, false, set_up, begin, thread, end};
