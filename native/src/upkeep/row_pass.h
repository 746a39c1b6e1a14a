/* A pass over what the index of a backing says of rows, a piece of a file at a time, each under the mover's lock: over the lives
 * of a level's rows, or over its waiting rows. */
#ifndef SHMQ_UPKEEP_ROW_PASS_H
#define SHMQ_UPKEEP_ROW_PASS_H

#include "flow/flow.h"
#include "upkeep/duty.h"

#define SHMQ_FETCHED_AT_ONCE 32u /* takers and producers wait for the lock meanwhile */

/* One piece of a pass. */
typedef struct shmq_piece {
    shmq_mover t;
    shmq_rows_pass *p;
    uint64_t now;
    shmq_budget *b;
    bool changed; /* rows are gone, or have come in: a waiting process may go on */
} shmq_piece;

typedef struct shmq_pass_kind {
    shmq_a64 *(*word)(shmq_ring_shm *back); /* nothing is due before it; 0: nothing ever is */
    shmq_rows_pass *(*own)(shmq_member *m); /* this process's */
    /* SHMQ_OK: there are more rows. SHMQ_NOT_FOUND: there are none. SHMQ_EMPTY: no slot for a row that is over. */
    shmq_status (*look)(shmq_piece *x);
    void (*end)(shmq_piece *x); /* no row is left to look at: before the word is set to p->earliest */
    /* There was no slot for a row (or another mover has the lock, and rows come in by time): when to come again. */
    uint64_t (*rest)(const shmq_rows_pass *p, uint64_t now);
    /* Passes begin so far from each other, and one that found no slot goes on where it was. NULL: a pass looks at all
     * rows, so passes take at most a fifth of a processor. One that found no slot begins anew, and beside another mover
     * it rests a tick. */
    uint64_t (*pause)(const shmq_rows_pass *p);
} shmq_pass_kind;

/* Is this row due: its time has come, or its life is over? */
bool shmq_piece_is_over(const shmq_piece *x, const shmq_row_life *life);
/* Remembers when this one is. */
void shmq_piece_note(shmq_piece *x, const shmq_row_life *life);

/* As a queue duty's. */
uint64_t shmq_pass_due(const shmq_pass_kind *kind, const shmq_queue *q, uint64_t now);
uint64_t shmq_pass_step(const shmq_pass_kind *kind, shmq_queue *q, uint64_t now, shmq_budget *b);

#endif
