/* Settling: how an entry leaves its taker, or is taken away from it. */
#ifndef SHMQ_SETTLE_SETTLE_H
#define SHMQ_SETTLE_SETTLE_H

#include "queue/level.h"
#include "ring/delivery.h"
#include "ring/ring_walk.h"

/* The word that says that this taker still has the delivery; 0: it was settled before, or a stealer took it. Bytes
 * that the taker read from a slot or block are this message's only if the word still says so afterwards. */
uint64_t shmq_own_word(const shmq_queue *q, const shmq_delivery *d);

/* ACQUIRED or LOCKED of d->owner -> gone, and counted: the life of each entry ends here, but for a get of an inline body
 * (shmq_offer_finish) and for rows on disk. SHMQ_SETTLED: d->owner does not have it any more. */
shmq_status shmq_entry_ends(shmq_ring *r, shmq_delivery *d, shmq_end why);
/* Acks the delivery for its consumer. */
static inline shmq_status shmq_settle(shmq_queue *q, shmq_delivery *d) {
    return shmq_entry_ends(shmq_level(q, d->depth), d, SHMQ_END_ACKED);
}
/* The consumer gives it back to its place. `attempt`: counts as a failed one. Once this has returned no taker gets a later entry
 * first. */
shmq_status shmq_release(shmq_queue *q, shmq_delivery *d, bool attempt);
/* Gives back an entry that no consumer has received, nor was to receive: it is as it was before. */
shmq_status shmq_put_back(shmq_queue *q, shmq_delivery *d);
/* Gives back all of these entries, of one queue and in the order of their places, without an attempt. They become
 * available together, so that a taker that waits for one gets the first of them. The array is used up. */
void shmq_release_all(shmq_queue *q, shmq_delivery **all, uint32_t count);
/* Takes ACQUIRED -> LOCKED for the same owner: the consumer does this before work that must not be done twice. */
shmq_status shmq_lock(shmq_queue *q, shmq_delivery *d);
/* The stealer takes the entry at a position of this level: LOCKED by this process. It takes it from its owner, live or dead
 * (delete); `ready`: only if it has no owner (purge). SHMQ_EMPTY: nothing is there to take. */
shmq_status shmq_steal(shmq_ring *r, uint64_t position, bool ready, shmq_delivery *d);
/* Steals by the place in the level, also an entry that has been on disk, or is there. SHMQ_NO_SPACE: it is on disk, and
 * entries that takers have passed leave it no slot. SHMQ_IN_USE: another process moves entries, in one turn for longer
 * than the patience. */
shmq_status shmq_steal_at(shmq_ring *back, uint64_t place, bool ready, shmq_delivery *d);
/* Settles all that is ready on every level; how many. Consumers keep their messages, newcomers stay. */
shmq_status shmq_purge(shmq_queue *q, uint64_t *purged);
/* Settle what is ready on this level at places below this one; adds how many to *discarded. Consumers keep their
 * messages. SHMQ_INTERRUPTED: a piece of it is done, call again. */
shmq_status shmq_discard_below(shmq_ring *r, uint64_t place, uint64_t *discarded);

/* Takes the entry as shmq_steal does, from exactly this word. False: the word has changed, or is damaged. */
bool shmq_seize(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, shmq_delivery *d);
shmq_status shmq_taken_away(shmq_queue *q, shmq_delivery *d); /* the consumer lost it: lets it go. SHMQ_SETTLED */
void shmq_let_go(
    shmq_queue *q,
    shmq_delivery *d); /* the consumer does not have it any more: it settled it, gave it back, or lost it */
void shmq_attempt_count(shmq_slot_shm *slot, const shmq_delivery *d); /* R0 */
shmq_status shmq_mark_broken(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint32_t lap);

/* The stealer takes the first entry of a level that is wanted: LOCKED by this process. SHMQ_EMPTY: there is none. */
shmq_status shmq_steal_first(shmq_ring *level, shmq_wanted *wanted, shmq_delivery *d);

#endif
