/* Files of a broker are made young once an hour, and only those of its own directory. */
#include "still_broker.h"

#include <fcntl.h>
#include <sys/stat.h>

static char place[] = "/tmp/shmq-touch-XXXXXX";

static bool is_young(const char *name) {
    struct stat file;
    CHECK(fstatat(a->dir_fd, name, &file, 0) == 0);
    return file.st_mtime != 1;
}

static void make_old(const char *name) {
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    CHECK(utimensat(a->dir_fd, name, old, 0) == 0);
}

static void look(void) {
    stands_at += SHMQ_TICK_NS;
    CHECK(!round_of(SHMQ_DUTY_SEGMENT));
}

int main(void) {
    struct stat directory;
    begin();
    CHECK(mkdtemp(place) != NULL);
    a->dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(a->dir_fd >= 0 && fstat(a->dir_fd, &directory) == 0);
    int files[] = {openat(a->dir_fd, "segment", O_CREAT | O_WRONLY, 0600), openat(a->dir_fd, "lock", O_CREAT, 0600)};
    CHECK(close(files[0]) == 0 && close(files[1]) == 0);
    make_old("segment");
    make_old("lock");
    a->header->directory_device = directory.st_dev;
    a->header->directory_inode = directory.st_ino + 1;
    look(); /* the header names another directory */
    CHECK(!is_young("segment") && !is_young("lock"));
    a->header->directory_inode = directory.st_ino;
    stands_at += SHMQ_TOUCH_NS;
    look();
    CHECK(is_young("segment") && is_young("lock"));
    make_old("segment");
    stands_at += SHMQ_TOUCH_NS / 2;
    look();
    CHECK(!is_young("segment"));
    stands_at += SHMQ_TOUCH_NS / 2;
    look();
    CHECK(is_young("segment"));
    CHECK(unlinkat(a->dir_fd, "segment", 0) == 0 && unlinkat(a->dir_fd, "lock", 0) == 0 && rmdir(place) == 0);
    CHECK(close(a->dir_fd) == 0);
    a->dir_fd = -1;
    end();
    return 0;
}
