/* Random traffic in groups: memberships that share one mapping, a thread each, which put, take, settle, release, close and
 * die. At each step no two of them have messages of one group, and within a group and a level nobody gets a later message
 * while an earlier one is with another, or back in the queue. Arguments: seed, steps of a thread. */
#include <pthread.h>
#include <time.h>

#include "groups/group.h"
#include "scratch_queue.h"

enum { WORKERS = 4, KEYS = 6, LEVELS = 2, MOST = 1 << 15, HELD = 4, DEATHS = 400 };
enum fate { IN_QUEUE = 0, SETTLED = 1, WITH = 2 }; /* WITH + number of the worker */

typedef struct line {
    shmq_a32 next, lowest; /* number of the next message; every one below the lowest is settled */
    shmq_a32 fates[MOST];
} line;

typedef struct worker {
    shmq_member *m;
    shmq_queue *q;
    uint32_t number, row;
    uint64_t random;
    shmq_subscription by;
    shmq_delivery held[HELD];
    uint32_t held_count;
} worker;

static shmq_member *first, *dead[DEATHS];
static line lines[KEYS][LEVELS];
static shmq_a32 holders[KEYS]; /* number of the worker, times 16, and how many it has of the key */
static shmq_a32 dead_count, settled_count, turns[KEYS];
static uint64_t seed, steps;
static uint32_t grouping;
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next_random(worker *w) { return xorshift(&w->random) >> 11; }

static shmq_queue *declare(shmq_member *m) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_GROUPS | 1u << SHMQ_SET_PRIORITIES,
                          .grouping = grouping,
                          .priorities = LEVELS,
                          .create = true};
    return scratch_declare(m, "changes", d, 0);
}

/* Half of them have a consumer, the others take as their process. */
static void begin(worker *w) {
    pthread_mutex_lock(&attaching);
    w->m = scratch_attach_to(first);
    pthread_mutex_unlock(&attaching);
    w->m->patience_ns = 3000000;
    w->q = declare(w->m);
    w->row = w->held_count = 0;
    if (next_random(w) % 2 == 0) {
        while (shmq_row_open(w->q, SHMQ_CONSUMER, &w->row) == SHMQ_INTERRUPTED) {
        }
    }
    shmq_subscription_begin(&w->by, NULL, NULL);
}

/* Which of the two levels a priority belongs to is for the queue to say. */
static line *line_of(const uint64_t *body) { return &lines[body[0]][body[1]]; }

/* One producer a key at a time, so that numbers are in the order of the puts. */
static void put(worker *w) {
    uint32_t key = (uint32_t)(next_random(w) % KEYS);
    if (!shmq_cas32_seq(&turns[key], 0, 1)) {
        return;
    }
    uint8_t priority = next_random(w) % 4 == 0 ? 9 : 0;
    line *l = &lines[key][priority == 9 ? 0 : 1];
    uint64_t number = shmq_load_seq(&l->next), body[3] = {key, priority == 9 ? 0 : 1, number};
    unsigned char headers[] = {1, 0, 0, 3, 1, 0, (unsigned char)('a' + key)};
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.headers = headers,
                       .headers_len = sizeof headers,
                       .pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof body,
                       .priority = priority};
    shmq_status status = number < MOST ? shmq_put(w->q, &o, 0) : SHMQ_FULL_COUNT;
    if (status == SHMQ_OK) {
        shmq_store_seq(&l->next, (uint32_t)number + 1);
    } else if (number < MOST) {
        shmq_unprepare(w->q, &o);
    }
    shmq_store_seq(&turns[key], 0);
}

static void hold_key(uint32_t key, uint32_t number, int change) {
    uint32_t seen, now;
    do {
        seen = shmq_load_seq(&holders[key]);
        CHECK(seen == 0 || seen / 16 == number); /* no two have messages of one group */
        uint32_t count = seen % 16 + (uint32_t)change;
        now = count != 0 ? number * 16 + count : 0;
    } while (!shmq_cas32_seq(&holders[key], seen, now));
}

static void note_taken(worker *w, const uint64_t *body) {
    line *l = line_of(body);
    hold_key((uint32_t)body[0], w->number, 1);
    CHECK_EQUAL(shmq_load_seq(&l->fates[body[2]]), IN_QUEUE);
    shmq_store_seq(&l->fates[body[2]], WITH + w->number);
    uint32_t lowest = shmq_load_seq(&l->lowest);
    while (lowest < body[2] && shmq_load_seq(&l->fates[lowest]) == SETTLED) {
        lowest++;
    }
    shmq_store_seq(&l->lowest, lowest);
    for (uint32_t before = lowest; before < body[2]; before++) {
        uint32_t fate = shmq_load_seq(&l->fates[before]);
        CHECK(fate == SETTLED || fate == WITH + w->number); /* nobody gets a later one first */
    }
}

/* Before the queue is told, for from then on another one may have it. */
static void note_end(worker *w, const shmq_delivery *d, enum fate fate) {
    uint64_t body[3];
    memcpy(body, d->bytes, sizeof body);
    shmq_store_seq(&line_of(body)->fates[body[2]], fate);
    hold_key((uint32_t)body[0], w->number, -1);
    if (fate == SETTLED) {
        (void)shmq_add_seq(&settled_count, 1);
    }
}

static void take(worker *w) {
    uint32_t owner = w->row != 0 ? w->row : shmq_self(w->q);
    shmq_delivery *d = &w->held[w->held_count];
    shmq_status status;
    do {
        status = shmq_offer_to(w->q, owner, w->row != 0 ? &w->by : NULL, d);
        status = status == SHMQ_OK ? shmq_offer_acquire(w->q, d) : status;
    } while (status == SHMQ_SETTLED);
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY || status == SHMQ_POISONED);
    if (status != SHMQ_EMPTY) {
        uint64_t body[3];
        memcpy(body, d->bytes, sizeof body);
        note_taken(w, body);
        w->held_count++;
    }
}

static void end_one(worker *w) {
    uint32_t which = (uint32_t)(next_random(w) % w->held_count);
    shmq_delivery d = w->held[which];
    w->held[which] = w->held[--w->held_count];
    if (next_random(w) % 8 != 0) {
        note_end(w, &d, SETTLED);
        CHECK_EQUAL(shmq_settle(w->q, &d), SHMQ_OK);
    } else {
        note_end(w, &d, IN_QUEUE);
        CHECK_EQUAL(shmq_release(w->q, &d, false), SHMQ_OK);
    }
}

static void leave(worker *w) {
    while (w->held_count != 0) {
        end_one(w);
    }
    while (w->row != 0 && shmq_row_close(w->q, w->row) == SHMQ_INTERRUPTED) {
    }
    CHECK_EQUAL(shmq_sweep_own(w->m), SHMQ_OK);
    shmq_queue_unbind(w->q);
    shmq_subscription_end(&w->by);
    scratch_leave(w->m);
}

static void die(worker *w) {
    uint32_t at = shmq_add_seq(&dead_count, 1);
    CHECK(at < DEATHS);
    dead[at] = w->m;
    for (uint32_t i = 0; i < w->held_count; i++) {
        note_end(w, &w->held[i], IN_QUEUE);
    }
    shmq_subscription_end(&w->by);
    scratch_kill(w->m);
}

static void *run_worker(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument;
    worker w = {.number = number, .random = (seed + number * UINT64_C(0x9e3779b97f4a7c15)) | 1};
    begin(&w);
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t what = next_random(&w) % 1000;
        if (what < 300) {
            put(&w);
        } else if (what < 650 && w.held_count < HELD) {
            take(&w);
        } else if (w.held_count != 0) {
            end_one(&w);
        } else if (what == 999 || what == 998) {
            if (what == 999 && shmq_load_seq(&dead_count) < DEATHS - WORKERS) {
                die(&w);
            } else {
                leave(&w);
            }
            begin(&w);
        }
        if (what % 10 == 7) {
            (void)shmq_groups_recheck(w.q); /* as the housekeeping does, and far more often */
        }
        if (what == 997) {
            uint32_t reaped;
            CHECK_EQUAL(shmq_reap_dead(w.m, &reaped), SHMQ_OK);
        }
    }
    leave(&w);
    return NULL;
}

static void check_the_rest(void) {
    uint32_t reaped, put_count = 0;
    CHECK_EQUAL(shmq_reap_dead(first, &reaped), SHMQ_OK);
    worker w = {.m = first, .q = declare(first), .number = WORKERS + 1, .random = seed | 1};
    for (take(&w); w.held_count != 0; take(&w)) {
        end_one(&w);
    }
    for (int i = 0; i < KEYS * LEVELS; i++) {
        put_count += shmq_load_seq(&lines[i / LEVELS][i % LEVELS].next);
    }
    CHECK_EQUAL(shmq_load_seq(&settled_count), put_count);
    CHECK(shmq_groups_fault(w.q) == NULL);
    check_ring(w.q);
    CHECK_EQUAL(shmq_load_seq(&first->header->damage), 0);
    shmq_queue_unbind(w.q);
}

static void run(uint32_t how) {
    pthread_t threads[WORKERS];
    grouping = how;
    memset(lines, 0, sizeof lines);
    memset(holders, 0, sizeof holders);
    shmq_store_seq(&settled_count, 0);
    shmq_store_seq(&dead_count, 0);
    scratch_create(false);
    first = scratch_attach();
    for (uintptr_t i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_worker, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    check_the_rest();
    printf("%s: %u messages, %u deaths\n", how == SHMQ_GROUPS_SHARED ? "shared" : "sticky",
           shmq_load_seq(&settled_count), shmq_load_seq(&dead_count));
    shmq_member_leave(first, true);
    scratch_remove();
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 4000;
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    run(SHMQ_GROUPS_SHARED);
    run(SHMQ_GROUPS_STICKY);
    return 0;
}
