/* A queue "a" that flows to disk. */
#ifndef SHMQ_KILLSTEP_ACT_FLOW_H
#define SHMQ_KILLSTEP_ACT_FLOW_H

#include "act.h"

/* It may flow from now on: so many bytes stay in memory. */
void act_limit_memory(act *a, unsigned queue, uint64_t most);
void act_make_room(act *a);
/* Into nobody's hands: an entry of the front ring, from who has it. In the history a get. */
void act_steal_from_front(act *a);
/* The second row; each row, one after the other. In the history gets. */
void act_steal_row(act *a);
void act_steal_waiting(act *a); /* the third one, before its time */
void act_steal_rows(act *a);
/* Each that has failed too often, wherever it is. In the history gets. */
void act_steal_poisoned(act *a);
/* Ways to die amid a turn that makes room. */
void act_flow_before_commit(act *a);
void act_flow_behind_commit(act *a);
void act_flow_decided(act *a); /* P has moved on, and nothing else */

/* Tells whatever there is to tell of the queue and the disk, as the interpreter does. */
void act_tell_alerts(act *a);

#endif
