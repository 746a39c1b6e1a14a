#include "route.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define START UINT32_MAX

/* The ways from one stop to the next. */
enum { BY_STEP, BY_BREAKPOINT, BY_TOUCH, BY_STEP_AND_BREAKPOINT };

/* The cost of each, in stops at a breakpoint: see code.h. */
static const uint32_t cost_of[] = {[BY_STEP] = 6, [BY_BREAKPOINT] = 1, [BY_TOUCH] = 6, [BY_STEP_AND_BREAKPOINT] = 7};

/* In debug register 7: the first register is in use, and stops after an access to one byte. */
#define AFTER_ACCESS UINT64_C(0x30001)

/* ---- planning ----------------------------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

/* Equal ones in the order of the trace. */
static int by_value(const void *a, const void *b, void *context) {
    const uint64_t *values = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare(values[x], values[y]);
    return order != 0 ? order : compare(x, y);
}

/* By step: the one before it of the same value (START: none); and, if asked for, how many there are before it and in all. */
static void find_alike(uint32_t count, uint64_t *values, uint32_t *previous, uint32_t *hits, uint32_t *total) {
    uint64_t bytes = (count + UINT64_C(1)) * sizeof(uint32_t);
    uint32_t *order = own_memory(bytes);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    qsort_r(order, count, sizeof(*order), by_value, values);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && values[order[end]] == values[order[i]]; end++) {
            previous[order[end]] = end == i ? START : order[end - 1];
        }
        for (uint32_t at = i; hits != NULL && at < end; at++) {
            hits[order[at]] = at - i;
            total[order[at]] = end - i;
        }
    }
    own_memory_end(order, bytes);
}

/* Steps of which each is cheaper to come to than all that follow it: the cheapest of the last so many is one of them. */
typedef struct minima {
    uint32_t *steps;
    uint32_t count;
} minima;

static void minima_add(minima *m, const trace *t, uint32_t step) {
    while (m->count != 0 && t->cost[m->steps[m->count - 1]] >= t->cost[step]) {
        m->count -= 1;
    }
    m->steps[m->count++] = step;
}

/* The cheapest of the steps from `first` to the last that was added; START: there are none. */
static uint32_t minima_from(const minima *m, uint32_t first) {
    uint32_t low = 0, high = m->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->steps[middle] < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < m->count ? m->steps[low] : START;
}

static void take_if_cheaper(trace *t, uint32_t step, uint32_t from, uint8_t how) {
    uint32_t cost = (from == START ? 0 : t->cost[from]) + cost_of[how];
    if (cost < t->cost[step]) {
        t->cost[step] = cost;
        t->from[step] = from;
        t->how[step] = how;
    }
}

/* A breakpoint at the step's instruction is met next from wherever it is not met before that. */
static void by_breakpoint(trace *t, const minima *m, const uint32_t *met_before, uint32_t k) {
    uint32_t before = met_before[k], from = minima_from(m, before == START ? 0 : before + 1);
    if (t->sparse && before == START) {
        take_if_cheaper(t, k, START, BY_BREAKPOINT);
    } else if (from != START) {
        take_if_cheaper(t, k, from, BY_BREAKPOINT);
    } else if (t->sparse) {
        take_if_cheaper(t, k, before, BY_STEP_AND_BREAKPOINT);
    }
}

/* After an access the next instruction is about to be executed, so what step k - 1 touches leads to step k. One that
 * repeats itself touches many places. */
static void by_touch(trace *t, const minima *m, const uint32_t *touched_before, uint32_t k) {
    if (t->touched[k - 1] != 0 && t->address[k - 1] != t->address[k]) {
        uint32_t before = touched_before[k - 1], from = minima_from(m, before == START ? 0 : before + 1);
        take_if_cheaper(t, k, from, BY_TOUCH);
    }
}

void route_plan(trace *t) {
    uint64_t bytes = (t->steps + UINT64_C(1)) * sizeof(uint32_t);
    uint32_t *met_before = own_memory(bytes), *touched_before = own_memory(bytes);
    minima m = {.steps = own_memory(bytes)};
    find_alike(t->steps + 1, t->address, met_before, t->hits, t->total);
    find_alike(t->steps, t->touched, touched_before, NULL, NULL);
    for (uint32_t k = 0; k <= t->steps; k++) {
        t->cost[k] = UINT32_MAX;
        if (!t->sparse && k == 0) { /* it stands there */
            t->cost[k] = 0;
            t->from[k] = START;
        } else if (t->sparse) { /* there are no single steps; behind the last there is only the end */
            if (k < t->steps) {
                by_breakpoint(t, &m, met_before, k);
            }
        } else {
            take_if_cheaper(t, k, k - 1, BY_STEP);
            by_touch(t, &m, touched_before, k);
            by_breakpoint(t, &m, met_before, k);
        }
        minima_add(&m, t, k);
    }
    own_memory_end(met_before, bytes);
    own_memory_end(touched_before, bytes);
    own_memory_end(m.steps, bytes);
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

static void set_debug_register(pid_t pid, uint64_t address, uint64_t control) {
    void *first = (void *)offsetof(struct user, u_debugreg[0]), *seventh = (void *)offsetof(struct user, u_debugreg[7]);
    if ((control != 0 && ptrace(PTRACE_POKEUSER, pid, first, (void *)(uintptr_t)address) != 0) ||
        ptrace(PTRACE_POKEUSER, pid, seventh, (void *)(uintptr_t)control) != 0) {
        die("debug registers: %s", strerror(errno));
    }
}

static bool run_to_breakpoint(pid_t pid, uint64_t address) {
    breakpoint_put(pid, address);
    if (!tracee_continue(pid)) {
        return false; /* it has ended, perhaps: nothing can be written to it any more */
    }
    bool met = tracee_back_from_breakpoint(pid) == address;
    breakpoint_take(pid, address);
    return met;
}

/* Instructions of which nothing is known may touch the same place: those stops do not count. */
static bool run_to_touch(pid_t pid, uint64_t touched, uint64_t address) {
    set_debug_register(pid, touched, AFTER_ACCESS);
    do {
        if (!tracee_continue(pid)) {
            return false;
        }
    } while (tracee_address(pid) != address && the_board->finished == 0);
    set_debug_register(pid, 0, 0);
    return tracee_address(pid) == address;
}

/* Over the one instruction at which it stands; over one that repeats itself, to its end. */
static bool step_over(pid_t pid) {
    uint64_t here = tracee_address(pid);
    do {
        if (!tracee_single_step(pid)) {
            return false;
        }
    } while (the_board->finished == 0 && tracee_address(pid) == here);
    return true;
}

static bool run_one(pid_t pid, const trace *t, uint32_t step) {
    switch (t->how[step]) {
    case BY_BREAKPOINT:
        return run_to_breakpoint(pid, t->address[step]);
    case BY_TOUCH:
        return run_to_touch(pid, t->touched[step - 1], t->address[step]);
    case BY_STEP_AND_BREAKPOINT:
        return step_over(pid) && run_to_breakpoint(pid, t->address[step]);
    default:
        return tracee_single_step(pid) && tracee_address(pid) == t->address[step];
    }
}

reached route_run(pid_t pid, const trace *t, uint32_t step) {
    if (t->sparse && step == t->steps) {
        return tracee_finish(pid) ? REACHED : LEFT_PATH;
    }
    uint32_t stops = 0;
    for (uint32_t at = step; t->from[at] != START; at = t->from[at]) {
        stops += 1;
    }
    stops += t->sparse;
    uint32_t *way = malloc((stops + 1) * sizeof(*way));
    if (way == NULL) {
        die("no memory");
    }
    for (uint32_t i = stops, at = step; i > 0; i--, at = t->from[at]) {
        way[i - 1] = at;
    }
    bool met = true;
    for (uint32_t i = 0; i < stops && met; i++) {
        met = run_one(pid, t, way[i]) && (the_board->finished != 0) == (way[i] == t->steps);
    }
    free(way);
    return met ? REACHED : LEFT_PATH;
}
