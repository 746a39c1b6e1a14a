#include "shmq/immediate.h"

#include "shmq/sleepers.h"
#include "shmq/wait.h"

#define AWAKE_NS UINT64_C(200000)      /* a taker that spins looks many times in it */
#define LONGEST_STEP_NS UINT64_C(1000000) /* between two looks; nobody tells us that it was taken */

uint64_t shmq_immediate_until(shmq_queue *q) {
    return shmq_now_ns() + (shmq_anybody_idle(q) ? q->m->patience_ns : AWAKE_NS);
}

enum fate { WAITS, IS_OFFERED, IS_TAKEN };

/* What has become of it. R says that it was with somebody and came back: that counts as taken. */
static enum fate fate_of(const shmq_queue *q, shmq_slot_shm *slot, uint64_t position, uint64_t *word) {
    *word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
    uint32_t state = shmq_word_state(*word);
    if (shmq_load_acquire(&slot->position) != position ||
        (*word & SHMQ_FLAG_REDELIVERED) != 0) { /* SYNC ring.publish */
        return IS_TAKEN;
    }
    bool there = shmq_word_carried(*word) || shmq_word_lap(*word) == shmq_turn(q, position);
    if (state == SHMQ_AVAILABLE && there) {
        return WAITS;
    }
    return state == SHMQ_OFFERED && there ? IS_OFFERED : IS_TAKEN;
}

/* From exactly the word that says that nobody had it: the taker's CAS or ours wins. */
static bool withdraw(shmq_queue *q, shmq_slot_shm *slot, uint64_t word, uint64_t position) {
    shmq_delivery d = {0};
    if (!shmq_seize(q, slot, word, position, &d)) {
        return false;
    }
    shmq_add_relaxed(&q->counters->purged, 1);
    return shmq_settle(q, &d) == SHMQ_OK;
}

shmq_status shmq_immediate(shmq_queue *q, const shmq_outgoing *o, uint64_t until_ns) {
    q = shmq_level_for(q, o->priority);
    shmq_slot_shm *slot = shmq_slot_at(q, o->position);
    shmq_ring_shm *home = &q->page->ring;
    uint64_t step = 1000, slice_end = shmq_slice_end(q->m);
    for (;;) {
        uint64_t word, now = shmq_now_ns();
        enum fate fate = fate_of(q, slot, o->position, &word);
        if (fate == IS_TAKEN) {
            return SHMQ_OK;
        }
        if (fate == WAITS && now >= until_ns) {
            if (withdraw(q, slot, word, o->position)) {
                return SHMQ_EMPTY;
            }
            continue;
        }
        if (now >= slice_end) {
            return shmq_slice_over(q->m);
        }
        uint64_t until = fate == WAITS && until_ns - now < step ? until_ns : now + step;
        if (shmq_sleep(q->m, &home->drained, shmq_load_seq(&home->drained), until) == SHMQ_INTERRUPTED) {
            return SHMQ_INTERRUPTED;
        }
        step = step < LONGEST_STEP_NS ? step * 2 : step;
    }
}
