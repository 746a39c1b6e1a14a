/* Seats: what a consumer has for itself while others wait behind it.
 *
 * A live place of a queue with live_consumers, or sticky groups. When its owner dies with nothing in hand, no message comes
 * back that would wake anybody; so the watch (watch.h) looks after who sits as it does after who holds messages. Each
 * consumer row says whether it sits, each process row how many do. Both are written by their process alone; a count that
 * is too high costs ticks of the watch, and a death gives it up with the row. */
#ifndef SHMQ_SEAT_H
#define SHMQ_SEAT_H

#include "shmq/handle.h"

/* This owner (a consumer row, or the process for what it takes without one) sits from here on, if it does not yet. */
void shmq_seat_take(shmq_queue *q, uint32_t owner);
/* It goes: its row is being closed, or the queue's handle. */
void shmq_seat_leave(shmq_queue *q, uint32_t owner);

#endif
