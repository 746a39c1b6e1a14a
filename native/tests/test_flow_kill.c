/* Processes that put and take on a queue which flows are killed at random moments, movers amid their turns among them: no message
 * is lost, none comes twice, and those of one producer stay in their order. Arguments: rounds, seed. */
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "scratch_flow.h"

#define NUMBERS (1u << 22)
#define PROCESSES 4
#define MEMORY UINT64_C(200000)
#define HELD 6

typedef struct record {
    uint32_t producer; /* 1 + process; 0: nobody has put it */
    shmq_a32 accepted, settling, settled;
} record;

typedef struct board {
    shmq_a64 next, turns;
    record of[NUMBERS];
} board;

typedef struct body {
    uint64_t number;
    uint32_t producer, length;
} body;

static board *all;

typedef struct worker {
    shmq_member *m;
    shmq_queue *q;
    uint32_t producer;
    uint64_t random;
    shmq_delivery held[HELD];
    uint32_t held_count;
} worker;

static uint64_t next_random(worker *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random >> 11;
}

static void put_one(worker *w) {
    static unsigned char bytes[3000];
    uint64_t number = shmq_add_seq(&all->next, 1);
    if (number >= NUMBERS) {
        _exit(0);
    }
    body b = {.number = number,
              .producer = w->producer,
              .length = (uint32_t)(sizeof b + next_random(w) % (number % 8 == 0 ? 2900 : 80))};
    memset(bytes, (int)(number % 251), b.length);
    memcpy(bytes, &b, sizeof b);
    all->of[number].producer = w->producer;
    if (put_bytes(w->q, bytes, b.length, 0) == SHMQ_OK) {
        shmq_store_seq(&all->of[number].accepted, 1);
    }
}

static body body_of(const shmq_delivery *d) {
    body b;
    CHECK(d->body_len >= sizeof b);
    memcpy(&b, d->bytes, sizeof b);
    CHECK(b.number < NUMBERS && b.length == d->body_len && all->of[b.number].producer == b.producer);
    CHECK(d->body_len == sizeof b || d->bytes[d->body_len - 1] == b.number % 251);
    return b;
}

static void settle(shmq_queue *q, shmq_delivery *d) {
    body b = body_of(d);
    CHECK_EQUAL(shmq_load_seq(&all->of[b.number].settled), 0);
    shmq_store_seq(&all->of[b.number].settling, 1);
    CHECK_EQUAL(shmq_settle(q, d), SHMQ_OK);
    CHECK_EQUAL(shmq_swap_seq(&all->of[b.number].settled, 1), 0);
}

static void take_one(worker *w) {
    const shmq_taking t = {.owner = shmq_self(w->q)};
    if (w->held_count == HELD) {
        return;
    }
    shmq_delivery *d = &w->held[w->held_count];
    shmq_status status = shmq_receive(w->q, &t, d);
    if (status != SHMQ_OK && status != SHMQ_EMPTY && status != SHMQ_INTERRUPTED) {
        fprintf(stderr, "take: %s %s\n", shmq_status_name(status), shmq_trail());
        abort();
    }
    if (status == SHMQ_OK) {
        CHECK_EQUAL(shmq_load_seq(&all->of[body_of(d).number].settled), 0);
        w->held_count++;
    }
}

static void end_one(worker *w) {
    if (w->held_count == 0) {
        return;
    }
    uint32_t i = (uint32_t)(next_random(w) % w->held_count);
    if (next_random(w) % 4 == 0) {
        CHECK_EQUAL(shmq_release(w->q, &w->held[i], false), SHMQ_OK);
    } else {
        settle(w->q, &w->held[i]);
    }
    w->held[i] = w->held[--w->held_count];
}

static _Noreturn void work(uint32_t producer, uint64_t seed) {
    worker w = {.m = scratch_attach_flowing(), .producer = producer, .random = seed | 1};
    w.q = scratch_flowing(w.m, "jobs", MEMORY);
    for (;;) {
        uint64_t burst = next_random(&w) % 400;
        bool puts = next_random(&w) % 16 < 9;
        for (uint64_t i = 0; i < burst; i++) {
            if (puts) {
                put_one(&w);
            } else {
                take_one(&w);
                end_one(&w);
            }
        }
    }
}

static pid_t start(uint32_t producer, uint64_t seed) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        work(producer, seed);
    }
    return child;
}

static void kill_and_wait(pid_t child) {
    int status;
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* else a check of its own has failed */
}

static void drain_and_check(uint32_t producers) {
    shmq_member *m = scratch_attach_flowing();
    shmq_queue *q = scratch_flowing(m, "jobs", MEMORY);
    uint64_t *last = calloc(producers + 1, sizeof *last), left = 0, lost = 0, at_most = shmq_load_seq(&all->next);
    shmq_delivery d;
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    shmq_census c = census_of(q);
    const shmq_taking t = {.owner = shmq_self(q)};
    shmq_status status;
    while ((status = shmq_receive(q, &t, &d)) == SHMQ_OK || status == SHMQ_INTERRUPTED) {
        if (status == SHMQ_OK) {
            body b = body_of(&d);
            CHECK(last[b.producer] == 0 || b.number > last[b.producer]);
            last[b.producer] = b.number;
            settle(q, &d);
            left++;
        }
    }
    CHECK_EQUAL(status, SHMQ_EMPTY);
    for (uint64_t i = 0; i < at_most && i < NUMBERS; i++) {
        const record *r = &all->of[i];
        lost += shmq_load_seq((shmq_a32 *)&r->accepted) && !shmq_load_seq((shmq_a32 *)&r->settled) &&
                !shmq_load_seq((shmq_a32 *)&r->settling);
    }
    CHECK_EQUAL(lost, 0);
    CHECK_EQUAL(census_of(q).ready, 0);
    if (left != c.ready) {
        fprintf(stderr, "%llu were left, the census said %llu, %llu of them on disk\n", (unsigned long long)left,
                (unsigned long long)c.ready, (unsigned long long)c.flowed);
    }
    CHECK_EQUAL(left, c.ready);
    check_ring(q);
    printf("%llu messages, %llu left at the end, %llu of them on disk\n", (unsigned long long)at_most,
           (unsigned long long)left, (unsigned long long)c.flowed);
    free(last);
    shmq_queue_unbind(q);
    shmq_member_leave(m, true);
    shmq_member_free(m);
}

static void run(uint32_t rounds, uint64_t random) {
    scratch_create_flowing();
    scratch_spill_begin();
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    pid_t children[PROCESSES];
    uint32_t producers = 0;
    worker dice = {.random = random | 1};
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = start(++producers, next_random(&dice));
    }
    for (uint32_t round = 0; round < rounds; round++) {
        struct timespec moment = {.tv_nsec = (long)(next_random(&dice) % 30000000)};
        nanosleep(&moment, NULL);
        int victim = (int)(next_random(&dice) % PROCESSES);
        kill_and_wait(children[victim]);
        scratch_examine_queue(0, false);
        if (round % 16 == 0) {
            scratch_examine_parts(false);
        }
        children[victim] = start(++producers, next_random(&dice));
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill_and_wait(children[i]);
    }
    scratch_examine_queue(0, false);
    drain_and_check(producers);
    scratch_examine_queue(0, true);
    scratch_examine_parts(true);
    munmap(all, sizeof *all);
    scratch_remove();
    scratch_spill_end();
}

/* Plain, then with what is on disk encrypted. */
int main(int argc, char **argv) {
    static const uint8_t key[SHMQ_KEY_BYTES] = {1, 2, 3};
    uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 60;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : shmq_wall_ns();
    printf("seed %llu\n", (unsigned long long)random);
    fflush(stdout);
    run(rounds, random);
    scratch_key = key;
    run(rounds, random);
    return 0;
}
