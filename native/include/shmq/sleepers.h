/* Waking: the consumer table of a queue.
 *
 * One bit is the truth: idle bit r set = consumer row r sleeps or is about to, and nobody has claimed it. Claiming is
 * fetch_and(~bit): exactly one winner, who owes one wake. Lists of consumers by state are these bitmaps:
 * all = used, interested = idle, notified = used without idle, browsing = browse. */
#ifndef SHMQ_SLEEPERS_H
#define SHMQ_SLEEPERS_H

#include "shmq/handle.h"
#include "shmq/liveness.h"

#define SHMQ_VERSIONED (UINT64_C(1) << 63) /* set in each version of a queue: 0 in a row says nothing */
#define SHMQ_STARVED (UINT64_C(1) << 62) /* in a version: it counts chances, too */

/* Of what there is to look at: a consumer that has looked at all of it publishes it in its row, and is not woken for it. */
uint64_t shmq_version(const shmq_queue *q);
/* The same, and of what keeps a taker from rows that it has not looked at, or wants: no slot of the front ring is free, or another
 * process has the mover's lock. `version`: the queue's, of before the look. `chances`: of before it looked for a slot, or the lock. */
static inline uint64_t shmq_version_starved(uint64_t version, uint64_t chances) {
    return (version + chances) | SHMQ_STARVED;
}
/* What kept starved takers may be over: one of them is woken, as by shmq_notify. */
void shmq_notify_starved(shmq_queue *q);
/* Somebody may have work: wake one sleeper, and every sleeping browser. Part of every transition that can give work. */
void shmq_notify(shmq_queue *q);
/* Every sleeping consumer and browser: the terms have changed by which messages are given out. */
void shmq_notify_consumers(shmq_queue *q);
/* They, producers and joiners: shutdown, deletion. */
void shmq_notify_all(shmq_queue *q);
/* Room may have come: wake a blocked producer. `position`: of the slot that became FREE. */
void shmq_wake_full(shmq_ring *r, uint64_t position);
/* All producers that wait for room, in whatever way. */
void shmq_wake_producers(shmq_queue *q);
void shmq_wake_joiners(shmq_queue *q);

/* Rows. SHMQ_LIMIT: 1,087 are in use, or 1,024 by consumers. Opening and closing take the structure lock. */
shmq_status shmq_row_open(shmq_queue *q, uint32_t kind, uint32_t *row);
struct shmq_row_terms;
/* The part of it that is done under the structure lock, by who holds it. */
shmq_status shmq_row_fill(shmq_queue *q, const struct shmq_row_terms *terms, uint32_t *row);
shmq_status shmq_row_close(shmq_queue *q, uint32_t row);
/* Before a close: its threads that wait come back with SHMQ_CLOSED. */
void shmq_row_closing(shmq_queue *q, uint32_t row);
shmq_consumer_shm *shmq_row_at(const shmq_queue *q, uint32_t row);
/* A row to wait on: a spare one of this process, or a new one. */
shmq_status shmq_row_borrow(shmq_queue *q, uint32_t *row);
void shmq_row_return(shmq_queue *q, uint32_t row);

/* sleep, step by step: announce BEFORE the last look, withdraw after. */
uint32_t shmq_announce(shmq_queue *q, uint32_t row, bool browsing);
bool shmq_withdraw(shmq_queue *q, uint32_t row, bool browsing); /* true: somebody had claimed the bit */
uint64_t shmq_sleep_limit(shmq_queue *q); /* ns from now: some sleeper looks every patience, however many they are */
bool shmq_anybody_idle(shmq_queue *q);
/* Has the consumer of this row looked at all that there is, with nothing for it? */
bool shmq_has_looked(shmq_queue *q, uint32_t row);
/* Claim its idle bit and wake it. False: somebody else has claimed it, or nobody is there. */
bool shmq_wake_idle(shmq_queue *q, uint32_t row);

/* After a death, by anyone: the dead sleep no more, and a sleeper whose bit a dead notifier took away is woken. */
void shmq_sleepers_recover(shmq_queue *q, const shmq_liveness *l);
/* Rows of the dead become FREE. Under the structure lock, when no word names them any more. */
void shmq_consumers_recover(shmq_queue *q, const shmq_liveness *l);
/* NULL, or what is wrong, with its row. Under the structure lock, while others sleep and wake. */
const char *shmq_consumers_fault(const shmq_queue *q);

#endif
