/* A message on its way in, from its producer's call to the slot. Private memory. */
#ifndef SHMQ_RING_OUTGOING_H
#define SHMQ_RING_OUTGOING_H

#include <sys/uio.h>

#include "blocks/block.h"
#include "queue/handle.h"
#include "ring/delivery.h"

/* A message as prepare makes it, and where its put lays it. */
typedef struct shmq_made {
    bool prepared;
    uint64_t message_id;
    uint64_t position; /* in the ring of its level, once it is put */
    uint32_t crc;
    uint32_t group; /* 1 + slot of the table; 0: none */
    uint64_t due_ns; /* when time does something with it first; 0: never */
} shmq_made;

/* A put that finds no room. All 0 at first; a call that was interrupted goes on with it. */
typedef struct shmq_room_wait {
    shmq_status lacking; /* SHMQ_FULL_*: what a wait that was interrupted waits for; SHMQ_OK: it did not begin */
    bool beyond; /* max_memory: the purger can move nothing more to disk, so it is put whatever it weighs */
    bool far; /* nothing more can go to disk, so the producer looks for a FREE slot in the whole ring */
    bool
        brief; /* its producer keeps others waiting: told that there is no room, it comes again for what a disk is asked for */
    bool more; /* others of its batch follow: they keep its place in the line of blocked producers */
    shmq_ticket ticket; /* that place */
    shmq_turn_wait turn; /* of a mover in its way */
    shmq_relief relief;
} shmq_room_wait;

/* A message on its way in. The caller fills the first part. */
typedef struct shmq_outgoing {
    const unsigned char *headers;
    uint32_t headers_len;
    const struct iovec *pieces; /* of the body */
    uint32_t piece_count;
    uint64_t body_len;
    uint8_t content;
    uint64_t not_before_ns; /* no consumer gets it before this time; 0: at once */
    uint64_t expires_ns; /* no consumer gets it after this time; 0: it never expires */
    uint64_t enqueued_ns; /* 0: the time of prepare; a batch reads the clock once for all */
    uint8_t priority; /* 0 to 9 */
    uint64_t intent; /* of a move (put/move.h): it is published PENDING; 0: a put */
    uint64_t source; /* ... the position that it comes from */
    shmq_end source_end; /* ... why it ends there */
    uint64_t receipt; /* of a put that waits until it is taken (receipt.h); 0: it does not */
    uint64_t kept_id; /* the id that it has already; 0: it gets one */
    shmq_block block; /* of a body that does not go inline; offset 0: prepare takes one, if it is needed */

    shmq_made made;
    shmq_room_wait wait;
} shmq_outgoing;
/* Where head and body of `o` go in a block: head first, body at the next multiple of 64. */
static inline uint64_t shmq_body_start(uint32_t headers_len) { return ((uint64_t)headers_len + 63) & ~UINT64_C(63); }

#endif
