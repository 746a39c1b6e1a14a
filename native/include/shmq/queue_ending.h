/* A deleted queue, for as long as consumers hold messages of it, or some wait for the dead letters. */
#ifndef SHMQ_QUEUE_ENDING_H
#define SHMQ_QUEUE_ENDING_H

#include "shmq/due.h"
#include "shmq/ring.h"

/* Without an owner, but for a taker that has only offered it to itself. */
static inline bool shmq_is_loose(uint32_t state) {
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED;
}
/* Do its dead go to a queue? Then the interpreter takes them there. */
bool shmq_has_dead_letter(const shmq_queue *q);
/* Asks the interpreter of this process to dead-letter them, and, should it do nothing more, the next process that looks. */
void shmq_dead_letters_ask(shmq_member *m);
/* Settle what is loose in this slot, until nothing is. */
void shmq_loose_settle(shmq_ring *r, shmq_slot_shm *slot);

/* An entry has come back to a queue that is deleted: it goes as the others went. */
void shmq_goes_with_queue(shmq_ring *r, shmq_slot_shm *slot);

/* A process that has just made an entry AVAILABLE or HELD calls this, behind that CAS. A process that deletes says so before it looks
 * at the words: one of the two sees the other. */
static inline void shmq_came_back(shmq_ring *r, shmq_slot_shm *slot) {
    if (SHMQ_UNLIKELY(shmq_load_seq(&r->queue->page->state) != SHMQ_QUEUE_LIVE)) {
        shmq_goes_with_queue(r, slot);
    }
}

/* The same by a producer that has published: false if it saw a deletion that did not see the message, and has taken it back. */
bool shmq_put_in_time(shmq_ring *r, uint64_t position);

/* Is there a deleted queue at this index whose entry still leads to it? */
bool shmq_is_ending(shmq_member *m, uint32_t index);
/* Name and incarnation of a deleted queue with messages that wait for the interpreter to dead-letter them; false: it is none. */
bool shmq_queue_ending(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation);
/* Now, if something without an owner is left in it; else SHMQ_DUE_NEVER: a consumer that gives something back says so. */
uint64_t shmq_ending_due(const shmq_queue *q, uint64_t now);
/* Ends the queue, or asks for its messages to be dead-lettered. Answers when to look again. */
uint64_t shmq_ending_look(shmq_queue *q, uint64_t now);
/* The first of them, LOCKED by this process: SHMQ_OK, SHMQ_EMPTY. */
shmq_status shmq_steal_left(shmq_queue *q, shmq_delivery *d);

#endif
