/* The core's calls of the kernel, and those that the compiler makes at each plain access. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>

#include "base/futex.h"
#include "segment/structure.h"
#include "wake/wait.h"
#include "weak.h"

#define SLACK_NS 1000000u
#define WALL_NS UINT64_C(1700000000000000000) /* wall clock minus monotonic clock: real or simulated, no step */

static int structure_holder = -1;

static uint64_t real_now(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t shmq_now_ns(void) { return weak_running ? weak_now() : real_now(CLOCK_MONOTONIC); }
uint64_t shmq_about_now_ns(void) { return shmq_now_ns(); }
uint64_t shmq_boot_ns(void) { return shmq_now_ns(); }
uint64_t shmq_wall_ns(void) { return shmq_now_ns() + WALL_NS; }

/* Compare and sleep are one step: the kernel has a full barrier, a load, and its lock until the thread is on the list. */
shmq_status shmq_sleep(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns) {
    (void)m;
    if (weak_load(word, 4, WEAK_seq_cst, "futex") != expected) {
        return SHMQ_OK;
    }
    /* Timers have slack, so several wake at once. */
    uint64_t slack = until_ns < UINT64_MAX - SLACK_NS ? SLACK_NS - until_ns % SLACK_NS : 0;
    return weak_block_on(word, until_ns + slack) ? SHMQ_OK : SHMQ_TIMEOUT;
}

shmq_status shmq_sleep_long(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns, uint64_t *slice_end) {
    (void)slice_end;
    return shmq_sleep(m, word, expected, until_ns);
}

int shmq_futex_wake_count(shmq_a32 *word, int count) {
    if (!weak_running) {
        return 0;
    }
    weak_step();
    return weak_unblock(word, count);
}

void shmq_futex_wake(shmq_a32 *word, int count) { (void)shmq_futex_wake_count(word, count); }

void weak_kernel_begin(void) { structure_holder = -1; }

/* Lock bytes: rows are locked by who lives, the structure's byte by who has taken it. */
int weak_fcntl(int fd, int command, ...);
int weak_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    struct flock *lock = argument;
    if (!weak_running || (command != F_OFD_GETLK && command != F_OFD_SETLK && command != F_OFD_SETLKW)) {
        structure_holder = -1;
        return fcntl(fd, command, argument);
    }
    if (command == F_OFD_GETLK && lock->l_start == SHMQ_STRUCTURE_BYTE) {
        weak_step();
        lock->l_type = structure_holder >= 0 && !weak_has_died(structure_holder) ? F_WRLCK : F_UNLCK;
        return 0;
    }
    if (command == F_OFD_GETLK) {
        lock->l_type = weak_is_dead((uint32_t)lock->l_start) ? F_UNLCK : F_WRLCK;
        return 0;
    }
    if (lock->l_type == F_UNLCK) {
        weak_lock_passes_on(false);
        structure_holder = -1;
        return 0;
    }
    while (structure_holder >= 0 && structure_holder != weak_thread() && !weak_has_died(structure_holder)) {
        if (command == F_OFD_SETLK) {
            errno = EAGAIN;
            return -1;
        }
        weak_yield();
    }
    structure_holder = weak_thread();
    weak_lock_passes_on(true);
    return 0;
}

/* The core is compiled as for ThreadSanitizer, and these stand in its runtime's place. */
#define SIZED(n)                                                        \
    void __tsan_read##n(void *at);                                      \
    void __tsan_read##n(void *at) { weak_read_plain(at, n); }           \
    void __tsan_write##n(void *at);                                     \
    void __tsan_write##n(void *at) { weak_write_plain(at, n); }         \
    void __tsan_unaligned_read##n(void *at);                            \
    void __tsan_unaligned_read##n(void *at) { weak_read_plain(at, n); } \
    void __tsan_unaligned_write##n(void *at);                           \
    void __tsan_unaligned_write##n(void *at) { weak_write_plain(at, n); }

SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_read_range(void *at, unsigned long bytes) { weak_read_plain(at, bytes); }
void __tsan_write_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes) { weak_write_plain(at, bytes); }
void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
/* weak_fcntl has done it: who finds a byte free has joined its holder. */
void __tsan_acquire(void *at);
void __tsan_acquire(void *at) { (void)at; }
void __tsan_release(void *at);
void __tsan_release(void *at) { (void)at; }
