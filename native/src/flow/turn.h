/* The turn of a mover (turn.c): the lock, and what a dead mover has left half done. A process that finds the lock taken goes away, or
 * tries again. */
#ifndef SHMQ_FLOW_TURN_H
#define SHMQ_FLOW_TURN_H

#include "queue/handle.h"

struct shmq_backing;

typedef struct shmq_mover {
    shmq_queue *q;
    shmq_ring *back, *front;
    const struct shmq_backing *backing;
    const struct shmq_backing *waiting; /* of its waiting rows, see waiting.h */
    unsigned char *buffer; /* of rows that are written */
    uint64_t room, used;
    uint32_t fetched_as; /* the props of what is fetched */
    uint32_t fetched; /* 1 + entries of the front ring that came in by themselves, counted in this turn; 0: not yet */
    bool has_kept; /* the next row may have the block that is kept for rows */
    bool unmarked; /* a row that came in by itself could not be marked: no row may be read before it is */
} shmq_mover;

/* Says whether this queue may flow. A member without a directory keeps it in memory. */
bool shmq_may_flow(const shmq_queue *q);
/* Begins a turn. SHMQ_OK: this process is the mover, and nothing is half done. SHMQ_IN_USE: the mover notifies when its
 * turn is over. */
shmq_status shmq_turn_begin(shmq_mover *t, shmq_ring *back);
/* Begins a turn for a caller that settles all rows, so that no row has to be marked first. */
shmq_status shmq_turn_begin_anyhow(shmq_mover *t, shmq_ring *back);
/* Goes on with the turn at another level. */
shmq_status shmq_turn_to(shmq_mover *t, shmq_ring *back);
void shmq_turn_end(shmq_mover *t);
/* The next mover ends what a dead one has left half done, so that counts are right. */
void shmq_flow_mend(shmq_queue *q);

/* On a busy machine a process may find the lock taken at each of its looks, by others that get on. For a call that says Empty or Full
 * then, only one turn that does not end is a reason to do so. Is it worth another try? Not when the lock was taken by the same turn
 * for the patience: its mover is stopped. */
bool shmq_turn_goes_on(const shmq_queue *q, shmq_turn_wait *w);
/* As shmq_turn_begin, tried for the patience, whoever has the lock. */
shmq_status shmq_turn_await(shmq_mover *t, shmq_ring *back);

/* T20: what is a row, or was settled as one, leaves its ring (recover.c). */
void shmq_moved_free(shmq_ring *r, uint64_t position);
/* T21 of what was to wait on disk: it is held again. */
void shmq_hold_again(shmq_ring *r, shmq_slot_shm *slot);
/* The next mover finishes all that a dead mover has left half done. It looks at memory only, at no file. */
void shmq_flow_recover(shmq_ring *back, shmq_ring *front);
/* The part of it that is about waiting rows. */
void shmq_waiting_recover(shmq_ring *back, shmq_ring *front);
/* Marks the row that came in by itself last, if it may still be there. */
shmq_status shmq_erase_last(shmq_mover *t);

#endif
