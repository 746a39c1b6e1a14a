/* How a run comes near a step: a debug register stops it at a place that its trace has met only a few times by then. That
 * is an instruction, or the memory that one touches: a loop over the slots of a ring executes the same instructions
 * hundreds of times, and touches each slot once or twice. */
#ifndef SHMQ_KILLSTEP_ANCHORS_H
#define SHMQ_KILLSTEP_ANCHORS_H

#include "tracee.h"

/* Finds the cheapest anchor of each step of a whole trace. */
void anchors_plan(trace *t);
/* From the beginning of the traced part to a step that is an anchor. False: the path was left. */
bool anchor_reach(pid_t pid, const trace *t, uint32_t anchor);

#endif
