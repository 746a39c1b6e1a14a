/* Facts for people about who waits on a queue. */
#ifndef SHMQ_CONSUMERS_WHO_WAITS_H
#define SHMQ_CONSUMERS_WHO_WAITS_H

#include "queue/handle.h"

typedef struct shmq_waiter_counts {
    uint32_t consumers, asleep, producers_waiting;
} shmq_waiter_counts;

void shmq_queue_waiters(const shmq_queue *q, shmq_waiter_counts *waiters);
/* The consumer in the first row from *row on: its process; *row is where to go on. False: there is none. */
bool shmq_next_taker(const shmq_queue *q, uint32_t *row, uint32_t *pid);

#endif
