/* The census: a process counts entries by looking at their slots. */
#ifndef SHMQ_LOOK_CENSUS_H
#define SHMQ_LOOK_CENSUS_H

#include "queue/handle.h"

typedef struct shmq_census {
    uint64_t ready, unsettled, delayed, claimed, holes, broken;
    uint64_t flowed; /* of `ready`: on disk */
    uint64_t bytes, memory_bytes;
    uint64_t oldest_ns; /* enqueued_ns of the oldest ready entry; 0: none */
    uint64_t first_position; /* place of the entry that is first in order; UINT64_MAX: none */
    uint64_t next_position; /* place of the next newcomer of the least important level */
} shmq_census;
/* Adds what lies in this stretch (stretch.h). */
void shmq_stretch_count(const shmq_ring *r, uint64_t stretch, shmq_census *census);
/* Count by looking at every word between floor and tail, and at the carried ones; raises floor. */
void shmq_ring_census(shmq_queue *q, shmq_census *census);
/* The same by a checker or browser, which writes nothing. */
void shmq_ring_count(const shmq_queue *q, shmq_census *census);
/* The same at once: only what changed since this process looked last is looked at (stretch.h). */
void shmq_ring_sizes(shmq_queue *q, shmq_census *census);
/* Anything to take? Cheap: no census. */
bool shmq_ring_ready(shmq_queue *q);
/* Wait until nothing is ready, delayed or unsettled. */
shmq_status shmq_ring_join(shmq_queue *q, uint64_t until_ns);

/* Adds what is in this ring, of a handle, to the census. One thread at a time uses what is kept; the others look at all. */
void shmq_ring_known(shmq_ring *r, struct shmq_census *c);
/* In a forked child: a thread of the parent may have been amid a count. */
void shmq_known_reset(shmq_ring *r);
void shmq_known_free(shmq_ring *r);

#endif
