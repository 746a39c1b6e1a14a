#include "trace.h"

#include <sys/user.h>

#include "route.h"

#define WHOLE_LOOK 64u /* while recording, all pages are compared each so many steps */

static void begin(trace *t, bool sparse, const onlooker *who) {
    if (who != NULL) {
        who->begin(who->context);
    }
    *t = (trace){.sparse = sparse,
                 .address = own_memory(TRACE_MOST * sizeof(*t->address)),
                 .touched = own_memory(TRACE_MOST * sizeof(*t->touched)),
                 .changes = own_memory(TRACE_MOST * sizeof(*t->changes)),
                 .hits = own_memory(TRACE_MOST * sizeof(*t->hits)),
                 .total = own_memory(TRACE_MOST * sizeof(*t->total)),
                 .from = own_memory(TRACE_MOST * sizeof(*t->from)),
                 .how = own_memory(TRACE_MOST * sizeof(*t->how)),
                 .cost = own_memory(TRACE_MOST * sizeof(*t->cost))};
}

void trace_free(trace *t) {
    own_memory_end(t->address, TRACE_MOST * sizeof(*t->address));
    own_memory_end(t->touched, TRACE_MOST * sizeof(*t->touched));
    own_memory_end(t->changes, TRACE_MOST * sizeof(*t->changes));
    own_memory_end(t->hits, TRACE_MOST * sizeof(*t->hits));
    own_memory_end(t->total, TRACE_MOST * sizeof(*t->total));
    own_memory_end(t->from, TRACE_MOST * sizeof(*t->from));
    own_memory_end(t->how, TRACE_MOST * sizeof(*t->how));
    own_memory_end(t->cost, TRACE_MOST * sizeof(*t->cost));
    *t = (trace){0};
}

static void tell(const onlooker *who, uint32_t step, bool changed) {
    if (who != NULL && changed) {
        who->look(who->context, step);
    }
}

static void add(trace *t, uint64_t address, uint64_t touched, bool changed, const onlooker *who) {
    if (t->steps == TRACE_MOST - 1) { /* one is left for the end */
        die("a trace of more than %u steps", t->steps);
    }
    t->address[t->steps] = address;
    t->touched[t->steps] = touched;
    t->changes[t->steps] = changed;
    tell(who, t->steps, changed);
    t->steps += 1;
}

/* Step `steps`: the operation has returned, all its marks are made. */
static void end(trace *t, uint64_t address, const onlooker *who) {
    t->address[t->steps] = address;
    t->changes[t->steps] = 1;
    tell(who, t->steps, true);
    route_plan(t);
}

/* Has what decides about survivors changed since the last look: the pages that differ, the marks in the history, the
 * structure lock? */
static bool has_changed(stage *s, uint64_t *key, uint32_t look) {
    if (look % WHOLE_LOOK == 0) {
        (void)stage_delta(s); /* tells which pages differ at all */
    }
    uint64_t before = *key;
    *key = stage_hot_key(s) * 31 + the_board->count * 2 + stage_structure_is_locked(s);
    return *key != before;
}

/* Where the next instruction reads or writes in the segment, whose place is the same in each victim; 0: nowhere. */
static uint64_t touched_in_segment(const stage *s, pid_t pid, const operands *list, uint64_t instruction) {
    uint64_t from = (uint64_t)(uintptr_t)s->survivor.m->base, touched;
    bool known = list != NULL && operands_touched(list, pid, instruction, &touched);
    return known && touched >= from && touched < from + s->segment_size ? touched : 0;
}

/* An instruction that repeats itself writes where this register points. Elsewhere its turns make no difference to others. */
static bool repeats_in_segment(const stage *s, pid_t pid) {
    uint64_t from = (uint64_t)(uintptr_t)s->survivor.m->base,
             to = tracee_register(pid, offsetof(struct user, regs.rdi));
    return to >= from && to < from + s->segment_size;
}

/* Executes the instruction at which the victim stands, or one turn of one that repeats itself in the segment. All that
 * follow it have breakpoints, so that it is a step; where nothing is known of it a single one. Answers where the victim
 * stands then. */
static uint64_t one_step(const stage *s, pid_t pid, breakpoints *b, uint64_t here) {
    uint8_t kind = b->code != NULL ? code_kind(b->code, here) : 0;
    if (b->code != NULL) {
        breakpoints_move(b, here, 0);
    }
    if (kind == 0 || ((kind & CODE_REPEATS) != 0 && repeats_in_segment(s, pid))) {
        return tracee_single_step(pid) ? tracee_address(pid) : 0;
    }
    return tracee_continue(pid) ? tracee_back_from_breakpoint(pid) : 0;
}

void trace_record(stage *s, const victim_plan *plan, const operands *list, code *c, const onlooker *who, trace *t) {
    begin(t, false, who);
    stage_restore(s);
    pid_t pid = tracee_start(s, plan);
    breakpoints b = {0};
    uint64_t here = tracee_address(pid), key = 0;
    if (c != NULL) {
        breakpoints_set(&b, c, pid, CODE_INSTRUCTION);
    }
    (void)has_changed(s, &key, 0);
    bool changed = true;
    for (uint32_t looks = 1; the_board->finished == 0;) {
        add(t, here, touched_in_segment(s, pid, list, here), changed, who);
        uint8_t kind = c != NULL ? code_kind(c, here) : 0;
        here = one_step(s, pid, &b, here);
        if (here == 0) {
            die("a victim has ended amid its operation, at step %u", t->steps);
        }
        changed = (kind == 0 || (kind & CODE_WRITES) != 0) && has_changed(s, &key, looks++);
    }
    end(t, here, who);
    tracee_kill(pid);
}

/* From breakpoint to breakpoint. False: something has changed on the way from one to the next. */
static bool record_sparse(stage *s, const victim_plan *plan, code *c, uint8_t kind, const onlooker *who, trace *t) {
    begin(t, true, who);
    stage_restore(s);
    pid_t pid = tracee_start(s, plan);
    breakpoints b;
    breakpoints_set(&b, c, pid, kind);
    uint64_t key = 0, here = 0;
    (void)has_changed(s, &key, 0);
    bool changed = true, sound = true;
    while (the_board->finished == 0) {
        if ((code_kind(c, here) & kind) == 0) { /* else it is the next one already */
            here = tracee_continue(pid) ? tracee_back_from_breakpoint(pid) : 0;
            sound = kind == CODE_WRITES || !has_changed(s, &key, the_board->finished != 0 ? 0 : t->steps);
        }
        if (the_board->finished != 0 || !sound) {
            break;
        }
        uint64_t behind = code_behind(c, here);
        if ((code_kind(c, here) & kind) == 0) {
            die("a victim ends or stops where no breakpoint is, after %u writes", t->steps);
        }
        add(t, here, 0, changed, who);
        breakpoints_move(&b, here, behind); /* to its end, if it repeats itself */
        if (!tracee_continue(pid) || (here = tracee_back_from_breakpoint(pid)) != behind) {
            die("a victim has ended amid its operation, at write %u", t->steps);
        }
        breakpoints_move(&b, 0, 0);
        changed = has_changed(s, &key, t->steps);
        if (changed) {
            code_has_changed(c, t->address[t->steps - 1]);
        }
    }
    if (sound) {
        end(t, 0, who);
    }
    tracee_kill(pid);
    return sound;
}

void trace_record_writes(stage *s, const victim_plan *plan, code *c, const onlooker *who, trace *t) {
    (void)record_sparse(s, plan, c, CODE_WRITES, who, t);
}

bool trace_record_changes(stage *s, const victim_plan *plan, code *c, const onlooker *who, trace *t) {
    bool sound = record_sparse(s, plan, c, CODE_CHANGES, who, t);
    if (!sound) {
        trace_free(t);
    }
    return sound;
}
