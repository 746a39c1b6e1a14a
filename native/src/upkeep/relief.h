/* Memory that a process in want of it gets: messages of others go to disk, kept memory goes back. */
#ifndef SHMQ_UPKEEP_RELIEF_H
#define SHMQ_UPKEEP_RELIEF_H

#include "segment/member.h"

struct shmq_queue;

/* A purger moves messages to disk, this queue's (unless it is NULL), else those of the queues that have most in memory, when the
 * broker's memory is used up. SHMQ_OK: some went, try again; SHMQ_EMPTY: none can; SHMQ_IN_USE: other movers are at it.
 * SHMQ_FULL_DISK, and what the disk answers. `in_turn`: the caller has the mover's lock of this queue, and has moved of it what can go. */
shmq_status shmq_relieve(shmq_member *m, struct shmq_queue *q, bool in_turn);

/* Memory that front rings want as soon as queues flow of which something could go to disk. Bodies leave it free. */
uint64_t shmq_fronts_lack(shmq_member *m);

/* Under the structure lock: the memory of deleted queues goes back, and the block that is kept for rows where none are left. */
void shmq_release_unused(shmq_member *m);

#endif
