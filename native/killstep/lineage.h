/* Several deaths, one after the other: what a death leaves is kept, if nothing like it is there yet, and the next victim
 * starts from it. */
#ifndef SHMQ_KILLSTEP_LINEAGE_H
#define SHMQ_KILLSTEP_LINEAGE_H

#include "killer.h"

struct lineage {
    uint32_t depth; /* how many have died, this one included */
    const char *path; /* the deaths before: "12/reap:40" */
    const char *name; /* of this victim's operation; NULL: the scenario's */
    uint64_t expected; /* where only unlike images count: the key of what it leaves */
};

/* After a kill: is this image, with this history, a new one? */
void lineage_keep(killer *k, const lineage *birth, uint32_t step);
void lineage_run(killer *k, const victim_plan *first);

#endif
