/* Alerts about messages on disk (queue/alert.h). */
#ifndef SHMQ_FLOW_FLOW_ALERT_H
#define SHMQ_FLOW_FLOW_ALERT_H

#include "queue/alert.h"

/* Does a look at this queue find anything to count, or to tell? */
bool shmq_alerts_wanted(const shmq_queue *q);
enum shmq_flow_alert shmq_alert_flow(shmq_queue *q);
/* Bits of enum shmq_disk_alert: what this process is to tell. *used: bytes of all queues on disk. */
uint32_t shmq_disk_alerts(shmq_member *m, uint64_t *used);

#endif
