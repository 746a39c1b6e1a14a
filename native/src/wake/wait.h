/* Sleeping and waking. The only two system calls on a message's way, and only when a thread sleeps. */
#ifndef SHMQ_WAKE_WAIT_H
#define SHMQ_WAKE_WAIT_H

#include "base/clock.h"
#include "base/wait_time.h"
#include "segment/member.h"

/* Sleep while *word == expected, at most until `until_ns` (monotonic), doing the broker's watch meanwhile (watch.h).
 * SHMQ_OK: woken, or the word differs. SHMQ_TIMEOUT. SHMQ_INTERRUPTED: a signal came. Holds no lock, no claim. */
shmq_status shmq_sleep(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns);
/* The same with a piece of its own, which ends at *slice_end. For a watcher it ends as usual, and *slice_end says so. */
shmq_status shmq_sleep_long(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns, uint64_t *slice_end);

#define SHMQ_FOR_EVER UINT64_MAX

static inline uint64_t shmq_slice_of(const shmq_member *m) {
    return m->patience_ns * 2 > SHMQ_SLICE_NS ? m->patience_ns * 2 : SHMQ_SLICE_NS;
}

static inline uint64_t shmq_slice_end(const shmq_member *m) { return shmq_now_ns() + shmq_slice_of(m); }

/* The answer of a wait when its piece is over. The directory may have been deleted meanwhile: the next call sees it. */
static inline shmq_status shmq_slice_over(shmq_member *m) {
    (void)shmq_member_gone(m);
    return SHMQ_INTERRUPTED;
}

#endif
