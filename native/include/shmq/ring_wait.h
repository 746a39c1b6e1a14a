/* Who waits for an entry, and the inner steps that a wait for one queue shares with a wait for several. */
#ifndef SHMQ_RING_WAIT_H
#define SHMQ_RING_WAIT_H

#include "shmq/ring.h"

/* Who waits, and on which row. */
typedef struct shmq_waiter {
    uint32_t owner;
    shmq_subscription *by; /* another thread may refuse an entry meanwhile: shmq_taker() is asked at each look */
    uint32_t row;
    shmq_consumer_shm *consumer;
    uint64_t until_ns;
    bool peek; /* until there is something; nothing is offered */
} shmq_waiter;

/* One of the queues of a wait for several. The caller fills the first part; the rest is of the wait. */
typedef struct shmq_waiter_of {
    shmq_queue *q;
    uint32_t owner, row; /* row 0: any spare one of this process */
    shmq_subscription *by;

    shmq_waiter w;
    bool left;        /* in this look: there is something, for a consumer of higher rank */
    uint64_t version; /* it was looked at, up to this version, and nothing is for us; 0: there may be something */
    bool looked;      /* in this look: nothing came */
    bool served, notified;
    bool wants; /* of who calls: its bit is set among those who want something */
} shmq_waiter_of;

/* As shmq_offer_wait_to for the first of several queues, of one member, that has something; they are asked in turn, from
 * `first` on. *from: the queue that the answer is about. SHMQ_SHUT_DOWN: all of them are. */
shmq_status shmq_offer_wait_any(shmq_waiter_of *of, uint32_t count, uint32_t first, uint64_t until_ns, uint32_t *from,
                                shmq_delivery *d);
/* The same until one of them has something to offer; nothing is offered, and *from is of no use but with an error. */
shmq_status shmq_peek_wait_any(shmq_waiter_of *of, uint32_t count, uint64_t until_ns, uint32_t *from);
/* The first of them that has something, without waiting. SHMQ_EMPTY, SHMQ_SHUT_DOWN as above. */
shmq_status shmq_offer_any(shmq_waiter_of *of, uint32_t count, uint32_t first, uint32_t *from, shmq_delivery *d);

/* Offer, or say why there is nothing. *claimed: a claim is in the way, not the end of the queue. */
shmq_status shmq_look(shmq_queue *q, const shmq_waiter *w, bool *claimed, shmq_delivery *d);
/* How long it sleeps at most after a look that found nothing; `left` as in the delivery: until those are passed. */
uint64_t shmq_look_limit(shmq_queue *q, bool left);
/* Did a sleep that nobody ended find something that had been there for long? Then somebody owed a wake and was stopped;
 * or was woken and died, which is no rescue. */
void shmq_rescue_count(shmq_queue *q, const shmq_delivery *d);
/* It has looked at everything up to this version, and nothing is for it: nobody need wake it for that again. 0: not so. */
void shmq_progress_publish(const shmq_waiter *w, uint64_t version);
/* It was woken for an entry that is not for it, or that it does not take: another one gets the wake. Who has looked at all
 * that there is gets none, so this ends. */
void shmq_wake_pass_on(shmq_queue *q, const shmq_waiter *w, shmq_status status);
/* Another thread closes the consumer that this one waits for. */
bool shmq_is_closing(shmq_queue *q, uint32_t owner);

#endif
