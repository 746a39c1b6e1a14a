/* Writes a file of rows. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "flow/row_format.h"

#define PIECES 512
#define PIECE_BYTES (UINT64_C(1) << 16) /* of encrypted rows, at one time */

static bool write_all(int fd, struct iovec *pieces, int count) {
    while (count > 0) {
        ssize_t written = writev(fd, pieces, count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        for (; count > 0 && (size_t)written >= pieces->iov_len; pieces++, count--) {
            written -= (ssize_t)pieces->iov_len;
        }
        if (count > 0) {
            pieces->iov_base = (char *)pieces->iov_base + written;
            pieces->iov_len -= (size_t)written;
        }
    }
    return true;
}

/* Encrypts all rows and writes them piece by piece: a piece fits into the processor's cache, which is faster. False:
 * errno says why. */
static bool encrypt_rows(int fd, shmq_file_cipher *s, const file_entry *entries, const shmq_row *rows, uint32_t count,
                         const shmq_cipher *cipher) {
    uint64_t room = PIECE_BYTES, used = 0;
    for (uint32_t i = 0; i < count; i++) {
        room = rows[i].length + SHMQ_TAG_BYTES > room ? rows[i].length + SHMQ_TAG_BYTES : room;
    }
    unsigned char *piece = malloc(room);
    bool done = piece != NULL;
    for (uint32_t i = 0; i < count && done; i++) {
        const row_place place = {.entry = entries[i], .number = i, .count = count};
        done = cipher->encrypt(s, i, &place, sizeof place, rows[i].bytes, rows[i].length, piece + used);
        used += rows[i].length + SHMQ_TAG_BYTES;
        if (done && (i + 1 == count || used + rows[i + 1].length + SHMQ_TAG_BYTES > room)) {
            struct iovec all = {.iov_base = piece, .iov_len = used};
            done = write_all(fd, &all, 1);
            used = 0;
        }
    }
    int error = errno;
    free(piece);
    errno = error;
    return done;
}

static bool write_encrypted(int fd, file_head *head, file_entry *entries, unsigned char *marks, const shmq_row *rows,
                            const shmq_row_cipher *by) {
    file_salt how;
    uint64_t index = head->count * sizeof *entries;
    memcpy(how.check, by->cipher->check, sizeof how.check);
    if (getrandom(how.salt, sizeof how.salt, 0) != (ssize_t)sizeof how.salt) {
        return false;
    }
    head->magic = ENCRYPTED;
    head->sum = shmq_crc32c(shmq_crc32c(sum_begin(by), &how, sizeof how), entries, index);
    struct iovec pieces[] = {{.iov_base = head, .iov_len = sizeof *head},
                             {.iov_base = &how, .iov_len = sizeof how},
                             {.iov_base = entries, .iov_len = index},
                             {.iov_base = marks, .iov_len = head->count}};
    shmq_file_cipher *s = by->cipher->begin(by->cipher, how.salt, by->place, true);
    bool done = s != NULL && write_all(fd, pieces, sizeof pieces / sizeof pieces[0]) &&
                encrypt_rows(fd, s, entries, rows, head->count, by->cipher);
    int error = errno;
    by->cipher->end(s);
    errno = error;
    return done;
}

static bool write_plain(int fd, file_head *head, file_entry *entries, unsigned char *marks, const shmq_row *rows,
                        const shmq_row_cipher *by) {
    uint64_t bytes = head->count * sizeof *entries;
    head->magic = PLAIN;
    head->sum = shmq_crc32c(sum_begin(by), entries, bytes);
    struct iovec pieces[PIECES] = {{.iov_base = head, .iov_len = sizeof *head},
                                   {.iov_base = entries, .iov_len = bytes},
                                   {.iov_base = marks, .iov_len = head->count}};
    int used = 3;
    for (uint32_t i = 0; i < head->count; i++) {
        struct iovec *last = &pieces[used - 1];
        if (i > 0 && rows[i].bytes == (const unsigned char *)last->iov_base + last->iov_len) {
            last->iov_len += (size_t)rows[i].length; /* as a turn has them: fewer pieces cost the kernel less */
            continue;
        }
        if (used == PIECES) {
            if (!write_all(fd, pieces, used)) {
                return false;
            }
            used = 0;
        }
        pieces[used++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)rows[i].bytes, .iov_len = (size_t)rows[i].length};
    }
    return write_all(fd, pieces, used);
}

bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count, const shmq_row_cipher *by) {
    unsigned char *index = malloc(count * (sizeof(file_entry) + 1));
    file_entry *entries = (file_entry *)index;
    file_head head = {.count = count};
    if (index == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (file_entry){.place = rows[i].place,
                                  .length = rows[i].length,
                                  .enqueued_ns = rows[i].enqueued_ns,
                                  .expires_ns = rows[i].expires_ns};
    }
    unsigned char *marks = index + count * sizeof *entries;
    memset(marks, HERE, count);
    /* The marks are written first, and lie in small pieces of the kernel's cache then. A later write of one mark looks at
     * all blocks of its piece: 17 us in one of a megabyte. If it fails the next write says so. */
    (void)!pwrite(fd, marks, count, (off_t)(index_begin(by) + count * sizeof *entries));
    bool done = by->wanted ? write_encrypted(fd, &head, entries, marks, rows, by)
                           : write_plain(fd, &head, entries, marks, rows, by);
    int error = errno;
    free(index);
    errno = error;
    return done;
}
