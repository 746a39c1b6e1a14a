/* The way of an operation through its machine code: recorded once, compared with each later run. */
#ifndef SHMQ_KILLSTEP_TRACE_H
#define SHMQ_KILLSTEP_TRACE_H

#include "code.h"
#include "operands.h"
#include "stage.h"
#include "tracee.h"

#define TRACE_MOST (1u << 23) /* steps; there is room for so many, and memory for those that are used */

typedef struct trace {
    bool sparse;    /* its steps are the instructions that may write, each time that one is about to be executed */
    uint32_t steps; /* 0 to steps are places to die at: before instruction k; `steps`: after the last one */
    uint64_t *address;
    uint64_t *touched; /* by step: where in the segment its instruction reads or writes; 0: nowhere, or not known */
    uint8_t *changes;  /* by step: what a death here leaves differs from what one step earlier leaves */
    uint32_t *hits;    /* by step: how many times its address was met before */
    uint32_t *total;   /* by step: how many times its address is met in all */
    uint32_t *from;    /* by step: the step before it on the cheapest way (route.h) */
    uint8_t *how;      /* by step: the way from there */
    uint32_t *cost;    /* by step: of the whole way, in stops at a breakpoint */
} trace;

/* Sees what a death at each step would leave that differs from the step before, while the victim stands there. */
typedef struct onlooker {
    void (*begin)(void *context); /* from the first step on; once more if the operation is recorded once more */
    void (*look)(void *context, uint32_t step);
    void *context;
} onlooker;

/* Runs a victim to its end and records each step. Without a list of operands nothing is known of what is touched; without
 * the code's it takes single steps, and looks after each of them whether anything differs. `who` may be NULL. */
void trace_record(stage *s, const victim_plan *plan, const operands *list, code *c, const onlooker *who, trace *t);
/* The instructions that may write alone: between two of them nothing can differ. Those after which anything differs are
 * kept in mind (CODE_CHANGES). */
void trace_record_writes(stage *s, const victim_plan *plan, code *c, const onlooker *who, trace *t);
/* Of these only the ones after which anything has ever differed. False: another one has changed something, and there is no
 * trace. */
bool trace_record_changes(stage *s, const victim_plan *plan, code *c, const onlooker *who, trace *t);
void trace_free(trace *t);

#endif
