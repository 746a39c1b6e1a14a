/* Many entries of queue "a" at once: into the limited one, and away. */
#ifndef SHMQ_KILLSTEP_ACT_CLAIM_H
#define SHMQ_KILLSTEP_ACT_CLAIM_H

#include "act.h"

/* To the end. */
void act_claim_all(act *a);
/* As many as weigh what two of a few bytes weigh: the next one is offered, and stays. */
void act_claim_two(act *a);
/* All that lie below the tail. */
void act_discard(act *a);
/* All that lie below the third of those on disk. */
void act_discard_two_rows(act *a);

#endif
