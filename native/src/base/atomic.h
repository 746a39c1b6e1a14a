/* The one place that spells memory orders. Everything else says what it needs:
 *
 *   shmq_load_seq, shmq_cas_seq, shmq_add_seq, shmq_or_seq, shmq_and_seq, shmq_swap_seq    sequentially consistent
 *   shmq_load_acquire, shmq_store_release                                                  one half of a SYNC pair
 *   shmq_load_relaxed, shmq_store_relaxed, shmq_add_relaxed                                counters and hints
 *   shmq_read_once, shmq_write_once                                                                   fields under a sequence lock
 *
 * A change of a slot word is always shmq_cas_seq from the whole word that was read. There is no plain store that is
 * followed by a load of another shared word where their order matters. Both sides of such a pair are a sequentially
 * consistent read-modify-write, then a sequentially consistent load. Each acquire and release carries a comment
 * `SYNC label`, and docs/memory-ordering.md lists every label with both sides and the damage without it. */
#ifndef SHMQ_BASE_ATOMIC_H
#define SHMQ_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic(uint64_t) shmq_a64;
typedef _Atomic(uint32_t) shmq_a32;
typedef _Atomic(uint16_t) shmq_a16;

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words need lock-free atomics");
_Static_assert(sizeof(shmq_a64) == 8 && sizeof(shmq_a32) == 4 && sizeof(shmq_a16) == 2, "atomics are bare words");

/* The seam: every access goes through these. A verification build names a header that puts others in their place: the
 * simulator of weak memory (native/weak), or the same accesses with one order taken away (native/race). */
#define SHMQ_ORDER(order) memory_order_##order
#ifdef SHMQ_ATOMIC_SEAM
#include SHMQ_ATOMIC_SEAM
#else
#define SHMQ_ATOMIC_LOAD(p, order) atomic_load_explicit((p), SHMQ_ORDER(order))
#define SHMQ_ATOMIC_STORE(p, v, order) atomic_store_explicit((p), (v), SHMQ_ORDER(order))
#define SHMQ_ATOMIC_RMW(step, p, v, order) atomic_##step##_explicit((p), (v), SHMQ_ORDER(order))
#define SHMQ_ATOMIC_FENCE(order) atomic_thread_fence(SHMQ_ORDER(order))
#define SHMQ_ATOMIC_READ_ONCE(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define SHMQ_ATOMIC_WRITE_ONCE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#endif

#define shmq_load_seq(p) SHMQ_ATOMIC_LOAD(p, seq_cst)
#define shmq_load_acquire(p) SHMQ_ATOMIC_LOAD(p, acquire)
#define shmq_load_relaxed(p) SHMQ_ATOMIC_LOAD(p, relaxed)
#define shmq_store_seq(p, v) SHMQ_ATOMIC_STORE(p, v, seq_cst)
#define shmq_store_release(p, v) SHMQ_ATOMIC_STORE(p, v, release)
#define shmq_store_relaxed(p, v) SHMQ_ATOMIC_STORE(p, v, relaxed)
#define shmq_add_seq(p, v) SHMQ_ATOMIC_RMW(fetch_add, p, v, seq_cst)
#define shmq_sub_seq(p, v) SHMQ_ATOMIC_RMW(fetch_sub, p, v, seq_cst)
#define shmq_or_seq(p, v) SHMQ_ATOMIC_RMW(fetch_or, p, v, seq_cst)
#define shmq_and_seq(p, v) SHMQ_ATOMIC_RMW(fetch_and, p, v, seq_cst)
#define shmq_swap_seq(p, v) SHMQ_ATOMIC_RMW(exchange, p, v, seq_cst)
#define shmq_add_relaxed(p, v) SHMQ_ATOMIC_RMW(fetch_add, p, v, relaxed)
#define shmq_fence_acquire() SHMQ_ATOMIC_FENCE(acquire)
#define shmq_fence_release() SHMQ_ATOMIC_FENCE(release)

/* A field of a slot's message: written by the claimant, and read by others who cannot know whether it is being written
 * (browsers, overtaken takers, counts). They look at the word again and throw away what was torn. Relaxed on both sides:
 * on every machine the same instruction as a plain access, but no data race. */
#define shmq_read_once(p) SHMQ_ATOMIC_READ_ONCE(p)
#define shmq_write_once(p, v) SHMQ_ATOMIC_WRITE_ONCE(p, v)

/* A field that is constant for all who may look at it, but may be damaged between its check and its use. It is loaded
 * once, and the value that is checked is the value that is used. */
#define shmq_copy_once(p) (*(const volatile __typeof__(*(p)) *)(p))

/* The kernel orders this, unseen by ThreadSanitizer: a lock byte is free only after its holder's last access. */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *);
void __tsan_release(void *);
#define shmq_after_kernel(p) __tsan_acquire((void *)(p))
#define shmq_before_kernel(p) __tsan_release((void *)(p))
#else
#define shmq_after_kernel(p) ((void)(p))
#define shmq_before_kernel(p) ((void)(p))
#endif

/* One try; false leaves *expected as it was: a caller that fails reads the word anew, as every protocol here does. */
#ifdef SHMQ_ATOMIC_SEAM
#define shmq_cas_seq(word, expected, wanted) SHMQ_ATOMIC_CAS64(word, expected, wanted)
#define shmq_cas32_seq(word, expected, wanted) SHMQ_ATOMIC_CAS32(word, expected, wanted)
#else
static inline bool shmq_cas_seq(shmq_a64 *word, uint64_t expected, uint64_t wanted) {
    return atomic_compare_exchange_strong_explicit(word, &expected, wanted, memory_order_seq_cst, memory_order_seq_cst);
}

static inline bool shmq_cas32_seq(shmq_a32 *word, uint32_t expected, uint32_t wanted) {
    return atomic_compare_exchange_strong_explicit(word, &expected, wanted, memory_order_seq_cst, memory_order_seq_cst);
}
#endif

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

static inline void shmq_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
