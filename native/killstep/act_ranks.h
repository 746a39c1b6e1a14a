/* Deeds of consumers that are not like the others: exclusive ones, live ones, those of higher priority. */
#ifndef SHMQ_KILLSTEP_ACT_RANKS_H
#define SHMQ_KILLSTEP_ACT_RANKS_H

#include "act.h"

void act_row_open_as(act *a, unsigned queue, int32_t priority, bool exclusive);
/* A consumer's receive on a queue whose consumers differ in priority: wanting, while it is inside. */
void act_row_open_implicit(act *a, unsigned queue); /* as queue.receive() does */
void act_receive_wanting(act *a, unsigned queue);
void act_open_and_limit(act *a);
/* Long enough to pass those who are stopped. */
void act_receive_in_time(act *a, unsigned queue);
/* At once, and when those who were called by the first look have not come for the patience. */
void act_receive_twice(act *a, unsigned queue);
/* One of those who stand by: one more live place, which is offered to it, and a receive. */
void act_take_up(act *a, unsigned queue);
void act_limit_live(act *a, unsigned queue, uint32_t live);

#endif
