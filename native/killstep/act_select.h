/* Operations of a taker that wants some messages only: those with even values. */
#ifndef SHMQ_KILLSTEP_ACT_SELECT_H
#define SHMQ_KILLSTEP_ACT_SELECT_H

#include "act.h"

/* A consumer of queue "a" with its subscription, which is private memory: before the traced part. */
void act_as_selector(act *a);
void act_select_and_receive(act *a);
/* A consumer of queue "a" whose selector lies beside its row. */
void act_open_with_selector(act *a);
/* The same, about to sleep, for all that is put or for nothing: its wake word. */
shmq_a32 *act_lie_down_with_selector(act *a, bool wants_all);
void act_receive_selected(act *a, unsigned queue, uint64_t until_ns);
/* As soon as the taker looks at a message of the least important level, another process, as it were, puts this one. */
void act_select_arrival(act *a, unsigned queue, uint64_t value);
/* The same, at the moment at which a taker of this process would go to sleep. */
void act_sleep_arrival(act *a, unsigned queue, uint64_t value);

#endif
