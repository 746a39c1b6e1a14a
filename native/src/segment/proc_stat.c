#include "segment/proc_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t shmq_read_small(const char *path, char *text, size_t bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = 0;
    return length;
}

/* From field `from` on, to the beginning of field `to`; NULL: the line ends before. */
static const char *field_after(const char *at, int from, int to) {
    for (int field = from; at != NULL && field < to; field++) {
        at = strchr(at + 1, ' ');
    }
    return at;
}

bool shmq_proc_stat_of(uint32_t pid, shmq_proc_stat *stat) {
    char path[64] = "/proc/self/stat", text[1024];
    if (pid != 0) {
        snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
    }
    shmq_read_small(path, text, sizeof(text));
    const char *state = strrchr(text, ')'); /* the name before it may hold any character, parentheses too */
    const char *flags = field_after(state, 2, 9), *start = field_after(flags, 9, 22);
    if (start == NULL || state[1] != ' ') {
        return false;
    }
    *stat = (shmq_proc_stat){
        .state = state[2], .flags = strtoull(flags, NULL, 10), .start_time = strtoull(start, NULL, 10)};
    return true;
}

uint64_t shmq_own_pid_namespace(void) {
    struct stat file;
    return stat("/proc/self/ns/pid", &file) == 0 ? (uint64_t)file.st_ino : 0;
}
