/* Waiting for an entry of one queue or of several. */
#ifndef SHMQ_TAKE_WAIT_ANY_H
#define SHMQ_TAKE_WAIT_ANY_H

#include "selectors/subscription.h"

/* A waiter on one of the queues of a wait, which has one or several. The caller fills the first part; the rest is of the wait. */
typedef struct shmq_queue_wait {
    shmq_queue *q;
    uint32_t owner, row; /* row 0: any spare one of this process */
    shmq_subscription *by; /* another thread may refuse an entry meanwhile: each look asks shmq_taker() */

    bool peek; /* until there is something; nothing is offered */
    uint32_t borrowed; /* the spare row; 0: none */
    shmq_consumer_shm *consumer; /* the row that it sleeps on */
    shmq_nothing why; /* this look found nothing */
    bool awaited; /* in this look: another process had the mover's lock, and gets on */
    shmq_turn_wait turn; /* of that one; all 0 as a call begins, kept between the pieces of its wait */
    uint64_t version; /* the waiter has looked up to this version, and nothing is for it; 0: there may be something */
    bool looked; /* in this look: nothing came */
    bool served, notified;
    bool wants; /* the waiter has set its bit among those of consumers that want something */
} shmq_queue_wait;

/* Says whether a look found no entry although there is one: out of reach on disk, or left to another consumer. */
static inline bool shmq_is_partial(const shmq_queue_wait *w) { return w->why >= SHMQ_LEFT_TO_OTHER; }

/* As shmq_offer_wait_to for the first of several queues, of one member, that has something; they are asked in turn, from
 * `first` on. *from: the queue that the answer is about. SHMQ_SHUT_DOWN: all of them are. */
shmq_status shmq_offer_wait_any(shmq_queue_wait *of, uint32_t count, uint32_t first, uint64_t until_ns, uint32_t *from,
                                shmq_delivery *d);
/* Waits until one of the queues has an entry to offer; no entry is offered, and *from is of no use but with an error. A
 * waiter that is woken counts as a taker: it owes its wake to the others until its taker has come (shmq_peek_pass_on).
 * */
shmq_status shmq_peek_wait_any(shmq_queue_wait *of, uint32_t count, uint64_t until_ns, uint32_t *from);
/* Offers an entry of the first queue that has one, without a wait. SHMQ_EMPTY, SHMQ_SHUT_DOWN as above. */
shmq_status shmq_offer_any(shmq_queue_wait *of, uint32_t count, uint32_t first, uint32_t *from, shmq_delivery *d);

/* The taker offers an entry to itself, or learns why there is none. *claimed: a claim is in the way, not the end of the queue. */
shmq_status shmq_look(const shmq_queue_wait *w, bool *claimed, shmq_delivery *d);
/* Counts a rescue, if a sleep that no notifier ended found an entry that had been there for long. Then a notifier was
 * stopped before its wake; or a woken consumer died, which is no rescue. */
void shmq_rescue_count(shmq_queue *q, const shmq_delivery *d);

/* Wait for something to offer, until `until_ns`; SHMQ_EMPTY, SHMQ_SHUT_DOWN, SHMQ_INTERRUPTED, SHMQ_NOT_FOUND ...
 * `consumer_row` 0: any spare row of this process. */
shmq_status shmq_offer_wait(shmq_queue *q, uint32_t owner, uint32_t consumer_row, uint64_t until_ns, shmq_delivery *d);
shmq_status shmq_offer_wait_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, uint32_t consumer_row,
                               uint64_t until_ns, shmq_delivery *d);

/* Passes the wake of a taker that does not take on to another sleeper, if there is an entry to take. */
void shmq_peek_pass_on(shmq_queue *q);

#endif
