/* One process under ptrace, run up to an exact machine step of its traced part.
 *
 * A trace is recorded once by single steps: the address of each instruction, where in the segment it reads or writes, and
 * after which of them the segment, the history or a lock differed. A later run comes near step k by a debug register
 * (anchors.h), and single-steps the rest, each step compared with the trace. */
#ifndef SHMQ_KILLSTEP_TRACEE_H
#define SHMQ_KILLSTEP_TRACEE_H

#include "operands.h"
#include "stage.h"

typedef struct stores stores; /* stores.h */

#define TRACE_MOST (1u << 23) /* steps; there is room for so many, and memory for those that are used */

typedef struct trace {
    bool sparse;    /* its steps are those of stores.h */
    uint32_t steps; /* 0 to steps are places to die at: before instruction k; `steps`: after the last one */
    uint64_t *address;
    uint64_t *touched; /* by step: where in the segment its instruction reads or writes; 0: nowhere, or not known */
    uint32_t *anchor; /* by step: where the debug register stops a run to it; UINT32_MAX: single steps from the start */
    uint8_t *by_touch; /* by step: an anchor there is what the step before it touches, and not its own address */
    uint32_t *hits; /* by step: how many times its address was met before */
    uint32_t *touches; /* by step: how many times its instruction has touched the same place before */
    uint32_t *total; /* by step: how many times its address is met in all */
    uint32_t *cost; /* stops that a run to the step takes */
    uint8_t *changes; /* by step: what a death here leaves differs from what one step earlier leaves */
} trace;

typedef enum reached { REACHED, LEFT_PATH } reached;

/* Starts a victim: forks, joins, sets up; stopped where the traced part begins. */
typedef struct victim_plan {
    void (*set_up)(act *);
    void (*operate)(act *);
    uint8_t who;
    int pid;
    bool attaches; /* by itself, in its traced part */
} victim_plan;

pid_t tracee_start(stage *s, const victim_plan *plan);
/* Runs a victim to its end and records. Without a list of operands nothing is known of what is touched; without one of
 * stores it is looked after every step whether anything differs. */
void tracee_record(stage *s, const victim_plan *plan, const operands *list, const stores *writers, trace *t);
void trace_free(trace *t);
/* How a trace comes into being, from trace_begin() to trace_end(). `changed`: does what a death here leaves differ from what the step before leaves? */
void trace_begin(trace *t, bool sparse);
void trace_add(trace *t, uint64_t address, uint64_t touched, uint8_t changed);
void trace_end(trace *t, uint64_t address);
/* What decides about survivors: the pages that differ, the marks in the history, the structure lock. */
uint64_t tracee_state_key(stage *s, uint32_t step);
uint64_t tracee_address(pid_t pid);
bool tracee_single_step(pid_t pid);
bool tracee_continue(pid_t pid);
reached tracee_run_to(pid_t pid, const trace *t, uint32_t step);
/* From where it stands to the end of its traced part; false: it ended otherwise. */
bool tracee_finish(pid_t pid);
void tracee_kill(pid_t pid);

/* NULL: processes may be traced here, with debug registers; else why not. */
const char *tracee_forbidden(void);

#endif
