/* Blocked producers: places in the line, and what is done from them. */
#ifndef SHMQ_KILLSTEP_ACT_LINE_H
#define SHMQ_KILLSTEP_ACT_LINE_H

#include "act.h"

/* Into the line of the limited queue, as a put that waits. Answers the word to sleep on. */
shmq_a32 *act_line_stand(act *a);
/* The first ticket, which somebody has drawn for this process, becomes its own. */
void act_line_take_over(act *a);
/* A put to the limited queue from that place, without waiting. */
void act_line_put(act *a, uint64_t value);
void act_line_leave(act *a);
/* Nobody stands there any more: processes of the state do nothing but sleep. */
void act_line_clear(act *a);

#endif
