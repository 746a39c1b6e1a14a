/* The counts of a queue under its limits, taken and given back. */
#ifndef SHMQ_LIMITS_COUNT_H
#define SHMQ_LIMITS_COUNT_H

#include "limits/line.h"

/* The checker compares queue.count with the slots, when no process is between the two. NULL: right, or nothing can be said now. */
const char *shmq_count_fault(shmq_queue *q);
bool shmq_count_take(shmq_queue *q, uint32_t count); /* room under maxsize? */
void shmq_count_give(shmq_queue *q, uint32_t count);
bool shmq_recount(shmq_queue *q);
void shmq_recount_ask(
    shmq_queue *q); /* the count may be too high: a recount might show a place to a producer that sleeps for one */
/* Room for one entry of so many bytes under the limits of `limited`, beyond what is left for others: SHMQ_FULL_COUNT,
 * SHMQ_FULL_BYTES, SHMQ_FULL_RESIDENT. */
shmq_status shmq_room_take(shmq_queue *q, uint32_t limited, uint64_t bytes, const shmq_room *theirs);
void shmq_room_give(shmq_queue *q, uint32_t limited, uint32_t count, uint64_t bytes);
void shmq_resident_add(shmq_queue *q, uint64_t bytes); /* whatever the limit; under shmq_moving */
void shmq_room_late(shmq_queue *q, uint32_t limited,
                    uint64_t bytes); /* of an entry that was claimed before the queue had these limits */
bool shmq_room_beyond(shmq_queue *q, const shmq_room *theirs); /* ... for one entry of a byte? A look only */
bool shmq_room_left(shmq_queue *q); /* is there some, or might a recount find some? */
void shmq_wake_waiters(shmq_queue *q); /* all producers that wait for room */
/* Bytes of headers and body of a slot that is in use; SHMQ_UNWEIGHED: a claim does not say. */
#define SHMQ_UNWEIGHED UINT64_MAX
uint64_t shmq_slot_bytes(const shmq_slot_shm *slot, uint64_t word);
/* A reaper has no counters of its own: the queue is counted again when it matters. */
void shmq_moving_unseen(shmq_queue *q);
/* The process is between a slot and the words that count it, or is so no longer. */
static inline void shmq_moving(shmq_queue *q, int32_t change) {
    if (SHMQ_LIKELY(q->counters != NULL)) {
        shmq_add_seq(&q->counters->moving, (uint32_t)change);
    } else {
        shmq_moving_unseen(q);
    }
}

#endif
