/* Putting: prepare, claim, fill, publish; and the wait for room. */
#ifndef SHMQ_PUT_PUT_H
#define SHMQ_PUT_PUT_H

#include "ring/outgoing.h"

/* The producer moves a body that does not fit inline to a block, sets id, time and checksum. Waits for memory until `until_ns`. */
shmq_status shmq_prepare(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns);
/* A block of so many bytes. The producer waits for memory until `until_ns`. *relief goes on from piece to piece of that wait. */
shmq_status shmq_take_block(shmq_queue *q, uint64_t bytes, uint64_t until_ns, shmq_relief *relief, shmq_block *block);
/* Gives the block and the ticket of a producer back that does not put. */
void shmq_unprepare(shmq_queue *q, shmq_outgoing *o);
/* Puts a prepared message once; the producer waits for nothing but a claim in the way. SHMQ_FULL_COUNT, SHMQ_FULL_BYTES,
 * SHMQ_FULL_RESIDENT, SHMQ_FULL_RING. */
shmq_status shmq_put_now(shmq_queue *q, shmq_outgoing *o);
/* Prepares and puts; the producer waits for room until `until_ns` (0: not at all). SHMQ_INTERRUPTED: it keeps its place in the
 * line: call again, or shmq_unprepare. */
shmq_status shmq_put(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns);
/* Several prepared messages, in order: claim, fill, publish in order. `done` = how many were put. One ticket, the first
 * message's, serves all; it passes to the first message that was not put. */
shmq_status shmq_put_some(shmq_queue *q, shmq_outgoing *o, uint32_t count, uint32_t *done);
/* Notes, after the publish of an entry that takers can have, when it is due, and its weight for alerts. */
void shmq_published(shmq_ring *r, const shmq_outgoing *o);

#endif
