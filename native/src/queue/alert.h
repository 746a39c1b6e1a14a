/* Alerts: what people want to be told of a queue, and when a process told it last.
 *
 * The core itself tells nothing: it says that it is time to look, and decides which process tells. A process that looks reads the
 * counts of the queue, and claims what is to be told by one CAS on the word of its kind. So of all processes that look one tells,
 * and at most once in `repeat`. A death behind its CAS has told nothing: what still is so is told when `repeat` is over.
 *
 * No put and no get looks at a word of it. A process looks once in SHMQ_ALERT_LOOK_NS, behind a sleep, once in a while
 * between puts, and once in 1,024 calls. */
#ifndef SHMQ_QUEUE_ALERT_H
#define SHMQ_QUEUE_ALERT_H

#include "queue/handle.h"

/* Bits of what is told of a broker's disk: nine tenths of its budget are used; a purger was refused room. */
enum shmq_disk_alert { SHMQ_DISK_MARK = 1, SHMQ_DISK_FULL = 2 };
/* The alert of a queue's flow that is to be told. BOTH: it flowed, and has recovered, and neither was told. */
enum shmq_flow_alert { SHMQ_FLOW_SILENT = 0, SHMQ_FLOW_BEGAN = 1, SHMQ_FLOW_RECOVERED = 2, SHMQ_FLOW_BOTH = 3 };
/* Has it thresholds? */
bool shmq_alert_has_terms(const shmq_queue *q);
/* The time between two alerts of a kind. */
uint64_t shmq_alert_gap(const shmq_queue *q);
/* Of all processes that tell, one looks at the counts of a queue in SHMQ_ALERT_LOOK_NS. */
bool shmq_alert_look(shmq_queue *q);
/* Is it to be told now, and by this process? */
bool shmq_alert_claim(shmq_queue *q, enum shmq_alert kind);
/* A message has been put; noted if its threshold says so. */
void shmq_alert_weigh(shmq_queue *q, uint64_t bytes);
/* Are messages to be weighed? Asked of those that do not fit into their slots only: these take a block anyway. */
static inline bool shmq_alert_weighs(const shmq_queue *q) {
    return shmq_load_relaxed((shmq_a64 *)(uintptr_t)&q->page->settings.alerts[SHMQ_ALERT_MESSAGE_BYTES]) != 0;
}
/* The largest one beyond the threshold since that was told last; 0: there is none to tell of. */
uint64_t shmq_alert_largest(shmq_queue *q);

#endif
