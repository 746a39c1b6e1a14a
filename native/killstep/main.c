/* The driver of the step killer: one scenario, frames on standard output. tools/killstep starts it and judges. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "killer.h"
#include "report.h"
#include "tracee.h"

static void list(void) {
    const scenario *s;
    for (unsigned i = 0; (s = scenario_at(i)) != NULL; i++) {
        printf("%s %u\n", s->name, s->flags);
    }
}

/* The survivor itself has crashed or hangs: told from the handler, for nothing can be done after it. */
static void survivor_is_lost(int signal) {
    const char *what = signal == SIGALRM ? "the survivor hangs" : "the survivor crashes";
    report_line("{\"event\": \"broken\", \"wrong\": \"%s (signal %d)\", \"where\": %s}", what, signal, killer_where);
    stage_unlink();
    _exit(4);
}

static void end(int signal) {
    (void)signal;
    stage_unlink();
    _exit(5);
}

static void interrupt(int signal) {
    if (!killer_has_begun || killer_stops) {
        end(signal);
    }
    killer_stops = 1;
}

static void handle_signals(void) {
    static const int signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction action = {.sa_handler = survivor_is_lost};
        sigaction(signals[i], &action, NULL);
    }
    signal(SIGTERM, end);
    signal(SIGINT, interrupt);
    signal(SIGPIPE, SIG_IGN);
}

static void pin(const char *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(cpu), &set);
    (void)sched_setaffinity(0, sizeof(set), &set); /* slower without, and just as right */
}

static void usage(void) {
    fprintf(stderr,
            "killstep --list | --probe | SCENARIO [--mode kill|pause|deaths] [--begin new|lap-end|wrap] [--budget N] "
            "[--every N] [--step K] [--path PATH] [--depth N] [--alike yes] [--seed N] [--cpu N] [--code FILE] "
            "[--operands FILE]\n");
    exit(2);
}

static bool take_option(killer_order *o, const char *name, const char *value) {
    if (strcmp(name, "--mode") == 0) {
        o->mode = strcmp(value, "pause") == 0    ? KILLER_PAUSE
                  : strcmp(value, "deaths") == 0 ? KILLER_DEATHS
                                                 : KILLER_KILL;
    } else if (strcmp(name, "--begin") == 0) {
        return beginning_named(value, &o->begins);
    } else if (strcmp(name, "--budget") == 0) {
        o->budget = (uint32_t)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--every") == 0) {
        o->every = (uint32_t)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--step") == 0) {
        o->step = strtoll(value, NULL, 10);
    } else if (strcmp(name, "--path") == 0) {
        o->path = value;
    } else if (strcmp(name, "--depth") == 0) {
        o->depth = (uint32_t)strtoul(value, NULL, 10);
    } else if (strcmp(name, "--alike") == 0) {
        o->alike = strcmp(value, "yes") == 0;
    } else if (strcmp(name, "--seed") == 0) {
        o->seed = strtoull(value, NULL, 10);
    } else if (strcmp(name, "--code") == 0) {
        o->code = code_read(value);
    } else if (strcmp(name, "--operands") == 0) {
        o->operands = operands_read(value);
    } else if (strcmp(name, "--cpu") == 0) {
        pin(value);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    killer_order order = {.step = -1, .depth = 2, .broken_most = 20};
    if (argc < 2) {
        usage();
    }
    if (strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    if (strcmp(argv[1], "--probe") == 0) {
        const char *why = tracee_forbidden();
        printf("%s", why != NULL ? why : "");
        return why != NULL ? 1 : 0;
    }
    order.what = scenario_named(argv[1]);
    if (order.what == NULL) {
        fprintf(stderr, "killstep: there is no scenario %s\n", argv[1]);
        return 2;
    }
    for (int i = 2; i < argc; i += 2) {
        if (i + 1 == argc || !take_option(&order, argv[i], argv[i + 1])) {
            usage();
        }
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    handle_signals();
    return killer_run(&order) != 0 ? 1 : 0;
}
