/* Whose turn it is. Threads are stacks of their own in one thread of the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "weak.h"

#define STACK_BYTES (UINT64_C(256) << 10)
#define MOST_EVENTS UINT64_C(60000)

enum state { READY, BLOCKED, DONE, DEAD };

typedef struct thread {
    enum state state;
    bool started, timed_out;
    ucontext_t context;
    jmp_buf at;
    unsigned char *stack;
    const volatile void *word;
    uint64_t until;
    uint64_t dies_at, events; /* 0: it does not */
    uint32_t row;
} thread;

bool weak_running;
static thread threads[WEAK_THREADS];
static int thread_count, current;
static jmp_buf home;
static const weak_scenario *scenario;
static uint64_t random_state, events, now;
static uint32_t switch_chance, stale_chance, time_chance;
static uint64_t time_jump;
static char reason[400];
static bool failed;

int weak_thread(void) { return current; }
uint64_t weak_event(void) { return events; }
uint32_t weak_stale_chance(void) { return stale_chance; }

uint64_t weak_random(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

bool weak_chance(uint32_t of_256) { return of_256 != 0 && weak_random(256) < of_256; }

void weak_fail(const char *format, ...) {
    va_list arguments;
    if (!failed) {
        failed = true;
        va_start(arguments, format);
        vsnprintf(reason, sizeof reason, format, arguments);
        va_end(arguments);
    }
    if (weak_running) {
        longjmp(home, 1);
    }
}

static void run_thread(void) {
    scenario->thread(current);
    threads[current].state = DONE;
    longjmp(home, 2);
}

static void switch_to(int next) {
    thread *t = &threads[next];
    current = next;
    if (t->started) {
        longjmp(t->at, 1);
    }
    t->started = true;
    setcontext(&t->context);
    abort();
}

/* Somebody who can go on; -1: nobody. When all sleep, time passes. */
static int choose(void) {
    for (;;) {
        int ready[WEAK_THREADS], count = 0;
        uint64_t soonest = UINT64_MAX;
        for (int i = 0; i < thread_count; i++) {
            if (threads[i].state == READY) {
                ready[count++] = i;
            } else if (threads[i].state == BLOCKED && threads[i].until < soonest) {
                soonest = threads[i].until;
            }
        }
        if (count != 0) {
            return ready[weak_random((uint64_t)count)];
        }
        bool sleeps = false;
        for (int i = 0; i < thread_count; i++) {
            sleeps |= threads[i].state == BLOCKED;
        }
        if (!sleeps) {
            return -1;
        }
        if (scenario->wakes_must_come || soonest == UINT64_MAX) {
            weak_fail("all sleep, and nobody will wake them");
        }
        now = soonest > now ? soonest : now;
        for (int i = 0; i < thread_count; i++) {
            if (threads[i].state == BLOCKED && threads[i].until <= now) {
                threads[i].state = READY;
                threads[i].timed_out = true;
            }
        }
    }
}

static void turn(void) {
    if (setjmp(threads[current].at) == 0) {
        int next = choose();
        if (next < 0) {
            longjmp(home, 2);
        }
        switch_to(next);
    }
}

void weak_step(void) {
    thread *t = &threads[current];
    events++;
    now += 20;
    if (events > MOST_EVENTS) {
        weak_fail("no end after %llu steps", (unsigned long long)events);
    }
    if (t->dies_at != 0 && ++t->events >= t->dies_at) {
        t->state = DEAD;
        turn();
    }
    if (time_chance != 0 && weak_random(65536) < time_chance) {
        now += time_jump;
    }
    if (weak_chance(switch_chance)) {
        turn();
    }
}

void weak_yield(void) {
    events++;
    turn();
}

bool weak_block_on(const volatile void *word, uint64_t until) {
    thread *t = &threads[current];
    if (until <= now) {
        return false;
    }
    t->state = BLOCKED;
    t->word = word;
    t->until = until;
    t->timed_out = false;
    turn();
    return !threads[current].timed_out;
}

int weak_unblock(const volatile void *word, int count) {
    int woken = 0;
    for (int i = 0; i < thread_count && woken < count; i++) {
        if (threads[i].state == BLOCKED && threads[i].word == word) {
            threads[i].state = READY;
            woken++;
        }
    }
    return woken;
}

uint64_t weak_now(void) { return now += 500; }

void weak_let_time_pass(uint32_t of_65536, uint64_t ns) {
    time_chance = of_65536;
    time_jump = ns;
}

void weak_die_somewhere(int number, uint32_t row) {
    threads[number].dies_at = 1 + weak_random(120);
    threads[number].row = row;
}

bool weak_has_died(int number) {
    if (threads[number].state != DEAD) {
        return false;
    }
    weak_know_all_of(number); /* the kernel gives its locks away after its last access */
    return true;
}

bool weak_is_dead(uint32_t row) {
    for (int i = 0; i < thread_count; i++) {
        if (threads[i].state == DEAD && threads[i].row == row) {
            weak_know_all_of(i); /* the kernel gives the byte away after its last access */
            return true;
        }
    }
    return false;
}

static void begin_run(uint64_t seed) {
    static const uint32_t switches[] = {128, 64, 24, 8}, stales[] = {0, 40, 100, 160};
    random_state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 4; i++) {
        (void)weak_random(2);
    }
    switch_chance = switches[weak_random(4)];
    stale_chance = stales[weak_random(4)];
    time_chance = 0;
    events = 0;
    now = UINT64_C(1000000000000);
    failed = false;
    thread_count = scenario->threads;
    for (int i = 0; i < thread_count; i++) {
        thread *t = &threads[i];
        if (t->stack == NULL) {
            t->stack = malloc(STACK_BYTES);
        }
        unsigned char *stack = t->stack;
        memset(t, 0, sizeof *t);
        t->stack = stack;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = stack;
        t->context.uc_stack.ss_size = STACK_BYTES;
        makecontext(&t->context, run_thread, 0);
    }
    weak_memory_begin();
    weak_kernel_begin();
    current = 0;
    scenario->begin();
}

weak_result weak_run(const weak_scenario *s, uint64_t first_seed, uint64_t runs) {
    weak_result result = {0};
    scenario = s;
    for (volatile uint64_t i = 0; i < runs; i++) {
        begin_run(first_seed + i);
        if (setjmp(home) == 0) {
            weak_running = true;
            switch_to((int)weak_random((uint64_t)thread_count));
        } else if (!failed && choose() >= 0) { /* a thread is done, others are not */
            switch_to(choose());
        }
        weak_running = false;
        if (!failed) {
            weak_join_everything();
            s->end();
        }
        weak_memory_end();
        result.runs++;
        result.events += events;
        if (failed) {
            result.failed_seed = first_seed + i;
            result.reason = reason;
            break;
        }
    }
    return result;
}
