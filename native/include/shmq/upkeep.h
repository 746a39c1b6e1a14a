/* What a lower room of the core asks of higher ones. A room calls downward only (tools/layers.toml); but who wants a row, memory
 * or sleep has to settle the affairs of the dead, and do what is due, which are calls of the highest rooms. These few stand in
 * one table, which the linker binds: upkeep/upkeep.c fills it, nothing changes it. */
#ifndef SHMQ_UPKEEP_H
#define SHMQ_UPKEEP_H

#include "shmq/member.h"

typedef struct shmq_upkeep_calls {
    shmq_status (*reap_dead)(shmq_member *m, uint32_t *reaped); /* shmq_reap_dead, reap.h */
    shmq_status (*reap_row)(shmq_member *m, uint32_t row); /* shmq_reap_row, reap.h */
    void (*look_for_due)(shmq_member *m); /* shmq_due_look, due.h */
    shmq_status (*relieve)(shmq_member *m, struct shmq_queue *q, bool in_turn); /* shmq_relieve, below */
    void (*release_queues)(shmq_member *m); /* shmq_queues_release, structure.h */
} shmq_upkeep_calls;

extern const shmq_upkeep_calls shmq_upkeep;

/* Moves messages to disk, this queue's (unless it is NULL), else those of the queues that have most in memory, for there is none
 * left. SHMQ_OK: some went, try again; SHMQ_EMPTY, SHMQ_IN_USE: none can, or others are at it. SHMQ_FULL_DISK, and what the disk
 * answers. `in_turn`: the caller has the mover's lock of this queue, and has moved of it what can go. */
shmq_status shmq_relieve(shmq_member *m, struct shmq_queue *q, bool in_turn);

#endif
