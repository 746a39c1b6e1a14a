/* Slots that become FREE again, those of claims among them, and the patience with a claim in the way. */
#ifndef SHMQ_LIMITS_SLOT_FREE_H
#define SHMQ_LIMITS_SLOT_FREE_H

#include "queue/handle.h"

/* A process that meets a claim in its way starts its patience, goes on with it, or - when it is over - makes holes of all claims
 * below the tail of the start. */
bool shmq_patience_over(shmq_ring *r, shmq_patience *wait, uint64_t position, uint64_t word);
bool shmq_slot_free(shmq_ring *r, shmq_slot_shm *slot, uint64_t word); /* CAS to FREE@lap+1, count, wake full */
bool shmq_claim_clear(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, bool overdue); /* T3, T4, T6 as it applies */
bool shmq_claim_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word); /* T3, T6, T16: its owner is dead */
bool shmq_owner_dead(shmq_queue *q, uint32_t owner); /* the caller has read the word that names it before */

#endif
