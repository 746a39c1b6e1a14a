/* Two processes meet at each step: the one stands still between two of its instructions while the other one does something
 * from beginning to end, and then goes on. So each compare-and-swap fails once, and each look is followed by a change.
 *
 * The first is walked by the processor's trap flag, from the core's instructions only: what it calls in a library runs
 * through. The second is a child with a membership of its own, which does its deed when it is told to. */
#ifndef SHMQ_TESTS_MEETING_H
#define SHMQ_TESTS_MEETING_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <ucontext.h>

#include "scratch_flow.h"

#define MEETING_NUMBERS 256
#define MEETING_STEPS (1 << 20)
#define MEETING_WAIT_MS 20 /* a deed that waits for the one that stands still ends behind it */

/* The deeds of both in one round. */
typedef struct meeting_tally {
    shmq_a64 put, gone; /* messages: put; dropped, expired, purged */
    shmq_a32 taken[MEETING_NUMBERS];
} meeting_tally;

typedef struct actor {
    shmq_member *m;
    shmq_queue *q, *to;
    shmq_delivery held;
    bool holds;
} actor;

typedef struct deed {
    void (*before)(actor *by); /* NULL: nothing */
    void (*act)(actor *by);
} deed;

static meeting_tally *tally;
static shmq_queue *(*meeting_declare)(shmq_member *m, const char *name);
static void (*meeting_fill)(shmq_queue *q); /* before each round */
static shmq_status (*meeting_put)(shmq_queue *q, uint64_t number) = put_number;
static actor ours, theirs;

/* ---- the child --------------------------------------------------------------------------------------------------- */

static int to_child = -1, from_child = -1;
static pid_t child;

static void actor_begin(actor *by) {
    by->m = scratch_attach_flowing();
    by->q = meeting_declare(by->m, "jobs");
    by->to = meeting_declare(by->m, "to");
}

static void actor_end(actor *by) {
    shmq_queue_unbind(by->to);
    shmq_queue_unbind(by->q);
    CHECK_EQUAL(shmq_member_leave(by->m, true), SHMQ_OK);
    shmq_member_free(by->m);
}

static void took(uint64_t number) {
    CHECK(number < MEETING_NUMBERS);
    CHECK_EQUAL(shmq_add_relaxed(&tally->taken[number], 1), 0);
}

static void add_number(shmq_queue *q) { /* one that nobody has put in this round */
    uint64_t number = shmq_add_relaxed(&tally->put, 1);
    CHECK(number < MEETING_NUMBERS);
    shmq_status status = meeting_put(q, number);
    if (status != SHMQ_OK) {
        CHECK(status == SHMQ_FULL_COUNT || status == SHMQ_FULL_BYTES || status == SHMQ_INTERRUPTED ||
              status == SHMQ_NOT_FOUND);
        shmq_add_relaxed(&tally->gone, 1);
    }
}

static void settle_held(actor *by) {
    if (by->holds) {
        uint64_t number = number_of(&by->held);
        by->holds = false;
        if (shmq_settle(by->q, &by->held) == SHMQ_OK) {
            took(number);
        }
    }
}

static void obey(const deed *d, int commands, int answers) {
    char command;
    actor_begin(&theirs);
    while (read(commands, &command, 1) == 1) {
        if (command == 'b' && d->before != NULL) {
            d->before(&theirs);
        } else if (command == 'a') {
            d->act(&theirs);
        } else if (command == 'e') {
            settle_held(&theirs);
        }
        CHECK(write(answers, &command, 1) == 1);
    }
    actor_end(&theirs);
    exit(0);
}

static void child_begin(const deed *d) {
    int commands[2], answers[2];
    CHECK(pipe(commands) == 0 && pipe(answers) == 0);
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(commands[1]);
        close(answers[0]);
        obey(d, commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    to_child = commands[1];
    from_child = answers[0];
}

static void child_end(void) {
    close(to_child);
    scratch_wait(child);
    close(from_child);
}

static void tell(char command) { CHECK(write(to_child, &command, 1) == 1); }

static void hear(char command) {
    char answer;
    CHECK(read(from_child, &answer, 1) == 1);
    CHECK_EQUAL(answer, command);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

enum their_part { NOT_YET, AT_IT, THROUGH };

static volatile sig_atomic_t walking;
static volatile long steps, stop_at;
static volatile long writes, stop_at_write = -1; /* the same by atomic writes, of which each round has as many */
static volatile enum their_part their_part;
static unsigned char *writes_at; /* by step: the next instruction is an atomic write */

static void they_act(void) {
    struct pollfd answer = {.fd = from_child, .events = POLLIN};
    tell('a');
    their_part = AT_IT;
    if (poll(&answer, 1, MEETING_WAIT_MS) == 1) {
        hear('a');
        their_part = THROUGH;
    }
}

static void they_are_through(void) {
    if (their_part == NOT_YET) {
        tell('a');
    }
    if (their_part != THROUGH) {
        hear('a');
    }
    their_part = THROUGH;
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100
extern const unsigned char __executable_start, etext;
extern const unsigned char meeting_returns[];
__asm__(".text\n.globl meeting_returns\nmeeting_returns: int3\nnop\n");
static volatile greg_t returns_to;

/* lock, or xchg with memory, behind prefixes. */
static bool is_atomic_write(const unsigned char *at) {
    at += *at == 0x66;
    return *at == 0xf0 || *at == 0x87 || ((*at & 0xf0) == 0x40 && at[1] == 0x87);
}

static void at_step(int signal, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal, (void)info;
    if (r[REG_RIP] == (greg_t)(uintptr_t)(meeting_returns + 1)) {
        r[REG_RIP] = returns_to;
    }
    r[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    if (!walking) {
        return;
    }
    const unsigned char *at = (const unsigned char *)(uintptr_t)r[REG_RIP]; // NOLINT: an address of code
    if (at < &__executable_start || at >= &etext) {
        greg_t *stack = (greg_t *)(uintptr_t)r[REG_RSP];
        returns_to = *stack;
        *stack = (greg_t)(uintptr_t)meeting_returns;
        return;
    }
    bool is_write = is_atomic_write(at);
    if (steps < MEETING_STEPS && stop_at < 0) {
        writes_at[steps] = is_write;
    }
    writes += is_write;
    if (steps++ == stop_at || (is_write && writes - 1 == stop_at_write)) {
        they_act();
        return;
    }
    r[REG_EFL] |= TRAP_FLAG;
}

static void walk(actor *by, void (*act)(actor *by)) {
    struct sigaction trap = {.sa_sigaction = at_step, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
    steps = writes = 0;
    walking = 1;
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    act(by);
    walking = 0;
}
#else
static void walk(actor *by, void (*act)(actor *by)) { /* they meet at the beginning only */
    if (stop_at >= 0) {
        they_act();
    }
    act(by);
}
#endif

/* ---- a meeting --------------------------------------------------------------------------------------------------- */

/* Each message was taken once, or is gone, as somebody says; the rings are sound. */
static void settle_accounts(void) {
    uint64_t number, taken = 0;
    shmq_queue *const both[] = {ours.q, ours.to};
    for (int i = 0; i < 2; i++) {
        shmq_status status;
        while ((status = try_number(both[i], &number)) != SHMQ_EMPTY) {
            CHECK_EQUAL(status, SHMQ_OK);
            took(number);
        }
        check_ring(both[i]);
        CHECK_EQUAL(census_of(both[i]).ready, 0);
    }
    for (int i = 0; i < MEETING_NUMBERS; i++) {
        taken += shmq_load_relaxed(&tally->taken[i]);
    }
    CHECK_EQUAL(taken + shmq_load_relaxed(&tally->gone), shmq_load_relaxed(&tally->put));
    CHECK_EQUAL(shmq_load_seq(&ours.m->header->damage), 0);
}

static void round_of(const deed *mine, long at) {
    memset(tally, 0, sizeof *tally);
    meeting_fill(ours.q);
    if (mine->before != NULL) {
        mine->before(&ours);
    }
    tell('b');
    hear('b');
    their_part = NOT_YET;
    stop_at = at;
    walk(&ours, mine->act);
    they_are_through();
    settle_held(&ours);
    tell('e');
    hear('e');
    settle_accounts();
}

#ifdef SHMQ_COUNTS_BRANCHES
#define MEETING_BUDGET 60000 /* steps in all */
#else
#define MEETING_BUDGET 4000
#endif

/* At atomic writes, and at a few other steps, evenly spread; as many of them as the budget allows. */
static inline void meet(const deed *mine, const deed *others, long spread) {
    child_begin(others);
    actor_begin(&ours);
    round_of(mine, -1);
    long count = steps, stops = 0, cost = 0;
    CHECK(count < MEETING_STEPS);
    for (long at = 0; at < count; at++) {
        writes_at[at] = writes_at[at] != 0 || at % (count / spread + 1) == 0;
        cost += writes_at[at] != 0 ? at : 0;
    }
    for (long at = 0, passed = 0; at < count; at++) {
        if (writes_at[at] != 0 && passed++ % (cost / MEETING_BUDGET + 1) == 0) {
            round_of(mine, at);
            stops++;
        }
    }
    printf("%ld steps, %ld stops\n", count, stops);
    actor_end(&ours);
    child_end();
}

static void meetings_begin(shmq_queue *(*declare)(shmq_member *m, const char *name), void (*fill)(shmq_queue *q)) {
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    writes_at = calloc(MEETING_STEPS, 1);
    CHECK(tally != MAP_FAILED && writes_at != NULL);
    meeting_declare = declare;
    meeting_fill = fill;
    scratch_create_flowing();
    scratch_spill_begin();
}

static void meetings_end(void) {
    scratch_remove();
    scratch_spill_end();
    free(writes_at);
    munmap(tally, sizeof *tally);
}

#endif
