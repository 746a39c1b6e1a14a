/* Alerts: when a process looks whether something is to be told (queue/alert.h). */
#ifndef SHMQ_SEGMENT_ALERT_TIME_H
#define SHMQ_SEGMENT_ALERT_TIME_H

#include "segment/member.h"

/* This process tells alerts: from now on it looks now and then. */
void shmq_alerts_begin(shmq_member *m);
/* Is it time to look? Then the interpreter is told. */
void shmq_alerts_tick(shmq_member *m);
/* Something to tell has come about just now, in this process. */
void shmq_alerts_hurry(shmq_member *m);

/* A purger was refused room on the disk. */
void shmq_disk_refused(shmq_member *m);

#endif
