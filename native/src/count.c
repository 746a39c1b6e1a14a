/* queue.count: how many slots of the queue are in use, for queues with a maxsize.
 *
 * Raised before a claim, lowered after each transition to FREE; the word's version half changes with every step. A process
 * that dies in between leaves a count that is one off. Who is stopped by the limit while `recount_due` says that somebody
 * died counts the slots, and believes the result only if nobody was between a slot and the count (`moving`) before and
 * after, and the version is the same: then no unit was on its way. */
#include "shmq/ring.h"
#include "shmq/wait.h"

#define TRIES 8
#define ENTRIES(word) ((word) & UINT32_MAX)
#define NEXT(word, entries) ((((word) >> 32) + 1) << 32 | (uint64_t)(entries))

bool shmq_count_take(shmq_queue *q, uint32_t count) {
    uint64_t limit = shmq_load_relaxed(&q->page->maxsize);
    for (;;) {
        uint64_t word = shmq_load_seq(&q->page->count);
        if (ENTRIES(word) + count > limit) {
            return false;
        }
        if (shmq_cas_seq(&q->page->count, word, NEXT(word, ENTRIES(word) + count))) {
            return true;
        }
    }
}

/* Too high is corrected by a recount when it matters; too low would let one too many in. */
void shmq_count_late(shmq_queue *q) {
    uint64_t word;
    do {
        word = shmq_load_seq(&q->page->count);
    } while (
        !shmq_cas_seq(&q->page->count, word, NEXT(word, ENTRIES(word) < UINT32_MAX ? ENTRIES(word) + 1 : UINT32_MAX)));
    shmq_store_seq(&q->page->recount_due, 1);
}

void shmq_count_give(shmq_queue *q, uint32_t count) {
    for (;;) {
        uint64_t word = shmq_load_seq(&q->page->count);
        if (shmq_cas_seq(&q->page->count, word, NEXT(word, ENTRIES(word) > count ? ENTRIES(word) - count : 0))) {
            return;
        }
    }
}

void shmq_moving(shmq_queue *q, int32_t change) {
    if (q->counters != NULL) {
        shmq_add_seq(&q->counters->moving, (uint32_t)change);
    } else {
        shmq_store_seq(&q->page->recount_due,
                       1); /* a reaper without a line of its own: counted again when it matters */
    }
}

static bool anybody_moves(shmq_queue *q) {
    uint32_t high = shmq_load_seq(&q->m->header->process_high);
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        shmq_counters_shm *line = shmq_counters_at(q->m, row, q->index);
        if (line != NULL && shmq_load_seq(&line->moving) != 0) {
            return true;
        }
    }
    return false;
}

static bool recount_once(shmq_queue *q) {
    uint64_t before = shmq_load_seq(&q->page->count), used = 0;
    if (anybody_moves(q)) {
        return false;
    }
    for (uint64_t i = 0; i <= q->mask; i++) {
        uint32_t state = shmq_word_state(shmq_load_seq(&shmq_slot_at(q, i)->word));
        used += state != SHMQ_FREE && state != SHMQ_BROKEN;
    }
    return !anybody_moves(q) && shmq_cas_seq(&q->page->count, before, NEXT(before, used));
}

bool shmq_recount(shmq_queue *q) {
    /* Taken down first: who asks for a recount from now on is not forgotten by this one. */
    if (shmq_swap_seq(&q->page->recount_due, 0) == 0) {
        return false;
    }
    for (int i = 0; i < TRIES; i++) {
        if (recount_once(q)) {
            shmq_add_seq(&q->ring->full, 1); /* others may have been stopped by the wrong count, too */
            shmq_futex_wake(&q->ring->full, INT32_MAX);
            return true;
        }
        shmq_pause();
    }
    shmq_store_seq(&q->page->recount_due, 1); /* too much traffic: when it matters again */
    return false;
}
