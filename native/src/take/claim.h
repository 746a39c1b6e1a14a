/* A claim: many entries go from one queue to another, each by a move of its own (put/move.h), in the order in which a taker
 * would get them. A killed claimer leaves each of them in exactly one of the two; nothing is held across entries. */
#ifndef SHMQ_TAKE_CLAIM_H
#define SHMQ_TAKE_CLAIM_H

#include "selectors/subscription.h"

typedef struct shmq_claim_limits {
    uint64_t entries;
    uint64_t bytes; /* of headers and bodies; the first entry goes whatever it has */
} shmq_claim_limits;

typedef struct shmq_claimed {
    uint64_t entries, bytes;
    shmq_status
        ended; /* SHMQ_OK: a limit. SHMQ_EMPTY: nothing more that the claimer may have. Else: why `to` took no more */
    shmq_delivery dead; /* with SHMQ_POISONED: what the caller is to move to the dead */
    shmq_turn_wait turn, room; /* of a mover in its way, in `from` and in `to`, from piece to piece */
    shmq_relief relief;
} shmq_claimed;

/* The claimer takes from `from` as a get does, without a consumer, entry by entry. It moves priority, headers (those of a death,
 * too: no consumer gets it as a living message there), body, id and time of the put; the entry has no time to live in `to`, and no
 * attempts.
 *
 * `by` selects, and remembers what is damaged: such entries are left to their queue. One subscription for all claims
 * from a queue is best; never NULL. `result` begins zeroed.
 *
 * SHMQ_OK: it is over, see result->ended. SHMQ_INTERRUPTED: a piece of it is done, call again with the same result.
 * SHMQ_POISONED: the same, once the caller has moved result->dead to the dead, or given it back. Anything else:
 * nothing was moved, for this reason; if something was, that is result->ended. */
shmq_status shmq_claim(shmq_queue *from, shmq_queue *to, const shmq_claim_limits *limits, shmq_subscription *by,
                       shmq_claimed *result);

#endif
