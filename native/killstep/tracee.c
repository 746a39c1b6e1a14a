#include "tracee.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "virtual.h"

#define TRACE_MOST (1u << 23)
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

void trace_add(trace *t, uint64_t address, uint8_t changed) {
    if (t->steps == t->room) {
        t->room = t->room != 0 ? t->room * 2 : 4096;
        t->address = realloc(t->address, (t->room + 1) * sizeof(*t->address));
        t->changes = realloc(t->changes, t->room + 1);
        if (t->address == NULL || t->changes == NULL || t->room > TRACE_MOST) {
            die("a trace of more than %u steps", t->room);
        }
    }
    t->address[t->steps] = address;
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

static int by_address(const void *a, const void *b, void *context) {
    const uint64_t *address = ((const trace *)context)->address;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return address[x] != address[y] ? (address[x] < address[y] ? -1 : 1) : (x < y ? -1 : x > y);
}

/* An instruction that repeats itself (rep movsb) is met once by a debug register and many times by single steps. */
static bool can_anchor(const trace *t, uint32_t step) {
    uint64_t here = t->address[step];
    return here != t->address[0] && step != 0 && t->address[step - 1] != here &&
           (step + 1 >= t->steps || t->address[step + 1] != here);
}

static void plan_anchors(trace *t) {
    uint32_t count = t->steps + 1;
    t->anchor = malloc(count * sizeof(uint32_t));
    t->hits = malloc(count * sizeof(uint32_t));
    t->total = malloc(count * sizeof(uint32_t));
    t->cost = malloc(count * sizeof(uint32_t));
    uint32_t *order = malloc(count * sizeof(uint32_t));
    if (t->anchor == NULL || t->hits == NULL || t->total == NULL || t->cost == NULL || order == NULL) {
        die("no memory");
    }
    for (uint32_t i = 0; i < t->steps; i++) {
        order[i] = i;
    }
    qsort_r(order, t->steps, sizeof(uint32_t), by_address, t);
    for (uint32_t i = 0; i < t->steps;) {
        uint32_t end = i;
        while (end < t->steps && t->address[order[end]] == t->address[order[i]]) {
            t->hits[order[end]] = end - i;
            end += 1;
        }
        for (uint32_t at = i; at < end; at++) {
            t->total[order[at]] = end - i;
        }
        i = end;
    }
    free(order);
    t->hits[t->steps] = 0;
    t->total[t->steps] = 1;
    t->anchor[0] = UINT32_MAX;
    t->cost[0] = 0;
    for (uint32_t k = 0; t->sparse && k < t->steps; k++) { /* each is its own: there are no steps in between */
        t->anchor[k] = k;
        t->cost[k] = t->hits[k] + 1;
    }
    for (uint32_t k = 1; !t->sparse && k <= t->steps; k++) {
        t->anchor[k] = t->anchor[k - 1];
        t->cost[k] = t->cost[k - 1] + 1;
        if (k < t->steps && can_anchor(t, k) && t->hits[k] + 1 < t->cost[k]) {
            t->anchor[k] = k;
            t->cost[k] = t->hits[k] + 1;
        }
    }
}

/* Step `steps`: the operation has returned, all its marks are made. */
void trace_end(trace *t, uint64_t address) {
    t->address = realloc(t->address, (t->steps + 1) * sizeof(*t->address));
    t->changes = realloc(t->changes, t->steps + 1);
    if (t->address == NULL || t->changes == NULL) {
        die("no memory");
    }
    t->address[t->steps] = address;
    t->changes[t->steps] = 1;
    plan_anchors(t);
}

void tracee_record(stage *s, const victim_plan *plan, trace *t) {
    *t = (trace){0};
    stage_restore(s);
    pid_t pid = tracee_start(s, plan);
    uint64_t before = tracee_state_key(s, 0);
    uint8_t changed = 1;
    while (the_board->finished == 0) {
        trace_add(t, tracee_address(pid), changed);
        if (!tracee_single_step(pid)) {
            die("a victim has ended amid its operation, at step %u", t->steps);
        }
        uint64_t now = tracee_state_key(s, t->steps);
        changed = now != before;
        before = now;
    }
    trace_end(t, tracee_address(pid));
    tracee_kill(pid);
}

void trace_free(trace *t) {
    free(t->address);
    free(t->anchor);
    free(t->hits);
    free(t->total);
    free(t->cost);
    free(t->changes);
    *t = (trace){0};
}

static void debug_register(pid_t pid, uint64_t address) {
    bool set = address != 0;
    if ((set && ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, u_debugreg[0]), (void *)address) != 0) ||
        ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, u_debugreg[7]), (void *)(uintptr_t)set) != 0) {
        die("debug registers: %s", strerror(errno));
    }
}

reached tracee_run_to(pid_t pid, const trace *t, uint32_t step) {
    if (t->sparse && step == t->steps) {
        return tracee_finish(pid) ? REACHED : LEFT_PATH;
    }
    uint32_t at = 0, anchor = t->anchor[step];
    if (anchor != UINT32_MAX) {
        debug_register(pid, t->address[anchor]);
        for (uint32_t hit = 0; hit <= t->hits[anchor]; hit++) {
            if (!tracee_continue(pid) || the_board->finished != 0) {
                return LEFT_PATH;
            }
        }
        if (tracee_address(pid) != t->address[anchor]) {
            return LEFT_PATH;
        }
        debug_register(pid, 0);
        at = anchor;
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
