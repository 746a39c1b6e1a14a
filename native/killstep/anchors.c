#include "anchors.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* In debug register 7: the first register is in use, and stops at an instruction, or after an access to one byte. */
#define AT_INSTRUCTION UINT64_C(0x1)
#define AFTER_ACCESS UINT64_C(0x30001)

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int by_address(const void *a, const void *b, void *context) {
    const trace *t = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare(t->address[x], t->address[y]);
    return order != 0 ? order : compare(x, y);
}

static int by_place(const void *a, const void *b, void *context) {
    const trace *t = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare(t->touched[x], t->touched[y]);
    return order != 0 ? order : compare(x, y);
}

static int by_place_and_address(const void *a, const void *b, void *context) {
    const trace *t = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare(t->touched[x], t->touched[y]);
    return order != 0 ? order : by_address(a, b, context);
}

static bool is_alike(const trace *t, uint32_t x, uint32_t y, bool place, bool address) {
    return (!place || t->touched[x] == t->touched[y]) && (!address || t->address[x] == t->address[y]);
}

/* By step: how many steps like it were before it, and how many there are in all (NULL: not asked for). */
static void count_alike(trace *t, uint32_t *order, bool place, bool address, uint32_t *before, uint32_t *total) {
    int (*compare_steps)(const void *, const void *, void *) = !place    ? by_address
                                                               : address ? by_place_and_address
                                                                         : by_place;
    qsort_r(order, t->steps, sizeof(uint32_t), compare_steps, t);
    for (uint32_t i = 0; i < t->steps;) {
        uint32_t end = i;
        while (end < t->steps && is_alike(t, order[end], order[i], place, address)) {
            before[order[end]] = end - i;
            end += 1;
        }
        for (uint32_t at = i; total != NULL && at < end; at++) {
            total[order[at]] = end - i;
        }
        i = end;
    }
}

/* An instruction that repeats itself (rep movsb) is met once by a debug register and many times by single steps. */
static bool can_anchor(const trace *t, uint32_t step) {
    uint64_t here = t->address[step];
    return here != t->address[0] && step != 0 && t->address[step - 1] != here &&
           (step + 1 >= t->steps || t->address[step + 1] != here);
}

/* After an access the next instruction is about to be executed, so what step k touches leads to step k + 1. */
static bool can_anchor_by_touch(const trace *t, uint32_t step) {
    return step >= 1 && t->touched[step - 1] != 0 && t->address[step - 1] != t->address[step];
}

static void take_if_cheaper(trace *t, uint32_t step, uint32_t cost, bool by_touch) {
    if (cost < t->cost[step]) {
        t->anchor[step] = step;
        t->cost[step] = cost;
        t->by_touch[step] = by_touch;
    }
}

void anchors_plan(trace *t) {
    uint64_t bytes = (t->steps + 1) * sizeof(uint32_t);
    uint32_t *order = own_memory(bytes), *stops = own_memory(bytes);
    for (uint32_t i = 0; i < t->steps; i++) {
        order[i] = i;
    }
    count_alike(t, order, false, true, t->hits, t->total);
    count_alike(t, order, true, false, stops, NULL);
    count_alike(t, order, true, true, t->touches, NULL);
    t->total[t->steps] = 1;
    t->anchor[0] = UINT32_MAX;
    for (uint32_t k = 0; t->sparse && k < t->steps; k++) { /* each is its own: there are no steps in between */
        t->anchor[k] = k;
        t->cost[k] = t->hits[k] + 1;
    }
    for (uint32_t k = 1; !t->sparse && k <= t->steps; k++) {
        t->anchor[k] = t->anchor[k - 1];
        t->cost[k] = t->cost[k - 1] + 1;
        if (k < t->steps && can_anchor(t, k)) {
            take_if_cheaper(t, k, t->hits[k] + 1, false);
        }
        if (k < t->steps && can_anchor_by_touch(t, k)) {
            take_if_cheaper(t, k, stops[k - 1] + 1, true);
        }
    }
    own_memory_end(order, bytes);
    own_memory_end(stops, bytes);
}

static void set_debug_register(pid_t pid, uint64_t address, uint64_t control) {
    void *first = (void *)offsetof(struct user, u_debugreg[0]), *seventh = (void *)offsetof(struct user, u_debugreg[7]);
    if ((control != 0 && ptrace(PTRACE_POKEUSER, pid, first, (void *)(uintptr_t)address) != 0) ||
        ptrace(PTRACE_POKEUSER, pid, seventh, (void *)(uintptr_t)control) != 0) {
        die("debug registers: %s", strerror(errno));
    }
}

/* Other instructions may touch the same place: those stops do not count. */
bool anchor_reach(pid_t pid, const trace *t, uint32_t anchor) {
    bool by_touch = t->by_touch[anchor];
    uint32_t wanted = by_touch ? t->touches[anchor - 1] : t->hits[anchor];
    if (by_touch) {
        set_debug_register(pid, t->touched[anchor - 1], AFTER_ACCESS);
    } else {
        set_debug_register(pid, t->address[anchor], AT_INSTRUCTION);
    }
    for (uint32_t met = 0; met <= wanted;) {
        if (!tracee_continue(pid) || the_board->finished != 0) {
            return false;
        }
        met += tracee_address(pid) == t->address[anchor];
    }
    set_debug_register(pid, 0, 0);
    return true;
}
