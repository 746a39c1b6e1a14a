/* A deleted queue, for as long as consumers hold messages of it, or some wait for the dead letters. */
#ifndef SHMQ_SETTLE_ENDING_H
#define SHMQ_SETTLE_ENDING_H

#include "queue/handle.h"

/* Says whether an entry in this state has no owner, but for a taker that has only offered it to itself. */
static inline bool shmq_is_loose(uint32_t state) {
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED;
}
/* Says whether the queue's dead go to another queue. Then the interpreter takes them there. */
bool shmq_has_dead_letter(const shmq_queue *q);
/* Asks the interpreter of this process to dead-letter them, and, should it do nothing more, the next process that looks. */
void shmq_dead_letters_ask(shmq_member *m);
/* Settles the entries in this slot that no consumer has, until there is none. */
void shmq_loose_settle(shmq_ring *r, shmq_slot_shm *slot);

/* Settles an entry that came back to a deleted queue, or asks for its way to the dead letters, if it has one. */
void shmq_goes_with_queue(shmq_ring *r, shmq_slot_shm *slot);

/* A process that has just made an entry AVAILABLE or HELD calls this, behind that CAS. A process that deletes says so before it looks
 * at the words: one of the two sees the other. */
static inline void shmq_came_back(shmq_ring *r, shmq_slot_shm *slot) {
    if (SHMQ_UNLIKELY(shmq_load_seq(&r->queue->page->state) != SHMQ_QUEUE_LIVE)) {
        shmq_goes_with_queue(r, slot);
    }
}

/* Does the same for a producer that has published: false if it saw a deletion that did not see the message, and has
 * taken it back. */
bool shmq_put_in_time(shmq_ring *r, uint64_t position);

#endif
