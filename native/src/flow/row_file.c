/* The format of a file of rows. In the machine's byte order: rows do not outlive the segment. */
#include "flow/row_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3230574f524d4853) /* "SHMROW02" */
#define PIECES 512
#define HERE 0x00 /* marks; all others are damage */
#define GONE 0xa5

typedef struct file_head {
    uint64_t magic;
    uint32_t sum; /* CRC-32C of the index */
    uint32_t count;
} file_head;

typedef struct file_entry {
    uint64_t place, length;
} file_entry;

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

bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count) {
    file_entry entries[SHMQ_TURN_ENTRIES] = {{.place = 0}};
    uint64_t bytes = count * sizeof *entries;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (file_entry){.place = rows[i].place, .length = rows[i].length};
    }
    file_head head = {.magic = MAGIC, .sum = shmq_crc32c(0, entries, bytes), .count = count};
    unsigned char marks[SHMQ_TURN_ENTRIES] = {HERE};
    struct iovec pieces[PIECES] = {{.iov_base = &head, .iov_len = sizeof head},
                                   {.iov_base = entries, .iov_len = bytes},
                                   {.iov_base = marks, .iov_len = count}};
    int used = 3;
    for (uint32_t i = 0; i < count; i++) {
        pieces[used++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)rows[i].bytes, .iov_len = (size_t)rows[i].length};
        if (used == PIECES || i + 1 == count) {
            if (!write_all(fd, pieces, used)) {
                return false;
            }
            used = 0;
        }
    }
    return true;
}

static bool read_all(int fd, unsigned char *to, uint64_t bytes) {
    while (bytes != 0) {
        ssize_t got = read(fd, to, bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        to += got;
        bytes -= (uint64_t)got;
    }
    return true;
}

bool shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size) {
    unsigned char *bytes = realloc(f->bytes, size + 1);
    f->first = 1;
    f->last = 0;
    f->next_row = 0;
    if (bytes == NULL) {
        return false;
    }
    f->bytes = bytes;
    f->size = size;
    return read_all(fd, bytes, size);
}

static file_head head_of(const shmq_row_file *f) {
    file_head head;
    memcpy(&head, f->bytes, sizeof head);
    return head;
}

static file_entry entry_of(const shmq_row_file *f, uint32_t i) {
    file_entry entry;
    memcpy(&entry, f->bytes + sizeof(file_head) + i * sizeof entry, sizeof entry);
    return entry;
}

static uint64_t marks_at(uint32_t count) { return sizeof(file_head) + (uint64_t)count * sizeof(file_entry); }

static bool marks_make_sense(const shmq_row_file *f, uint32_t count) {
    const unsigned char *marks = f->bytes + marks_at(count);
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i] != HERE && marks[i] != GONE) {
            return false;
        }
    }
    return true;
}

bool shmq_row_file_sound(shmq_row_file *f) {
    if (f->size < sizeof(file_head)) {
        return false;
    }
    file_head head = head_of(f);
    uint64_t bytes = sizeof head + (uint64_t)head.count * sizeof(file_entry);
    if (head.magic != MAGIC || head.count == 0 || head.count > SHMQ_TURN_ENTRIES || bytes + head.count > f->size ||
        head.sum != shmq_crc32c(0, f->bytes + sizeof head, bytes - sizeof head) || !marks_make_sense(f, head.count)) {
        return false;
    }
    bytes += head.count;
    for (uint32_t i = 0; i < head.count; i++) {
        bytes += entry_of(f, i).length;
    }
    if (bytes != f->size) {
        return false;
    }
    f->first = entry_of(f, 0).place;
    f->last = entry_of(f, head.count - 1).place;
    return true;
}

bool shmq_row_file_look_again(shmq_row_file *f, int fd) {
    uint32_t count = head_of(f).count;
    ssize_t got;
    do {
        got = pread(fd, f->bytes + marks_at(count), count, (off_t)marks_at(count));
    } while (got < 0 && errno == EINTR);
    errno = got < 0 ? errno : 0;
    return got == (ssize_t)count && marks_make_sense(f, count);
}

bool shmq_row_file_mark(shmq_row_file *f, int fd, uint64_t place) {
    uint32_t count = head_of(f).count, i = 0;
    while (i < count && entry_of(f, i).place != place) {
        i++;
    }
    const unsigned char gone = GONE;
    ssize_t done = i < count ? 0 : 1;
    while (done == 0 || (done < 0 && errno == EINTR)) {
        done = pwrite(fd, &gone, 1, (off_t)(marks_at(count) + i));
    }
    if (i < count && done == 1) {
        f->bytes[marks_at(count) + i] = GONE;
    }
    return done == 1;
}

void shmq_row_file_list(shmq_row_file *f, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count) {
    uint32_t most = *count, all = head_of(f).count, i = 0;
    uint64_t used = 0, at = marks_at(all) + all;
    const unsigned char *marks = f->bytes + marks_at(all);
    if (f->next_row != 0 && from >= f->next_place) { /* who goes over rows one by one does not begin anew for each */
        at = f->next_at;
        i = f->next_row;
    }
    *count = 0;
    for (; i < all && *count < most && (used < bytes || *count == 0); i++) {
        file_entry entry = entry_of(f, i);
        if (entry.place >= below) {
            break;
        }
        if (entry.place >= from) {
            const unsigned char *its = marks[i] == HERE ? f->bytes + at : NULL;
            rows[(*count)++] = (shmq_row){.place = entry.place, .bytes = its, .length = entry.length};
            used += its != NULL ? entry.length : 0;
        }
        f->next_place = entry.place + 1;
        at += entry.length;
    }
    f->next_row = i;
    f->next_at = at;
}
