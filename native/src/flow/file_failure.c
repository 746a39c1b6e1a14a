/* Errors where files of rows cannot be written or read. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "flow/file_level.h"
#include "flow/rows_base.h"

static shmq_status no_room(const shmq_file_level *b) {
    struct statvfs disk;
    char text[PATH_MAX];
    shmq_rows_base_text(b->m, b->path, text);
    if (!shmq_rows_base_system(b->m, b->path, &disk)) {
        memset(&disk, 0, sizeof disk);
    }
    return shmq_fail(SHMQ_NO_SPACE,
                     "no room on the disk for messages that do not fit into memory: %s\n"
                     "%llu of %llu bytes are free there, %llu files\n"
                     "free space there, or let consumers take messages",
                     text, (unsigned long long)disk.f_bavail * disk.f_frsize,
                     (unsigned long long)disk.f_blocks * disk.f_frsize, (unsigned long long)disk.f_favail);
}

shmq_status shmq_file_failed(const shmq_file_level *b, const char *what) {
    if (errno == ENOSPC || errno == EDQUOT) {
        return no_room(b);
    }
    char text[PATH_MAX];
    shmq_rows_base_text(b->m, b->path, text);
    shmq_status status = shmq_fail_errno("cannot %s %s", what, text);
    shmq_advise("remove the cause: the queue works again then; purge() drops the messages that lie there");
    return status;
}

shmq_status shmq_file_no_key(const shmq_file_level *b) {
    char text[PATH_MAX];
    shmq_rows_base_text(b->m, b->path, text);
    return shmq_fail(SHMQ_DENIED,
                     "messages on disk are encrypted, and this process does not have their key\n%s\n"
                     "open the broker with the encryption_key with which it was made; nothing is lost",
                     text);
}

shmq_status shmq_file_not_private(const shmq_file_level *b) {
    char text[PATH_MAX];
    shmq_rows_base_text(b->m, b->path, text);
    char *end = strrchr(text, '/'); /* the queue's directory lies in the segment's, that in the user's */
    *end = '\0';
    *strrchr(text, '/') = '\0';
    return shmq_fail(SHMQ_DENIED,
                     "%s is not a directory of this user alone\n\nremove it, or set TMPDIR to another place", text);
}
