/* The reaper's repairs, one for each kind of word that names its owner. Repeatable, by any number of reapers at once. */
#ifndef SHMQ_RECOVERY_RECOVER_H
#define SHMQ_RECOVERY_RECOVER_H

#include "queue/handle.h"
#include "segment/liveness.h"

/* The reaper frees what the dead have, and does what they left half done. After their entries are back in the queue. */
void shmq_groups_recover(shmq_queue *q, const shmq_liveness *l);

/* The reaper settles everything that words of the ring say of the dead. It ends claims, gives deliveries back to their
 * place and counts the death, wakes sleepers and blocked producers. Repeatable, by any number of reapers at once. */
void shmq_ring_recover(shmq_queue *q, const shmq_liveness *l);

/* The reaper takes the idle bits of the dead away, and wakes a sleeper whose bit a dead notifier had taken. */
void shmq_sleepers_recover(shmq_queue *q, const shmq_liveness *l);
/* The reaper sets rows of the dead FREE. Under the structure lock, when no word names them any more. */
void shmq_consumers_recover(shmq_queue *q, const shmq_liveness *l);

/* Watches of the dead are vacant. */
void shmq_watch_recover(shmq_member *m, const shmq_liveness *l);

#endif
