/* A queue of messages in groups: which one a message is of, the hundreds of its value say (act.h). */
#ifndef SHMQ_KILLSTEP_ACT_GROUP_H
#define SHMQ_KILLSTEP_ACT_GROUP_H

#include "act.h"

void act_declare_groups(act *a, unsigned queue, const char *name, uint32_t grouping);
/* Headers for this message; none where the queue has no groups. */
void act_group_head(const shmq_queue *q, uint64_t value, shmq_outgoing *o);

#endif
