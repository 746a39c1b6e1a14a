/* Which steps of a trace are tried. */
#ifndef SHMQ_KILLSTEP_CHOICE_H
#define SHMQ_KILLSTEP_CHOICE_H

#include "trace.h"

/* chosen[k] for k in 0 to t->steps; answers how many. Budget 0: all. Else first the steps that the trace meets seldom and
 * the first and last turns of its loops, then others by chance; more than the budget are thinned out by chance. */
uint32_t choose_steps(const trace *t, uint32_t budget, uint32_t every, uint64_t seed, uint8_t *chosen);

#endif
