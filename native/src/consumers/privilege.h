/* Privileges: what a consumer has for itself while others wait behind it.
 *
 * A live place of a queue with live_consumers, or sticky groups. When its owner dies with nothing in hand, no message
 * comes back that would wake a consumer. So the watch (watch.h) looks after consumers that have one as it does after
 * those that hold messages. Each consumer row says whether it has one, each process row how many do. Both are written
 * by their process alone. A count that is too high costs ticks of the watch, and a death gives it up with the row. */
#ifndef SHMQ_CONSUMERS_PRIVILEGE_H
#define SHMQ_CONSUMERS_PRIVILEGE_H

#include "queue/handle.h"

/* This owner (a consumer row, or the process for what it takes without one) has a privilege from here on, if it has
 * none
 * yet. */
void shmq_privilege_take(shmq_queue *q, uint32_t owner);
/* Ends the owner's privilege: its row is being closed, or the queue's handle. */
void shmq_privilege_leave(shmq_queue *q, uint32_t owner);

#endif
