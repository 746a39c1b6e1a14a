/* The directory of a queue's rows: the purger makes it, clears it of earlier queues' rows, and deletes it. */
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

void shmq_rows_file_name(char name[17], uint64_t place) { snprintf(name, 17, "%016llx", (unsigned long long)place); }

bool shmq_rows_file_place(const char *name, uint64_t *place) {
    char same[17];
    *place = strtoull(name, NULL, 16);
    shmq_rows_file_name(same, *place);
    return strcmp(name, same) == 0;
}

DIR *shmq_rows_directory_open(int base, const char *path) {
    int fd = openat(base, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory == NULL && fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return directory;
}

void shmq_rows_directory_delete(int base, const char *path) {
    DIR *directory = shmq_rows_directory_open(base, path);
    uint64_t place;
    if (directory == NULL) {
        return;
    }
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (shmq_rows_file_place(e->d_name, &place) || strcmp(e->d_name, SHMQ_ROWS_UNFINISHED) == 0) {
            (void)unlinkat(dirfd(directory), e->d_name, 0);
        }
    }
    closedir(directory);
    (void)unlinkat(base, path, AT_REMOVEDIR);
}

uint64_t shmq_rows_directory_bytes(int base, const char *path) {
    uint64_t bytes = 0, place;
    struct stat file;
    DIR *directory = shmq_rows_directory_open(base, path);
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        if (shmq_rows_file_place(e->d_name, &place) && fstatat(dirfd(directory), e->d_name, &file, 0) == 0) {
            bytes += (uint64_t)file.st_size;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return bytes;
}

bool shmq_rows_is_of_queue(const char *name, unsigned *index, unsigned *incarnation) {
    char same[40];
    unsigned depth = 0;
    int parts = sscanf(name, "%u.%u.%u", index, incarnation, &depth);
    (void)snprintf(same, sizeof same, parts == 3 ? "%u.%u.%u" : "%u.%u", *index, *incarnation, depth);
    return parts >= 2 && strcmp(name, same) == 0;
}

/* Deletes what an earlier queue of this index has left: a process deleted that queue and died. */
static void sweep(int base, const char *parent, unsigned index, unsigned incarnation) {
    DIR *directory = shmq_rows_directory_open(base, parent);
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        unsigned other_index, other;
        char path[PATH_MAX];
        if (shmq_rows_is_of_queue(e->d_name, &other_index, &other) && other_index == index && other != incarnation &&
            snprintf(path, sizeof path, "%s/%s", parent, e->d_name) < (int)sizeof path) {
            shmq_rows_directory_delete(base, path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* The path without its last component; "." for one that has no other. */
static void parent_of(const char *path, char parent[PATH_MAX]) {
    const char *end = strrchr(path, '/');
    snprintf(parent, PATH_MAX, "%.*s", end == NULL ? 1 : (int)(end - path), end == NULL ? "." : path);
}

static bool is_as_the_broker(int base, const char *path, const struct stat *broker) {
    struct stat found;
    return fstatat(base, path, &found, 0) != 0 || !S_ISDIR(found.st_mode) ||
           (found.st_mode & 0770) == (broker->st_mode & 0770);
}

/* A directory for the users of the broker: it has group and mode of the broker's directory, whatever umask and first
 * group this process has. A user outside that group may not hand a directory to it; then the group lets nobody in, and
 * that is no failure. `looks`: one that a process made and was killed before it gave it this mode is empty, and made
 * anew, for only its owner could change it. That process may be alive, and then begins again. */
static bool make_one(int base, const char *path, const struct stat *broker, bool looks) {
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (mkdirat(base, path, 0700) == 0) {
            int ignored = fchownat(base, path, (uid_t)-1, broker->st_gid, 0);
            (void)ignored;
            if (fchmodat(base, path, broker->st_mode & 0770, 0) == 0) {
                return true;
            }
            if (errno != ENOENT && errno != EPERM) {
                return false;
            }
        } else if (errno != EEXIST) {
            return false;
        } else if (!looks || is_as_the_broker(base, path, broker) ||
                   (unlinkat(base, path, AT_REMOVEDIR) != 0 && errno != ENOENT)) {
            return true;
        }
    }
    return true;
}

static bool make_all(int base, const char *path, const char *parent, const struct stat *as, bool sweeps) {
    unsigned index = 0, incarnation = 0;
    if (!make_one(base, parent, as, sweeps) || !make_one(base, path, as, sweeps)) {
        return false;
    }
    if (sweeps && sscanf(strrchr(path, '/') + 1, "%u.%u", &index, &incarnation) == 2) {
        sweep(base, parent, index, incarnation);
    }
    return true;
}

bool shmq_rows_directory_make(int base, const char *path, struct stat *as, bool sweeps) {
    char parent[PATH_MAX], all[PATH_MAX], broker[PATH_MAX];
    parent_of(path, parent);
    parent_of(parent, all);
    parent_of(all, broker);
    return fstatat(base, broker, as, 0) == 0 && make_one(base, all, as, sweeps) &&
           make_all(base, path, parent, as, sweeps);
}

bool shmq_rows_directory_make_private(int base, const char *path, struct stat *as, bool sweeps) {
    char parent[PATH_MAX], all[PATH_MAX];
    parent_of(path, parent);
    parent_of(parent, all);
    bool made = false;
    errno = ENOENT;
    /* Others remove the folder when they have removed the last thing in it. */
    for (int tries = 0; tries < MOST_TRIES && !made && errno == ENOENT; tries++) {
        if ((mkdirat(base, all, 0700) != 0 && errno != EEXIST) || fstatat(base, all, as, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (!S_ISDIR(as->st_mode) || as->st_uid != geteuid() || (as->st_mode & 077) != 0) {
            errno = EEXIST;
            return false;
        }
        made = make_all(base, path, parent, as, sweeps);
    }
    return made;
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
