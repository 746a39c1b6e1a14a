/* Which of a queue's consumers may take: the exclusive one, so many live ones, those of higher priority first.
 *
 * The truth stands in the rows of the consumers: priority, exclusive, order of opening, live. `terms` in the queue's
 * page says which of it matters, so that a queue without any of it pays one test. The terms are worked out anew from
 * the rows, under the structure lock, whenever a row was opened, closed or given back for a dead one. A death in
 * between leaves the old terms, and the reaper of that death works them out.
 *
 * Priorities among consumers. A consumer of a ranked queue sets its bit in `want` while it is inside a receive. A
 * consumer that finds an entry asks first whether one of higher priority wants it, and then leaves it. The other clears
 * its bit first, and then looks whether something is left for sleepers. One of the two sees the other. A wanting one
 * that has looked at everything (its `progress`), or stands by, does not count. One for which others have waited for
 * the patience, while it made no step (its `rounds`), is stopped: all pass it until it makes one. A consumer that waits
 * says so in the rows of all that it waits for (`awaited`), so that many of them cost one patience together.
 *
 * Live places. One that is free is offered to the first of those who stand by, who is woken. The own step of that one
 * takes the place up: before that it takes nothing. An offer that is not taken up for the patience goes to the next,
 * whenever one that stands by has a look. Then all who stand by are called, so that those who are stopped as well cost
 * one more patience together. A place that was taken up is kept until its owner goes, or dies. */
#ifndef SHMQ_CONSUMERS_RANKS_H
#define SHMQ_CONSUMERS_RANKS_H

#include "queue/handle.h"

struct shmq_selector;

enum shmq_term {
    SHMQ_TERM_RANKED = 1,    /* consumers differ in priority */
    SHMQ_TERM_LIMITED = 2,   /* some stand by: live_consumers */
    SHMQ_TERM_EXCLUSIVE = 4, /* one takes all */
};

/* The terms with which a consumer is opened. */
typedef struct shmq_row_terms {
    uint32_t kind;
    int32_t priority;
    const struct shmq_selector *selector; /* NULL: none; only the call needs it */
    bool exclusive;
    bool
        implicit; /* no user can close it by itself: with nothing in hand it does not keep another from being exclusive */
} shmq_row_terms;

/* As shmq_row_open. SHMQ_REFUSED: there is an exclusive consumer, or this one would be and is not alone. SHMQ_LIMIT: there are
 * SHMQ_CONSUMERS already. */
shmq_status shmq_row_open_as(shmq_queue *q, const shmq_row_terms *terms, uint32_t *row);
/* Says whether ranks are not in use: then rows come and go without a look at other rows. */
bool shmq_ranks_are_plain(const shmq_queue *q);
/* Works out the terms, offers live places and wakes their consumers. The caller holds the structure lock. */
void shmq_ranks_settle(shmq_queue *q);
/* May this owner look at the queue at all? SHMQ_OK, and if others stand by it has a privilege; SHMQ_EMPTY: it stands by
 * itself, and *left is set if a place has been offered to another that has not come yet; SHMQ_REFUSED. */
shmq_status shmq_ranks_admit(shmq_queue *q, uint32_t owner, bool *left);
/* Takes up the live place that this owner was offered, if it is still there. False: the owner stands by. */
bool shmq_ranks_take_up(shmq_queue *q, uint32_t owner);
/* Notes a step of the owner (a look, or going to sleep): consumers that waited for it wait no longer. */
void shmq_ranks_step(shmq_queue *q, uint32_t owner);
/* False: it stands by until another one leaves. Of one that was offered a place: true, and nothing is taken up. */
bool shmq_is_served(const shmq_queue *q, uint32_t owner);
/* Does it say so? */
static inline bool shmq_is_wanting(const shmq_queue *q, uint32_t row) {
    return (shmq_load_seq(&q->page->sleepers[row / 64].want) >> (row & 63) & 1) != 0;
}
/* Leaves what this owner has found to a consumer of higher priority that wants it, and waits for that one from then on. False:
 * there is none. */
bool shmq_defer_to_rank(shmq_queue *q, uint32_t owner);
/* As shmq_notify where consumers differ in priority: the highest of those that sleep and have not looked at everything. */
void shmq_notify_ranked(shmq_queue *q);

#endif
