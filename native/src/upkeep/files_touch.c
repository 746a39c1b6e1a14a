/* Keeps a broker's files young. Cleaners of /tmp go by age. While processes use a broker nothing else writes to its
 * record, nor to rows that wait on disk for days. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/wait_time.h"
#include "flow/rows_base.h"
#include "flow/rows_directory.h"
#include "upkeep/duty.h"

static void touch(int directory, const char *name) { (void)utimensat(directory, name, NULL, AT_SYMLINK_NOFOLLOW); }

/* Something else may have closed the descriptor, and its number be another directory's. */
static bool is_brokers(const shmq_member *m) {
    struct stat found;
    return m->dir_fd >= 0 && fstat(m->dir_fd, &found) == 0 && found.st_dev == m->header->directory_device &&
           found.st_ino == m->header->directory_inode;
}

static void touch_files(int base, const char *path, shmq_budget *b) {
    DIR *directory = shmq_rows_directory_open(base, path);
    uint64_t place;
    for (struct dirent *e; directory != NULL && b->left != 0 && (e = readdir(directory)) != NULL;) {
        if (shmq_rows_file_place(e->d_name, &place)) {
            shmq_budget_spend(b, SHMQ_PRICE_ROW);
            touch(dirfd(directory), e->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static void touch_rows(const shmq_member *m, shmq_budget *b) {
    char path[PATH_MAX];
    int base = shmq_rows_base(m);
    DIR *queues = shmq_rows_directory_open(base, shmq_rows_base_path(m));
    for (struct dirent *e; queues != NULL && (e = readdir(queues)) != NULL;) {
        unsigned index, incarnation;
        if (shmq_rows_is_of_queue(e->d_name, &index, &incarnation) &&
            snprintf(path, sizeof path, "%s/%s", shmq_rows_base_path(m), e->d_name) < (int)sizeof path) {
            touch_files(base, path, b);
        }
    }
    if (queues != NULL) {
        closedir(queues);
    }
}

void shmq_files_touch(shmq_member *m, uint64_t now, shmq_budget *b) {
    uint64_t last = shmq_load_relaxed(&m->touched_ns);
    if (last != 0 && (int64_t)(now - last) < (int64_t)SHMQ_TOUCH_NS) {
        return;
    }
    shmq_store_relaxed(&m->touched_ns, now);
    if (is_brokers(m)) {
        touch(m->dir_fd, "segment");
        touch(m->dir_fd, "lock");
    }
    /* There may be many files: a sleeper has time for them. A later sleeper does the rest. */
    if (b->spare != NULL && m->spill_base != 0) {
        touch_rows(m, b);
    }
}
