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

/* A directory for the users of the broker: it has group and mode of the broker's directory, whatever umask and first
 * group this process has. A user outside that group may not hand a directory to it; then the group lets nobody in, and
 * that is no failure. */
static bool make_one(const char *path, const struct stat *broker) {
    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST;
    }
    int ignored = chown(path, (uid_t)-1, broker->st_gid);
    (void)ignored;
    return chmod(path, broker->st_mode & 0770) == 0;
}

static bool make_all(const char *path, const char *parent, const struct stat *as, bool sweeps) {
    unsigned index = 0, incarnation = 0;
    if (!make_one(parent, as) || !make_one(path, as)) {
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
    return stat(broker, as) == 0 && make_one(all, as) && make_all(path, parent, as, sweeps);
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
