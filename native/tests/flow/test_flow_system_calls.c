/* A process is killed before, behind and amid each call to the system that it makes for the files of a queue that flows: others lose
 * nothing of what was accepted, get nothing twice, and count what is there. Shows G5. */
#include <grp.h>

#include "upkeep/duty.h"
#include "deadly_calls.h"
#include "scratch_flow.h"

#define MEMORY 4000
#define SMALL 100
#define LARGE 4000 /* what a victim puts: its unfinished file is longer than those that others write behind its death */
#define MESSAGES 512
#define GROUP 65530
#define ONE 65533
#define ANOTHER 65534
#define LIFE_NS (UINT64_C(3600) * SECOND)

/* Of a message, as the process says that has it. LEAVING: it may be there or not. */
enum state { NOWHERE, LEAVING, ACCEPTED, GONE };

typedef struct board {
    shmq_a32 state[MESSAGES];
    unsigned deaths[DEADLY_KINDS];
} board;

/* A deed of the victim, after others have done `before`; `least`: so many deaths at least, of each moment but amid. */
typedef struct deed {
    const char *name;
    void (*before)(void);
    void (*does)(shmq_member *by, shmq_queue *of);
    void (*after)(void); /* what who comes to the death does first */
    unsigned least;
} deed;

static board *all;
static uint64_t next_number, taken;
static uint64_t later_ns; /* by which the clock is put forward */
static uid_t one_of_many; /* the victim; who comes to its death is another one; 0: both are one user */
static shmq_member *m;
static shmq_queue *q;

uint64_t __real_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void);
uint64_t __wrap_shmq_now_ns(void) { return __real_shmq_now_ns() + later_ns; }
uint64_t __wrap_shmq_about_now_ns(void);
uint64_t __wrap_shmq_about_now_ns(void) { return __wrap_shmq_now_ns(); }

static void say(uint64_t number, enum state state) {
    CHECK(number < MESSAGES);
    shmq_store_seq(&all->state[number], state);
}

static enum state said(uint64_t number) { return (enum state)shmq_load_seq(&all->state[number]); }

static void put_next(shmq_queue *to, uint64_t length, uint64_t expires_ns) {
    static unsigned char bytes[LARGE];
    uint64_t number = next_number++;
    memset(bytes, (int)number, sizeof bytes);
    memcpy(bytes, &number, sizeof number);
    struct iovec piece = {.iov_base = bytes, .iov_len = length};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = length, .expires_ns = expires_ns};
    say(number, LEAVING);
    CHECK_EQUAL(shmq_put(to, &o, 0), SHMQ_OK);
    say(number, ACCEPTED);
}

static void put_small(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        put_next(q, SMALL, 0);
    }
}

static uint64_t number_in(const shmq_delivery *d) {
    uint64_t number;
    memcpy(&number, d->bytes, sizeof number);
    CHECK(number < MESSAGES && (d->body_len == SMALL || d->body_len == LARGE));
    for (uint64_t i = sizeof number; i < d->body_len; i++) {
        CHECK_EQUAL(d->bytes[i], number % 256);
    }
    return number;
}

static uint64_t settle(shmq_queue *of, shmq_delivery *d) {
    uint64_t number = number_in(d);
    CHECK(said(number) == ACCEPTED || said(number) == LEAVING);
    say(number, LEAVING);
    CHECK_EQUAL(shmq_settle(of, d), SHMQ_OK);
    say(number, GONE);
    taken++;
    return number;
}

/* Takes at most so many, in their order. False: there was none any more. */
static bool take(shmq_queue *of, uint64_t count, shmq_subscription *by) {
    const shmq_taking t = {.owner = shmq_self(of), .by = by};
    shmq_status status = SHMQ_OK;
    for (uint64_t i = 0, behind = 0; i < count && status == SHMQ_OK; i++) {
        shmq_delivery d;
        while ((status = shmq_receive(of, &t, &d)) == SHMQ_INTERRUPTED) {
        }
        if (status == SHMQ_OK) {
            uint64_t number = settle(of, &d);
            CHECK(number >= behind);
            behind = number + 1;
        }
    }
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY);
    return status == SHMQ_OK;
}

static void a_full_memory(void) { put_small(30); }

static void two_files(void) { put_small(70); }

static void many_files(void) { put_small(110); }

static void put_large(shmq_member *by, shmq_queue *to) {
    (void)by;
    for (int i = 0; i < 3; i++) {
        put_next(to, LARGE, 0);
    }
}

static void take_most(shmq_member *by, shmq_queue *of) {
    (void)by;
    CHECK(take(of, 90, NULL));
}

static void take_all(shmq_member *by, shmq_queue *of) {
    (void)by;
    CHECK(!take(of, MESSAGES, NULL));
    CHECK_EQUAL(shmq_flow_rows(of), 0);
}

static bool wants_sevens(void *context, const shmq_ring *level, const shmq_delivery *d) {
    uint64_t number;
    (void)context, (void)level;
    memcpy(&number, d->bytes, sizeof number);
    return number % 32 == 7;
}

static void take_sevens(shmq_member *by, shmq_queue *of) {
    shmq_subscription s;
    (void)by;
    shmq_subscription_begin(&s, wants_sevens, NULL);
    CHECK(!take(of, MESSAGES, &s));
    shmq_subscription_end(&s);
}

/* They may be gone, or some of them. */
static void let_go(uint64_t every) {
    for (uint64_t i = 0; i < next_number; i += every) {
        say(i, said(i) == ACCEPTED ? LEAVING : said(i));
    }
}

static void all_gone(uint64_t every) {
    for (uint64_t i = 0; i < next_number; i += every) {
        say(i, GONE);
    }
}

static void purge(shmq_member *by, shmq_queue *of) {
    uint64_t purged = 0;
    (void)by;
    let_go(1);
    CHECK_EQUAL(shmq_purge(of, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, next_number);
    all_gone(1);
}

static void files_of_mortals(void) {
    for (int i = 0; i < 100; i++) {
        put_next(q, SMALL, i % 32 == 0 ? shmq_now_ns() + LIFE_NS : 0);
    }
    later_ns += 2 * LIFE_NS;
    all_gone(32); /* nobody is given any, whether they were found or not */
}

static void expire(shmq_member *by, shmq_queue *of) {
    (void)of;
    for (int i = 0; i < 3; i++) {
        shmq_due_look(by);
        later_ns += SECOND;
    }
}

/* Of some that have failed most are on disk. */
static void files_of_failed(void) {
    shmq_delivery held[30];
    put_small(30);
    for (uint64_t i = 0; i < 30; i++) {
        held[i] = receive(q, shmq_self(q));
    }
    for (uint64_t i = 0; i < 30; i++) {
        CHECK_EQUAL(shmq_release(q, &held[i], i % 3 == 0), SHMQ_OK);
    }
    put_small(40);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    CHECK(shmq_load_seq(&q->first.shm->tried) > 20);
}

static void steal_failed(shmq_member *by, shmq_queue *of) {
    shmq_delivery d;
    shmq_status status;
    (void)by;
    while ((status = shmq_steal_poisoned(of, &d)) == SHMQ_OK) {
        CHECK_EQUAL(settle(of, &d) % 3, 0);
    }
    CHECK_EQUAL(status, SHMQ_EMPTY);
    CHECK(said(0) == GONE && said(27) == GONE && said(28) == ACCEPTED);
}

static void forgive(void) { scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 0); }

static shmq_queue *bind(shmq_member *by) { return scratch_flowing(by, "backlog", MEMORY); }

static void delete(shmq_member *by, shmq_queue *of) {
    (void)by;
    let_go(1);
    CHECK_EQUAL(shmq_queue_delete(of), SHMQ_OK);
    all_gone(1);
}

/* Another queue has its place, and deletes what was left of it. */
static void make_another(void) {
    uint32_t index = q->index;
    (void)shmq_queue_delete(q);
    shmq_queue_unbind(q);
    all_gone(1);
    q = bind(m);
    CHECK_EQUAL(q->index, index);
}

/* Of a broker of a group, as one of its users. */
static void become(uid_t user) {
    const gid_t group = GROUP;
    umask(022);
    CHECK(setgroups(1, &group) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
}

/* Returns whether it was killed at its nth call of this kind. */
static bool dies(void (*does)(shmq_member *by, shmq_queue *of), unsigned n, enum deadly_call kind,
                 enum deadly_moment moment) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        shmq_member *by = scratch_attach_flowing();
        shmq_queue *of = bind(by);
        if (one_of_many != 0) {
            become(one_of_many);
        }
        deadly_begin(n, kind, moment);
        does(by, of);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* A file of rows that are none: its writer died before it said that they are. */
static void a_file_of_a_dead_one(void) {
    two_files();
    CHECK(dies(put_large, 0, DEADLY_renameat, DEADLY_BEHIND));
    reap_all(m, 1);
    CHECK(said(next_number) == LEAVING && said(next_number + 1) == NOWHERE);
    next_number++;
}

/* How many messages there must be, and how many there may be besides. */
static void count(uint64_t *accepted, uint64_t *leaving) {
    *accepted = *leaving = 0;
    for (uint64_t i = 0; i < next_number; i++) {
        *accepted += said(i) == ACCEPTED;
        *leaving += said(i) == LEAVING;
    }
}

/* Answers how many are ready. */
static uint64_t recount(void) {
    uint64_t accepted, leaving;
    shmq_due_look(m);
    scratch_examine_queue(q->index, true);
    count(&accepted, &leaving);
    shmq_census c = census_of(q);
    CHECK(c.ready >= accepted && c.ready <= accepted + leaving);
    return c.ready;
}

/* Those that must be there come, in order, those that need not come at most once, and all together are as many as were counted. */
static void take_the_rest(void) {
    uint64_t accepted, leaving, ready = recount(), before = taken;
    CHECK(!take(q, MESSAGES, NULL));
    CHECK_EQUAL(taken - before, ready);
    count(&accepted, &leaving);
    CHECK_EQUAL(accepted, 0);
    CHECK_EQUAL(recount(), 0);
    CHECK_EQUAL(census_of(q).bytes, 0);
}

static void begin(void) {
    memset(all->state, 0, sizeof all->state);
    next_number = later_ns = 0;
    scratch_create_flowing();
    scratch_spill_begin();
    m = scratch_attach_flowing();
    q = bind(m);
    if (one_of_many != 0) {
        char path[128];
        scratch_path(path, sizeof path);
        CHECK(chown(scratch_broker, 0, GROUP) == 0 && chmod(scratch_broker, 0770) == 0);
        CHECK(chown(path, 0, GROUP) == 0 && chmod(path, 0660) == 0);
    }
}

static void end(void) {
    CHECK_EQUAL(scratch_spill_files(false), 0);
    check_ring(q);
    scratch_examine_queue(q->index, true);
    scratch_examine_parts(true);
    scratch_close(m, q);
    scratch_remove();
    scratch_spill_end();
}

/* A death behind a call leaves the same as one before the next call. After the first, rows are written while those of
 * before are there. After the second these have been taken, and none is written again. Then the next file is shorter
 * than the one that the dead process has not finished. */
static void go_on(const deed *d, enum deadly_moment moment) {
    scratch_examine_queue(q->index, false);
    reap_all(m, 1);
    if (d->after != NULL) {
        d->after();
    }
    (void)recount();
    if (moment != DEADLY_BEHIND) {
        scratch_alter(q, SHMQ_SET_MAX_MEMORY, SCRATCH_MEMORY);
        take_the_rest();
        scratch_alter(q, SHMQ_SET_MAX_MEMORY, MEMORY);
    }
    put_small(60);
    CHECK(shmq_flow_rows(q) != 0);
    take_the_rest();
}

static bool die_and_go_on(const deed *d, unsigned n, enum deadly_moment moment) {
    begin();
    d->before();
    bool dead = dies(d->does, n, DEADLY_KINDS, moment);
    next_number = MESSAGES - 100; /* behind all that the victim may have put */
    if (one_of_many == 0) {
        go_on(d, moment);
    } else {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            m = scratch_attach_flowing();
            q = bind(m);
            become(ANOTHER);
            go_on(d, moment);
            CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
            _exit(0);
        }
        scratch_wait(child);
    }
    end();
    return dead;
}

static const deed deeds[] = {
    {"a put that begins the flow", a_full_memory, put_large, NULL, 20},
    {"a put that flushes", two_files, put_large, NULL, 20},
    {"a put that flushes behind a death", a_file_of_a_dead_one, put_large, NULL, 20},
    {"a get that pulls", many_files, take_most, NULL, 10},
    {"gets that fetch what they select", many_files, take_sevens, NULL, 20},
    {"a get of the last row", two_files, take_all, NULL, 10},
    {"a purge", many_files, purge, NULL, 5},
    {"a pass over rows that expire", files_of_mortals, expire, NULL, 20},
    {"a search for what failed too often", files_of_failed, steal_failed, forgive, 10},
    {"a deletion", many_files, delete, make_another, 5},
};

static unsigned no_death_at_a_call_for_files_loses_or_doubles_anything(const deed *d) {
    unsigned deaths[DEADLY_MOMENTS] = {0};
    for (int moment = 0; moment < DEADLY_MOMENTS; moment++) {
        while (die_and_go_on(d, deaths[moment], (enum deadly_moment)moment)) {
            deaths[moment]++;
        }
    }
    printf("%s, %s: %u deaths before a call, %u behind, %u amid a write\n", d->name,
           scratch_key != NULL ? "encrypted" : "plain", deaths[0], deaths[1], deaths[2]);
    CHECK(deaths[DEADLY_BEFORE] >= d->least && deaths[DEADLY_BEHIND] == deaths[DEADLY_BEFORE]);
    return deaths[0] + deaths[1] + deaths[2];
}

/* Plain, then encrypted. */
int main(void) {
    static const uint8_t key[SHMQ_KEY_BYTES] = {1, 2, 3};
    unsigned deaths = 0;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    deadly_deaths = all->deaths;
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        scratch_key = encrypted ? key : NULL;
        for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
            deaths += no_death_at_a_call_for_files_loses_or_doubles_anything(&deeds[i]);
        }
    }
    scratch_key = NULL;
    one_of_many = geteuid() == 0 ? ONE : 0;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0] && one_of_many != 0; i++) {
        deaths += deeds[i].does == put_large ? no_death_at_a_call_for_files_loses_or_doubles_anything(&deeds[i]) : 0;
    }
    for (int call = 0; call < DEADLY_KINDS; call++) {
        printf("%s: %u\n", deadly_names[call], all->deaths[call]);
        CHECK(all->deaths[call] != 0);
    }
    printf("%u deaths\n", deaths);
    CHECK(deaths > 1000);
    return 0;
}
