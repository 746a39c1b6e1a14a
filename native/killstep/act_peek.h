/* A consumer that waits and takes nothing: as the thread behind a descriptor does. */
#ifndef SHMQ_KILLSTEP_ACT_PEEK_H
#define SHMQ_KILLSTEP_ACT_PEEK_H

#include "act.h"

/* Waits on its row of queue "a" until it is told of something, and leaves that to the others. */
void act_peek_and_pass_on(act *a, uint64_t until_ns);
/* The same for queue "a" and the limited one. */
void act_peek_any_and_pass_on(act *a, uint64_t until_ns);

#endif
