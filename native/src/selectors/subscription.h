/* A subscription as its own process sees it: what it wants, and how far it has looked. Private memory.
 *
 * A taker that wants whatever comes first shares the ring's head with all others like it and needs none of this. One that wants
 * some entries only has a cursor of its own: a hint that nothing before `position` is for it, as far as the releases up
 * to `epoch` go. Going back is always safe; going forward is earned by having looked. So it looks at an entry once, and
 * again only when something was released before it.
 *
 * Threads of one process may share it. The cursor is read and written under a mutex, and a scan writes it only if no
 * other has done so since it was read. */
#ifndef SHMQ_SELECTORS_SUBSCRIPTION_H
#define SHMQ_SELECTORS_SUBSCRIPTION_H

#include <pthread.h>

#include "queue/handle.h"
#include "ring/delivery.h"

/* Is this entry of the level of `q` for it? The fields of `d` may be torn, for the entry may be taken and its slot used
 * again meanwhile. Then the answer counts for nothing, but it has to come. */
typedef bool (*shmq_wants)(void *context, const shmq_ring *level, const struct shmq_delivery *d);

/* Of what lies on disk below `place` nothing is for it. With groups: as of this epoch of the back ring, since what was refused may be
 * free by now. Read and written by the holder of the mover's lock. */
typedef struct shmq_search {
    uint64_t place, epoch;
    uint64_t *passed; /* by group: 1 + where rows of it that were another's then begin, below `place`; 0: nowhere */
    uint32_t *groups, group_count; /* those of which they do; behind `passed` */
} shmq_search;

typedef struct shmq_subscription {
    shmq_wants wants; /* NULL: every entry but the refused ones */
    void *context;
    pthread_mutex_t lock;
    shmq_cursor cursors[SHMQ_RINGS_MAX]; /* by depth of the ring */
    shmq_search searches[SHMQ_LEVELS_MAX]; /* by level */
    shmq_a64 nothing_in[SHMQ_LEVELS_MAX]; /* the same of it alone as `nothing` of that level's front ring */
    shmq_a32 choosy; /* it wants some only, or has refused one: from then on it has a cursor of its own */
    uint64_t *refused; /* places that it gave back for others, ascending */
    uint32_t refused_count, refused_room;
} shmq_subscription;

void shmq_subscription_begin(shmq_subscription *s, shmq_wants wants, void *context);
void shmq_subscription_end(shmq_subscription *s);
/* How far it has come on the level of this handle. */
shmq_cursor shmq_cursor_of(shmq_subscription *s, const shmq_ring *r);
/* Nothing before `position` is for it, as of `epoch`. Nothing happens if the cursor was written since `from` was
 * read. */
void shmq_cursor_set(shmq_subscription *s, const shmq_ring *r, shmq_cursor from, uint64_t position, uint64_t epoch);
/* The entry at this place of the queue is never for it again. False: no memory. */
bool shmq_refuse(shmq_subscription *s, const shmq_queue *q, uint64_t place);
bool shmq_is_wanted(shmq_subscription *s, const shmq_ring *r, const struct shmq_delivery *d);

#endif
