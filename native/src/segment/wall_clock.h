/* Times for people. Durations, enqueued_ns and all that is due are of the monotonic clock. People read, and select by,
 * the wall clock, as it was told at the put. The two differ by a constant until the system sleeps or somebody sets the
 * clock: then by another one. The segment keeps the last of these differences, and from when on each holds.
 *
 *   header.clock_steps_count, header.clock_steps[n % SHMQ_CLOCK_STEPS] for each n below it
 *   0   from_ns    whoever finds the clocks apart, by CAS before the count    all    -  (monotonic) holds from here on
 *   8   offset_ns  the same                                                   all    -  wall clock minus monotonic clock
 *   16  asleep_ns  the same                                                   all    -  time asleep since the boot
 *
 * The next put, of whatever process, notices a step. It reads the wall clock, takes the difference away, and compares
 * the result with the coarse monotonic clock. It does not where the wall clock has hardly moved since the last such
 * look. A death before the CAS of the count leaves a record that nobody reads; what comes after it writes that record
 * anew. */
#ifndef SHMQ_SEGMENT_WALL_CLOCK_H
#define SHMQ_SEGMENT_WALL_CLOCK_H

#include "base/clock.h"
#include "base/wait_time.h"
#include "segment/member.h"

/* When a put happens, by the monotonic clock; shmq_wall_of() makes of it what the wall clock says now. */
uint64_t shmq_put_ns_looking(shmq_member *m);
static inline uint64_t shmq_put_ns(shmq_member *m) {
    /* In this order: whoever sees a new look sees the offset that it found, and whoever does not sees the clock move. */
    uint64_t looked = shmq_load_seq(&m->clock_looked_ns), offset = shmq_load_seq(&m->clock_offset_ns);
    uint64_t wall = shmq_wall_ns();
    return SHMQ_LIKELY(wall - looked < SHMQ_CLOCK_LOOK_NS) ? wall - offset : shmq_put_ns_looking(m);
}
/* The wall clock's time at a time of the monotonic clock. For one to come: if nobody sets the wall clock. */
uint64_t shmq_wall_of(const shmq_member *m, uint64_t monotonic_ns);
/* How long ago that was, time asleep included. */
uint64_t shmq_age_ns(shmq_member *m, uint64_t monotonic_ns);

#endif
