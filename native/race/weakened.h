/* The same atomic accesses, but in the function that SHMQ_WEAKENED names they are relaxed. A check for races that passes
 * here as well would check nothing. */
#ifndef SHMQ_RACE_WEAKENED_H
#define SHMQ_RACE_WEAKENED_H

#include <stdlib.h>
#include <string.h>

/* Read once, before there are threads. */
static const char *shmq_weakened_function;
__attribute__((constructor)) static void shmq_read_weakened(void) { shmq_weakened_function = getenv("SHMQ_WEAKENED"); }
static inline bool shmq_is_weakened(const char *function) {
    return shmq_weakened_function != NULL && strcmp(shmq_weakened_function, function) == 0;
}

/* Both orders are constants: ThreadSanitizer does not see an access whose order is known at run time only. */
#define SHMQ_ATOMIC_LOAD(p, order)                                               \
    (shmq_is_weakened(__func__) ? atomic_load_explicit((p), SHMQ_ORDER(relaxed)) \
                                : atomic_load_explicit((p), SHMQ_ORDER(order)))
#define SHMQ_ATOMIC_STORE(p, v, order)                                                 \
    (shmq_is_weakened(__func__) ? atomic_store_explicit((p), (v), SHMQ_ORDER(relaxed)) \
                                : atomic_store_explicit((p), (v), SHMQ_ORDER(order)))
#define SHMQ_ATOMIC_RMW(step, p, v, order)                                                \
    (shmq_is_weakened(__func__) ? atomic_##step##_explicit((p), (v), SHMQ_ORDER(relaxed)) \
                                : atomic_##step##_explicit((p), (v), SHMQ_ORDER(order)))
#define SHMQ_ATOMIC_FENCE(order) atomic_thread_fence(SHMQ_ORDER(order))
#define SHMQ_ATOMIC_READ_ONCE(p) __atomic_load_n((p), 0)
#define SHMQ_ATOMIC_WRITE_ONCE(p, v) __atomic_store_n((p), (v), 0)

static inline bool shmq_cas64_in(const char *function, shmq_a64 *word, uint64_t expected, uint64_t wanted) {
    return shmq_is_weakened(function) ? atomic_compare_exchange_strong_explicit(
                                            word, &expected, wanted, SHMQ_ORDER(relaxed), SHMQ_ORDER(relaxed))
                                      : atomic_compare_exchange_strong(word, &expected, wanted);
}
static inline bool shmq_cas32_in(const char *function, shmq_a32 *word, uint32_t expected, uint32_t wanted) {
    return shmq_is_weakened(function) ? atomic_compare_exchange_strong_explicit(
                                            word, &expected, wanted, SHMQ_ORDER(relaxed), SHMQ_ORDER(relaxed))
                                      : atomic_compare_exchange_strong(word, &expected, wanted);
}
#define SHMQ_ATOMIC_CAS64(p, expected, wanted) shmq_cas64_in(__func__, (p), (expected), (wanted))
#define SHMQ_ATOMIC_CAS32(p, expected, wanted) shmq_cas32_in(__func__, (p), (expected), (wanted))

#endif
