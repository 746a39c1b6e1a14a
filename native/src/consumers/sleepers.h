/* Waking: the consumer table of a queue.
 *
 * One bit is the truth: idle bit r set = consumer row r sleeps or is about to, and no notifier has claimed it. A notifier
 * claims it by fetch_and(~bit): exactly one wins, and owes one wake. Lists of consumers by state are these bitmaps:
 * all = used, interested = idle, notified = used without idle, browsing = browse. */
#ifndef SHMQ_CONSUMERS_SLEEPERS_H
#define SHMQ_CONSUMERS_SLEEPERS_H

#include "queue/handle.h"

struct shmq_row_terms;

/* A process gives starved takers a chance, a free slot or the mover's lock: it wakes one of them, as by shmq_notify. */
void shmq_notify_starved(shmq_queue *q);
/* The notifier has made an entry available: it wakes one sleeper, and every sleeping browser. Part of every transition that can. */
void shmq_notify(shmq_queue *q);
/* Consumers of several queues look at this one again (news.h). */
void shmq_news_raise(shmq_queue *q);
/* The directory entry with the count of news of 64 queues. */
static inline uint32_t shmq_news_group(uint32_t index) { return index & ~UINT32_C(63); }
/* Wakes every sleeping consumer and browser: the terms have changed by which takers get messages. */
void shmq_notify_consumers(shmq_queue *q);

/* Rows. SHMQ_LIMIT: 1,087 are in use, or 1,024 by consumers. Opening takes the structure lock. */
shmq_status shmq_row_open(shmq_queue *q, uint32_t kind, uint32_t *row);
/* Opens a row for a caller that holds the structure lock. */
shmq_status shmq_row_fill(shmq_queue *q, const struct shmq_row_terms *terms, uint32_t *row);
/* Wakes the threads that wait on a row that is about to be closed: they return SHMQ_CLOSED. */
void shmq_row_closing(shmq_queue *q, uint32_t row);

/* Announces a sleeper BEFORE its last look; it withdraws after the look. */
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

#endif
