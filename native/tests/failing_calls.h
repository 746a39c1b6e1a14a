/* Calls of the core to the system, of which the nth fails: the linker leads them here (--wrap, see CMakeLists.txt). */
#ifndef SHMQ_TESTS_FAILING_CALLS_H
#define SHMQ_TESTS_FAILING_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "scratch_flow.h"

static long countdown = -1; /* 0: the next call fails; below: none does */
static long calls;
static int failure;

static bool fails(void) {
    calls++;
    if (countdown < 0 || countdown-- != 0) {
        return false;
    }
    errno = failure;
    return true;
}

#define WRAPPED(type, name, parameters, arguments, failed) \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters { return fails() ? (failed) : __real_##name arguments; }

WRAPPED(void *, mmap, (void *at, size_t bytes, int guard, int flags, int fd, off_t offset),
        (at, bytes, guard, flags, fd, offset), MAP_FAILED)
WRAPPED(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1)
WRAPPED(int, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes), failure)
WRAPPED(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1)
WRAPPED(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
WRAPPED(int, fstat, (int fd, struct stat *file), (fd, file), -1)
WRAPPED(int, fstatat, (int base, const char *path, struct stat *file, int flags), (base, path, file, flags), -1)
WRAPPED(int, lstat, (const char *path, struct stat *file), (path, file), -1)
WRAPPED(int, link, (const char *from, const char *to), (from, to), -1)
WRAPPED(int, linkat, (int from, const char *a, int to, const char *b, int flags), (from, a, to, b, flags), -1)
WRAPPED(int, unlink, (const char *path), (path), -1)
WRAPPED(int, statvfs, (const char *path, struct statvfs *at), (path, at), -1)
WRAPPED(int, fstatvfs, (int fd, struct statvfs *at), (fd, at), -1)
WRAPPED(ssize_t, pread, (int fd, void *at, size_t bytes, off_t offset), (fd, at, bytes, offset), -1)
WRAPPED(ssize_t, read, (int fd, void *at, size_t bytes), (fd, at, bytes), -1)
WRAPPED(ssize_t, pwrite, (int fd, const void *at, size_t bytes, off_t offset), (fd, at, bytes, offset), -1)
WRAPPED(int, mkdirat, (int base, const char *path, mode_t mode), (base, path, mode), -1)
WRAPPED(int, fchmodat, (int base, const char *path, mode_t mode, int flags), (base, path, mode, flags), -1)
WRAPPED(DIR *, fdopendir, (int fd), (fd), NULL)
WRAPPED(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags), -1)
WRAPPED(int, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b), -1)
WRAPPED(ssize_t, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count), -1)
WRAPPED(void *, realloc, (void *at, size_t bytes), (at, bytes), NULL)
WRAPPED(void *, malloc, (size_t bytes), (bytes), NULL)
WRAPPED(ssize_t, getrandom, (void *at, size_t bytes, unsigned flags), (at, bytes, flags), -1)
WRAPPED(void *, dlopen, (const char *name, int flags), (name, flags), NULL)
WRAPPED(void *, calloc, (size_t count, size_t bytes), (count, bytes), NULL)

static const char *refused; /* this function of a library that is opened does nothing, and says 0 */
static int refuse(void) { return 0; }

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
    if (refused != NULL && strcmp(name, refused) == 0) {
        return (void *)refuse;
    }
    return fails() ? NULL : __real_dlsym(library, name);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails() ? -1 : __real_open(path, flags, mode);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    const struct flock *lock = argument;
    /* Giving the structure byte back cannot fail, and the core says so by an assertion. */
    bool unlocks = command == F_OFD_SETLK && lock->l_type == F_UNLCK;
    return !unlocks && fails() ? -1 : __real_fcntl(fd, command, argument);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    return fails() ? -1 : __real_syscall(number, a, b, c, d, e, f);
}

static const int failures[] = {ENOSPC, EINTR, EIO};
#define FAILURES (int)(sizeof failures / sizeof failures[0])

#endif
