#include "tracee.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "virtual.h"

static void stop_here(void) { __asm__ volatile("int3" ::: "memory"); }

_Noreturn static __attribute__((noinline)) void operate(const stage *s, const victim_plan *plan) {
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

/* Where in its page a frame lies decides on the way that the C library's string functions go. So it is the same for each
 * victim, from whatever depth of the driver and in whatever run. */
_Noreturn static __attribute__((noinline)) void be_victim(const stage *s, const victim_plan *plan) {
    void *gap = __builtin_alloca((uintptr_t)__builtin_frame_address(0) % STAGE_PAGE);
    __asm__ volatile("" : : "r"(gap) : "memory");
    operate(s, plan);
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

uint64_t tracee_register(pid_t pid, size_t place) {
    return (uint64_t)ptrace(PTRACE_PEEKUSER, pid, (void *)place, NULL);
}

uint64_t tracee_address(pid_t pid) { return tracee_register(pid, offsetof(struct user, regs.rip)); }

uint64_t tracee_back_from_breakpoint(pid_t pid) {
    uint64_t address = tracee_address(pid) - 1;
    void *rip = (void *)offsetof(struct user, regs.rip);
    if (ptrace(PTRACE_POKEUSER, pid, rip, (void *)(uintptr_t)address) != 0) {
        die("a victim cannot be set back: %s", strerror(errno));
    }
    return address;
}

bool tracee_continue(pid_t pid) { return ptrace(PTRACE_CONT, pid, NULL, NULL) == 0 && wait_for_stop(pid); }

bool tracee_single_step(pid_t pid) { return ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && wait_for_stop(pid); }

bool tracee_finish(pid_t pid) {
    if (the_board->finished != 0) {
        return true;
    }
    return tracee_continue(pid) && the_board->finished != 0;
}

uint64_t tracee_clock(pid_t pid) { return (uint64_t)ptrace(PTRACE_PEEKDATA, pid, virtual_clock_word(), NULL); }

void tracee_clock_set(pid_t pid, uint64_t ns) {
    if (ptrace(PTRACE_POKEDATA, pid, virtual_clock_word(), (void *)(uintptr_t)ns) != 0) {
        die("a victim's clock cannot be set: %s", strerror(errno));
    }
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
