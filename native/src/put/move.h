/* A message goes from one queue to another as one step: in two halves, with one word that decides. */
#ifndef SHMQ_PUT_MOVE_H
#define SHMQ_PUT_MOVE_H

#include "ring/outgoing.h"

/* cold.intent of a PENDING entry: where its message still is, if its mover has not settled it. cold.source is the position
 * there.
 *
 *   63     set | 58 to 62  depth | 47 to 57  tag | 35 to 46  queue index | 0 to 31  incarnation */
#define SHMQ_INTENT_SET (UINT64_C(1) << 63)

static inline uint64_t shmq_intent(uint32_t index, uint32_t incarnation, uint32_t depth, uint32_t tag) {
    return SHMQ_INTENT_SET | (uint64_t)(depth & 31) << 58 | (uint64_t)(tag & SHMQ_TAG_MASK) << 47 |
           (uint64_t)(index & 0xfff) << 35 | incarnation;
}
static inline uint32_t shmq_intent_depth(uint64_t intent) { return (uint32_t)(intent >> 58) & 31u; }
static inline uint32_t shmq_intent_tag(uint64_t intent) { return (uint32_t)(intent >> 47) & SHMQ_TAG_MASK; }
static inline uint32_t shmq_intent_index(uint64_t intent) { return (uint32_t)(intent >> 35) & 0xfffu; }
static inline uint32_t shmq_intent_incarnation(uint64_t intent) { return (uint32_t)intent; }

/* The message in hand (`d` of `from`, ACQUIRED or LOCKED) goes to `to` as `o`, whose first part the caller has filled.
 * The call never waits. SHMQ_OK: settled here, available there. SHMQ_SETTLED: not ours any more, nothing was put.
 * Anything else: nothing was changed, `d` is LOCKED in the name of this process, `o` is to be unprepared.
 * SHMQ_INTERRUPTED: call again. */
shmq_status shmq_move(shmq_queue *from, shmq_delivery *d, shmq_queue *to, shmq_outgoing *o);
/* Moves as shmq_move does, by a process that counts as holding a message until all that it moves is there for all
 * (shmq_add_unsettled). */
shmq_status shmq_move_held(shmq_queue *from, shmq_delivery *d, shmq_queue *to, shmq_outgoing *o);
/* Returns when the message itself expires, whatever its queue says; 0: never. */
uint64_t shmq_own_expiry(const shmq_queue *q, const shmq_delivery *d);
/* Copies the times that the message itself has, not those of its queue: a moved message keeps them. */
void shmq_move_times(const shmq_queue *from, const shmq_delivery *d, shmq_outgoing *o);

/* The reaper's question: is this message still LOCKED where the intent says, by `owner`? SHMQ_OK with *there, else the
 * question could not be asked. */
typedef shmq_status shmq_source_look(void *context, uint64_t intent, uint64_t place, uint32_t owner, bool *there);
/* The second half of all moves to this queue whose movers are dead. Before anything is given back that the dead held: what
 * is given back looks as if it had been settled. Repeatable, by any number at once. */
shmq_status shmq_moves_decide(shmq_queue *to, const shmq_liveness *l, shmq_source_look *look, void *context);
/* Answers for shmq_source_look: the queue is the one that the intent names. */
bool shmq_move_source(const shmq_queue *from, uint64_t intent, uint64_t place, uint32_t owner);

#endif
