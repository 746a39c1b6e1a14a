/* Kills and pauses of one scenario: which steps, in which order, and what came of it. */
#ifndef SHMQ_KILLSTEP_KILLER_H
#define SHMQ_KILLSTEP_KILLER_H

#include "scenario.h"

enum killer_mode { KILLER_KILL, KILLER_PAUSE, KILLER_TWO };

typedef struct killer_order {
    const scenario *what;
    enum killer_mode mode;
    uint32_t budget;   /* at most so many steps; 0: all */
    uint32_t every;    /* 0, or each so manyth step */
    int64_t step;      /* not -1: only this one */
    int64_t first;     /* in mode two: not -1: only this first death ... */
    const char *second; /* ... and this second operation */
    uint64_t seed;
    uint32_t broken_most; /* so many failures are told, then it ends */
} killer_order;

/* Answers how many were broken. */
unsigned killer_run(const killer_order *order);

/* For the message of a crash or a hang of the driver itself: where it stands. */
extern char killer_where[512];

#endif
