/* Binding a handle to a queue, and giving it back. */
#ifndef SHMQ_LIFECYCLE_HANDLE_BIND_H
#define SHMQ_LIFECYCLE_HANDLE_BIND_H

#include "queue/handle.h"

/* Bind a handle to the queue at a directory index, if it still is this incarnation (0: whatever is there). */
shmq_status shmq_queue_bind(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_queue **queue);
/* A caller that may not wait asks this before it binds a queue of which it has no handle. A first bind needs new counters, and
 * these the structure lock, which a stopped process may hold. False: the lock is taken, not now. */
bool shmq_queue_counters_try(shmq_member *m, uint32_t index);
/* Give a handle back. The last one takes this process' claim on the queue's memory away. */
void shmq_queue_unbind(shmq_queue *q);
/* A handle made before a fork: bind it to this process. */
shmq_status shmq_queue_rebind(shmq_queue *q);
/* At close: wake every thread of this process (and others, spuriously) that sleeps on a queue that it uses. */
void shmq_queue_wake_threads(shmq_member *m);
/* At close: give back the consumer rows of this process on every queue; its handles stay, unusable. */
void shmq_queue_close_handles(shmq_member *m);

#endif
