/* Kills and pauses of one scenario: which steps, in which order, and what came of it. */
#ifndef SHMQ_KILLSTEP_KILLER_H
#define SHMQ_KILLSTEP_KILLER_H

#include <signal.h>

#include "scenario.h"
#include "trace.h"

enum killer_mode { KILLER_KILL, KILLER_PAUSE, KILLER_DEATHS };

typedef struct killer_order {
    const scenario *what;
    enum killer_mode mode;
    beginning begins;
    uint32_t budget;      /* at most so many steps; 0: all */
    uint32_t every;       /* 0, or each so manyth step */
    int64_t step;         /* not -1: only this one */
    uint32_t depth;       /* several deaths: at most so many, one after the other */
    bool alike;           /* images that differ in laps, counters and ids alone are one */
    const char *path;     /* several deaths: not NULL: only these, as in a report of a failure */
    code *code; /* not NULL: where instructions are; several deaths are recorded by those alone that may write */
    const operands *operands; /* not NULL: which memory instructions touch, for shorter ways to a step */
    uint64_t seed;
    uint32_t broken_most; /* so many failures are told, then it ends */
} killer_order;

typedef struct killer {
    const killer_order *order;
    stage stage;
    uint32_t steps; /* of the first operation */
    struct {
        uint32_t tried, left_path, broken;
    } tally;
} killer;

typedef struct lineage lineage;

/* Answers how many were broken. */
unsigned killer_run(const killer_order *order);

/* For lineage.c. Several deaths are recorded by the instructions after which something has differed before; now and then,
 * and where another one has changed something, by all that may write. */
void killer_record(killer *k, const victim_plan *plan, const onlooker *who, trace *t);
void killer_kill_at(killer *k, const victim_plan *plan, const trace *t, uint32_t step, const lineage *birth);
void killer_report_broken(killer *k, const char *wrong);
void killer_name_place(const killer *k, const char *path, uint32_t step, const trace *t);

/* An interrupt ends the work behind the step that is being tried: what was tried until then is told. Before there is
 * anything to tell (killer_has_begun) it ends the driver. */
extern volatile sig_atomic_t killer_has_begun, killer_stops;

/* For the message of a crash or a hang of the driver itself: where it stands. */
extern char killer_where[1024];

#endif
