/* Waking producers that wait for room, and callers that wait until a queue is empty. */
#ifndef SHMQ_LIMITS_ROOM_WAKE_H
#define SHMQ_LIMITS_ROOM_WAKE_H

#include "queue/handle.h"

/* Wakes these, producers and joiners: shutdown, deletion. */
void shmq_notify_all(shmq_queue *q);
/* A process has made room: it wakes a blocked producer. `slot`: the one that became FREE. */
void shmq_wake_full(shmq_ring *r, const shmq_slot_shm *slot);
/* Wakes all producers that wait for room, in whatever way. */
void shmq_wake_producers(shmq_queue *q);
void shmq_wake_joiners(shmq_queue *q);

#endif
