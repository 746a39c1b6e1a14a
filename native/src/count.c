/* queue.count: how many slots of the queue are in use, for queues with a maxsize.
 *
 * Raised before a claim, lowered after each transition to FREE; the word's version half changes with every step. A process
 * that dies in between leaves a count that is one off. Who is stopped by the limit while `recount_due` says that somebody
 * died counts the slots, and believes the result only if nobody was between a slot and the count (`moving`) before and
 * after, and the version is the same: then no unit was on its way. */
#include "shmq/ring.h"

bool shmq_count_take(shmq_queue *q, uint32_t count) {
    uint64_t limit = shmq_load_relaxed(&q->page->maxsize);
    for (;;) {
        uint64_t word = shmq_load_seq(&q->page->count);
        if ((word & UINT32_MAX) + count > limit) {
            return false;
        }
        if (shmq_cas_seq(&q->page->count, word, word + (UINT64_C(1) << 32) + count)) {
            return true;
        }
    }
}

void shmq_count_give(shmq_queue *q, uint32_t count) {
    for (;;) {
        uint64_t word = shmq_load_seq(&q->page->count);
        uint64_t rest = (word & UINT32_MAX) > count ? (word & UINT32_MAX) - count : 0;
        if (shmq_cas_seq(&q->page->count, word, (((word >> 32) + 1) << 32) | rest)) {
            return;
        }
    }
}

void shmq_moving(shmq_queue *q, int32_t change) {
    if (q->counters != NULL) {
        shmq_add_seq(&q->counters->moving, (uint32_t)change);
    } else {
        shmq_store_seq(&q->page->recount_due, 1); /* a reaper without a line of its own: counted again when it matters */
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

bool shmq_recount(shmq_queue *q) {
    uint64_t before = shmq_load_seq(&q->page->count);
    if (anybody_moves(q)) {
        return false;
    }
    uint64_t used = 0;
    for (uint64_t i = 0; i <= q->mask; i++) {
        used += shmq_word_state(shmq_load_seq(&shmq_slot_at(q, i)->word)) != SHMQ_FREE;
    }
    if (anybody_moves(q) || !shmq_cas_seq(&q->page->count, before, (((before >> 32) + 1) << 32) | used)) {
        return false;
    }
    shmq_store_seq(&q->page->recount_due, 0);
    return true;
}
