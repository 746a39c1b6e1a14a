#include "lineage.h"

#include <string.h>

#include "aftermath.h"
#include "image_store.h"
#include "keys.h"
#include "likeness.h"
#include "report.h"

#define NODES_MOST 200000u
#define DEPTH_MOST 28u /* victims have numbers */
#define PATH_MOST 640u
#define DEAD_MOST 2u /* at once, where only unlike images are kept: else each early death makes a new one for ever */
#define FOLLOWER_VALUE 3000u
#define AGAIN 20u /* one in so many of the deaths that leave what is like something tried is tried all the same */

typedef struct node {
    stored_image image;
    uint32_t depth;
    char path[PATH_MOST];
} node;

typedef struct follower {
    const char *name;
    void (*operate)(act *);
} follower;

static void put(act *a) { act_put(a, QUEUE_A, FOLLOWER_VALUE, SMALL_BYTES, 0); }
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
static keys met; /* of what deaths have left that were tried */
static bool cut_short; /* there was more than is kept */
static uint64_t spared; /* deaths that were not tried, since they leave what is like something that was */

static uint64_t exact_key(stage *s) {
    uint64_t key = stage_hot_key(s);
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

static uint64_t alive_now(const stage *s) {
    uint32_t rows[64], count = stage_rows(s, false, rows, 64);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits |= rows[i] < 64 ? UINT64_C(1) << rows[i] : 0;
    }
    return bits;
}

static uint64_t alike_key(killer *k, uint64_t alive) {
    const verdict_rules rules = aftermath_rules(k->order->what);
    return likeness(&k->stage, alive, verdict_likeness(the_board, &rules));
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
    uint32_t rows[DEAD_MOST + 1];
    uint64_t key = k->order->alike ? alike_key(k, alive_now(s)) : exact_key(s);
    if (k->order->alike && key != birth->expected) {
        killer_report_broken(k, "the death has left something else than there was when the operation was recorded");
    }
    if (!keys_add(&met, key) || birth->depth >= k->order->depth ||
        (k->order->alike && stage_rows(s, true, rows, DEAD_MOST + 1) > DEAD_MOST)) {
        return;
    }
    if (birth->depth >= DEPTH_MOST || node_count == NODES_MOST ||
        !image_store(s, base_calls, &nodes[node_count].image)) {
        cut_short = true;
        return;
    }
    node *n = &nodes[node_count++];
    n->depth = birth->depth;
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

typedef struct selection {
    killer *k;
    uint64_t alive; /* before the victim came */
    uint64_t *keys; /* by step, of those to be tried: of what a death there leaves */
    uint32_t spared;
    uint64_t random;
    keys here; /* what this operation leaves */
} selection;

/* While the operation is recorded: would a death here leave something that is not like what was tried before? */
static void choose_unlike(void *context, uint32_t step) {
    selection *c = context;
    uint64_t key = alike_key(c->k, c->alive);
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    bool is_new = keys_add(&c->here, key) && !keys_have(&met, key);
    if (is_new || (c->random >> 33) % AGAIN == 0) {
        c->keys[step] = key;
    } else {
        c->spared += 1;
    }
}

static void select_none(void *context) {
    selection *c = context;
    if (c->keys != NULL) {
        own_memory_end(c->keys, TRACE_MOST * sizeof(*c->keys));
    }
    keys_clear(&c->here);
    c->keys = own_memory(TRACE_MOST * sizeof(*c->keys));
    c->spared = 0;
}

/* Records the operation, and selects which of its steps are to be tried: those that leave something unlike, or all. */
static void record(killer *k, const victim_plan *plan, selection *c, trace *t) {
    static uint32_t recorded;
    *c = (selection){.k = k, .random = k->order->seed + recorded++};
    if (k->order->alike) {
        const onlooker who = {.begin = select_none, .look = choose_unlike, .context = c};
        stage_restore(&k->stage);
        c->alive = alive_now(&k->stage);
        killer_record(k, plan, &who, t);
        spared += c->spared;
        return;
    }
    killer_record(k, plan, NULL, t);
    select_none(c);
    for (uint32_t step = 0; step <= t->steps; step++) {
        c->keys[step] = t->changes[step];
    }
}

static void kill_all(killer *k, const victim_plan *plan, lineage *birth) {
    trace t;
    selection c;
    char path[PATH_MOST];
    record(k, plan, &c, &t);
    if (birth->depth == 1) {
        k->steps = t.steps;
    }
    for (uint32_t step = 0; step <= t.steps && !killer_stops; step++) {
        if (c.keys[step] != 0 && is_wanted(k, birth, step)) {
            path_of(path, birth, step);
            killer_name_place(k, path, step, &t);
            birth->expected = c.keys[step];
            killer_kill_at(k, plan, &t, step, birth);
        }
    }
    own_memory_end(c.keys, TRACE_MOST * sizeof(*c.keys));
    keys_clear(&c.here);
    trace_free(&t);
}

/* The node's image becomes the prepared one, and the other way round. */
static void change_places(stage *s, delta *image, uint32_t calls) {
    stage_restore(s);
    s->base_calls = calls;
    report_swap(s, image);
    stage_swap(s, image);
}

static void enter(stage *s, const node *n, delta *image) {
    image_fetch(s, &n->image, image);
    change_places(s, image, base_calls + n->image.calls);
    memcpy(&the_board->calls[base_calls], image_calls(&n->image), n->image.calls * sizeof(call));
    the_board->count = s->base_calls;
}

static void leave(stage *s, delta *image) {
    change_places(s, image, base_calls);
    stage_restore(s);
    delta_free(image);
}

/* Messages must come to an end. */
static bool has_put(const node *n) {
    const call *calls = image_calls(&n->image);
    for (uint32_t i = 0; i < n->image.calls; i++) {
        if (calls[i].phase != CALL_UNWRITTEN && calls[i].kind == CALL_PUT && calls[i].value == FOLLOWER_VALUE) {
            return true;
        }
    }
    return false;
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
        if (followers[j].operate == put && k->order->alike && has_put(&nodes[index])) {
            continue;
        }
        if (killer_stops) {
            return;
        }
        if (k->order->path == NULL || strncmp(begins, k->order->path, strlen(begins)) == 0) {
            delta image;
            enter(&k->stage, &nodes[index], &image);
            kill_all(k, &plan, &birth);
            leave(&k->stage, &image);
        }
    }
}

void lineage_run(killer *k, const victim_plan *first) {
    lineage birth = {.depth = 1, .path = ""};
    nodes = own_memory(NODES_MOST * sizeof(*nodes));
    base_calls = k->stage.base_calls;
    kill_all(k, first, &birth);
    uint32_t first_tried = k->tally.tried, deepest = 1;
    report_line("{\"event\": \"trace\", \"steps\": %u, \"chosen\": %u}", k->steps, first_tried);
    for (uint32_t i = 0; i < node_count && !killer_stops; i++) { /* it grows meanwhile: breadth first */
        deepest = nodes[i].depth + 1;
        from_node(k, i);
        if ((i & 15) == 15) {
            report_line("{\"event\": \"progress\", \"nodes\": %u, \"done\": %u}", node_count, i + 1);
        }
    }
    report_line("{\"event\": \"nodes\", \"nodes\": %u, \"pairs\": %u, \"spared\": %llu, \"depth\": %u, \"whole\": %s}",
                node_count, k->tally.tried - first_tried, (unsigned long long)spared, deepest,
                cut_short ? "false" : "true");
    own_memory_end(nodes, NODES_MOST * sizeof(*nodes));
}
