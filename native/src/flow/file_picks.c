/* Some rows of a file: waiting rows come in a few at a time, and a file has thousands. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "flow/file_level.h"
#include "flow/rows_base.h"

int shmq_file_open(const shmq_file_level *b, uint64_t first, int how) {
    char path[PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/%016llx", b->path, (unsigned long long)first);
    return openat(shmq_rows_base(b->m), path, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* A link, a socket or a directory in the place of a file is none. */
static shmq_status why(const shmq_file_level *b, const char *what) {
    bool none = errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == EISDIR || errno == ESPIPE;
    return none ? SHMQ_NOT_FOUND : shmq_file_failed(b, what);
}

shmq_status shmq_file_pick(void *context, const shmq_row_life *lives, shmq_row *rows, uint32_t count) {
    shmq_file_level *b = context;
    const shmq_row_cipher by = shmq_file_level_cipher(b);
    int fd = shmq_file_open(b, lives[0].first, O_RDONLY);
    shmq_status status = fd >= 0 ? shmq_row_file_pick(&b->picked, fd, &by, lives, rows, count) : SHMQ_OS;
    status = status == SHMQ_OS ? why(b, "read a file of") : status;
    if (fd >= 0) {
        close(fd);
    }
    return status == SHMQ_DENIED ? shmq_file_no_key(b) : status;
}

shmq_status shmq_file_drop(void *context, const shmq_row_life *lives, uint32_t count) {
    shmq_file_level *b = context;
    int fd = shmq_file_open(b, lives[0].first, O_WRONLY);
    shmq_status status = fd >= 0 && shmq_row_file_drop(fd, lives, count) ? SHMQ_OK : why(b, "write to a file of");
    if (fd >= 0) {
        close(fd);
    }
    return status == SHMQ_NOT_FOUND ? SHMQ_OK : status;
}
