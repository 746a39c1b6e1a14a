#include "killer.h"

#include <string.h>
#include <unistd.h>

#include "aftermath.h"
#include "choice.h"
#include "lineage.h"
#include "report.h"
#include "route.h"
#include "virtual.h"

#define TRIES 3          /* of a step whose run leaves the path */
#define HANG_SECONDS 20
#define WHOLE 32u /* of several deaths one in so many operations is recorded by all instructions that may write */

char killer_where[1024];
volatile sig_atomic_t killer_has_begun, killer_stops;

void killer_name_place(const killer *k, const char *path, uint32_t step, const trace *t) {
    static const char *const modes[] = {"kill", "pause", "deaths"};
    snprintf(
        killer_where, sizeof(killer_where),
        "{\"scenario\": \"%s\", \"begin\": \"%s\", \"mode\": \"%s\", \"path\": \"%s\", \"step\": %u, \"steps\": %u, "
        "\"address\": %llu}",
        k->order->what->name, beginning_name(k->order->begins), modes[k->order->mode], path, step, t->steps,
        (unsigned long long)t->address[step]);
}

void killer_report_broken(killer *k, const char *wrong) {
    k->tally.broken += 1;
    if (k->tally.broken <= k->order->broken_most) {
        report_line("{\"event\": \"broken\", \"wrong\": \"%s\", \"where\": %s}", wrong, killer_where);
    }
}

/* The victim stands at the step; 0: the path was left each time. */
static pid_t bring_to(killer *k, const victim_plan *plan, const trace *t, uint32_t step) {
    for (int i = 0; i < TRIES; i++) {
        stage_restore(&k->stage);
        pid_t pid = tracee_start(&k->stage, plan);
        if (route_run(pid, t, step) == REACHED) {
            if ((k->order->what->flags & WATCHED) != 0) {
                virtual_clock_set(tracee_clock(pid)); /* what it has said of its time is of all */
            }
            return pid;
        }
        tracee_kill(pid);
    }
    k->tally.left_path += 1;
    if (k->tally.left_path <= k->order->broken_most) {
        report_line("{\"event\": \"left\", \"where\": %s}", killer_where);
    }
    return 0;
}

void killer_kill_at(killer *k, const victim_plan *plan, const trace *t, uint32_t step, const lineage *birth) {
    pid_t pid = bring_to(k, plan, t, step);
    if (pid == 0) {
        return;
    }
    tracee_kill(pid);
    k->tally.tried += 1;
    const delta *d = stage_delta(&k->stage);
    report_image(FRAME_DEATH, &k->stage, d, killer_where);
    if (birth != NULL) {
        lineage_keep(k, birth, step);
    }
    bool sleepers = birth == NULL || birth->depth == 1; /* a victim before may have woken them in another life */
    bool wakes = birth == NULL && step == t->steps && (k->order->what->flags & WAKES) != 0;
    alarm(HANG_SECONDS);
    const char *wrong = wakes ? aftermath_of_sleepers(&k->stage) : NULL;
    wrong = wrong == NULL ? aftermath_of_death(&k->stage, k->order->what, killer_where, sleepers) : wrong;
    alarm(0);
    if (wrong != NULL) {
        killer_report_broken(k, wrong);
    }
}

static void pause_at(killer *k, const victim_plan *plan, const trace *t, uint32_t step) {
    pid_t pid = bring_to(k, plan, t, step);
    if (pid == 0) {
        return;
    }
    k->tally.tried += 1;
    report_image(FRAME_DEATH, &k->stage, stage_delta(&k->stage), killer_where);
    alarm(HANG_SECONDS);
    const char *wrong = aftermath_of_pause(&k->stage, k->order->what, killer_where);
    if ((k->order->what->flags & WATCHED) != 0) {
        tracee_clock_set(pid, virtual_clock());
    }
    if (!tracee_finish(pid) && wrong == NULL) {
        wrong = "the call of the one that was stopped does not return";
    }
    uint32_t dead;
    if (wrong == NULL && (k->order->what->flags & BUSY) == 0) {
        bool quiet = stage_rows(&k->stage, true, &dead, 1) == 0;
        report_image(quiet ? FRAME_QUIET : FRAME_DEATH, &k->stage, stage_delta(&k->stage), killer_where);
    }
    tracee_kill(pid);
    wrong = wrong == NULL ? aftermath_of_resumption(&k->stage, k->order->what, killer_where) : wrong;
    alarm(0);
    if (wrong != NULL) {
        killer_report_broken(k, wrong);
    }
}

/* Does the scenario do what its line in the table says? */
static void check_ending(killer *k, const victim_plan *plan) {
    stage_restore(&k->stage);
    pid_t pid = tracee_start(&k->stage, plan);
    const call *last = NULL;
    if (tracee_finish(pid) && the_board->count > k->stage.base_calls) {
        last = &the_board->calls[the_board->count - 1];
    }
    tracee_kill(pid);
    if (last == NULL || last->status != k->order->what->expected) {
        char text[160];
        snprintf(text, sizeof(text), "undisturbed it ends with %s instead of %s",
                 last == NULL ? "nothing" : shmq_status_name((shmq_status)last->status),
                 shmq_status_name((shmq_status)k->order->what->expected));
        killer_report_broken(k, text);
    }
}

static void over_steps(killer *k, const victim_plan *plan, const trace *t, const uint8_t *chosen) {
    for (uint32_t step = 0; step <= t->steps && !killer_stops; step++) {
        if (!chosen[step] || (k->order->step >= 0 && step != k->order->step)) {
            continue;
        }
        killer_name_place(k, "", step, t);
        if (k->order->mode == KILLER_PAUSE) {
            pause_at(k, plan, t, step);
        } else {
            killer_kill_at(k, plan, t, step, NULL);
        }
    }
}

void killer_record(killer *k, const victim_plan *plan, const onlooker *who, trace *t) {
    static uint32_t recorded;
    code *c = k->order->code;
    if (k->order->mode != KILLER_DEATHS || c == NULL) {
        trace_record(&k->stage, plan, k->order->operands, c, who, t);
    } else if (recorded++ % WHOLE == 0 || !trace_record_changes(&k->stage, plan, c, who, t)) {
        trace_record_writes(&k->stage, plan, c, who, t);
    }
    killer_has_begun = 1;
}

static void one_death(killer *k, const victim_plan *plan) {
    trace t;
    killer_record(k, plan, NULL, &t);
    k->steps = t.steps;
    uint8_t *chosen = malloc(t.steps + 1);
    bool one = k->order->step >= 0;
    uint32_t count = choose_steps(&t, one ? 0 : k->order->budget, one ? 0 : k->order->every, k->order->seed, chosen);
    report_line("{\"event\": \"trace\", \"steps\": %u, \"chosen\": %u}", t.steps, count);
    over_steps(k, plan, &t, chosen);
    free(chosen);
    trace_free(&t);
}

unsigned killer_run(const killer_order *order) {
    static killer k;
    k.order = order;
    snprintf(killer_where, sizeof(killer_where), "{\"scenario\": \"%s\", \"begin\": \"%s\"}", order->what->name,
             beginning_name(order->begins));
    stage_open(&k.stage, order->begins);
    order->what->build(&k.stage);
    stage_ready(&k.stage);
    report_base(&k.stage);
    victim_plan plan = {.set_up = order->what->set_up,
                        .operate = order->what->operate,
                        .who = WHO_VICTIM,
                        .pid = 200,
                        .attaches = (order->what->flags & ATTACHES) != 0};
    check_ending(&k, &plan);
    if (order->mode == KILLER_DEATHS) {
        lineage_run(&k, &plan);
    } else {
        one_death(&k, &plan);
    }
    report_line("{\"event\": \"end\", \"steps\": %u, \"tried\": %u, \"left_path\": %u, \"broken\": %u, \"deaths\": %u, "
                "\"quiet\": %u, \"histories\": %u, \"interrupted\": %s}",
                k.steps, k.tally.tried, k.tally.left_path, k.tally.broken, report_images(FRAME_DEATH),
                report_images(FRAME_QUIET), report_images(FRAME_HISTORY), killer_stops ? "true" : "false");
    stage_close(&k.stage);
    return k.tally.broken;
}
