/* Waking: the consumer table of a queue.
 *
 * One bit is the truth: idle bit r set = consumer row r sleeps or is about to, and no notifier has claimed it. A notifier
 * claims it by fetch_and(~bit): exactly one wins, and owes one wake. Lists of consumers by state are these bitmaps:
 * all = used, interested = idle, notified = used without idle, browsing = browse. */
#ifndef SHMQ_SLEEPERS_H
#define SHMQ_SLEEPERS_H

#include "shmq/handle.h"
#include "shmq/liveness.h"

#define SHMQ_VERSIONED (UINT64_C(1) << 63) /* set in each version of a queue: 0 in a row says nothing */
#define SHMQ_STARVED (UINT64_C(1) << 62) /* in a version: it counts chances, too */
#define SHMQ_LOCKED_OUT (UINT64_C(1) << 61) /* in a version with chances: another process had the mover's lock */

/* The version of what there is to look at: a consumer that has looked at all of it publishes the version in its row, and no notifier
 * wakes it for that. */
uint64_t shmq_version(const shmq_queue *q);
/* The version of a starved taker: it could not reach rows that it has not looked at, or wants, since no slot of the front ring is free,
 * or another process has the mover's lock. `version`: the queue's, from before its look. `chances`: from before it looked for a slot,
 * or tried the lock. */
static inline uint64_t shmq_version_starved(uint64_t version, uint64_t chances) {
    return ((version + chances) & ~SHMQ_LOCKED_OUT) | SHMQ_STARVED;
}
/* A process gives starved takers a chance, a free slot or the mover's lock: it wakes one of them, as by shmq_notify. */
void shmq_notify_starved(shmq_queue *q);
/* The notifier has made an entry available: it wakes one sleeper, and every sleeping browser. Part of every transition that can. */
void shmq_notify(shmq_queue *q);
/* Consumers of several queues look at this one again (news.h). */
void shmq_news_raise(shmq_queue *q);
/* Wakes every sleeping consumer and browser: the terms have changed by which takers get messages. */
void shmq_notify_consumers(shmq_queue *q);
/* Wakes these, producers and joiners: shutdown, deletion. */
void shmq_notify_all(shmq_queue *q);
/* A process has made room: it wakes a blocked producer. `slot`: the one that became FREE. */
void shmq_wake_full(shmq_ring *r, const shmq_slot_shm *slot);
/* Wakes all producers that wait for room, in whatever way. */
void shmq_wake_producers(shmq_queue *q);
void shmq_wake_joiners(shmq_queue *q);

/* Rows. SHMQ_LIMIT: 1,087 are in use, or 1,024 by consumers. Opening and closing take the structure lock. */
shmq_status shmq_row_open(shmq_queue *q, uint32_t kind, uint32_t *row);
struct shmq_row_terms;
/* The part of it for a caller that holds the structure lock. */
shmq_status shmq_row_fill(shmq_queue *q, const struct shmq_row_terms *terms, uint32_t *row);
shmq_status shmq_row_close(shmq_queue *q, uint32_t row);
/* Before a close: its threads that wait come back with SHMQ_CLOSED. */
void shmq_row_closing(shmq_queue *q, uint32_t row);
shmq_consumer_shm *shmq_row_at(const shmq_queue *q, uint32_t row);
/* A row to wait on: a spare one of this process, or a new one. */
shmq_status shmq_row_borrow(shmq_queue *q, uint32_t *row);
void shmq_row_return(shmq_queue *q, uint32_t row);

/* A sleeper's steps: it announces itself BEFORE its last look, and withdraws after. */
uint32_t shmq_announce(shmq_queue *q, uint32_t row, bool browsing);
bool shmq_withdraw(shmq_queue *q, uint32_t row, bool browsing); /* true: a notifier had claimed the bit */
uint64_t shmq_sleep_limit(shmq_queue *q); /* ns from now: some sleeper looks every patience, however many they are */
uint64_t shmq_sleep_slice(const shmq_queue *q); /* ns: of many sleepers each has longer pieces, see wait_time.h */
bool shmq_anybody_idle(shmq_queue *q);
/* Has the consumer of this row looked at all that there is, with nothing for it? */
bool shmq_has_looked(shmq_queue *q, uint32_t row);
/* The same, but for one that found the mover's lock taken: what it could not look at may be for it. */
bool shmq_wants_nothing(const shmq_queue *q, uint32_t row);
/* The notifier claims the row's idle bit and wakes its sleeper. False: another notifier has claimed it, or none sleeps there. */
bool shmq_wake_idle(shmq_queue *q, uint32_t row);

/* The reaper takes the idle bits of the dead away, and wakes a sleeper whose bit a dead notifier had taken. */
void shmq_sleepers_recover(shmq_queue *q, const shmq_liveness *l);
/* The reaper sets rows of the dead FREE. Under the structure lock, when no word names them any more. */
void shmq_consumers_recover(shmq_queue *q, const shmq_liveness *l);
/* The checker's look: NULL, or what is wrong, with its row. Under the structure lock, while others sleep and wake. */
const char *shmq_consumers_fault(const shmq_queue *q);

#endif
