#include "tracee.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anchors.h"
#include "stores.h"
#include "virtual.h"

#define WHOLE_LOOK 64u /* while recording, all pages are compared each so many steps */

static void stop_here(void) { __asm__ volatile("int3" ::: "memory"); }

_Noreturn static void be_victim(const stage *s, const victim_plan *plan) {
    act a;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    if (plan->attaches) {
        virtual_pid_set(plan->pid);
        a = (act){.who = plan->who};
    } else {
        stage_join_as(&a, s, plan->who, plan->pid);
    }
    virtual_heap_begin();
    if (plan->set_up != NULL) {
        plan->set_up(&a);
    }
    stop_here();
    plan->operate(&a);
    the_board->finished = 1;
    stop_here();
    for (;;) {
        pause();
    }
}

static bool wait_for_stop(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

pid_t tracee_start(stage *s, const victim_plan *plan) {
    pid_t pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        be_victim(s, plan);
    }
    if (!wait_for_stop(pid)) {
        die("a victim has ended before its operation: its set-up fails");
    }
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL) != 0) {
        die("ptrace: %s", strerror(errno));
    }
    return pid;
}

void tracee_kill(pid_t pid) {
    int status;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status) && !WIFEXITED(status)) {
    }
}

uint64_t tracee_address(pid_t pid) {
    errno = 0;
    return (uint64_t)ptrace(PTRACE_PEEKUSER, pid, (void *)offsetof(struct user, regs.rip), NULL);
}

bool tracee_continue(pid_t pid) { return ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && wait_for_stop(pid); }

bool tracee_single_step(pid_t pid) { return ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && wait_for_stop(pid); }

void trace_begin(trace *t, bool sparse) {
    *t = (trace){.sparse = sparse,
                 .address = own_memory(TRACE_MOST * sizeof(*t->address)),
                 .touched = own_memory(TRACE_MOST * sizeof(*t->touched)),
                 .anchor = own_memory(TRACE_MOST * sizeof(*t->anchor)),
                 .by_touch = own_memory(TRACE_MOST),
                 .hits = own_memory(TRACE_MOST * sizeof(*t->hits)),
                 .touches = own_memory(TRACE_MOST * sizeof(*t->touches)),
                 .total = own_memory(TRACE_MOST * sizeof(*t->total)),
                 .cost = own_memory(TRACE_MOST * sizeof(*t->cost)),
                 .changes = own_memory(TRACE_MOST)};
}

void trace_add(trace *t, uint64_t address, uint64_t touched, uint8_t changed) {
    if (t->steps == TRACE_MOST - 1) { /* one is left for the end */
        die("a trace of more than %u steps", t->steps);
    }
    t->address[t->steps] = address;
    t->touched[t->steps] = touched;
    t->changes[t->steps] = changed;
    t->steps += 1;
}

uint64_t tracee_state_key(stage *s, uint32_t step) {
    if (step % WHOLE_LOOK == 0) {
        (void)stage_delta(s); /* tells which pages differ at all */
    }
    uint64_t key = stage_hot_key(s);
    return key * 31 + the_board->count * 2 + stage_structure_is_locked(s);
}

/* Step `steps`: the operation has returned, all its marks are made. */
void trace_end(trace *t, uint64_t address) {
    t->address[t->steps] = address;
    t->changes[t->steps] = 1;
    anchors_plan(t);
}

/* Where the next instruction reads or writes in the segment, whose place is the same in each victim; 0: nowhere. */
static uint64_t touched_in_segment(const stage *s, pid_t pid, const operands *list, uint64_t instruction) {
    uint64_t from = (uint64_t)(uintptr_t)s->survivor.m->base, touched;
    bool known = list != NULL && operands_touched(list, pid, instruction, &touched);
    return known && touched >= from && touched < from + s->size ? touched : 0;
}

void tracee_record(stage *s, const victim_plan *plan, const operands *list, const stores *writers, trace *t) {
    trace_begin(t, false);
    stage_restore(s);
    pid_t pid = tracee_start(s, plan);
    uint64_t before = tracee_state_key(s, 0);
    uint32_t looks = 0;
    uint8_t changed = 1;
    while (the_board->finished == 0) {
        uint64_t here = tracee_address(pid);
        trace_add(t, here, touched_in_segment(s, pid, list, here), changed);
        if (!tracee_single_step(pid)) {
            die("a victim has ended amid its operation, at step %u", t->steps);
        }
        changed = 0;
        if (writers == NULL || stores_may_write(writers, here)) {
            uint64_t now = tracee_state_key(s, ++looks);
            changed = now != before;
            before = now;
        }
    }
    trace_end(t, tracee_address(pid));
    tracee_kill(pid);
}

void trace_free(trace *t) {
    own_memory_end(t->address, TRACE_MOST * sizeof(*t->address));
    own_memory_end(t->touched, TRACE_MOST * sizeof(*t->touched));
    own_memory_end(t->anchor, TRACE_MOST * sizeof(*t->anchor));
    own_memory_end(t->by_touch, TRACE_MOST);
    own_memory_end(t->hits, TRACE_MOST * sizeof(*t->hits));
    own_memory_end(t->touches, TRACE_MOST * sizeof(*t->touches));
    own_memory_end(t->total, TRACE_MOST * sizeof(*t->total));
    own_memory_end(t->cost, TRACE_MOST * sizeof(*t->cost));
    own_memory_end(t->changes, TRACE_MOST);
    *t = (trace){0};
}

reached tracee_run_to(pid_t pid, const trace *t, uint32_t step) {
    if (t->sparse && step == t->steps) {
        return tracee_finish(pid) ? REACHED : LEFT_PATH;
    }
    uint32_t at = 0;
    if (t->anchor[step] != UINT32_MAX) {
        at = t->anchor[step];
        if (!anchor_reach(pid, t, at)) {
            return LEFT_PATH;
        }
    }
    while (at < step) {
        if (!tracee_single_step(pid)) {
            return LEFT_PATH;
        }
        at += 1;
        if (tracee_address(pid) != t->address[at]) {
            return LEFT_PATH;
        }
    }
    return REACHED;
}

bool tracee_finish(pid_t pid) {
    if (the_board->finished != 0) {
        return true;
    }
    return tracee_continue(pid) && the_board->finished != 0;
}

const char *tracee_forbidden(void) {
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
            stop_here();
        }
        _exit(1);
    }
    if (pid < 0 || !wait_for_stop(pid)) {
        return "this process may not be traced (ptrace is forbidden here)";
    }
    const char *why = NULL;
    if (ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, u_debugreg[7]), NULL) != 0) {
        why = "debug registers cannot be used here";
    }
    tracee_kill(pid);
    return why;
}
