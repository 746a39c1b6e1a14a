/* A blocked producer where only a recount shows a place: a damaged slot is put out of service, and gives none back. */
#include "small_ring.h"

static void set_up(void) { ring_set_up(1); }

static void thread(int t) {
    if (t == 0) {
        WEAK_CHECK(ring_put(t, 0, SHMQ_FOR_EVER));
        WEAK_CHECK(ring_put(t, 1, SHMQ_FOR_EVER));
        return;
    }
    shmq_queue *q = ring_queues[t];
    shmq_slot_shm *slot = shmq_slot_at(&q->first, 0);
    uint64_t word;
    do {
        weak_yield();
        word = shmq_load_seq(&slot->word);
    } while (shmq_word_state(word) != SHMQ_AVAILABLE ||
             !shmq_cas_seq(&slot->word, word, shmq_word(0, 0, 0, 0, 12))); /* what nobody writes */
    shmq_delivery d;
    const shmq_taking taking = {.owner = shmq_self(q)};
    WEAK_CHECK(shmq_receive(q, &taking, &d) == SHMQ_CORRUPT);
}

static void end(void) {
    WEAK_CHECK(ring_get(0) == 1);
    shmq_queue *q = ring_queues[0];
    WEAK_CHECK((uint32_t)shmq_load_seq(&q->page->count) == 0);
}

const weak_scenario weak_recount = {"recount", "blocked producers and a recount", 2, true, set_up, ring_begin, thread,
                                    end};
