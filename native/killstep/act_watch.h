/* Sleeping with the watch: a receive that lasts some ticks, who is stopped with a place in the watch, who sleeps already. */
#ifndef SHMQ_KILLSTEP_ACT_WATCH_H
#define SHMQ_KILLSTEP_ACT_WATCH_H

#include "base/wait_time.h"
#include "act.h"

/* The messages of a killed process are with a sleeper within this, whoever is stopped: docs/guarantees.md, G4. */
#define WATCH_BOUND_NS (PATIENCE_NS + SHMQ_SLICE_NS + UINT64_C(50000000))

/* A consumer whose first sleep ends because somebody calls it. */
void act_watch_begin(act *a);
/* The same; who is stopped in the watch has looked just now. */
void act_watch_begin_behind(act *a);
/* A receive that waits for some ticks. */
void act_watch_wait(act *a);
/* Takes a place, or stands by as a volunteer, and does no more: of one that is stopped there. */
void act_watch_stand(act *a);
/* The survivor, too, and waits for an entry; then it sleeps on, to the end of its piece, or until it is called. */
void act_watch_fall_asleep(act *a);
void act_watch_sleep_on(act *a);

#endif
