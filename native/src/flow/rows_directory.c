/* The directory of a queue's rows: the mover makes it, clears it of earlier queues' rows, and deletes it. */
#include "flow/rows_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_TRIES 10

void shmq_rows_directory_delete(const char *path) {
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        (void)unlinkat(dirfd(directory), e->d_name, 0);
    }
    closedir(directory);
    (void)rmdir(path);
}

/* Deletes what an earlier queue of this index has left: a process deleted that queue and died. */
static void sweep(const char *parent, unsigned index, unsigned incarnation) {
    DIR *directory = opendir(parent);
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        unsigned other_index, other;
        char path[PATH_MAX];
        if (sscanf(e->d_name, "%u.%u", &other_index, &other) == 2 && other_index == index && other != incarnation &&
            snprintf(path, sizeof path, "%s/%s", parent, e->d_name) < (int)sizeof path) {
            shmq_rows_directory_delete(path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* The path without its last component. */
static void parent_of(const char *path, char parent[PATH_MAX]) {
    snprintf(parent, PATH_MAX, "%.*s", (int)(strrchr(path, '/') - path), path);
}

static bool is_as_the_broker(const char *path, const struct stat *broker) {
    struct stat found;
    return stat(path, &found) != 0 || !S_ISDIR(found.st_mode) || (found.st_mode & 0770) == (broker->st_mode & 0770);
}

/* A directory for the users of the broker: it has group and mode of the broker's directory, whatever umask and first
 * group this process has. A user outside that group may not hand a directory to it; then the group lets nobody in, and
 * that is no failure. `looks`: one that a process made and was killed before it gave it this mode is empty, and made
 * anew, for only its owner could change it. That process may be alive, and then begins again. */
static bool make_one(const char *path, const struct stat *broker, bool looks) {
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (mkdir(path, 0700) == 0) {
            int ignored = chown(path, (uid_t)-1, broker->st_gid);
            (void)ignored;
            if (chmod(path, broker->st_mode & 0770) == 0) {
                return true;
            }
            if (errno != ENOENT && errno != EPERM) {
                return false;
            }
        } else if (errno != EEXIST) {
            return false;
        } else if (!looks || is_as_the_broker(path, broker) || (rmdir(path) != 0 && errno != ENOENT)) {
            return true;
        }
    }
    return true;
}

static bool make_all(const char *path, const char *parent, const struct stat *as, bool sweeps) {
    unsigned index = 0, incarnation = 0;
    if (!make_one(parent, as, sweeps) || !make_one(path, as, sweeps)) {
        return false;
    }
    if (sweeps && sscanf(strrchr(path, '/') + 1, "%u.%u", &index, &incarnation) == 2) {
        sweep(parent, index, incarnation);
    }
    return true;
}

bool shmq_rows_directory_make(const char *path, struct stat *as, bool sweeps) {
    char parent[PATH_MAX], all[PATH_MAX], broker[PATH_MAX];
    parent_of(path, parent);
    parent_of(parent, all);
    parent_of(all, broker);
    return stat(broker, as) == 0 && make_one(all, as, sweeps) && make_all(path, parent, as, sweeps);
}

shmq_status shmq_rows_directory_make_private(const char *path, struct stat *as, bool sweeps) {
    char parent[PATH_MAX], all[PATH_MAX];
    parent_of(path, parent);
    parent_of(parent, all);
    if ((mkdir(all, 0700) != 0 && errno != EEXIST) || lstat(all, as) != 0) {
        return shmq_fail_errno("cannot make the directory %s", all);
    }
    if (!S_ISDIR(as->st_mode) || as->st_uid != geteuid() || (as->st_mode & 077) != 0) {
        return shmq_fail(SHMQ_DENIED,
                         "%s is not a directory of this user alone\n\nremove it, or set TMPDIR to another place", all);
    }
    return make_all(path, parent, as, sweeps) ? SHMQ_OK : shmq_fail_errno("cannot make the directory %s", path);
}

int shmq_rows_file_begin(int directory, const struct stat *as) {
    for (bool again = false;; again = true) {
        int fd = openat(directory, SHMQ_ROWS_UNFINISHED, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        int ignored = fd >= 0 ? fchown(fd, (uid_t)-1, as->st_gid) : 0;
        (void)ignored;
        if (fd >= 0 && fchmod(fd, as->st_mode & 0660) == 0) {
            return fd;
        }
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (again || (error != EACCES && error != EPERM) || unlinkat(directory, SHMQ_ROWS_UNFINISHED, 0) != 0) {
            errno = error;
            return -1;
        }
    }
}
