/* Stands in the place of the core's clock.c when the driver is linked; getpid(), syscall() and the allocator come here by
 * --wrap. */
#include "base/clock.h"
#include "virtual.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 100
#define WALL_NS UINT64_C(1700000000000000000) /* wall clock minus monotonic clock */

static uint64_t now_ns = VIRTUAL_START, wall_ns = WALL_NS;
static pid_t pid = 1;

void virtual_clock_set(uint64_t ns) { now_ns = ns; }

uint64_t virtual_clock(void) { return now_ns; }

uint64_t *virtual_clock_word(void) { return &now_ns; }

void virtual_pid_set(int number) { pid = number; }

uint64_t shmq_now_ns(void) { return now_ns += LOOK_NS; }

uint64_t shmq_wall_ns(void) { return shmq_now_ns() + wall_ns; }

void virtual_wall_step(uint64_t ns) { wall_ns += ns; }

uint64_t shmq_boot_ns(void) { return shmq_now_ns(); }

uint64_t shmq_about_now_ns(void) { return now_ns; }

pid_t __wrap_getpid(void);
pid_t __wrap_getpid(void) { return pid; }

/* When a process began is for people, means nothing to the protocols, and takes the kernel long to say. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (strcmp(path, "/proc/self/stat") == 0) {
        errno = ENOENT;
        return -1;
    }
    return __real_open(path, flags, mode);
}

static void (*before_sleep)(void);

void virtual_before_sleep(void (*call)(void)) { before_sleep = call; }

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
    if (before_sleep != NULL) {
        before_sleep();
    }
    const struct timespec *limit = (const struct timespec *)a[3];
    struct timespec real = {0}; /* one process moves at a time: nobody would end the sleep */
    long result = __real_syscall(number, a[0], a[1], a[2], &real, a[4], a[5]);
    if (result != 0 && errno == ETIMEDOUT) {
        now_ns += (uint64_t)limit->tv_sec * UINT64_C(1000000000) + (uint64_t)limit->tv_nsec;
    }
    return result;
}

/* A victim inherits the driver's heap, which is another one each time, and so would the steps of its malloc be. It gets
 * one of its own, from which nothing is ever given back. */
#define HEAP_BYTES (1u << 20)

static bool own_heap;
static size_t heap_used;
static _Alignas(64) unsigned char heap[HEAP_BYTES];

void virtual_heap_begin(void) { own_heap = true; }

static bool is_in_heap(const void *at) {
    return (uintptr_t)at >= (uintptr_t)heap && (uintptr_t)at < (uintptr_t)heap + HEAP_BYTES;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
void __wrap_free(void *at);

void *__wrap_malloc(size_t bytes) {
    if (!own_heap) {
        return __real_malloc(bytes);
    }
    size_t at = heap_used;
    if (bytes > HEAP_BYTES - at - 64) {
        return NULL;
    }
    heap_used += (bytes + 63) & ~(size_t)63;
    return heap + at;
}

void *__wrap_calloc(size_t count, size_t bytes) { /* fresh memory is zero */
    return own_heap ? __wrap_malloc(count * bytes) : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *at, size_t bytes) {
    if (!own_heap) {
        return __real_realloc(at, bytes);
    }
    void *to = __wrap_malloc(bytes);
    if (to != NULL && at != NULL) {
        memcpy(to, at, bytes); /* maybe more than there was; all of it can be read */
    }
    return to;
}

void __wrap_free(void *at) {
    if (!own_heap && !is_in_heap(at)) {
        __real_free(at);
    }
}
