/* Does the simulator show what C11 allows, and nothing that C11 forbids? Small programs with known answers. */
#include <stdio.h>
#include <string.h>

#include "weak.h"

static struct {
    shmq_a64 x, y;
    uint64_t pad[6];
    uint64_t plain;
} area;
static uint64_t r[4];

static void clear(void) { memset(r, 0, sizeof r); }
static void nothing(void) {}

#define LOAD(p, order) weak_load((p), 8, WEAK_##order, "litmus")
#define STORE(p, v, order) weak_store((p), 8, (v), WEAK_##order, "litmus")
#define ADD(p, order) weak_rmw((p), 8, WEAK_fetch_add, 1, WEAK_##order, "litmus")

/* Store buffering: each writes one word, then reads the other's. */
#define BUFFERING(name, write, read)    \
    static void name(int t) {           \
        if (t == 0) {                   \
            write(&area.x);             \
            r[0] = LOAD(&area.y, read); \
        } else {                        \
            write(&area.y);             \
            r[1] = LOAD(&area.x, read); \
        }                               \
    }
#define SEQ_STORE(p) STORE(p, 1, seq_cst)
#define RELEASE_STORE(p) STORE(p, 1, release)
#define SEQ_ADD(p) (void)ADD(p, seq_cst)
#define ACQ_REL_ADD(p) (void)ADD(p, acq_rel)
BUFFERING(buffering_seq, SEQ_STORE, seq_cst)
BUFFERING(buffering_release, RELEASE_STORE, acquire)
BUFFERING(buffering_rmw, SEQ_ADD, seq_cst)
BUFFERING(buffering_rmw_acq_rel, ACQ_REL_ADD, acquire)
static bool both_zero(void) { return r[0] == 0 && r[1] == 0; }

/* Message passing: data, then a flag. */
#define PASSING(name, write, read)         \
    static void name(int t) {              \
        if (t == 0) {                      \
            STORE(&area.x, 1, relaxed);    \
            STORE(&area.y, 1, write);      \
        } else {                           \
            r[0] = LOAD(&area.y, read);    \
            r[1] = LOAD(&area.x, relaxed); \
        }                                  \
    }
PASSING(passing_ordered, release, acquire)
PASSING(passing_without_acquire, release, relaxed)
PASSING(passing_without_release, relaxed, acquire)
static bool flag_without_data(void) { return r[0] == 1 && r[1] == 0; }

static void passing_fences(int t) {
    if (t == 0) {
        STORE(&area.x, 1, relaxed);
        weak_fence(WEAK_release, "litmus");
        STORE(&area.y, 1, relaxed);
    } else {
        r[0] = LOAD(&area.y, relaxed);
        weak_fence(WEAK_acquire, "litmus");
        r[1] = LOAD(&area.x, relaxed);
    }
}

/* The flag goes on through a relaxed read-modify-write of a third: still the first one's release. */
static void passing_through_rmw(int t) {
    if (t == 0) {
        STORE(&area.x, 1, relaxed);
        STORE(&area.y, 1, release);
    } else if (t == 1) {
        (void)ADD(&area.y, relaxed);
    } else {
        r[0] = LOAD(&area.y, acquire) >= 1 ? LOAD(&area.y, acquire) : 0;
        r[1] = LOAD(&area.x, relaxed);
    }
}
static bool added_without_data(void) { return r[0] == 2 && r[1] == 0; }

/* Independent reads of independent writes. */
#define INDEPENDENT(name, write, read)  \
    static void name(int t) {           \
        switch (t) {                    \
        case 0:                         \
            STORE(&area.x, 1, write);   \
            break;                      \
        case 1:                         \
            STORE(&area.y, 1, write);   \
            break;                      \
        case 2:                         \
            r[0] = LOAD(&area.x, read); \
            r[1] = LOAD(&area.y, read); \
            break;                      \
        default:                        \
            r[2] = LOAD(&area.y, read); \
            r[3] = LOAD(&area.x, read); \
            break;                      \
        }                               \
    }
INDEPENDENT(independent_seq, seq_cst, seq_cst)
INDEPENDENT(independent_acquire, release, acquire)
static bool two_orders(void) { return r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0; }

/* Coherence: two reads of one place never go back. */
static void coherence(int t) {
    if (t == 0) {
        STORE(&area.x, 1, relaxed);
        STORE(&area.x, 2, relaxed);
    } else {
        r[0] = LOAD(&area.x, relaxed);
        r[1] = LOAD(&area.x, relaxed);
    }
}
static bool goes_back(void) { return r[1] < r[0]; }
static bool sees_the_first(void) { return r[0] == 1; }

/* Load buffering: allowed by C11, never shown here. */
static void load_buffering(int t) {
    if (t == 0) {
        r[0] = LOAD(&area.x, relaxed);
        STORE(&area.y, 1, relaxed);
    } else {
        r[1] = LOAD(&area.y, relaxed);
        STORE(&area.x, 1, relaxed);
    }
}
static void load_buffering_ordered(int t) {
    if (t == 0) {
        r[0] = LOAD(&area.x, acquire);
        STORE(&area.y, 1, release);
    } else {
        r[1] = LOAD(&area.y, acquire);
        STORE(&area.x, 1, release);
    }
}
static bool both_from_the_future(void) { return r[0] == 1 && r[1] == 1; }

/* 2+2W: each writes both words, in opposite orders; both end with what was written first. Allowed by C11, never shown here,
 * for a store is the last one of its place when it is done. */
static void two_writers(int t) {
    STORE(t == 0 ? &area.x : &area.y, 1, relaxed);
    STORE(t == 0 ? &area.y : &area.x, 2, relaxed);
}
static void two_writers_seq(int t) {
    STORE(t == 0 ? &area.x : &area.y, 1, seq_cst);
    STORE(t == 0 ? &area.y : &area.x, 2, seq_cst);
}
static uint64_t last[2];
static bool first_stores_win(void) { return last[0] == 1 && last[1] == 1; }
static void note_last(void) {
    last[0] = LOAD(&area.x, seq_cst);
    last[1] = LOAD(&area.y, seq_cst);
}

/* The same with a value that depends on what was read: out of thin air, which nobody allows. */
static void thin_air(int t) {
    if (t == 0) {
        r[0] = LOAD(&area.x, relaxed);
        STORE(&area.y, r[0], relaxed);
    } else {
        r[1] = LOAD(&area.y, relaxed);
        STORE(&area.x, r[1], relaxed);
    }
}
static bool from_nothing(void) { return r[0] != 0 || r[1] != 0; }

static void two_adds(int t) { r[t] = ADD(&area.x, relaxed); }
static bool lost_add(void) { return r[0] == r[1]; }

static void plain_unordered(int t) {
    if (t == 0) {
        weak_write_plain(&area.plain, 8);
        STORE(&area.y, 1, relaxed);
    } else if (LOAD(&area.y, acquire) == 1) {
        weak_read_plain(&area.plain, 8);
    }
}
static void plain_ordered(int t) {
    if (t == 0) {
        weak_write_plain(&area.plain, 8);
        STORE(&area.y, 1, release);
    } else if (LOAD(&area.y, acquire) == 1) {
        weak_read_plain(&area.plain, 8);
    }
}

typedef struct litmus {
    const char *name;
    int threads;
    void (*thread)(int);
    bool (*outcome)(void); /* NULL: whether a race is reported */
    bool allowed;          /* else it must never be seen */
} litmus;

static const litmus tests[] = {
    {"store buffering, seq_cst", 2, buffering_seq, both_zero, false},
    {"store buffering, release and acquire", 2, buffering_release, both_zero, true},
    {"store buffering, seq_cst read-modify-writes", 2, buffering_rmw, both_zero, false},
    {"store buffering, acq_rel read-modify-writes", 2, buffering_rmw_acq_rel, both_zero, true},
    {"message passing, release and acquire", 2, passing_ordered, flag_without_data, false},
    {"message passing, no acquire", 2, passing_without_acquire, flag_without_data, true},
    {"message passing, no release", 2, passing_without_release, flag_without_data, true},
    {"message passing, fences", 2, passing_fences, flag_without_data, false},
    {"message passing, through a relaxed add", 3, passing_through_rmw, added_without_data, false},
    {"independent reads, seq_cst", 4, independent_seq, two_orders, false},
    {"independent reads, acquire", 4, independent_acquire, two_orders, true},
    {"coherence of two reads", 2, coherence, goes_back, false},
    {"a value that is not the last", 2, coherence, sees_the_first, true},
    {"load buffering, acquire and release", 2, load_buffering_ordered, both_from_the_future, false},
    {"load buffering, out of thin air", 2, thin_air, from_nothing, false},
    {"2+2W, seq_cst", 2, two_writers_seq, first_stores_win, false},
    {"two relaxed adds", 2, two_adds, lost_add, false},
    {"plain bytes behind a relaxed flag", 2, plain_unordered, NULL, true},
    {"plain bytes behind a release", 2, plain_ordered, NULL, false},
};

/* Not shown, though C11 allows it: said, not hidden. */
static const litmus beyond[] = {
    {"load buffering, relaxed", 2, load_buffering, both_from_the_future, true},
    {"2+2W, relaxed", 2, two_writers, first_stores_win, true},
};

static uint64_t seen_in(const litmus *test, uint64_t runs) {
    weak_scenario scenario = {test->name, "", test->threads, false, nothing, clear, test->thread, note_last};
    uint64_t seen = 0;
    for (uint64_t seed = 0; seed < runs; seed++) {
        weak_result result = weak_run(&scenario, seed, 1);
        seen += test->outcome != NULL ? test->outcome() : result.reason != NULL;
    }
    return seen;
}

int weak_litmus(uint64_t runs) {
    int wrong = 0;
    weak_share(&area, sizeof area);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        uint64_t seen = seen_in(&tests[i], runs);
        bool good = (seen != 0) == tests[i].allowed;
        wrong += !good;
        printf("%-46s %s, seen %llu of %llu%s\n", tests[i].name, tests[i].allowed ? "allowed  " : "forbidden",
               (unsigned long long)seen, (unsigned long long)runs, good ? "" : "  !! WRONG");
    }
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        printf("%-46s allowed, beyond this simulator: seen %llu\n", beyond[i].name,
               (unsigned long long)seen_in(&beyond[i], runs));
    }
    return wrong;
}
