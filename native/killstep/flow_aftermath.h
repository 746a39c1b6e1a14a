/* More questions to a queue that flows to disk. */
#ifndef SHMQ_KILLSTEP_FLOW_AFTERMATH_H
#define SHMQ_KILLSTEP_FLOW_AFTERMATH_H

#include "stage.h"

/* The words of queue "a", the rows, and what lies in its rings, as they are now: NULL, or what is wrong. */
const char *flow_look(const stage *s);
/* Everything was taken out: nothing is on disk, nothing half done, and nothing counted. Takes a turn. */
const char *flow_look_at_end(stage *s);
/* The turn of a mover that was stopped is over: others that found its lock taken were told. */
const char *flow_look_at_missed(const stage *s);
/* While the victim stands still, maybe amid a turn: settlements, puts until there is no room, gets until nothing below the
 * rows is left. `value`: of the next message. */
const char *flow_others_work(stage *s, uint64_t *value);

#endif
