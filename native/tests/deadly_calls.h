/* Calls of the core to the files of rows, at the nth of which the process is killed: the linker leads them here (--wrap, see CMakeLists.txt). */
#ifndef SHMQ_TESTS_DEADLY_CALLS_H
#define SHMQ_TESTS_DEADLY_CALLS_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Amid: of a write, half of whose bytes are in the file; only writes are counted then. */
enum deadly_moment { DEADLY_BEFORE, DEADLY_BEHIND, DEADLY_AMID, DEADLY_MOMENTS };

#define DEADLY_CALLS(CALL) \
    CALL(openat)           \
    CALL(close)            \
    CALL(fdopendir)        \
    CALL(closedir)         \
    CALL(fstatat)          \
    CALL(fstat)            \
    CALL(mkdirat)          \
    CALL(fchownat)         \
    CALL(fchmodat)         \
    CALL(fchown)           \
    CALL(fchmod)           \
    CALL(getrandom)        \
    CALL(writev)           \
    CALL(renameat)         \
    CALL(pread)            \
    CALL(pwrite)           \
    CALL(unlinkat)

#define DEADLY_NUMBER(name) DEADLY_##name,
#define DEADLY_NAME(name) #name,
enum deadly_call { DEADLY_CALLS(DEADLY_NUMBER) DEADLY_KINDS };
static const char *const deadly_names[] = {DEADLY_CALLS(DEADLY_NAME)};

static long deadly_countdown = -1; /* 0: the next call is the last one; below: none is */
static enum deadly_moment deadly_moment;
static enum deadly_call deadly_kind; /* the one that counts; DEADLY_KINDS: all do */
static unsigned *deadly_deaths; /* of each kind of call; in memory that outlives the process */

static void deadly_begin(long n, enum deadly_call kind, enum deadly_moment moment) {
    deadly_moment = moment;
    deadly_kind = moment == DEADLY_AMID ? DEADLY_writev : kind;
    deadly_countdown = n;
}

static bool deadly(enum deadly_call call) {
    bool counts = deadly_countdown >= 0 && (deadly_kind == DEADLY_KINDS || deadly_kind == call);
    if (!counts || deadly_countdown-- != 0) {
        return false;
    }
    deadly_deaths[call]++;
    return true;
}

static void deadly_die(bool now) {
    if (now) {
        (void)raise(SIGKILL);
    }
}

#define DEADLY(type, name, parameters, arguments)           \
    type __real_##name parameters;                          \
    type __wrap_##name parameters;                          \
    type __wrap_##name parameters {                         \
        bool last = deadly(DEADLY_##name);                  \
        deadly_die(last && deadly_moment == DEADLY_BEFORE); \
        type answer = __real_##name arguments;              \
        deadly_die(last);                                   \
        return answer;                                      \
    }

DEADLY(int, close, (int fd), (fd))
DEADLY(DIR *, fdopendir, (int fd), (fd))
DEADLY(int, closedir, (DIR * directory), (directory))
DEADLY(int, fstatat, (int base, const char *path, struct stat *file, int flags), (base, path, file, flags))
DEADLY(int, fstat, (int fd, struct stat *file), (fd, file))
DEADLY(int, mkdirat, (int base, const char *path, mode_t mode), (base, path, mode))
DEADLY(int, fchownat, (int base, const char *path, uid_t user, gid_t group, int flags),
       (base, path, user, group, flags))
DEADLY(int, fchmodat, (int base, const char *path, mode_t mode, int flags), (base, path, mode, flags))
DEADLY(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group))
DEADLY(int, fchmod, (int fd, mode_t mode), (fd, mode))
DEADLY(ssize_t, getrandom, (void *at, size_t bytes, unsigned flags), (at, bytes, flags))
DEADLY(int, renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))
DEADLY(ssize_t, pread, (int fd, void *at, size_t bytes, off_t offset), (fd, at, bytes, offset))
DEADLY(ssize_t, pwrite, (int fd, const void *at, size_t bytes, off_t offset), (fd, at, bytes, offset))
DEADLY(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags))

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    bool last = deadly(DEADLY_openat);
    deadly_die(last && deadly_moment == DEADLY_BEFORE);
    int fd = __real_openat(directory, path, flags, mode);
    deadly_die(last);
    return fd;
}

ssize_t __real_writev(int fd, const struct iovec *pieces, int count);
ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count);
ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count) {
    bool last = deadly(DEADLY_writev);
    deadly_die(last && deadly_moment == DEADLY_BEFORE);
    if (last && deadly_moment == DEADLY_AMID) {
        const struct iovec half = {.iov_base = pieces[count / 2].iov_base, .iov_len = pieces[count / 2].iov_len / 2};
        (void)__real_writev(fd, pieces, count / 2);
        (void)__real_writev(fd, &half, 1);
        deadly_die(true);
    }
    ssize_t written = __real_writev(fd, pieces, count);
    deadly_die(last);
    return written;
}

#endif
