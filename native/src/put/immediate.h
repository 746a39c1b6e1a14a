/* Immediate: a message that a consumer takes by then, or that is withdrawn. Never both (S15). */
#ifndef SHMQ_PUT_IMMEDIATE_H
#define SHMQ_PUT_IMMEDIATE_H

#include "ring/outgoing.h"

/* Returns when a consumer that waits now has had its chance: after the patience if one sleeps, else after the time that
 * a taker needs for a look. Asked before the put. */
uint64_t shmq_immediate_until(shmq_queue *q);
/* The time since which the same process has the message locked; zeroed before the first call. */
typedef struct shmq_lock_seen {
    uint64_t word, since_ns;
} shmq_lock_seen;

/* After a put: SHMQ_OK: a consumer has it, or had it, or a mover took it to another queue. SHMQ_EMPTY: none took it by
 * `until_ns`, and the producer has withdrawn it. SHMQ_SETTLED, where the put had a receipt: none had it, and it was purged, dropped, has
 * expired, or was deleted with its queue.
 * SHMQ_INTERRUPTED: let signal handlers run, then call again, with 0 to withdraw it now. */
shmq_status shmq_immediate(shmq_queue *q, const shmq_outgoing *o, uint64_t until_ns, shmq_lock_seen *seen);

#endif
