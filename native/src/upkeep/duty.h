/* Upkeep as a list: each duty with the question whether it is due, and a step that does a part of it.
 *
 * There is no thread for it. A round (shmq_upkeep_round) asks each duty, and does steps of those that are due until its
 * budget is spent; the next round goes on. So a call that puts or takes a message pays at most one budget, and the one
 * thing that cannot be divided with which it was spent. A dead process is reaped, a queue ended, as a whole. A call
 * that would say Empty or Full does all of it before (shmq_upkeep_thorough). A sleeper has time, and goes on to the
 * end, or until it is woken (shmq_upkeep_finish).
 *
 * A new duty is a line in duties.c, or in upkeep/per_queue.c if each queue has it, with its test in native/tests/upkeep/test_duties.c. */
#ifndef SHMQ_UPKEEP_DUTY_H
#define SHMQ_UPKEEP_DUTY_H

#include "base/clock.h"
#include "queue/handle.h"

/* The budget of a round: so many looks at words, each of which costs some tens of nanoseconds at most where no cache
 * has it. All in all some 50 us, about as much as it costs a sleeper to be woken. */
#define SHMQ_ROUND_BUDGET 512u
#define SHMQ_PRICE_ENTRY 1u /* looked at */
#define SHMQ_PRICE_CHANGE 8u /* brought forward, dropped, or taken back: with the sleeper that is woken for it */
#define SHMQ_PRICE_QUEUE 4u /* looked at: its page and its rings are checked */
#define SHMQ_PRICE_ROW 8u /* a lock byte: a system call */
#define SHMQ_PRICE_FILE 64u /* what the index of a file of rows says; the mover's lock */
#define SHMQ_PRICE_FETCH 32u /* a row comes in by itself */

typedef struct shmq_budget {
    uint32_t left;
    const shmq_spare_time *spare; /* NULL: one round. Else the next one follows, as long as there is time */
} shmq_budget;

static inline bool shmq_has_time(const shmq_spare_time *t) {
    return (t->word == NULL || shmq_load_relaxed(t->word) == t->seen) &&
           (t->until_ns == UINT64_MAX || shmq_now_ns() < t->until_ns);
}

static inline void shmq_budget_spend(shmq_budget *b, uint32_t price) {
    if (SHMQ_LIKELY(b->left > price)) {
        b->left -= price;
    } else {
        b->left = b->spare != NULL && shmq_has_time(b->spare) ? SHMQ_ROUND_BUDGET : 0;
    }
}

/* On what cannot be divided, and may cost more than all of it. */
static inline void shmq_budget_spend_all(shmq_budget *b) { shmq_budget_spend(b, b->left); }

/* Of the broker as a whole. */
typedef struct shmq_duty {
    const char *name;
    bool (*is_due)(const shmq_member *m, uint64_t now);
    /* True: more is left. NULL: not the core's. The interpreter does it, and asks by itself. */
    bool (*step)(shmq_member *m, uint64_t now, shmq_budget *b);
} shmq_duty;

/* Of each queue: steps of the duty "times", which finds by one word of the header when one of these is due. */
typedef struct shmq_queue_duty {
    const char *name;
    /* When: `now` if it is due already. `q` may be a view, to which nothing is written. */
    uint64_t (*due)(const shmq_queue *q, uint64_t now);
    /* Answers when to come again; `now` if more is left. */
    uint64_t (*step)(shmq_queue *q, uint64_t now, shmq_budget *b);
} shmq_queue_duty;

#define SHMQ_QUEUE_DUTIES 5u

extern const shmq_duty shmq_duties[SHMQ_DUTIES]; /* in the order of enum shmq_duty_number */
extern const shmq_queue_duty shmq_queue_duties[SHMQ_QUEUE_DUTIES];

/* Part of the duty "segment": once an hour the broker's files get the time of now. */
void shmq_files_touch(shmq_member *m, uint64_t now, shmq_budget *b);

/* The duty "times". */
bool shmq_is_time(const shmq_member *m, uint64_t now);
bool shmq_times_step(shmq_member *m, uint64_t now, shmq_budget *b);
/* Is this the ring at whose entries we have begun to look, and nothing has become due in it since? */
bool shmq_is_half_looked_at(const shmq_queue *q, uint32_t depth, const shmq_rounds *u);
/* A part of shmq_ring_time (time/times.h); `u` is this process's, or that of a look that goes to the end. */
void shmq_ring_time_step(shmq_ring *r, uint64_t now, shmq_rounds *u, shmq_budget *b);

/* The queue duty "rows" (rows_due.c). */
uint64_t shmq_rows_due(const shmq_queue *q, uint64_t now);
uint64_t shmq_rows_step(shmq_queue *q, uint64_t now, shmq_budget *b);
/* The queue duty "waiting rows" (waiting_due.c). */
uint64_t shmq_waiting_due(const shmq_queue *q, uint64_t now);
uint64_t shmq_waiting_step(shmq_queue *q, uint64_t now, shmq_budget *b);
/* Expired messages have become dead letters: the slots that they had are free for others that have expired on disk. The next
 * look comes as soon as the last pass has rested. For who has settled some, else looks would follow each other for nothing. */
void shmq_rows_hurry(shmq_queue *q);

/* One step of each that is due and asked for, within one budget; true: more is left, and the next caller goes on. */
bool shmq_upkeep_round(shmq_member *m, uint32_t duties);
/* Round after round, to the end, or as long as there is time; NULL: to the end. */
void shmq_upkeep_finish(shmq_member *m, uint32_t duties, const shmq_spare_time *spare);
/* All duties, for up to the patience: before a call says that there is nothing, or no room. */
void shmq_upkeep_thorough(shmq_member *m);

/* Does all that is due in the broker, before a count. */
void shmq_due_look(shmq_member *m);

/* Look at all entries of the ring, if something is due there, and do it. */
void shmq_ring_time(shmq_ring *r, uint64_t now);

#endif
