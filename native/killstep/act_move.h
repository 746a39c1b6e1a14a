/* Operations that take a message to another queue. The history has one call for both halves. */
#ifndef SHMQ_KILLSTEP_ACT_MOVE_H
#define SHMQ_KILLSTEP_ACT_MOVE_H

#include "act.h"

/* The oldest in hand. Without room there it stays in hand, in the name of the process. */
void act_move(act *a, unsigned to);
/* The steps of dead-lettering: lock, and move. */
void act_dead_letter(act *a, unsigned to);
/* The same with a body in a block, pinned while it is copied, into a queue that is made for it. */
void act_dead_letter_block(act *a, unsigned to, const char *name);
/* All of QUEUE_A to the limited one, as Queue.move takes it: who is dead has given back what he had, then one after the
 * other in the order of the queue. */
void act_move_all(act *a);
/* The first of QUEUE_A on its way to QUEUE_LIMITED: up to the decision; up to the end but for showing what was moved. */
void act_move_undecided(act *a);
void act_move_decided(act *a);

#endif
