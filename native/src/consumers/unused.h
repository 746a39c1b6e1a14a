/* A queue that goes when it has had no consumer for so long: the option expires. */
#ifndef SHMQ_CONSUMERS_UNUSED_H
#define SHMQ_CONSUMERS_UNUSED_H

#include "queue/handle.h"

/* When it is to go, as it looks now; SHMQ_DUE_NEVER: it has a consumer, or never had one, or does not expire. */
uint64_t shmq_unused_due(const shmq_queue *q);
/* A consumer has gone, or the option was given: the time begins anew. */
void shmq_unused_begin(shmq_queue *q);
/* Has a process used it since, without a consumer? Then its time begins anew. */
bool shmq_unused_is_used(shmq_queue *q);
/* The option was given in a declaration: unless it waits for a first consumer, its time begins. */
void shmq_unused_declared(shmq_queue *q, uint32_t given);

#endif
