/* One process under ptrace: a victim, from its start to the end of its traced part, or to its death. */
#ifndef SHMQ_KILLSTEP_TRACEE_H
#define SHMQ_KILLSTEP_TRACEE_H

#include "stage.h"

/* Starts a victim: forks, joins, sets up; stopped where the traced part begins. */
typedef struct victim_plan {
    void (*set_up)(act *);
    void (*operate)(act *);
    uint8_t who;
    int pid;
    bool attaches; /* by itself, in its traced part */
} victim_plan;

pid_t tracee_start(stage *s, const victim_plan *plan);
/* By its place in struct user. */
uint64_t tracee_register(pid_t pid, size_t place);
/* Its virtual clock. */
uint64_t tracee_clock(pid_t pid);
void tracee_clock_set(pid_t pid, uint64_t ns);
uint64_t tracee_address(pid_t pid);
/* Stopped at a breakpoint, which is behind it then: sets it back before the instruction there, and answers where. */
uint64_t tracee_back_from_breakpoint(pid_t pid);
bool tracee_single_step(pid_t pid);
bool tracee_continue(pid_t pid);
/* From where it stands to the end of its traced part; false: it ended otherwise. */
bool tracee_finish(pid_t pid);
void tracee_kill(pid_t pid);

/* NULL: processes may be traced here, with debug registers; else why not. */
const char *tracee_forbidden(void);

#endif
