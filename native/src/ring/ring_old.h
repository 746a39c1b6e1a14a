/* Entries older than a lap: the tail has carried each of them, and they lie in the slots in no order.
 *
 * A process keeps the lowest of them in a list of its own, in the order of their positions. So it looks at all carried
 * slots once in as many steps as the list is long. An entry that comes back below the list's end says so by an epoch
 * with a cell (ring_head.c). Where several come back by one epoch, it has no cell, and the list is made anew. Entries
 * that the tail carries later lie above the end. */
#ifndef SHMQ_RING_RING_OLD_H
#define SHMQ_RING_RING_OLD_H

#include "queue/handle.h"

#define SHMQ_OLD_LEAST 16u

typedef struct shmq_old_list {
    shmq_a32 busy;         /* one thread at a time */
    uint32_t room;         /* of positions */
    uint32_t first, count; /* positions[first, count) are in the list */
    bool takers;           /* only what a taker may have; else all entries */
    uint64_t epoch;        /* of takers: what came back up to it is in the list */
    uint64_t begin, end;   /* each such entry of a position in [begin, end) is in it; begin == end: none is known */
    uint64_t *positions;
} shmq_old_list;

/* A list for one look. `own`: what the handle keeps; `small`, on the caller's stack, serves where another thread has it
 * or there is no memory. */
typedef struct shmq_old_small {
    shmq_old_list list;
    uint64_t positions[SHMQ_OLD_LEAST];
} shmq_old_small;
shmq_old_list *shmq_old_begin(shmq_ring *r, bool takers, shmq_old_small *small);
void shmq_old_end(shmq_old_list *list);

/* Takers: what came back since the last look, up to this epoch, which was read before. */
void shmq_old_follow(shmq_ring *r, shmq_old_list *list, uint64_t epoch);
/* The list may not have all: the next look is at all carried slots. */
void shmq_old_forget(shmq_old_list *list);
/* The lowest position from `from` on, below `limit`, which is at most tail - N. False: there is none. An entry may have
 * gone meanwhile: then the caller asks for the next one. */
bool shmq_old_next(shmq_ring *r, shmq_old_list *list, uint64_t from, uint64_t limit, uint64_t *position);

/* In a forked child: a thread of the parent may have been amid a look. */
void shmq_old_reset(shmq_ring *r);
void shmq_old_free(shmq_ring *r);

#endif
