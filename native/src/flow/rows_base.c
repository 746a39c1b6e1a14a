/* Where a process has rows: paths below a descriptor. */
#include "flow/rows_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cuts off the last part. False: there is only one. */
static bool cut(char *path) {
    char *last = strrchr(path, '/');
    if (last == NULL || last == path) {
        return false;
    }
    *last = '\0';
    return true;
}

static int descriptor(const shmq_member *m) { return m->dir_fd >= 0 ? m->dir_fd : m->rows_fd; }

void shmq_rows_base_open(shmq_member *m) {
    char base[sizeof m->spill];
    struct stat found;
    strcpy(base, m->spill);
    m->spill_base = 0;
    if (m->rows_fd >= 0) {
        close(m->rows_fd);
        m->rows_fd = -1;
    }
    if (!cut(base) || !cut(base)) {
        return;
    }
    /* The broker's directory is open since this process has joined it, and may be elsewhere than its path says. */
    m->rows_fd = m->dir_fd >= 0 ? -1 : open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (descriptor(m) >= 0 && fstat(descriptor(m), &found) == 0) {
        m->rows_device = found.st_dev;
        m->rows_inode = found.st_ino;
        m->spill_base = (uint32_t)strlen(base) + 1;
    }
}

/* The base is opened at its path, under the number that it had. Until there is one, the old descriptor says ENOENT. */
static int made_again(const shmq_member *m) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    shmq_member *mine = (shmq_member *)(uintptr_t)m;
    char base[sizeof m->spill];
    struct stat found;
    snprintf(base, sizeof base, "%.*s", (int)m->spill_base - 1, m->spill);
    pthread_mutex_lock(&mutex);
    int fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &found) == 0 && dup3(fd, m->rows_fd, O_CLOEXEC) >= 0) {
        mine->rows_device = found.st_dev;
        mine->rows_inode = found.st_ino;
    }
    if (fd >= 0) {
        close(fd);
    }
    pthread_mutex_unlock(&mutex);
    return m->rows_fd;
}

int shmq_rows_base(const shmq_member *m) {
    struct stat found;
    if (m->spill_base == 0) {
        return AT_FDCWD;
    }
    int base = descriptor(m);
    if (fstat(base, &found) == 0 && found.st_dev == m->rows_device && found.st_ino == m->rows_inode) {
        /* A temporary directory that was removed may be made again; the broker's directory is gone with the broker. */
        return found.st_nlink == 0 && m->dir_fd < 0 ? made_again(m) : base;
    }
    errno = EBADF;
    return -1;
}

const char *shmq_rows_base_path(const shmq_member *m) { return m->spill + m->spill_base; }

void shmq_rows_base_text(const shmq_member *m, const char *path, char text[PATH_MAX]) {
    int error = errno, base = shmq_rows_base(m);
    char link[64], now[sizeof m->spill] = "";
    if (base >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", base);
        ssize_t length = readlink(link, now, sizeof now - 1);
        now[length > 0 ? length : 0] = '\0';
    }
    if (m->spill_base == 0) {
        snprintf(text, PATH_MAX, "%s", path);
    } else if (now[0] == '/') {
        snprintf(text, PATH_MAX, "%s/%s", now, path);
    } else { /* without /proc, as it was called when this process joined */
        snprintf(text, PATH_MAX, "%.*s%s", (int)m->spill_base, m->spill, path);
    }
    errno = error;
}

bool shmq_rows_base_system(const shmq_member *m, const char *path, struct statvfs *system) {
    char part[PATH_MAX];
    int base = shmq_rows_base(m);
    snprintf(part, sizeof part, "%s", path);
    do {
        int fd = openat(base, part, O_PATH | O_CLOEXEC);
        bool found = fd >= 0 && fstatvfs(fd, system) == 0;
        if (fd >= 0) {
            close(fd);
        }
        if (found) {
            return true;
        }
    } while (cut(part));
    return base >= 0 && fstatvfs(base, system) == 0;
}
