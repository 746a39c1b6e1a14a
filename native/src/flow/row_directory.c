/* Directories of rows: made by the first flush, for those who may use the broker, and deleted with the queue. */
#include "flow/row_directory.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

shmq_status shmq_rows_failed(const char *path, const char *what) {
    if (errno == ENOSPC || errno == EDQUOT) {
        return shmq_fail(SHMQ_NO_SPACE,
                         "no room on the disk for messages that do not fit into memory: %s\n"
                         "make room there, or let consumers go on",
                         path);
    }
    return shmq_fail_errno("cannot %s %s", what, path);
}

void shmq_rows_delete(const char *path) {
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

/* What lies above the last component. */
static void parent_of(const char *path, char parent[PATH_MAX]) {
    snprintf(parent, PATH_MAX, "%.*s", (int)(strrchr(path, '/') - path), path);
}

void shmq_rows_sweep(const char *path) {
    char parent[PATH_MAX], other_path[PATH_MAX];
    unsigned index, incarnation, other_index, other;
    parent_of(path, parent);
    DIR *directory = sscanf(strrchr(path, '/') + 1, "%u.%u", &index, &incarnation) == 2 ? opendir(parent) : NULL;
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        if (sscanf(e->d_name, "%u.%u", &other_index, &other) == 2 && other_index == index && other != incarnation &&
            snprintf(other_path, sizeof other_path, "%s/%s", parent, e->d_name) < (int)sizeof other_path) {
            shmq_rows_delete(other_path);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* As the broker's own directory says, whatever the umask. */
static bool make_one(const char *path, mode_t mode) {
    return mkdir(path, 0700) == 0 ? chmod(path, mode) == 0 : errno == EEXIST;
}

/* The folder of an anonymous broker lies where everybody may make one of its name. */
static shmq_status make_private(const char *path) {
    struct stat found;
    if (!make_one(path, 0700) || lstat(path, &found) != 0) {
        return shmq_rows_failed(path, "make the directory");
    }
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
        return shmq_fail(SHMQ_DENIED,
                         "%s is not a directory of this user alone\n\nremove it, or name another place by TMPDIR",
                         path);
    }
    return SHMQ_OK;
}

shmq_status shmq_rows_make(const char *path, bool anonymous, mode_t *mode) {
    char parent[PATH_MAX], all[PATH_MAX], broker[PATH_MAX];
    struct stat as = {.st_mode = 0700};
    parent_of(path, parent);
    parent_of(parent, all);
    parent_of(all, broker);
    if (anonymous) {
        SHMQ_TRY(make_private(all));
    } else if (stat(broker, &as) != 0) {
        return shmq_rows_failed(path, "find the broker's directory of");
    }
    *mode = as.st_mode & 0770;
    bool made = make_one(all, *mode) && make_one(parent, *mode) && make_one(path, *mode);
    return made ? SHMQ_OK : shmq_rows_failed(path, "make the directory");
}
