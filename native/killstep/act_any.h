/* A consumer of several queues: the limited one, which is empty, and queue "a". */
#ifndef SHMQ_KILLSTEP_ACT_ANY_H
#define SHMQ_KILLSTEP_ACT_ANY_H

#include "act.h"

void act_receive_any(act *a, uint64_t until_ns);
/* Of those that have news, which a consumer that begins takes all for. */
void act_receive_news(act *a);
/* As a consumer of several queues that has found queue "a" empty. */
void act_ask_for_news(act *a);
/* Announces itself on both, as a wait does; answers the word on which it sleeps. */
shmq_a32 *act_announce_any(act *a);

#endif
