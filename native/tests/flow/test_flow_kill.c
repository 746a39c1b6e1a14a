/* Processes that put and take on a queue which flows are killed at random moments, movers amid their turns among them: no message
 * is lost, none comes twice, and those of one producer stay in their order. Some expire, and housekeeping, which is killed as well, looks for them: none
 * comes late, and none is left. Arguments: rounds, seed. Shows G8. */
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "upkeep/duty.h"
#include "scratch_flow.h"

#define NUMBERS (1u << 22)
#define PROCESSES 4
#define MEMORY UINT64_C(200000)
#define HELD 6
#define LONGEST_LIFE_NS UINT64_C(20000000)

typedef struct record {
    uint32_t producer; /* 1 + process; 0: nobody has put it */
    shmq_a32 accepted, settling, settled;
    uint64_t ends_ns; /* of its life; 0: it has none */
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
    uint64_t numbers[HELD];
    uint32_t held_count;
} worker;

static uint64_t next_random(worker *w) { return xorshift(&w->random) >> 11; }

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
    struct iovec piece = {.iov_base = bytes, .iov_len = b.length};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = b.length};
    if (next_random(w) % 4 == 0) {
        o.expires_ns = shmq_now_ns() + 1 + next_random(w) % LONGEST_LIFE_NS;
    }
    all->of[number].ends_ns = o.expires_ns;
    all->of[number].producer = w->producer;
    shmq_status status = shmq_put(w->q, &o, 0);
    if (status != SHMQ_OK) {
        shmq_unprepare(w->q, &o);
    } else {
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

/* Its bytes may be others' by now: the life of one in hand may end. */
static void settle(shmq_queue *q, shmq_delivery *d, uint64_t number) {
    record *r = &all->of[number];
    CHECK_EQUAL(shmq_load_seq(&r->settled), 0);
    shmq_store_seq(&r->settling, 1);
    shmq_status status = shmq_settle(q, d);
    if (status == SHMQ_SETTLED && r->ends_ns != 0) {
        return;
    }
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK_EQUAL(shmq_swap_seq(&r->settled, 1), 0);
}

static void take_one(worker *w) {
    const shmq_taking t = {.owner = shmq_self(w->q)};
    if (w->held_count == HELD) {
        return;
    }
    shmq_delivery *d = &w->held[w->held_count];
    uint64_t before = shmq_now_ns();
    shmq_status status = shmq_receive(w->q, &t, d);
    if (status != SHMQ_OK && status != SHMQ_EMPTY && status != SHMQ_INTERRUPTED) {
        fprintf(stderr, "take: %s %s\n", shmq_status_name(status), shmq_trail());
        abort();
    }
    if (status == SHMQ_OK) {
        uint64_t number;
        memcpy(&number, d->bytes, sizeof number);
        if (shmq_own_word(w->q, d) == 0) { /* its life has just ended, and what was copied may be another's */
            CHECK_EQUAL(shmq_settle(w->q, d), SHMQ_SETTLED);
            return;
        }
        CHECK(number < NUMBERS && (all->of[number].ends_ns != 0 || body_of(d).number == number));
        CHECK_EQUAL(shmq_load_seq(&all->of[number].settled), 0);
        CHECK(all->of[number].ends_ns == 0 || all->of[number].ends_ns > before);
        w->numbers[w->held_count] = number;
        w->held_count++;
    }
}

static void end_one(worker *w) {
    if (w->held_count == 0) {
        return;
    }
    uint32_t i = (uint32_t)(next_random(w) % w->held_count);
    if (next_random(w) % 4 == 0) {
        bool mortal = all->of[w->numbers[i]].ends_ns != 0;
        shmq_status status = shmq_release(w->q, &w->held[i], false);
        CHECK(status == SHMQ_OK || (mortal && status == SHMQ_SETTLED));
    } else {
        settle(w->q, &w->held[i], w->numbers[i]);
    }
    w->held[i] = w->held[--w->held_count];
    w->numbers[i] = w->numbers[w->held_count];
}

static _Noreturn void work(uint32_t producer, uint64_t seed) {
    worker w = {.m = scratch_attach_flowing(), .producer = producer, .random = seed | 1};
    w.q = scratch_flowing(w.m, "jobs", MEMORY);
    for (;;) {
        uint64_t burst = next_random(&w) % 400;
        bool puts = next_random(&w) % 16 < 9;
        for (uint64_t i = 0; i < burst; i++) {
            if (next_random(&w) % 64 == 0) {
                shmq_due_look(w.m);
            }
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

/* Nobody has put anything for as long as the longest life. */
static void wait_for_ends(shmq_queue *q) {
    uint64_t over = shmq_now_ns() + LONGEST_LIFE_NS;
    while (shmq_now_ns() < over || (shmq_load_seq(&q->first.shm->rows_due) | shmq_load_seq(&q->first.shm->due) |
                                    shmq_load_seq(&shmq_front_of(&q->first)->shm->due)) != 0) {
        shmq_due_look(q->m);
    }
}

static void drain_and_check(uint32_t producers) {
    shmq_member *m = scratch_attach_flowing();
    shmq_queue *q = scratch_flowing(m, "jobs", MEMORY);
    uint64_t *last = calloc(producers + 1, sizeof *last), left = 0, lost = 0, at_most = shmq_load_seq(&all->next);
    shmq_delivery d;
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    wait_for_ends(q);
    shmq_census c = census_of(q);
    const shmq_taking t = {.owner = shmq_self(q)};
    shmq_status status;
    while ((status = shmq_receive(q, &t, &d)) == SHMQ_OK || status == SHMQ_INTERRUPTED) {
        if (status == SHMQ_OK) {
            body b = body_of(&d);
            CHECK_EQUAL(all->of[b.number].ends_ns, 0);
            CHECK(last[b.producer] == 0 || b.number > last[b.producer]);
            last[b.producer] = b.number;
            settle(q, &d, b.number);
            left++;
        }
    }
    CHECK_EQUAL(status, SHMQ_EMPTY);
    for (uint64_t i = 0; i < at_most && i < NUMBERS; i++) {
        const record *r = &all->of[i];
        lost += r->ends_ns == 0 && shmq_load_seq((shmq_a32 *)&r->accepted) && !shmq_load_seq((shmq_a32 *)&r->settled) &&
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
