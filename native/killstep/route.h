/* The cheapest way of a run to a step of its trace: from one stop to the next, each at a step that is known to come.
 *
 * From any step a breakpoint leads to the next time that an instruction is met, and a debug register to the next time that
 * memory is touched: a loop over the slots of a ring executes the same instructions hundreds of times, and touches each slot
 * once or twice. So a way of a few stops leads nearly everywhere, first to the right function, then into the right turn of
 * the right loop. Single steps do the rest. Each stop is compared with the trace. */
#ifndef SHMQ_KILLSTEP_ROUTE_H
#define SHMQ_KILLSTEP_ROUTE_H

#include "trace.h"

typedef enum reached { REACHED, LEFT_PATH } reached;

/* Fills in what is said of ways in a trace that is whole. */
void route_plan(trace *t);
/* From the beginning of the traced part. */
reached route_run(pid_t pid, const trace *t, uint32_t step);

#endif
