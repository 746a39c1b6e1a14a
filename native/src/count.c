/* queue.count: how many slots of the queue are in use, for queues with a maxsize.
 *
 * Raised before a claim, lowered after each transition to FREE; the word's version half changes with every step. A process
 * that dies in between leaves a count that is one off. Who is stopped by the limit while `recount_due` says that somebody
 * died counts the slots, and believes the result only if nobody was between a slot and the count (`moving`) before and
 * after, and the version is the same: then no unit was on its way. */
#include "shmq/ring.h"
#include "shmq/verdict.h"
#include "shmq/wait.h"

#define TRIES 8

/* recount_due */
enum { SURE = 0, ASKED = 1, COUNTING = 2 };

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
    shmq_store_seq(&q->page->recount_due, ASKED);
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
                       ASKED); /* a reaper without a line of its own: counted again when it matters */
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

static uint64_t count_slots(const shmq_queue *q) {
    uint64_t used = 0;
    for (uint64_t i = 0; i <= q->mask; i++) {
        uint32_t state = shmq_word_state(shmq_load_seq(&shmq_slot_at(q, i)->word));
        used += state != SHMQ_FREE && state != SHMQ_BROKEN;
    }
    return used;
}

static bool recount_once(shmq_queue *q) {
    uint64_t before = shmq_load_seq(&q->page->count);
    if (anybody_moves(q)) {
        return false;
    }
    uint64_t used = count_slots(q);
    return !anybody_moves(q) && shmq_cas_seq(&q->page->count, before, NEXT(before, used));
}

bool shmq_recount(shmq_queue *q) {
    uint32_t due;
    /* Changed first: who asks for a recount from now on is not forgotten by this one. Not to SURE, for others rely on the
     * count when it says so. */
    do {
        due = shmq_load_seq(&q->page->recount_due);
        if (due == SURE) {
            return false;
        }
    } while (!shmq_cas32_seq(&q->page->recount_due, due, COUNTING));
    for (int i = 0; i < TRIES; i++) {
        if (recount_once(q)) {
            shmq_cas32_seq(&q->page->recount_due, COUNTING, SURE);
            shmq_add_seq(&q->ring->full, 1); /* others may have been stopped by the wrong count, too */
            shmq_futex_wake(&q->ring->full, INT32_MAX);
            return true;
        }
        shmq_pause();
    }
    shmq_store_seq(&q->page->recount_due, ASKED); /* too much traffic: when it matters again */
    return false;
}

/* As a recount: nobody between a slot and the count before and after, and the version is the same. A death in between
 * shows in `moving` until its reaper has asked for a recount. */
const char *shmq_count_valid(shmq_queue *q) {
    if (shmq_load_seq(&q->page->recount_due) > COUNTING) {
        return "a request to count that nobody makes";
    }
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        uint64_t before = shmq_load_seq(&q->page->count);
        if (shmq_load_seq(&q->page->maxsize) == 0 || shmq_load_seq(&q->page->recount_due) != SURE) {
            return NULL;
        }
        if (anybody_moves(q)) {
            shmq_pause();
            continue;
        }
        uint64_t used = count_slots(q);
        if (!anybody_moves(q) && shmq_load_seq(&q->page->recount_due) == SURE &&
            shmq_load_seq(&q->page->count) == before) {
            return used == ENTRIES(before)
                       ? NULL
                       : shmq_verdict("the count says %llu entries, the slots say %llu",
                                      (unsigned long long)ENTRIES(before), (unsigned long long)used);
        }
    }
    return NULL; /* too much traffic */
}
