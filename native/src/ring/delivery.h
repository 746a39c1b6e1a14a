/* A delivery: a message on its way out, what a taker asks for, and what its look has seen. Private memory. */
#ifndef SHMQ_RING_DELIVERY_H
#define SHMQ_RING_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shmq_subscription;

typedef struct shmq_cursor {
    uint64_t position;
    uint64_t epoch;
    uint64_t turns; /* how often it was written: a thread that read an older one does not write */
} shmq_cursor;

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
    struct shmq_subscription *by; /* NULL: the taker goes by the head. Until it has taken, by its own cursor */
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
    uint32_t group_owner, group_generation; /* the owner of that group */
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

#endif
