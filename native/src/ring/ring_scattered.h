/* Entries of a front ring whose positions are in no order of places: each came in by itself, some from before what lay there.
 *
 * A process keeps those that takers may have in a list of its own, in the order of their places. An entry that comes in
 * later lies behind the position up to which the process has looked. One that comes back says so by an epoch with a
 * cell (ring_head.c), or by one without, and the list is made anew. An entry that another taker has leaves the list,
 * but for one that is only offered to it, which may come back without an epoch. */
#ifndef SHMQ_RING_RING_SCATTERED_H
#define SHMQ_RING_RING_SCATTERED_H

#include "queue/handle.h"

typedef struct shmq_scattered shmq_scattered;

typedef struct shmq_scattered_entry {
    uint64_t place, position;
} shmq_scattered_entry;

/* The handle's list, with all that was there when the ring had this epoch. NULL: another thread has it, or there is no memory. */
shmq_scattered *shmq_scattered_begin(shmq_ring *front, uint64_t epoch);
void shmq_scattered_end(shmq_scattered *s);
/* The next entry in the order of places, from index *at on, whose slot had this word; *at: its index. False: there is none. */
bool shmq_scattered_next(shmq_ring *front, shmq_scattered *s, uint32_t *at, shmq_scattered_entry *e, uint64_t *word);

/* In a forked child: a thread of the parent may have been amid a look. */
void shmq_scattered_reset(shmq_ring *front);
void shmq_scattered_free(shmq_ring *front);

#endif
