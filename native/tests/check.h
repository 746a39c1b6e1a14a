/* A failed check says where and ends the test with exit code 1; atexit handlers still run and clean up. */
#ifndef SHMQ_TESTS_CHECK_H
#define SHMQ_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

#define CHECK_EQUAL(found, expected)                                                                        \
    do {                                                                                                    \
        long long check_found_ = (long long)(found), check_expected_ = (long long)(expected);               \
        if (check_found_ != check_expected_) {                                                              \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #found, check_found_, \
                    check_expected_);                                                                       \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

/* `fault` says what is wrong; NULL: nothing is. */
static inline void check_no_fault(const char *fault) {
    if (fault != NULL) {
        fprintf(stderr, "%s\n", fault);
    }
    CHECK(fault == NULL);
}

static inline uint64_t xorshift(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The TEST(...) { } of a program, which run_tests() runs in the order of the source. */
static struct {
    void (*run)(void);
    int line;
} known_tests[64];
static int known_test_count;

#define TEST(name)                                                                          \
    static void name(void);                                                                 \
    __attribute__((constructor)) static void add_##name(void) { add_test(name, __LINE__); } \
    static void name(void)

static inline void add_test(void (*run)(void), int line) {
    CHECK(known_test_count < 64);
    int i = known_test_count++;
    for (; i > 0 && known_tests[i - 1].line > line; i--) {
        known_tests[i] = known_tests[i - 1];
    }
    known_tests[i].run = run;
    known_tests[i].line = line;
}

static inline int run_tests(void) {
    CHECK(known_test_count != 0);
    for (int i = 0; i < known_test_count; i++) {
        known_tests[i].run();
    }
    return 0;
}

#endif
