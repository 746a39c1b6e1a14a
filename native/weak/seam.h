/* The atomic accesses of the core, led into the simulator: each names its order and the function that it stands in. */
#ifndef SHMQ_WEAK_SEAM_H
#define SHMQ_WEAK_SEAM_H

enum weak_order { WEAK_relaxed, WEAK_acquire, WEAK_release, WEAK_acq_rel, WEAK_seq_cst };
enum weak_step { WEAK_fetch_add, WEAK_fetch_sub, WEAK_fetch_or, WEAK_fetch_and, WEAK_exchange };

uint64_t weak_load(const volatile void *at, uint32_t bytes, enum weak_order order, const char *function);
void weak_store(volatile void *at, uint32_t bytes, uint64_t value, enum weak_order order, const char *function);
uint64_t weak_rmw(volatile void *at, uint32_t bytes, enum weak_step step, uint64_t value, enum weak_order order,
                  const char *function);
bool weak_cas(volatile void *at, uint32_t bytes, uint64_t expected, uint64_t wanted, enum weak_order order,
              const char *function);
void weak_fence(enum weak_order order, const char *function);

/* The comma takes the qualifier _Atomic away. */
#define WEAK_TYPE(p) __typeof__((void)0, *(p))
#define SHMQ_ATOMIC_LOAD(p, order) ((WEAK_TYPE(p))weak_load((p), sizeof *(p), WEAK_##order, __func__))
#define SHMQ_ATOMIC_STORE(p, v, order) weak_store((p), sizeof *(p), (uint64_t)(v), WEAK_##order, __func__)
#define SHMQ_ATOMIC_RMW(step, p, v, order) \
    ((WEAK_TYPE(p))weak_rmw((p), sizeof *(p), WEAK_##step, (uint64_t)(v), WEAK_##order, __func__))
#define SHMQ_ATOMIC_FENCE(order) weak_fence(WEAK_##order, __func__)
#define SHMQ_ATOMIC_READ_ONCE(p) ((WEAK_TYPE(p))weak_load((p), sizeof *(p), WEAK_relaxed, "read_once"))
#define SHMQ_ATOMIC_WRITE_ONCE(p, v) weak_store((p), sizeof *(p), (uint64_t)(v), WEAK_relaxed, "write_once")
#define SHMQ_ATOMIC_CAS64(p, expected, wanted) weak_cas((p), 8, (expected), (wanted), WEAK_seq_cst, __func__)
#define SHMQ_ATOMIC_CAS32(p, expected, wanted) weak_cas((p), 4, (expected), (wanted), WEAK_seq_cst, __func__)

#endif
