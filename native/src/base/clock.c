/* The clocks: durations and enqueued_ns are of the monotonic clock, times that people read are of the wall clock. */
#include "base/clock.h"
#include "base/status.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock) {
    struct timespec at;
    SHMQ_ASSERT(clock_gettime(clock, &at) == 0);
    return (uint64_t)at.tv_sec * UINT64_C(1000000000) + (uint64_t)at.tv_nsec;
}

uint64_t shmq_now_ns(void) { return read_ns(CLOCK_MONOTONIC); }

uint64_t shmq_wall_ns(void) { return read_ns(CLOCK_REALTIME); }

uint64_t shmq_boot_ns(void) { return read_ns(CLOCK_BOOTTIME); }

uint64_t shmq_about_now_ns(void) { return read_ns(CLOCK_MONOTONIC_COARSE); }
