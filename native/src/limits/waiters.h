/* Producers that wait for room in a ring, or for memory. They are counted in one word that a process looks at when it
 * makes room, and in parts, each process in its own counters.
 *
 * The word: version 32 | threads 32; each joining raises both. Joining: the sum, then the part; leaving: the part, then
 * the sum. So a death in between leaves the sum too high, which costs a system call for each message, and never too low,
 * which would cost a sleeper its wake. Both say in `changing` that they are in between: that is how a recount knows what
 * to believe. */
#ifndef SHMQ_LIMITS_WAITERS_H
#define SHMQ_LIMITS_WAITERS_H

#include "layout/waiters.h"
#include "queue/handle.h"

static inline shmq_waiters shmq_room_waiters(const shmq_queue *q, shmq_counters_shm *counters) {
    return (shmq_waiters){&q->page->ring.waiters, &counters->waiting, &counters->changing};
}

static inline shmq_waiters shmq_memory_waiters(const shmq_member *m, shmq_process_shm *row) {
    return (shmq_waiters){&m->header->memory_waiters, &row->memory_waiting, &row->memory_changing};
}

void shmq_join_count(const shmq_waiters *w);
void shmq_leave_count(const shmq_waiters *w);
/* Its process is dead: its part is taken off the sum, and so is what it had not said yet, unless others are in between all
 * the time; then the next reaper does it. Under the structure lock. */
void shmq_room_waiters_recover(shmq_queue *q, shmq_counters_shm *counters);
void shmq_memory_waiters_recover(shmq_member *m, shmq_process_shm *row);

#endif
