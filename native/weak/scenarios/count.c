/* maxsize: never more entries than it says, also while somebody counts the slots anew, and at rest the count is right. */
#include "small_ring.h"

#define LIMIT 2u
#define EACH 4u

static void set_up(void) { ring_set_up(LIMIT); }

static uint32_t in_use(void) {
    uint32_t used = 0;
    for (uint64_t i = 0; i < RING_SLOTS; i++) {
        uint64_t word;
        __builtin_memcpy(&word, (const void *)&shmq_slot_at(&ring_queues[0]->first, i)->word, 8);
        used += shmq_word_state(word) != SHMQ_FREE;
    }
    return used;
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            if (weak_chance(100)) {
                shmq_store_seq(&q->page->recount_due, 1);
            }
            while (!ring_put(t, (uint64_t)t * EACH + i, 0)) {
                weak_yield();
            }
            WEAK_CHECK(in_use() <= LIMIT);
        }
        return;
    }
    while (board.total < 2 * EACH) {
        (void)ring_get(t);
        if (weak_chance(30)) {
            shmq_store_seq(&q->page->recount_due, 1);
            (void)shmq_recount(q);
        }
        weak_yield();
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
    if (shmq_load_seq(&ring_queues[0]->page->recount_due) == 0) {
        WEAK_CHECK((uint32_t)shmq_load_seq(&ring_queues[0]->page->count) == 0);
    }
}

const weak_scenario weak_count = {"count", "maxsize and the recount", 4, false, set_up, ring_begin, thread, end};
