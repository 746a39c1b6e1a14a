/* The ring: put, take, settle, release, browse, scan. One struct of words (queue.h), one slot word that decides.
 *
 * Every operation has one linearization point, named at its CAS. All are lock-free; those that wait say so. */
#ifndef SHMQ_RING_H
#define SHMQ_RING_H

#include <sys/uio.h>

#include "shmq/block.h"
#include "shmq/handle.h"
#include "shmq/level.h"
#include "shmq/line.h"
#include "shmq/stretch.h"
#include "shmq/subscription.h"
#include "shmq/watch.h"

/* Why the life of an entry ends in its queue. */
typedef enum shmq_end {
    SHMQ_END_MOVED = 0, /* it is in another queue */
    SHMQ_END_GOT, /* a consumer took it, and settled it at once */
    SHMQ_END_ACKED,
    SHMQ_END_PURGED, /* or discarded by a reader that is past it, or withdrawn by its producer */
    SHMQ_END_DROPPED, /* for want of room */
    SHMQ_END_EXPIRED,
    SHMQ_END_DEAD, /* it is a dead letter */
    SHMQ_END_EXPIRED_DEAD, /* likewise, since its time was over */
    SHMQ_END_DELETED, /* with its queue: nobody asks for its counters any more */
} shmq_end;

/* A message as prepare makes it, and where its put lays it. */
typedef struct shmq_made {
    bool prepared;
    uint64_t message_id;
    uint64_t position; /* in the ring of its level, once it is put */
    uint32_t crc;
    uint32_t group; /* 1 + slot of the table; 0: none */
    uint64_t due_ns; /* when time does something with it first; 0: never */
} shmq_made;

/* A put that finds no room. All 0 at first; a call that was interrupted goes on with it. */
typedef struct shmq_room_wait {
    shmq_status lacking; /* SHMQ_FULL_*: what a wait that was interrupted waits for; SHMQ_OK: it did not begin */
    bool beyond; /* max_memory: the purger can move nothing more to disk, so it is put whatever it weighs */
    bool far; /* nothing more can go to disk, so the producer looks for a FREE slot in the whole ring */
    bool
        brief; /* its producer keeps others waiting: told that there is no room, it comes again for what a disk is asked for */
    bool more; /* others of its batch follow: they keep its place in the line of blocked producers */
    shmq_ticket ticket; /* that place */
    shmq_turn_wait turn; /* of a mover in its way */
    shmq_relief relief;
} shmq_room_wait;

/* A message on its way in. The caller fills the first part. */
typedef struct shmq_outgoing {
    const unsigned char *headers;
    uint32_t headers_len;
    const struct iovec *pieces; /* of the body */
    uint32_t piece_count;
    uint64_t body_len;
    uint8_t content;
    uint64_t not_before_ns; /* no consumer gets it before this time; 0: at once */
    uint64_t expires_ns; /* no consumer gets it after this time; 0: it never expires */
    uint64_t enqueued_ns; /* 0: the time of prepare; a batch reads the clock once for all */
    uint8_t priority; /* 0 to 9 */
    uint64_t intent; /* of a move (ring_move.h): it is published PENDING; 0: a put */
    uint64_t source; /* ... the position that it comes from */
    shmq_end source_end; /* ... why it ends there */
    uint64_t receipt; /* of a put that waits until it is taken (receipt.h); 0: it does not */
    uint64_t kept_id; /* the id that it has already; 0: it gets one */
    shmq_block block; /* of a body that does not go inline; offset 0: prepare takes one, if it is needed */

    shmq_made made;
    shmq_room_wait wait;
} shmq_outgoing;

/* Why a look found nothing for its taker. From SHMQ_LEFT_TO_OTHER on the queue is not empty. */
typedef enum shmq_nothing {
    SHMQ_AT_END = 0, /* there is nothing for it: it has looked at everything, on disk, too */
    SHMQ_NOT_SERVED, /* nothing is for a consumer that is not served; this one may be, when another has stopped */
    SHMQ_BEHIND_CLAIM, /* a producer has claimed the place, and may be stopped */
    SHMQ_LEFT_TO_OTHER, /* to a consumer of higher rank, or a live place to a consumer that has not come yet; or so many come
                         * and go that the search has not ended */
    SHMQ_NO_FREE_SLOT, /* messages are on disk, and no slot of the front ring is free for one: consumers have them in hand */
    SHMQ_LOCK_TAKEN, /* messages are on disk, and another process has the mover's lock */
    SHMQ_MORE_TO_COME, /* messages are on disk, and something else keeps them there for a moment */
} shmq_nothing;

/* How a taker looks. */
typedef struct shmq_asking {
    shmq_subscription *by; /* NULL: the taker goes by the head. Until it has taken, by its own cursor */
    bool peek; /* is there something? Nothing is offered */
    bool ranked; /* consumers differ in priority: the message may be for another consumer */
} shmq_asking;

/* A taker's look has seen this: its second look compares, and its take goes on from there. */
typedef struct shmq_seen {
    uint64_t head; /* ring.head at the start of the scan: what an advance is a CAS from */
    uint64_t epoch; /* ring.epoch at the start of the scan */
    uint64_t flow; /* the flow word before it */
    shmq_cursor cursor; /* of as.by at the start of the scan */
    uint64_t version; /* of the queue before the scan; 0 without a subscription, but where the queue has flowed */
    uint64_t clock_ns; /* the time when the scan met the first entry that is HELD; 0: it has met none */
    bool in_turn; /* met in the ring, not in the old region: the head may advance past it */
    shmq_nothing why; /* it found nothing. A claim in its way is at the delivery's position, and has its word */
} shmq_seen;

/* A delivery in hand: what the taker read from its slot while the slot named this taker. */
typedef struct shmq_delivery {
    uint64_t position; /* in the ring of its level */
    uint32_t depth; /* of the level */
    uint64_t word;
    uint32_t tag;
    uint32_t owner;
    uint64_t message_id;
    uint64_t enqueued_ns;
    uint64_t body;
    uint32_t body_gen;
    uint32_t body_len;
    uint32_t crc;
    uint16_t headers_len;
    uint16_t delivery;
    uint16_t deaths;
    uint8_t content;
    uint8_t priority;
    uint16_t props;
    uint64_t expires_ns; /* 0: never */
    uint64_t receipt; /* of an available message that a stealer took while its producer waits; 0: none waits */
    uint64_t held_until_ns; /* of a message that a stealer took while it was HELD: until when; 0: it was not HELD */
    const unsigned char *headers; /* in the segment, checked to lie inside it */
    const unsigned char *bytes; /* the body, likewise */
    bool counted; /* `unsettled` of this process's row counts it: from the acquisition until the taker finds it gone */
    uint32_t group; /* that its end may free (group.h): 1 + slot of the table; 0: none */
    uint32_t group_owner, group_generation; /* the owner that claimed it for the group */
    enum {
        SHMQ_KEPT = 0,
        SHMQ_LOST,
        SHMQ_STOLEN
    } fate; /* the taker has it; a stealer took it; the taker stole it from that owner */
    shmq_asking as;
    shmq_seen seen;
} shmq_delivery;

/* Why no consumer gets the message any more; SHMQ_LIVES: one may. */
typedef enum shmq_why { SHMQ_LIVES = 0, SHMQ_WHY_EXPIRED, SHMQ_WHY_DEATHS, SHMQ_WHY_DELIVERIES } shmq_why;

/* The producer moves a body that does not fit inline to a block, sets id, time and checksum. Waits for memory until `until_ns`. */
shmq_status shmq_prepare(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns);
/* A block of so many bytes. The producer waits for memory until `until_ns`. *relief goes on from piece to piece of that wait. */
shmq_status shmq_take_block(shmq_queue *q, uint64_t bytes, uint64_t until_ns, shmq_relief *relief, shmq_block *block);
/* The producer gives block and ticket back when it does not put. */
void shmq_unprepare(shmq_queue *q, shmq_outgoing *o);
/* Is the queue full, in whatever way? */
static inline bool shmq_no_room(shmq_status status) {
    return status == SHMQ_FULL_COUNT || status == SHMQ_FULL_RING || status == SHMQ_FULL_BYTES ||
           status == SHMQ_FULL_RESIDENT || status == SHMQ_FULL_DISK;
}
/* Puts a prepared message once; the producer waits for nothing but a claim in the way. SHMQ_FULL_COUNT, SHMQ_FULL_BYTES,
 * SHMQ_FULL_RESIDENT, SHMQ_FULL_RING. */
shmq_status shmq_put_now(shmq_queue *q, shmq_outgoing *o);
/* Prepares and puts; the producer waits for room until `until_ns` (0: not at all). SHMQ_INTERRUPTED: it keeps its place in the
 * line: call again, or shmq_unprepare. */
shmq_status shmq_put(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns);
/* Several prepared messages, in order: claim, fill, publish in order. `done` = how many were put. One ticket, the first
 * message's, serves all; it passes to the first message that was not put. */
shmq_status shmq_put_some(shmq_queue *q, shmq_outgoing *o, uint32_t count, uint32_t *done);
/* Behind the publish of an entry that others can have: what is due with it, and whether it is to be told of. */
void shmq_published(shmq_ring *r, const shmq_outgoing *o);
/* Where head and body of `o` go in a block: head first, body at the next multiple of 64. */
static inline uint64_t shmq_body_start(uint32_t headers_len) { return ((uint64_t)headers_len + 63) & ~UINT64_C(63); }

/* The lowest position released in the epochs (from, to]; 0, "from the beginning": a cell does not say. */
uint64_t shmq_lowest_released(shmq_ring *r, uint64_t from, uint64_t to);

/* Offer the first available entry to `owner`: SHMQ_OK with `d` filled and the slot OFFERED; SHMQ_EMPTY; SHMQ_CORRUPT. */
shmq_status shmq_offer(shmq_queue *q, uint32_t owner, shmq_delivery *d);
/* The same for a subscription, by its own cursor: the first entry that it wants. */
shmq_status shmq_offer_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d);
/* Is there something to offer? The same scan, and nothing is offered: SHMQ_OK says that an offer is worth a try. */
shmq_status shmq_peek_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d);
/* OFFERED -> FREE: the taker takes it for good (inline bodies, which the caller has copied). SHMQ_SETTLED: another process took
 * it over, the copy does not count: offer again. */
shmq_status shmq_offer_finish(shmq_queue *q, shmq_delivery *d);
/* OFFERED -> ACQUIRED. SHMQ_SETTLED as above. SHMQ_POISONED: the taker has it, but it has died too often. */
shmq_status shmq_offer_acquire(shmq_queue *q, shmq_delivery *d);
/* OFFERED to this process -> LOCKED by it: a mover takes it to another queue, and no consumer has received it. SHMQ_SETTLED as
 * above. */
shmq_status shmq_offer_seize(shmq_queue *q, shmq_delivery *d);
/* The taker cancels its offer (the body does not decode): the entry goes back, and no scan has passed it. */
void shmq_offer_cancel(shmq_queue *q, shmq_delivery *d);
/* The word that says that this taker still has the delivery; 0: it was settled before, or a stealer took it. Bytes
 * that the taker read from a slot or block are this message's only if the word still says so afterwards. */
uint64_t shmq_own_word(const shmq_queue *q, const shmq_delivery *d);
/* Does the checksum match what the taker received? */
bool shmq_delivery_intact(const shmq_queue *q, const shmq_delivery *d);
/* Wait for something to offer, until `until_ns`; SHMQ_EMPTY, SHMQ_SHUT_DOWN, SHMQ_INTERRUPTED, SHMQ_NOT_FOUND ...
 * `consumer_row` 0: any spare row of this process. */
shmq_status shmq_offer_wait(shmq_queue *q, uint32_t owner, uint32_t consumer_row, uint64_t until_ns, shmq_delivery *d);
shmq_status shmq_offer_wait_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, uint32_t consumer_row,
                               uint64_t until_ns, shmq_delivery *d);

/* A woken taker does not take: it passes its wake on to another sleeper, if there is anything to take. */
void shmq_peek_pass_on(shmq_queue *q);

/* ACQUIRED or LOCKED of d->owner -> gone, and counted: the life of each entry ends here, but for a get of an inline body
 * (shmq_offer_finish) and for rows on disk. SHMQ_SETTLED: d->owner does not have it any more. */
shmq_status shmq_entry_ends(shmq_ring *r, shmq_delivery *d, shmq_end why);
/* So many have ended: in the counters of this process. A reaper's view has none. */
void shmq_entries_ended(shmq_queue *q, uint64_t count, shmq_end why);
/* The consumer acks it. */
static inline shmq_status shmq_settle(shmq_queue *q, shmq_delivery *d) {
    return shmq_entry_ends(shmq_level(q, d->depth), d, SHMQ_END_ACKED);
}
/* The consumer gives it back to its place. `attempt`: counts as a failed one. Once this has returned no taker gets a later entry
 * first. */
shmq_status shmq_release(shmq_queue *q, shmq_delivery *d, bool attempt);
/* The same of an entry that no consumer has received, nor was to: it is as it was. */
shmq_status shmq_put_back(shmq_queue *q, shmq_delivery *d);
/* The same of all of these, of one queue and in the order of their places, without an attempt. They become available together,
 * so that a taker that waits for one gets the first of them. The array is used up. */
void shmq_release_all(shmq_queue *q, shmq_delivery **all, uint32_t count);
/* ACQUIRED -> LOCKED by the same owner: the consumer does this before work that must not be done twice. */
shmq_status shmq_lock(shmq_queue *q, shmq_delivery *d);
/* The stealer takes the entry at a position of this level: LOCKED by this process. It takes it from its owner, live or dead
 * (delete); `ready`: only if it has no owner (purge). SHMQ_EMPTY: nothing is there to take. */
shmq_status shmq_steal(shmq_ring *r, uint64_t position, bool ready, shmq_delivery *d);
/* The same by the place in the level, also of an entry that has been on disk, or is there. SHMQ_NO_SPACE: it is
 * on disk, and entries that takers have passed leave it no slot. SHMQ_IN_USE: another process moves entries, in one turn for longer than the patience. */
shmq_status shmq_steal_at(shmq_ring *back, uint64_t place, bool ready, shmq_delivery *d);
/* Settles all that is ready on every level; how many. Consumers keep their messages, newcomers stay. */
shmq_status shmq_purge(shmq_queue *q, uint64_t *purged);
/* Settle what is ready on this level at places below this one; adds how many to *discarded. Consumers keep their
 * messages. SHMQ_INTERRUPTED: a piece of it is done, call again. */
shmq_status shmq_discard_below(shmq_ring *r, uint64_t place, uint64_t *discarded);

/* The same from exactly this word; false: it has changed, or it is damaged. */
bool shmq_seize(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, shmq_delivery *d);

/* The browser's next entry of this level at or after *position, in order, untouched. SHMQ_EMPTY: the end, *position is where a
 * newcomer will be. The browser copies d->head and d->bytes, then asks whether the copy is good (shmq_browse_valid). */
shmq_status shmq_browse(shmq_ring *r, uint64_t *position, shmq_delivery *d);
/* The same. *moving: behind the last one that was passed because it was on its way to disk just then; 0: there was none. */
shmq_status shmq_browse_past(shmq_ring *r, uint64_t *position, shmq_delivery *d, uint64_t *moving);
/* The place of an entry that this delivery is of, or that a scan has found: for users its position. Of a front ring's
 * slot; UINT64_MAX: its records are damaged. */
uint64_t shmq_place_of(const shmq_queue *q, const shmq_delivery *d);
uint64_t shmq_front_place(const shmq_ring *front, const shmq_slot_shm *slot);
/* The same of a slot of either ring, whose entry is at this position of it. */
uint64_t shmq_slot_place(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t position);
/* Where in the front ring the entry of this place is. */
bool shmq_front_find(const shmq_ring *front, uint64_t place, uint64_t *position);
/* The same by the place in the level, of a queue that may have flowed: d->depth says in which ring it is, or that it is on disk. */
shmq_status shmq_browse_place(shmq_ring *level, uint64_t *place, shmq_delivery *d);
/* Behind all positions from this one on whose entries are in a consumer's hand, or have gone: without a look at what they say. It passes
 * in one step all that it passed before, as long as nothing has come back. */
uint64_t shmq_pass_held(shmq_ring *r, uint64_t position);
bool shmq_browse_valid(const shmq_ring *r, const shmq_delivery *d);
shmq_status shmq_browse_wait(shmq_queue *q, const uint64_t *positions, uint64_t until_ns);

typedef struct shmq_census {
    uint64_t ready, unsettled, delayed, claimed, holes, broken;
    uint64_t flowed; /* of `ready`: on disk */
    uint64_t bytes, memory_bytes;
    uint64_t oldest_ns; /* enqueued_ns of the oldest ready entry; 0: none */
    uint64_t first_position; /* place of the entry that is first in order; UINT64_MAX: none */
    uint64_t next_position; /* place of the next newcomer of the least important level */
} shmq_census;
/* Adds what lies in this stretch (stretch.h). */
void shmq_stretch_count(const shmq_ring *r, uint64_t stretch, shmq_census *census);
/* Count by looking at every word between floor and tail, and at the carried ones; raises floor. */
void shmq_ring_census(shmq_queue *q, shmq_census *census);
/* The same by a checker or browser, which writes nothing. */
void shmq_ring_count(const shmq_queue *q, shmq_census *census);
/* The same at once: only what changed since this process looked last is looked at (stretch.h). */
void shmq_ring_sizes(shmq_queue *q, shmq_census *census);
/* Anything to take? Cheap: no census. */
bool shmq_ring_ready(shmq_queue *q);
/* Wait until nothing is ready, delayed or unsettled. */
shmq_status shmq_ring_join(shmq_queue *q, uint64_t until_ns);
/* NULL, or the first word that makes no sense: pointers, cells and count first (*where: SHMQ_NO_SLOT), then slots. For a ring
 * in use: a sentence is an error even under load. */
#define SHMQ_NO_SLOT UINT64_MAX
const char *shmq_ring_fault(shmq_ring *r, uint64_t *where);

/* The reaper settles everything that words of the ring say of the dead: it ends claims, gives deliveries back to their place
 * and counts the death, wakes sleepers and blocked producers. Repeatable, by any number of reapers at once. */
void shmq_ring_recover(shmq_queue *q, const shmq_liveness *l);
/* The checker compares queue.count with the slots, when no process is between the two. NULL: right, or nothing can be said now. */
const char *shmq_count_fault(shmq_queue *q);

/* A process that meets a claim in its way starts its patience, goes on with it, or - when it is over - makes holes of all claims
 * below the tail of the start. */
bool shmq_patience_over(shmq_ring *r, shmq_patience *wait, uint64_t position, uint64_t word);

/* Inner steps, shared by the files that make up the ring. */
/* Of the slot of p in its word of the bitmap; a ring may have less than 64 slots. */
static inline uint64_t shmq_carried_bit(const shmq_ring *r, uint64_t p) { return UINT64_C(1) << (p & r->mask & 63); }
static inline uint64_t shmq_head_position(const shmq_ring *r, uint64_t head) {
    return shmq_position_near(shmq_load_relaxed(&r->near), head);
}
/* Nothing available lies between the head that was read at the start of a scan and p: later scans may begin at p. A release
 * in between has raised the head's epoch, and then the CAS fails. */
static inline void shmq_head_advance(shmq_ring *r, uint64_t head, uint64_t p) {
    shmq_cas_seq(&r->shm->head, head, (head & ~SHMQ_POSITION_MASK) | (p & SHMQ_POSITION_MASK));
}
/* A head that lies more than a lap behind the tail comes after it. */
void shmq_head_follow(shmq_ring *r);
/* The tail has passed p: once a lap the head follows. */
static inline void shmq_tail_passed(shmq_ring *r, uint64_t p) {
    if (SHMQ_UNLIKELY((p & r->mask) == 0)) {
        shmq_head_follow(r);
    }
}
/* The entry at p while its slot says so: at its own turn, or carried with p as its true position. Positions of a slot only
 * grow, so p found behind the word is p at the time of the word. Whether the word still stands is not asked: an entry whose
 * state has just changed is here all the same, and a scan that passed it would leave it behind. The CAS from the word asks. */
static inline bool shmq_is_here(const shmq_slot_shm *slot, uint64_t word, int32_t ahead, uint64_t p) {
    if (ahead == 0) {
        return !shmq_word_carried(word);
    }
    return shmq_word_carried(word) && shmq_load_acquire(&slot->position) == p; /* SYNC ring.publish */
}
bool shmq_slot_free(shmq_ring *r, shmq_slot_shm *slot, uint64_t word); /* CAS to FREE@lap+1, count, wake full */
bool shmq_claim_clear(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, bool overdue); /* T3, T4, T6 as it applies */
bool shmq_claim_end(shmq_ring *r, shmq_slot_shm *slot, uint64_t word); /* T3, T6, T16: its owner is dead */
shmq_status shmq_taken_away(shmq_queue *q, shmq_delivery *d); /* the consumer lost it: lets it go. SHMQ_SETTLED */
void shmq_let_go(
    shmq_queue *q,
    shmq_delivery *d); /* the consumer does not have it any more: it settled it, gave it back, or lost it */
void shmq_attempt_count(shmq_slot_shm *slot, const shmq_delivery *d); /* R0 */
/* A taker without a choice has found an entry. If its subscription has begun to choose since then, the entry may be just what it
 * refuses: true, the taker gave it back, and its next scan chooses. */
bool shmq_choose(shmq_queue *q, shmq_subscription *by, shmq_delivery *d);
/* Has it died with its takers, or failed, as often as its queue allows? */
shmq_why shmq_poison_of(const shmq_queue *q, const shmq_delivery *d);
/* Would one more failure reach that limit? */
bool shmq_is_last_attempt(const shmq_queue *q, const shmq_delivery *d);
bool shmq_carry(shmq_ring *r, uint64_t t, bool far); /* true: something moved, try again; false: no room */
shmq_status shmq_mark_broken(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint32_t turn);
void shmq_rewind(shmq_ring *r, uint64_t position); /* R2 to R4 */
void shmq_rewind_all(shmq_ring *r); /* to the ring's beginning */
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
bool shmq_death_count(shmq_queue *q, shmq_slot_shm *slot, uint64_t word, uint32_t pid);
void shmq_death_record_add(shmq_member *m, uint64_t id, uint32_t pid,
                           int32_t signal); /* id: or SHMQ_DEATH_RECORD_PROCESS */
uint32_t shmq_crc_of(const shmq_queue *q, const shmq_delivery *d);
bool shmq_owner_dead(shmq_queue *q, uint32_t owner); /* the caller has read the word that names it before */

#endif
