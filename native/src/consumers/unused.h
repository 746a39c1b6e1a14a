/* The option expires: a queue is deleted when it has had no consumer for so long. */
#ifndef SHMQ_CONSUMERS_UNUSED_H
#define SHMQ_CONSUMERS_UNUSED_H

#include "queue/handle.h"

/* Returns when the queue is to go. SHMQ_DUE_NEVER: it has a consumer, or never had one, or does not expire. */
uint64_t shmq_unused_due(const shmq_queue *q);
/* Begins the time anew: a consumer has gone, or the option was given. */
void shmq_unused_begin(shmq_queue *q);
/* Has a process used it since, without a consumer? Then its time begins anew. */
bool shmq_unused_is_used(shmq_queue *q);
/* Begins the time after the option was given in a declaration, unless the queue waits for its first consumer. */
void shmq_unused_declared(shmq_queue *q, uint32_t given);

#endif
