/* Stands in the place of the core's clock.c when the driver is linked; getpid() and syscall() come here by --wrap. */
#include "virtual.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "shmq/member.h"

#define LOOK_NS 100
#define WALL_NS UINT64_C(1700000000000000000) /* wall clock minus monotonic clock */
#define REAL_SLEEP_NS 1 /* one process moves at a time: nobody would end the sleep */

static uint64_t now_ns = VIRTUAL_START;
static pid_t pid = 1;

void virtual_clock_set(uint64_t ns) { now_ns = ns; }

uint64_t virtual_clock(void) { return now_ns; }

void virtual_pid_set(int number) { pid = number; }

uint64_t shmq_now_ns(void) { return now_ns += LOOK_NS; }

uint64_t shmq_wall_ns(void) { return shmq_now_ns() + WALL_NS; }

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void) { return pid; }

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (number != SYS_futex || a[1] != FUTEX_WAIT || a[3] == 0) {
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    const struct timespec *limit = (const struct timespec *)a[3];
    struct timespec real = {.tv_nsec = REAL_SLEEP_NS};
    long result = __real_syscall(number, a[0], a[1], a[2], &real, a[4], a[5]);
    if (result != 0 && errno == ETIMEDOUT) {
        now_ns += (uint64_t)limit->tv_sec * UINT64_C(1000000000) + (uint64_t)limit->tv_nsec;
    }
    return result;
}
