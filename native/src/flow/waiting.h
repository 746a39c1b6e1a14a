/* Waiting rows: delayed messages on disk, those between two attempts among them.
 *
 * A producer that lacks slots or memory writes entries that are HELD for longer to disk, and frees their slots. Such a row is
 * none of [low, P): its key says when it was written, one after the other, and its bytes say its place. When it is due,
 * housekeeping puts it into the front ring, as an entry that came in by itself: takers have it at its place.
 *
 * The mover's lock is the flow's, and so is the format of the files; they have a directory of their own. The steps:
 *
 *   W1  waiting_from = 1 + waiting         from here on what is MOVING with SHMQ_FLAG_WAITS is of this turn
 *   W2  each entry HELD -> MOVING          T19
 *   W3  the rows to disk, keys from `waiting` on
 *   W4  waiting_due at most the first of their times
 *   W5  waiting_to_bytes, then `waiting`   the decision: the rows are the entries
 *   W6  each slot FREE                     T20
 *   W7  waiting_from = 0
 *   W8  the row into a slot at the front ring's tail, which stays FREE; fetched_end behind it
 *   W9  T22                                the decision: the entry is here
 *   W10 the row is marked as gone, then `came`
 *
 * The next mover after a death does the rest: of W1 to W7 by waiting_from. It does that of W9 and W10 by the slot
 * before the front ring's tail, as for any row that came in by itself. */
#ifndef SHMQ_FLOW_WAITING_H
#define SHMQ_FLOW_WAITING_H

#include "flow/flow.h"

/* t->waiting is there: where the waiting rows of the turn's level are kept. As shmq_member.backing_of. */
static inline shmq_status shmq_waiting_store(shmq_mover *t) {
    return t->waiting != NULL ? SHMQ_OK : t->q->m->backing_of(t->q, t->front->depth, &t->waiting);
}

/* Entries of a ring of the turn's level that are held for long go to disk, sorted by their times: of so many slots from the tail on,
 * and of those behind as long as it pays. SHMQ_EMPTY: there are none. */
shmq_status shmq_waiting_flush(shmq_mover *t, shmq_ring *r, uint64_t slots);
/* These rows of one write come in: those whose time has not come are held. *passed: from the first one on, those that have come, were
 * gone, or were damaged, and are lost. SHMQ_EMPTY: no slot for any. */
shmq_status shmq_waiting_fetch(shmq_mover *t, const shmq_row_life *lives, uint32_t count, uint32_t *passed);
#define SHMQ_WAITED_AT_ONCE 64u /* rows of one call, at most: takers and producers wait for the lock meanwhile */
/* The rows of `lives`, all that one write has, are gone: so is its file. */
void shmq_waiting_settle(shmq_mover *t, const shmq_row_life *lives, uint32_t count);

/* When they are due (waiting_heads.c), by what this process knows of each write. */
/* One write more, of *count rows. SHMQ_EMPTY: it knows all. */
shmq_status shmq_heads_extend(shmq_mover *t, uint32_t *count);
/* Rows that are due, of the first write from the key *from on that has some: at most *count; *from: its first key. SHMQ_NOT_FOUND: none
 * are. They stay until the next call. */
shmq_status shmq_heads_due(shmq_mover *t, uint64_t *from, uint64_t now, const shmq_row_life **lives, uint32_t *count);
/* So many of these are dealt with, of the write that begins with this key. */
void shmq_heads_pass(shmq_mover *t, uint64_t first, uint32_t count);
/* When the first one is. False: there are no writes. */
bool shmq_heads_earliest(const shmq_mover *t, uint64_t *earliest);
void shmq_heads_free(shmq_ring *back);

/* The files are gone, where there are no rows. */
void shmq_waiting_clear(shmq_mover *t);
/* Some come in, whatever their times are. SHMQ_EMPTY: there are none. */
shmq_status shmq_inhaler_bring_waiting(shmq_ring *back);
/* The one of this place does. SHMQ_NOT_FOUND: there is none. */
shmq_status shmq_waiting_fetch_at(shmq_ring *back, uint64_t place);
/* The first at or above *place, for a browser; as shmq_flow_peek. `t`: the caller's turn, or NULL. */
shmq_status shmq_waiting_peek(shmq_ring *back, shmq_mover *t, uint64_t *place, shmq_delivery *d);

/* The lowest place of all of them, with its level (level.h); UINT64_MAX: there is none, or others move some for the patience. */
uint64_t shmq_waiting_first(shmq_queue *q);

#endif
