#include "killer.h"

#include <string.h>
#include <unistd.h>

#include "aftermath.h"
#include "choice.h"
#include "report.h"
#include "tracee.h"
#include "virtual.h"

#define TRIES 3          /* of a step whose run leaves the path */
#define HANG_SECONDS 20
#define NODES_MOST 4096u

char killer_where[512];

/* What a first death has left, from which a second one starts. */
typedef struct node {
    delta image;
    uint64_t key; /* of the image and the calls */
    uint32_t step, calls;
    call *marks;
} node;

typedef struct tally {
    uint32_t tried, left_path, broken;
} tally;

typedef struct killer {
    const killer_order *order;
    stage stage;
    tally tally;
    node *nodes;
    uint32_t node_count;
} killer;

static void name_place(const killer *k, const char *second, int64_t first, uint32_t step, const trace *t) {
    static const char *const modes[] = {"kill", "pause", "two"};
    snprintf(
        killer_where, sizeof(killer_where),
        "{\"scenario\": \"%s\", \"mode\": \"%s\", \"first\": %lld, \"second\": \"%s\", \"step\": %u, \"steps\": %u, "
        "\"address\": %llu}",
        k->order->what->name, modes[k->order->mode], (long long)first, second, step, t->steps,
        (unsigned long long)t->address[step]);
}

static void report_broken(killer *k, const char *wrong) {
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
        if (tracee_run_to(pid, t, step) == REACHED) {
            return pid;
        }
        tracee_kill(pid);
    }
    k->tally.left_path += 1;
    return 0;
}

static uint64_t node_key(const stage *s, const delta *d) {
    uint64_t key = d->key;
    for (uint32_t i = s->base_calls; i < the_board->count; i++) {
        uint64_t words[2];
        memcpy(words, &the_board->calls[i], sizeof(words));
        key = (key ^ words[0]) * UINT64_C(0x9e3779b97f4a7c15);
        key = (key ^ words[1] ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    return key;
}

static void keep_node(killer *k, const delta *d, uint32_t step) {
    uint64_t key = node_key(&k->stage, d);
    for (uint32_t i = 0; i < k->node_count; i++) {
        if (k->nodes[i].key == key) {
            return;
        }
    }
    if (k->node_count == NODES_MOST) {
        return;
    }
    node *n = &k->nodes[k->node_count++];
    *n = (node){.key = key, .step = step, .calls = the_board->count - k->stage.base_calls};
    delta_copy(&n->image, d);
    n->marks = malloc((n->calls + 1) * sizeof(call));
    memcpy(n->marks, &the_board->calls[k->stage.base_calls], n->calls * sizeof(call));
}

static void kill_at(killer *k, const victim_plan *plan, const trace *t, uint32_t step, bool keep, bool sleepers) {
    pid_t pid = bring_to(k, plan, t, step);
    if (pid == 0) {
        return;
    }
    tracee_kill(pid);
    k->tally.tried += 1;
    const delta *d = stage_delta(&k->stage);
    report_image(FRAME_DEATH, &k->stage, d, killer_where);
    if (keep) {
        keep_node(k, d, step);
    }
    alarm(HANG_SECONDS);
    const char *wrong = aftermath_of_death(&k->stage, k->order->what, killer_where, sleepers);
    alarm(0);
    if (wrong != NULL) {
        report_broken(k, wrong);
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
        report_broken(k, wrong);
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
        snprintf(killer_where, sizeof(killer_where), "{\"scenario\": \"%s\"}", k->order->what->name);
        char text[160];
        snprintf(text, sizeof(text), "undisturbed it ends with %s instead of %s",
                 last == NULL ? "nothing" : shmq_status_name((shmq_status)last->status),
                 shmq_status_name((shmq_status)k->order->what->expected));
        report_broken(k, text);
    }
}

static void over_steps(killer *k, const victim_plan *plan, const trace *t, const uint8_t *chosen) {
    for (uint32_t step = 0; step <= t->steps; step++) {
        if (!chosen[step] || (k->order->step >= 0 && step != k->order->step)) {
            continue;
        }
        name_place(k, "", -1, step, t);
        if (k->order->mode == KILLER_PAUSE) {
            pause_at(k, plan, t, step);
        } else {
            kill_at(k, plan, t, step, k->order->mode == KILLER_TWO, true);
        }
    }
}

typedef struct second {
    const char *name;
    void (*operate)(act *);
} second;

static void second_put(act *a) { act_put(a, QUEUE_A, 3000, SMALL_BYTES, 0); }
static void second_get(act *a) { act_get(a, QUEUE_A, 0); }
static void second_receive(act *a) {
    act_receive(a, QUEUE_A, 0);
    if (a->last == SHMQ_OK) {
        act_settle(a);
    }
}
static void second_reap(act *a) { act_reap(a); }

static const second seconds[] = {
    {"reap", second_reap}, {"put", second_put}, {"get", second_get}, {"receive", second_receive}};

static void from_node(killer *k, node *n, const second *then) {
    stage *s = &k->stage;
    uint32_t base_calls = s->base_calls;
    trace t;
    victim_plan plan = {.operate = then->operate, .who = WHO_SECOND, .pid = 300};
    stage_restore(s);
    report_swap(&n->image);
    stage_swap(s, &n->image);
    memcpy(&the_board->calls[base_calls], n->marks, n->calls * sizeof(call));
    s->base_calls = base_calls + n->calls;
    tracee_record(s, &plan, &t);
    uint8_t *chosen = malloc(t.steps + 1);
    choose_changes(&t, chosen);
    for (uint32_t step = 0; step <= t.steps; step++) {
        if (chosen[step] && (k->order->step < 0 || step == k->order->step)) {
            name_place(k, then->name, n->step, step, &t);
            kill_at(k, &plan, &t, step, false, false);
        }
    }
    free(chosen);
    trace_free(&t);
    s->base_calls = base_calls;
    stage_restore(s);
    report_swap(&n->image);
    stage_swap(s, &n->image);
    s->runs = 0; /* the next look goes over all pages */
    stage_restore(s);
}

static void second_deaths(killer *k) {
    uint32_t first_tried = k->tally.tried;
    for (uint32_t i = 0; i < k->node_count; i++) {
        node *n = &k->nodes[i];
        for (unsigned j = 0; j < sizeof(seconds) / sizeof(seconds[0]); j++) {
            bool wanted = (k->order->first < 0 || n->step == k->order->first) &&
                          (k->order->second == NULL || strcmp(k->order->second, seconds[j].name) == 0);
            if (wanted) {
                from_node(k, n, &seconds[j]);
            }
        }
        delta_free(&n->image);
        free(n->marks);
    }
    report_line("{\"event\": \"nodes\", \"nodes\": %u, \"pairs\": %u}", k->node_count, k->tally.tried - first_tried);
}

unsigned killer_run(const killer_order *order) {
    static killer k;
    trace t;
    k.order = order;
    k.nodes = calloc(NODES_MOST, sizeof(*k.nodes));
    stage_open(&k.stage);
    order->what->build(&k.stage);
    stage_ready(&k.stage);
    report_base(&k.stage);
    victim_plan plan = {.set_up = order->what->set_up,
                        .operate = order->what->operate,
                        .who = WHO_VICTIM,
                        .pid = 200,
                        .attaches = (order->what->flags & ATTACHES) != 0};
    check_ending(&k, &plan);
    tracee_record(&k.stage, &plan, &t);
    uint8_t *chosen = malloc(t.steps + 1);
    uint32_t count;
    if (order->mode == KILLER_TWO) {
        count = choose_changes(&t, chosen);
    } else {
        bool one = order->step >= 0;
        count = choose_steps(&t, one ? 0 : order->budget, one ? 0 : order->every, order->seed, chosen);
    }
    report_line("{\"event\": \"trace\", \"steps\": %u, \"chosen\": %u}", t.steps, count);
    killer_order first = *order;
    if (order->mode == KILLER_TWO) { /* `step` speaks of the second death */
        first.step = order->first;
        k.order = &first;
    }
    over_steps(&k, &plan, &t, chosen);
    k.order = order;
    if (order->mode == KILLER_TWO) {
        second_deaths(&k);
    }
    report_line("{\"event\": \"end\", \"steps\": %u, \"tried\": %u, \"left_path\": %u, \"broken\": %u, \"deaths\": %u, "
                "\"quiet\": %u, \"histories\": %u}",
                t.steps, k.tally.tried, k.tally.left_path, k.tally.broken, report_images(FRAME_DEATH),
                report_images(FRAME_QUIET), report_images(FRAME_HISTORY));
    free(chosen);
    trace_free(&t);
    stage_close(&k.stage);
    return k.tally.broken;
}
