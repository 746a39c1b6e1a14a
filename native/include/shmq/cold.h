/* Cold records: 64 bytes a slot, in a run of their own that a ring gets when its first message needs one. A queue that uses no
 * delay, no time to live and no lease has none, and pays one test of slot.props. */
#ifndef SHMQ_COLD_H
#define SHMQ_COLD_H

#include "shmq/handle.h"

/* Granules that the records of a ring of 1 << shift slots take. */
static inline uint32_t shmq_cold_granules(uint32_t shift) {
    uint64_t bytes = (UINT64_C(1) << (shift & 31)) * sizeof(shmq_cold_shm);
    return (uint32_t)((bytes + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT);
}

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
