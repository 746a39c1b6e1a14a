/* Cold records: 64 bytes a slot, in a run of their own that a ring gets when its first message needs one. A queue that uses no
 * delay, no time to live and no lease has none, and pays one test of slot.props. */
#ifndef SHMQ_QUEUE_COLD_H
#define SHMQ_QUEUE_COLD_H

#include "queue/handle.h"

/* Make the records if the ring has none: SHMQ_FULL_MEMORY, SHMQ_NO_SPACE, SHMQ_INTERRUPTED (call again). Takes the structure
 * lock, so never between a claim and its publish. */
shmq_status shmq_cold_need(shmq_ring *r);
/* The record of a slot; NULL: the ring has none, or its offset was damaged (counted). */
shmq_cold_shm *shmq_cold_at(const shmq_ring *r, const shmq_slot_shm *slot);
/* slot.props as it is now. */
uint32_t shmq_props(const shmq_slot_shm *slot);
/* Set and clear bits of slot.props; by the owner of the slot. */
void shmq_props_change(shmq_slot_shm *slot, uint32_t set, uint32_t clear);
/* NULL, or what is wrong with ring.cold. Under the structure lock. */
const char *shmq_cold_fault(const shmq_ring *r);

#endif
