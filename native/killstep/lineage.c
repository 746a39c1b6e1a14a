#include "lineage.h"

#include <string.h>

#include "aftermath.h"
#include "choice.h"
#include "likeness.h"
#include "report.h"

#define NODES_MOST 20000u
#define DEPTH_MOST 28u /* victims have numbers */
#define PATH_MOST 640u
#define DEAD_MOST 2u /* at once, where only unlike images are kept: else each early death makes a new one for ever */

typedef struct node {
    delta image; /* against the prepared image of the scenario */
    uint64_t key;
    uint32_t depth, calls;
    call *marks;
    char path[PATH_MOST];
} node;

typedef struct follower {
    const char *name;
    void (*operate)(act *);
} follower;

static void put(act *a) { act_put(a, QUEUE_A, 3000u, SMALL_BYTES, 0); }
static void get(act *a) { act_get(a, QUEUE_A, 0); }
static void receive(act *a) {
    act_receive(a, QUEUE_A, 0);
    if (a->last == SHMQ_OK) {
        act_settle(a);
    }
}
static void reap(act *a) { act_reap(a); }

static const follower followers[] = {{"reap", reap}, {"put", put}, {"get", get}, {"receive", receive}};

static node *nodes;
static uint32_t node_count;
static uint32_t base_calls; /* of the scenario's state */

static uint64_t exact_key(const delta *image) {
    uint64_t key = image->key;
    for (uint32_t i = base_calls; i < the_board->count; i++) {
        uint64_t words[2];
        if (the_board->calls[i].phase == CALL_UNWRITTEN) {
            continue;
        }
        memcpy(words, &the_board->calls[i], sizeof(words));
        key = (key ^ words[0]) * UINT64_C(0x9e3779b97f4a7c15);
        key = (key ^ words[1] ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    return key;
}

static void path_of(char path[PATH_MOST], const lineage *birth, uint32_t step) {
    if (birth->name == NULL) {
        snprintf(path, PATH_MOST, "%u", step);
    } else {
        snprintf(path, PATH_MOST, "%s/%s:%u", birth->path, birth->name, step);
    }
}

void lineage_keep(killer *k, const lineage *birth, uint32_t step) {
    stage *s = &k->stage;
    if (birth->depth >= k->order->depth || birth->depth >= DEPTH_MOST || node_count == NODES_MOST) {
        return;
    }
    uint32_t rows[DEAD_MOST + 1];
    if (k->order->alike && stage_rows(s, true, rows, DEAD_MOST + 1) > DEAD_MOST) {
        return;
    }
    delta image = {0};
    stage_delta_from_origin(s, &image);
    const verdict_rules rules = aftermath_rules(k->order->what);
    uint64_t key = k->order->alike ? likeness(s, verdict_likeness(the_board, &rules)) : exact_key(&image);
    for (uint32_t i = 0; i < node_count; i++) {
        if (nodes[i].key == key) {
            delta_free(&image);
            return;
        }
    }
    node *n = &nodes[node_count++];
    *n = (node){.image = image, .key = key, .depth = birth->depth, .calls = the_board->count - base_calls};
    n->marks = malloc((n->calls + 1) * sizeof(call));
    if (n->marks == NULL) {
        die("no memory");
    }
    memcpy(n->marks, &the_board->calls[base_calls], n->calls * sizeof(call));
    path_of(n->path, birth, step);
}

/* Where only one path is wanted: is this its beginning, or all of it? */
static bool is_wanted(const killer *k, const lineage *birth, uint32_t step) {
    char path[PATH_MOST];
    if (k->order->path == NULL) {
        return true;
    }
    path_of(path, birth, step);
    size_t length = strlen(path);
    return strncmp(path, k->order->path, length) == 0 && (k->order->path[length] == 0 || k->order->path[length] == '/');
}

static void kill_all(killer *k, const victim_plan *plan, const lineage *birth) {
    trace t;
    char path[PATH_MOST];
    killer_record(k, plan, &t);
    if (birth->depth == 1) {
        k->steps = t.steps;
    }
    uint8_t *chosen = malloc(t.steps + 1);
    choose_changes(&t, chosen);
    for (uint32_t step = 0; step <= t.steps && !killer_stops; step++) {
        if (chosen[step] && is_wanted(k, birth, step)) {
            path_of(path, birth, step);
            killer_name_place(k, path, step, &t);
            killer_kill_at(k, plan, &t, step, birth);
        }
    }
    free(chosen);
    trace_free(&t);
}

static void enter(stage *s, node *n) {
    stage_restore(s);
    report_swap(&n->image);
    stage_swap(s, &n->image);
    memcpy(&the_board->calls[base_calls], n->marks, n->calls * sizeof(call));
    the_board->count = base_calls + n->calls;
    s->base_calls = base_calls + n->calls;
}

static void leave(stage *s, node *n) {
    stage_restore(s);
    s->base_calls = base_calls;
    report_swap(&n->image);
    stage_swap(s, &n->image);
    stage_restore(s);
}

static void from_node(killer *k, uint32_t index) {
    char path[PATH_MOST], begins[PATH_MOST * 2];
    uint32_t depth = nodes[index].depth + 1;
    snprintf(path, sizeof(path), "%s", nodes[index].path);
    for (unsigned j = 0; j < sizeof(followers) / sizeof(followers[0]); j++) {
        victim_plan plan = {
            .operate = followers[j].operate, .who = (uint8_t)(WHO_VICTIM + depth - 1), .pid = 200 + (int)depth};
        lineage birth = {.depth = depth, .path = path, .name = followers[j].name};
        snprintf(begins, sizeof(begins), "%s/%s:", path, followers[j].name);
        bool second_put =
            followers[j].operate == put && strstr(path, "/put:") != NULL; /* messages must come to an end */
        if (second_put && k->order->alike) {
            continue;
        }
        if (killer_stops) {
            return;
        }
        if (k->order->path == NULL || strncmp(begins, k->order->path, strlen(begins)) == 0) {
            enter(&k->stage, &nodes[index]);
            kill_all(k, &plan, &birth);
            leave(&k->stage, &nodes[index]);
        }
    }
}

void lineage_run(killer *k, const victim_plan *first) {
    lineage birth = {.depth = 1, .path = ""};
    nodes = calloc(NODES_MOST, sizeof(*nodes));
    if (nodes == NULL) {
        die("no memory");
    }
    base_calls = k->stage.base_calls;
    kill_all(k, first, &birth);
    uint32_t first_tried = k->tally.tried, deepest = 1;
    report_line("{\"event\": \"trace\", \"steps\": %u, \"chosen\": %u}", k->steps, first_tried);
    for (uint32_t i = 0; i < node_count && !killer_stops; i++) { /* it grows meanwhile: breadth first */
        deepest = nodes[i].depth + 1;
        from_node(k, i);
        delta_free(&nodes[i].image);
        free(nodes[i].marks);
        if ((i & 15) == 15) {
            report_line("{\"event\": \"progress\", \"nodes\": %u, \"done\": %u}", node_count, i + 1);
        }
    }
    report_line("{\"event\": \"nodes\", \"nodes\": %u, \"pairs\": %u, \"depth\": %u, \"whole\": %s}", node_count,
                k->tally.tried - first_tried, deepest, node_count < NODES_MOST ? "true" : "false");
    free(nodes);
}
