/* The one place that spells memory orders. Everything else says what it needs:
 *
 *   shmq_load_seq, shmq_cas_seq, shmq_add_seq, shmq_or_seq, shmq_and_seq, shmq_swap_seq    sequentially consistent
 *   shmq_load_acquire, shmq_store_release                                                  one half of a SYNC pair
 *   shmq_load_relaxed, shmq_store_relaxed, shmq_add_relaxed                                counters and hints
 *
 * A change of a slot word is always shmq_cas_seq from the whole word that was read. There is no plain store that is
 * followed by a load of another shared word where their order matters: both sides of such a pair are a sequentially
 * consistent read-modify-write, then a sequentially consistent load. Each acquire and release carries a comment
 * `SYNC label`, and docs/memory-ordering.md lists every label with both sides and the damage without it. */
#ifndef SHMQ_ATOMIC_H
#define SHMQ_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic(uint64_t) shmq_a64;
typedef _Atomic(uint32_t) shmq_a32;
typedef _Atomic(uint16_t) shmq_a16;

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words need lock-free atomics");
_Static_assert(sizeof(shmq_a64) == 8 && sizeof(shmq_a32) == 4 && sizeof(shmq_a16) == 2, "atomics are bare words");

#define shmq_load_seq(p) atomic_load_explicit((p), memory_order_seq_cst)
#define shmq_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define shmq_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define shmq_store_seq(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define shmq_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define shmq_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define shmq_add_seq(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define shmq_sub_seq(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst)
#define shmq_or_seq(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define shmq_and_seq(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)
#define shmq_swap_seq(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define shmq_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define shmq_fence_acquire() atomic_thread_fence(memory_order_acquire)

/* One try; false leaves *expected as it was: who fails reads the word anew, as every protocol here does. */
static inline bool shmq_cas_seq(shmq_a64 *word, uint64_t expected, uint64_t wanted) {
    return atomic_compare_exchange_strong_explicit(word, &expected, wanted, memory_order_seq_cst, memory_order_seq_cst);
}

static inline bool shmq_cas32_seq(shmq_a32 *word, uint32_t expected, uint32_t wanted) {
    return atomic_compare_exchange_strong_explicit(word, &expected, wanted, memory_order_seq_cst, memory_order_seq_cst);
}

/* Raise a word that only grows. */
static inline void shmq_raise_seq(shmq_a64 *word, uint64_t value) {
    uint64_t seen = shmq_load_seq(word);
    while (seen < value && !shmq_cas_seq(word, seen, value)) {
        seen = shmq_load_seq(word);
    }
}

/* Take so many off a count that others correct, too: never below 0. */
static inline void shmq_less(shmq_a32 *count, uint32_t change) {
    uint32_t seen = shmq_load_seq(count);
    while (seen != 0 && !shmq_cas32_seq(count, seen, seen > change ? seen - change : 0)) {
        seen = shmq_load_seq(count);
    }
}

/* For a word that counts what each process counts for itself, too. Joining: the sum, then the own part; leaving: the part,
 * then the sum. A death in between leaves the sum too high, never too low; the reaper takes the part off. */
static inline void shmq_join_count(shmq_a32 *sum, shmq_a32 *part) {
    shmq_add_seq(sum, 1);
    shmq_add_seq(part, 1);
}
static inline void shmq_leave_count(shmq_a32 *sum, shmq_a32 *part) {
    shmq_less(part, 1);
    shmq_less(sum, 1);
}

static inline void shmq_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
