/* A queue of messages in groups: which one a message is of, the hundreds of its value say (act.h). */
#ifndef SHMQ_KILLSTEP_ACT_GROUP_H
#define SHMQ_KILLSTEP_ACT_GROUP_H

#include "ring/outgoing.h"
#include "act.h"

void act_declare_groups(act *a, unsigned queue, const char *name, uint32_t grouping, uint64_t maxsize);
/* Headers for this message; none where the queue has no groups. */
void act_group_headers(const shmq_queue *q, uint64_t value, shmq_outgoing *o);
/* Takes what stands at `position` from whoever has it in hand, and keeps it: in the history a receive. */
void act_rob(act *a, unsigned queue, uint64_t position);
/* The same with its own oldest: in the history a release that has begun, for a dead stealer is not charged with a
 * death. */
void act_rob_self(act *a);

#endif
