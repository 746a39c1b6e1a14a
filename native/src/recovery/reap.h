/* Settling the affairs of dead processes: repeatable steps that anyone may run, any number at once, and that anyone may
 * leave half-way. No election: each repair is one CAS from the dead owner's exact word. */
#ifndef SHMQ_RECOVERY_REAP_H
#define SHMQ_RECOVERY_REAP_H

#include "segment/liveness.h"

/* Reap every member whose lock byte is free. Takes the structure lock at the end of each: do not hold it. */
shmq_status shmq_reap_dead(shmq_member *m, uint32_t *reaped);
/* The same, with another answer to the question which processes are dead. */
shmq_status shmq_reap(shmq_member *m, const shmq_liveness *l, uint32_t *reaped);
/* Reap one row if it is dead. Never waits for the structure lock: SHMQ_INTERRUPTED when it is taken. Its messages are
 * back with others then, and the next process that looks does the rest. */
shmq_status shmq_reap_row(shmq_member *m, uint32_t row);
/* Gives back the claims in the counters of the dead: memory of queues, a place between slot and count, places among the
 * blocked producers. Under the structure lock, after their consumer rows. */
void shmq_counters_recover(shmq_member *m, const shmq_liveness *l);

/* Gives back all that we leave in the queues: used at close, before our own row goes FREE. Releases, counts no death;
 * deletes our temporary queues, gives our consumer rows back. */
shmq_status shmq_sweep_own(shmq_member *m);

#endif
