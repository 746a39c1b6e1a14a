/* A taker's scan, the offer that it makes to itself, and the taking. */
#ifndef SHMQ_TAKE_OFFER_H
#define SHMQ_TAKE_OFFER_H

#include "selectors/subscription.h"

/* Offer the first available entry to `owner`: SHMQ_OK with `d` filled and the slot OFFERED; SHMQ_EMPTY; SHMQ_CORRUPT. */
shmq_status shmq_offer(shmq_queue *q, uint32_t owner, shmq_delivery *d);
/* As shmq_offer for a subscription, by its own cursor: offers the first entry that the subscription wants. */
shmq_status shmq_offer_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d);
/* Scans as an offer does, and offers no entry. SHMQ_OK: there is an entry, so an offer is worth a try. */
shmq_status shmq_peek_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, shmq_delivery *d);
/* OFFERED -> FREE: the taker takes it for good (inline bodies, which the caller has copied). SHMQ_SETTLED: another process took
 * it over, the copy does not count: offer again. */
shmq_status shmq_offer_finish(shmq_queue *q, shmq_delivery *d);
/* Takes OFFERED -> ACQUIRED. SHMQ_SETTLED as above. SHMQ_POISONED: the taker has it, but it has died too often. */
shmq_status shmq_offer_acquire(shmq_queue *q, shmq_delivery *d);
/* OFFERED to this process -> LOCKED by it: a mover takes it to another queue, and no consumer has received it. SHMQ_SETTLED as
 * above. */
shmq_status shmq_offer_seize(shmq_queue *q, shmq_delivery *d);
/* The taker cancels its offer (the body does not decode): the entry goes back, and no scan has passed it. */
void shmq_offer_cancel(shmq_queue *q, shmq_delivery *d);
/* The subscription of a taker may begin to choose while the taker scans as one that takes anything. The entry that it
 * found may then be one that it refuses. True: the taker gave the entry back, and its next scan chooses. */
bool shmq_choose(shmq_queue *q, shmq_subscription *by, shmq_delivery *d);

#endif
