#include "lifecycle/declare.h"
#include "lifecycle/handle_bind.h"
#include "aftermath.h"

#include <string.h>

#include "act_line.h"
#include "act_move.h"
#include "act_time.h"
#include "act_watch.h"
#include "flow_aftermath.h"
#include "report.h"
#include "verdict.h"
#include "virtual.h"

#define FIRST_VALUE 5000u
#define MARGIN_NS (PATIENCE_NS * 3 / 10)
#define MOST_TAKEN 2048u

static char fault[256];

static const char *say(const char *text, const act *a) {
    snprintf(fault, sizeof(fault), "%s: %s", text, shmq_status_name(a->last));
    return fault;
}

/* Looks after what is due, too: it may end by that. */
static bool is_there(const act *a, unsigned queue) { return shmq_queue_enter(a->q[queue]) == SHMQ_OK; }

static uint64_t next_value;

static void put(act *a, unsigned queue, uint64_t until_ns) { act_put(a, queue, next_value++, SMALL_BYTES, until_ns); }

/* Everything out, the first by receive and ack, the rest by get. */
static const char *drain(act *a, unsigned queue, uint64_t wait_ns) {
    act_receive(a, queue, wait_ns != 0 ? virtual_clock() + wait_ns : 0);
    if (a->last == SHMQ_OK) {
        act_settle(a);
        if (a->last != SHMQ_OK) {
            return say("the survivor cannot settle what it has received", a);
        }
    }
    for (unsigned i = 0; i < MOST_TAKEN && a->last == SHMQ_OK; i++) {
        act_get(a, queue, wait_ns != 0 ? virtual_clock() + wait_ns : 0);
    }
    return a->last == SHMQ_EMPTY ? NULL : say("the queue cannot be emptied", a);
}

/* An empty queue takes and gives; a limited one takes as many as it says. */
static const char *use_empty(act *a, unsigned queue) {
    unsigned room = queue == QUEUE_LIMITED ? 4 : 1;
    for (unsigned i = 0; i < room; i++) {
        put(a, queue, 0);
        if (a->last != SHMQ_OK) {
            return say("an empty queue takes no message", a);
        }
    }
    if (queue == QUEUE_LIMITED) {
        put(a, queue, 0);
        if (a->last != SHMQ_FULL_COUNT) {
            return say("a full queue takes one more", a);
        }
    }
    return drain(a, queue, 0);
}

static const char *settle_what_is_held(act *a) {
    while (a->held_count != 0) {
        act_settle(a); /* SHMQ_SETTLED where somebody has taken it away */
        if (a->last != SHMQ_OK && a->last != SHMQ_SETTLED) {
            return say("the survivor cannot settle what it holds", a);
        }
    }
    return NULL;
}

static const char *work_on(act *a, unsigned queue, uint64_t wait_ns) {
    if (!is_there(a, queue)) {
        return NULL;
    }
    put(a, queue, 0);
    if (a->last != SHMQ_OK && a->last != SHMQ_FULL_COUNT && a->last != SHMQ_FULL_RING && a->last != SHMQ_FULL_BYTES) {
        return say("the survivor cannot put", a);
    }
    const char *wrong = drain(a, queue, wait_ns);
    wrong = wrong == NULL ? drain(a, queue, wait_ns) : wrong; /* a hole that was in the way is none any more */
    return wrong == NULL ? use_empty(a, queue) : wrong;
}

static const char *look_at_counters(const act *a, const scenario *what) {
    const shmq_segment_shm *header = a->m->header;
    if (shmq_load_seq((shmq_a64 *)&header->damage) != 0) {
        return "damage was found";
    }
    bool rescued = (what->flags & PASSES) == 0 && shmq_load_seq((shmq_a64 *)&header->rescues) != 0;
    return rescued ? "a sleeper was rescued by its time limit" : NULL;
}

/* The queue that the operation was about to make can be made, or is there. */
static const char *use_extra(act *a) {
    act_declare(a, QUEUE_EXTRA, "extra", false);
    if (a->last != SHMQ_OK) {
        return say("the queue cannot be made", a);
    }
    const char *wrong = work_on(a, QUEUE_EXTRA, 0);
    shmq_queue_unbind(a->q[QUEUE_EXTRA]);
    a->q[QUEUE_EXTRA] = NULL;
    return wrong;
}

static const char *take_all(stage *s, const scenario *what) {
    act *a = &s->survivor;
    uint64_t wait = (what->flags & BUSY) != 0 ? 3 * PATIENCE_NS : 0;
    if ((what->flags & ENDS_QUEUE) == 0 && !is_there(a, QUEUE_A)) {
        return "the queue is gone";
    }
    if ((what->flags & SHUTS) != 0 && shmq_queue_shut_down(a->q[QUEUE_A], SHMQ_OPEN) != SHMQ_OK) {
        return "the queue cannot be opened again";
    }
    if ((what->flags & TIMED) != 0) {
        virtual_clock_set(virtual_clock() + 4 * LATER_NS);
    }
    act_line_clear(a);
    const char *wrong = settle_what_is_held(a);
    wrong = wrong == NULL ? work_on(a, QUEUE_A, wait) : wrong;
    wrong = wrong == NULL && (what->flags & FLOWS) != 0 ? flow_look_at_end(s) : wrong;
    wrong = wrong == NULL ? work_on(a, QUEUE_LIMITED, 0) : wrong;
    if (wrong == NULL && (what->flags & MAKES) != 0) {
        wrong = use_extra(a);
    }
    return wrong == NULL ? look_at_counters(a, what) : wrong;
}

static const char *reap(stage *s, const scenario *what, const char *where) {
    uint32_t rows[4];
    act_reap(&s->survivor);
    if (s->survivor.last != SHMQ_OK) {
        return say("the reaper fails", &s->survivor);
    }
    if (stage_rows(s, true, rows, 4) != 0) {
        return "a dead row is left after the reaper";
    }
    act_find_out(&s->survivor);
    if ((what->flags & BUSY) == 0) {
        report_image(FRAME_QUIET, s, stage_delta(s), where);
    }
    return stage_counts_agree(s) ? look_at_counters(&s->survivor, what)
                                 : "what the survivor knows of its stretches is not what lies in them";
}

static const stage_actor *nth_sleeper(const stage *s, uint32_t n) {
    uint32_t i = 0;
    while (s->actors[i].kind != ACTOR_SLEEPER || n-- != 0) {
        i++;
    }
    return &s->actors[i];
}

/* As many sleepers are awake as the work asks for: one for the first entry, and when it has taken that (which the
 * survivor does in its place) the next for the next one. */
const char *aftermath_of_sleepers(stage *s) {
    uint32_t sleepers = 0;
    for (uint32_t i = 0; i < s->actor_count; i++) {
        sleepers += s->actors[i].kind == ACTOR_SLEEPER;
    }
    for (uint32_t awake = 1; awake <= sleepers; awake++) {
        if (!nth_sleeper(s, awake - 1)->due(&s->survivor)) {
            break;
        }
        if (!stage_sleepers_awake(s, awake)) {
            return "a sleeper who should be awake was not woken";
        }
        if (awake < sleepers) {
            act_get(&s->survivor, QUEUE_A, 0);
        }
    }
    return NULL;
}

/* By queue, which of them have groups. */
static unsigned groups_of(const scenario *what) {
    return (what->flags & BOTH_GROUPED) != 0 ? 1u << QUEUE_A | 1u << QUEUE_LIMITED
           : (what->flags & GROUPED) != 0    ? 1u << QUEUE_A
                                             : 0;
}

verdict_rules aftermath_rules(const scenario *what) {
    return (verdict_rules){
        .victims_die = true, .actors_die = true, .levels = (what->flags & LEVELS) != 0, .groups = groups_of(what)};
}

/* A further process is killed, in whose hand the oldest message is; this one sleeps, or begins to. */
static const char *look_at_watch(stage *s, const scenario *what) {
    act *a = &s->survivor;
    if ((what->flags & WATCHED) == 0) {
        return NULL;
    }
    uint64_t begin = virtual_clock();
    stage_mortals_kill(s);
    act_watch_sleep_on(a);
    act_receive(a, QUEUE_A, begin + WATCH_BOUND_NS + MARGIN_NS);
    if (a->last != SHMQ_OK || virtual_clock() - begin > WATCH_BOUND_NS + MARGIN_NS) {
        return say("what a killed process held is not with a sleeper in time", a);
    }
    act_settle(a);
    return a->last != SHMQ_OK ? say("the survivor cannot settle what a killed process held", a) : NULL;
}

/* A consumer more: those who are stopped, with an offer or behind it, are passed, two patiences later at most. */
static const char *stand_by(stage *s, const scenario *what) {
    act *a = &s->survivor;
    if ((what->flags & STANDS_BY) == 0) {
        return NULL;
    }
    act_row_open(a, QUEUE_A);
    uint64_t begin = virtual_clock();
    act_receive(a, QUEUE_A, begin + 4 * PATIENCE_NS);
    if (a->last != SHMQ_OK || virtual_clock() - begin > 3 * PATIENCE_NS + MARGIN_NS) {
        return say("one that stands by is not served in time", a);
    }
    act_settle(a);
    const char *wrong = a->last != SHMQ_OK ? say("one that stood by cannot settle what it got", a) : NULL;
    act_row_close(a, QUEUE_A);
    return wrong;
}

const char *aftermath_of_death(stage *s, const scenario *what, const char *where, bool check_sleepers) {
    const verdict_rules rules = aftermath_rules(what);
    next_value = FIRST_VALUE;
    if ((what->flags & MOVES) != 0) {
        act_move_all(&s->survivor);
        if (s->survivor.last != SHMQ_OK) {
            return say("the survivor cannot move the rest", &s->survivor);
        }
    }
    const char *wrong = (what->flags & FLOWS) != 0 ? flow_look(s) : NULL;
    wrong = wrong == NULL ? look_at_watch(s, what) : wrong;
    wrong = wrong == NULL ? reap(s, what, where) : wrong;
    wrong = wrong == NULL && (what->flags & FLOWS) != 0 ? flow_look(s) : wrong;
    wrong = wrong == NULL ? stand_by(s, what) : wrong;
    if (wrong == NULL && check_sleepers) {
        wrong = aftermath_of_sleepers(s);
    }
    wrong = wrong == NULL ? take_all(s, what) : wrong;
    if (wrong != NULL) {
        return wrong;
    }
    if ((what->flags & BUSY) == 0) {
        report_image(FRAME_QUIET, s, stage_delta(s), where);
    }
    report_history(where);
    return verdict_of(the_board, &rules);
}

/* One call of another process, whose time is taken. */
static const char *in_time(uint64_t begin, const act *a, const char *what) {
    uint64_t taken = virtual_clock() - begin;
    if (taken > PATIENCE_NS + MARGIN_NS) {
        snprintf(fault, sizeof(fault), "another process waits %llu ms for its %s, which ends with %s",
                 (unsigned long long)(taken / 1000000), what, shmq_status_name(a->last));
        return fault;
    }
    return NULL;
}

static const char *others_work(act *a, unsigned queue) {
    uint64_t begin = virtual_clock(), limit = PATIENCE_NS + MARGIN_NS / 2, mine = next_value;
    put(a, queue, begin + limit);
    bool full = a->last == SHMQ_FULL_COUNT || a->last == SHMQ_FULL_RING;
    const char *wrong = in_time(begin, a, "put");
    if (wrong != NULL || (a->last != SHMQ_OK && !full)) {
        return wrong != NULL ? wrong : say("another process cannot put", a);
    }
    a->taken = 0;
    for (bool first = true; a->taken != mine; first = false) {
        begin = virtual_clock();
        if (first) {
            act_receive(a, queue, begin + limit);
        } else {
            act_get(a, queue, begin + limit);
        }
        if ((wrong = in_time(begin, a, first ? "receive" : "get")) != NULL) {
            return wrong;
        }
        if (a->last != SHMQ_OK) {
            return full ? NULL : say("another process does not get what it has put", a);
        }
        begin = virtual_clock();
        if (first) {
            act_settle(a);
        }
        if ((wrong = in_time(begin, a, "ack")) != NULL || a->last != SHMQ_OK) {
            return wrong != NULL ? wrong : say("another process cannot settle", a);
        }
    }
    return NULL;
}

const char *aftermath_of_pause(stage *s, const scenario *what, const char *where) {
    act *a = &s->survivor;
    next_value = FIRST_VALUE;
    (void)where;
    const char *wrong = settle_what_is_held(a);
    wrong = wrong == NULL ? look_at_watch(s, what) : wrong;
    if (wrong != NULL) {
        return wrong;
    }
    if ((what->flags & FLOWS) != 0) {
        wrong = flow_others_work(s, &next_value);
    } else {
        wrong = is_there(a, QUEUE_A) ? others_work(a, QUEUE_A) : NULL;
    }
    if (wrong == NULL && (what->flags & ENDS_QUEUE) == 0) {
        wrong = others_work(a, QUEUE_LIMITED);
    }
    return wrong;
}

const char *aftermath_of_resumption(stage *s, const scenario *what, const char *where) {
    verdict_rules rules = aftermath_rules(what);
    rules.stopped_victim = true;
    rules.delayed = (what->flags & DELAYED) != 0;
    rules.in_turn = (what->flags & (FLOWS | KEEPS)) == FLOWS;
    const char *wrong = (what->flags & FLOWS) != 0 ? flow_look_at_missed(s) : NULL;
    wrong = wrong == NULL ? reap(s, what, where) : wrong;
    board_mark((call){.kind = CALL_RESUMED, .who = WHO_SURVIVOR, .phase = CALL_RETURNED});
    wrong = wrong == NULL ? take_all(s, what) : wrong;
    return wrong == NULL ? verdict_of(the_board, &rules) : wrong;
}
