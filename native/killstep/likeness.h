/* Which images are alike: a key of what decides about anybody's next steps, without what only grows (tags, ids, epochs,
 * generations, times, statistics), and of what the history leaves open. */
#ifndef SHMQ_KILLSTEP_LIKENESS_H
#define SHMQ_KILLSTEP_LIKENESS_H

#include "stage.h"

/* `alive`: bits, of the rows whose processes are, or shall pass for it; `of_history`: as verdict_likeness says. */
uint64_t likeness(stage *s, uint64_t alive, uint64_t of_history);

#endif
