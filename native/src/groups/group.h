/* Groups: messages of one group are with one consumer at a time (shared), or with one for its life (sticky).
 *
 * A message's group is one of the places that its queue has for groups. A hash of its key says which. So two keys may
 * share a place, and are then as one group. Some places lie in the queue's page, and one in each cold record of its
 * first ring. So no consumer can use them up: what it has in hand lies in slots. A place has two words:
 *
 *   owner    63        40 39       38           13 12      0
 *           +------------+---------+---------------+--------+
 *           |  version   | suspect |  generation   | owner  |   owner 0: free
 *           +------------+---------+---------------+--------+
 *            owner as in a slot's word, with the generation of its row: whose row was given back has no group any more
 *   refused  63        48 47    44 43             0
 *           +------------+--------+----------------+
 *           |  version   | depth+1|    position    |   depth+1 0: no taker was refused
 *           +------------+--------+----------------+
 *            the lowest place that a taker had to pass since the group was freed last: of a level, whichever of its rings the
 *            entry lies in, and on disk as well
 *
 * How many of a group its owner has in flight stands nowhere in shared memory. Its process knows (the book below), and
 * a process that rechecks looks at the slots of the rings. So no count can be wrong after a death.
 *
 *   G1  own, before the offer: free -> owner; its own: version + 1. Another's: refused is lowered, and the owner looked
 *       at once more; then the taker passes the entry by
 *   G2  the group was free: a taker that was refused at a lower place goes first: given back, and scanned again
 *   G3  the owner's last one has ended: owner -> free
 *   G4  whatever was refused: heads turned back to it, refused cleared, a sleeper told. Only while the group is free: what
 *       was refused for the sake of the next owner is that one's to turn back to
 *   G5  recheck: suspect set, all slots looked at; nothing in flight: owner -> free, then G4. A sticky group is rechecked only
 *       when a lease of its owner is over, before the message is taken and after it; something in flight: suspect cleared.
 *       The owner offers first and then looks at its word, the rechecking process sets suspect first and then looks at the slots: one of
 *       the two sees the other. Each change of the word is a new version, so the last one to recheck decides */
#ifndef SHMQ_GROUPS_GROUP_H
#define SHMQ_GROUPS_GROUP_H

#include "consumers/group_book.h"

/* For a handle of a queue with groups, and only there; SHMQ_OS. */
shmq_status shmq_group_book_make(shmq_queue *q);
void shmq_group_book_free(shmq_queue *q);
/* In a forked child: it has nothing in flight. */
void shmq_group_book_reset(shmq_queue *q);

/* As what an owner with this subscription takes. NULL: whatever comes first, along the cursor that all share; so does a
 * subscription that chooses nothing yet. Where there are groups every taker passes something by: one without a subscription does
 * so by its process' own. */
static inline shmq_subscription *shmq_taker(const shmq_queue *q, shmq_subscription *by) {
    if (SHMQ_UNLIKELY(q->book != NULL)) {
        return by == NULL ? &q->book->takers : by;
    }
    return by != NULL && shmq_load_seq(&by->choosy) != 0 ? by : NULL;
}

/* How many places for groups the queue has: a constant of it. */
static inline uint32_t shmq_group_places(const shmq_queue *q) {
    uint64_t slots = shmq_slot_count(&q->first);
    return SHMQ_GROUPS + (slots < SHMQ_GROUPS_MORE ? (uint32_t)slots : SHMQ_GROUPS_MORE);
}
/* The words of a group. Before the first message of a group is put, those places that lie in cold records are nowhere: all lie in the page. */
shmq_group_shm *shmq_group_at(const shmq_queue *q, uint32_t group);
/* A walk over all places goes over these: 1 to so many. The others have no memory yet. */
uint32_t shmq_groups_laid(const shmq_queue *q);
/* 1 + the place for a message with these headers; 0: it has no group. */
uint32_t shmq_group_of_headers(const shmq_queue *q, const unsigned char *headers, uint32_t headers_len);
/* The same as its cold record says it. */
uint32_t shmq_group_of(const shmq_ring *r, const shmq_slot_shm *slot, uint32_t props);

/* May this taker have an entry of that group at a place of this level, in memory or on disk? If not, that is recorded (G1). */
bool shmq_group_open(shmq_ring *back, uint32_t group, uint32_t owner, uint64_t place);
enum shmq_group_own { SHMQ_GROUP_OURS, SHMQ_GROUP_BUSY, SHMQ_GROUP_BEHIND };
/* G1 and G2 for the entry that is about to be offered to d->owner. BEHIND: an earlier one was refused; scan again. */
enum shmq_group_own shmq_group_own(shmq_ring *back, uint32_t group, uint64_t place, shmq_delivery *d);
/* After the offer: is the group still ours? */
bool shmq_group_confirm(shmq_queue *q, const shmq_delivery *d);
/* This delivery has ended: G3, G4 if it was the last. G5 if it was stolen from its owner. */
void shmq_group_end(shmq_queue *q, shmq_delivery *d);
static inline void shmq_group_leave(shmq_queue *q, shmq_delivery *d) {
    if (SHMQ_UNLIKELY(d->group != 0)) {
        shmq_group_end(q, d);
    }
}
/* An owner goes: all groups that it has. Its row is still in use. */
void shmq_groups_leave(shmq_queue *q, uint32_t owner);
/* A message of a sticky group is about to be taken from its owner by time: suspect, before that, so that the next process
 * goes on if this one dies. Then recheck: free, if the owner has nothing more of it in hand. */
void shmq_group_suspect(shmq_queue *q, uint32_t group, uint32_t owner);
void shmq_group_recheck(shmq_queue *q, uint32_t group);
/* Upkeep rechecks all groups for which a taker waits, by one look at the slots. True: one still does. */
bool shmq_groups_recheck(shmq_queue *q);

#endif
