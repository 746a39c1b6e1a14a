/* At maxsize or max_bytes the producer waits, is refused, or drops the oldest for the newest. */
#ifndef SHMQ_PUT_OVERFLOW_H
#define SHMQ_PUT_OVERFLOW_H

#include "queue/handle.h"

/* Take the oldest of the least important entries out and count it as dropped, also one that a consumer holds: its settlement
 * fails then. Not one that its consumer is settling. `why` the level `depth` is full: where its ring is, its own oldest goes.
 * False: there is none, or a claim that its producer has not filled yet stands in the way; or *in_use, the oldest is on disk, and
 * another mover is at work. A caller that does not wait for that one (NULL) gets a newer one dropped. */
bool shmq_drop_oldest(shmq_queue *q, uint32_t depth, shmq_status why, bool *in_use);
/* Until when a put to a full queue waits that wants to wait until `until_ns`. Where the oldest are dropped, it waits at
 * least until a message that is being put right now can be dropped. */
uint64_t shmq_overflow_until(const shmq_queue *q, uint64_t until_ns);

static inline uint32_t shmq_overflow_of(const shmq_queue *q) { return shmq_load_relaxed(&q->page->settings.overflow); }

#endif
