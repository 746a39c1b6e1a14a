/* Upkeep that this process has begun and not finished. Its calls look in pieces for things that are due, and for the
 * dead: this says how far they have come. Private to the process; changed by the thread that runs its upkeep (`busy`),
 * one at a time. `half` and `row` are read by all of its threads, which ask whether there is something to do. See
 * duty.h. */
#ifndef SHMQ_SEGMENT_ROUNDS_H
#define SHMQ_SEGMENT_ROUNDS_H

#include "base/atomic.h"

/* A look at a due word's subjects, in a circle: each of them once, from wherever the one before it ended. `mark` is what this
 * process leaves in the word between two pieces. As long as it stands there, nothing has become due, and no other process has looked. */
typedef struct shmq_circle {
    uint64_t mark; /* 0: none is unfinished */
    uint64_t earliest; /* when the first of those is due that this circle has looked at */
    uint64_t next; /* where it goes on, whether this circle or another */
    uint64_t left; /* how many there are still to look at */
} shmq_circle;

/* A pass over the rows of one level whose lives may be over: from its lowest row on. The level's word stays as it is until the end, so a
 * pass that is given up is begun anew by whoever comes next. */
typedef struct shmq_rows_pass {
    bool unfinished;
    bool again; /* something was fetched: what lies below a row can go when all of it was */
    uint32_t index, incarnation, depth; /* of that level */
    uint64_t next; /* place where it goes on */
    uint64_t earliest; /* end of a life, of those that were looked at */
    uint64_t word, max_ttl_ns; /* the level's word, and the option, at its beginning */
    uint64_t began_ns, looked_ns; /* looked_ns: of the last piece */
    uint64_t fetches; /* of waiting rows: files of which some came in, in this pass */
    uint64_t fetched_ns; /* of waiting rows: when one came in last, in this pass or before */
} shmq_rows_pass;

typedef struct shmq_rounds {
    shmq_a32 busy;
    uint32_t high; /* how many entries of the directory the circle has */
    uint32_t turn, queue_turn; /* the duty that comes first in the next round, and that of a queue */
    shmq_a32 row; /* the process row that the reaper looks at next; 0: a new look begins */
    shmq_a32 half; /* the look at the directory is unfinished */
    uint64_t go_on_ns; /* when an unfinished look at what is due goes on */
    shmq_circle queues; /* of the directory, by the header's word: `next` is an index */
    shmq_circle entries; /* of one ring, by its word: `next` is a position */
    uint32_t index, incarnation, depth; /* of that ring */
    uint64_t floor, tail; /* between which positions its circle goes */
    uint64_t looked; /* entries, in this circle */
    uint64_t carried; /* below which slots its carried entries are still to be looked at */
    bool
        carried_first; /* in this circle; the next circle begins with the others, so that both get on if none comes to its end */
    shmq_rows_pass rows, waiting;
    shmq_a64
        rows_rest_ns; /* the last pass found no slot for a row: when the next one may begin, if slots are free then */
    uint64_t rechecked_ns; /* when owners of its groups were looked at last */
} shmq_rounds;

#endif
