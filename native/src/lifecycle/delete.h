/* Deleting queues, those that nobody uses and temporary ones among them, and giving back their memory. */
#ifndef SHMQ_LIFECYCLE_DELETE_H
#define SHMQ_LIFECYCLE_DELETE_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* Takes the queue out of service and settles its entries. A waiting thread gets SHMQ_NOT_FOUND. */
shmq_status shmq_queue_delete(shmq_queue *q);
/* The same by a caller that holds the structure lock; it needs only a view, also of a queue that its maker left half-made. */
void shmq_queue_take_out(shmq_queue *q);

/* Is there a deleted queue at this index whose entry still leads to it? */
bool shmq_is_ending(shmq_member *m, uint32_t index);
/* Name and incarnation of a deleted queue with messages that wait for the interpreter to dead-letter them; false: it is none. */
bool shmq_queue_ending(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation);
/* Now, if something without an owner is left in it; else SHMQ_DUE_NEVER: a consumer that gives something back says so. */
uint64_t shmq_ending_due(const shmq_queue *q, uint64_t now);
/* Ends the queue, or asks for its messages to be dead-lettered. Answers when to look again. */
uint64_t shmq_ending_look(shmq_queue *q, uint64_t now);
/* The first of them, LOCKED by this process: SHMQ_OK, SHMQ_EMPTY. */
shmq_status shmq_steal_left(shmq_queue *q, shmq_delivery *d);

/* Drop the block references of all that lies in a ring whose memory is about to be given back. Under the structure lock. */
void shmq_ring_discard(shmq_member *m, shmq_queue_shm *page);

/* Memory of deleted queues that no live member uses any more goes back to the map, after shmq_queues_end_deleted. Under the lock. */
void shmq_queues_release(shmq_member *m);
/* Deletions that are not at their end (lifecycle/delete.c) go on: entries without an owner go, and then the queue's entry. The
 * process that deleted it may have died, or a consumer may have settled the last message of it. Under the lock. */
void shmq_queues_end_deleted(shmq_member *m);

/* An unused queue is due: deleted, or, where its messages go to the dead, left to the interpreter. Answers when to look again. */
uint64_t shmq_unused_end(shmq_queue *q, uint64_t now);
/* Out of service, if it still is unused under the structure lock. */
shmq_status shmq_queue_delete_unused(shmq_queue *q, uint64_t now);

#endif
