/* Reads a file of rows: all of it, its index, or some of its rows; and marks rows as gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flow/row_file.h"
#include "flow/row_format.h"

/* Reads bytes. True: all of them were read. False: the file is shorter, or, as errno says, cannot be read. */
static bool read_at(int fd, unsigned char *to, uint64_t bytes, uint64_t at) {
    while (bytes != 0) {
        ssize_t got = pread(fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            errno = got == 0 ? 0 : errno;
            return false;
        }
        to += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return true;
}

static bool make_room(shmq_row_file *f, uint64_t bytes) {
    unsigned char *longer = realloc(f->bytes, bytes + 1);
    f->bytes = longer != NULL ? longer : f->bytes;
    return longer != NULL;
}

static file_head head_of(const shmq_row_file *f) {
    file_head head;
    memcpy(&head, f->bytes, sizeof head);
    return head;
}

static file_entry entry_of(const shmq_row_file *f, uint32_t i) {
    file_entry entry;
    memcpy(&entry, f->bytes + f->index_at + i * sizeof entry, sizeof entry);
    return entry;
}

static uint64_t marks_at(const shmq_row_file *f) {
    return f->index_at + (uint64_t)head_of(f).count * sizeof(file_entry);
}

static bool marks_make_sense(const shmq_row_file *f, uint32_t count) {
    const unsigned char *marks = f->bytes + marks_at(f);
    for (uint32_t i = 0; i < count; i++) {
        if (marks[i] != HERE && marks[i] != GONE) {
            return false;
        }
    }
    return true;
}

static bool index_is_sound(const shmq_row_file *f, const shmq_row_cipher *by) {
    if (f->size < f->index_at) {
        return false;
    }
    file_head head = head_of(f);
    return head.magic == (by->wanted ? ENCRYPTED : PLAIN) && head.count != 0 && head.count <= SHMQ_FILE_ROWS &&
           marks_at(f) + head.count <= f->size &&
           head.sum == shmq_crc32c(sum_begin(by), f->bytes + sizeof head, marks_at(f) - sizeof head) &&
           marks_make_sense(f, head.count);
}

/* Says whether the file has exactly as many bytes as the index says. */
static bool is_as_long(const shmq_row_file *f, uint64_t size) {
    file_head head = head_of(f);
    uint64_t left = size - marks_at(f) - head.count;
    for (uint32_t i = 0; i < head.count; i++) {
        uint64_t length = entry_of(f, i).length;
        if (length > left || f->tag_bytes > left - length) {
            return false;
        }
        left -= length + f->tag_bytes;
    }
    return left == 0;
}

/* Reads a file, its index first: a file that was changed may be of any length. */
shmq_status shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size, const shmq_row_cipher *by) {
    uint64_t most = sizeof(file_head) + sizeof(file_salt) + SHMQ_FILE_ROWS * (sizeof(file_entry) + 1);
    f->first = 1;
    f->last = 0;
    f->next_row = 0;
    f->size = size < most ? size : most;
    f->index_at = index_begin(by);
    f->tag_bytes = by->wanted ? SHMQ_TAG_BYTES : 0;
    if (!make_room(f, f->size) || !read_at(fd, f->bytes, f->size, 0)) {
        return SHMQ_OS;
    }
    if (!index_is_sound(f, by) || !is_as_long(f, size)) {
        return SHMQ_CORRUPT; /* also for a plain file where rows are encrypted: no process of the broker wrote it */
    }
    uint64_t begun = f->size;
    f->size = size;
    return make_room(f, size) && read_at(fd, f->bytes + begun, size - begun, begun) ? SHMQ_OK : SHMQ_OS;
}

/* Decrypts rows. A row that cannot be decrypted gets bytes that no checksum fits. */
static shmq_status decrypt_rows(shmq_row_file *f, const shmq_row_cipher *by) {
    const file_salt *how = (const file_salt *)(f->bytes + sizeof(file_head));
    const unsigned char *marks = f->bytes + marks_at(f);
    uint32_t count = head_of(f).count;
    uint64_t at = marks_at(f) + count;
    if (by->cipher == NULL || memcmp(how->check, by->cipher->check, sizeof how->check) != 0) {
        return SHMQ_DENIED;
    }
    shmq_file_cipher *s = by->cipher->begin(by->cipher, how->salt, by->place, false);
    bool works = s != NULL;
    for (uint32_t i = 0; i < count && works; i++) {
        const row_place place = {.entry = entry_of(f, i), .number = i, .count = count};
        works = marks[i] != HERE ||
                by->cipher->decrypt(s, i, &place, sizeof place, f->bytes + at, place.entry.length) != SHMQ_OS;
        at += place.entry.length + SHMQ_TAG_BYTES;
    }
    shmq_status status = works ? SHMQ_OK : shmq_fail_errno("cannot decrypt messages on disk");
    by->cipher->end(s);
    return status;
}

shmq_status shmq_row_file_open(shmq_row_file *f, const shmq_row_cipher *by) {
    if (by->wanted) {
        SHMQ_TRY(decrypt_rows(f, by));
    }
    f->first = entry_of(f, 0).place;
    f->last = entry_of(f, head_of(f).count - 1).place;
    return SHMQ_OK;
}

bool shmq_row_file_look_again(shmq_row_file *f, int fd) {
    uint32_t count = head_of(f).count;
    ssize_t got;
    do {
        got = pread(fd, f->bytes + marks_at(f), count, (off_t)marks_at(f));
    } while (got < 0 && errno == EINTR);
    errno = got < 0 ? errno : 0;
    return got == (ssize_t)count && marks_make_sense(f, count);
}

bool shmq_row_file_mark(shmq_row_file *f, int fd, uint64_t place) {
    uint32_t count = head_of(f).count, i = 0, high = count;
    while (i < high) { /* the first that is not below it */
        uint32_t middle = i + (high - i) / 2;
        if (entry_of(f, middle).place < place) {
            i = middle + 1;
        } else {
            high = middle;
        }
    }
    i = i < count && entry_of(f, i).place == place ? i : count;
    const unsigned char gone = GONE;
    ssize_t done = i < count ? 0 : 1;
    while (done == 0 || (done < 0 && errno == EINTR)) {
        done = pwrite(fd, &gone, 1, (off_t)(marks_at(f) + i));
    }
    if (i < count && done == 1) {
        f->bytes[marks_at(f) + i] = GONE;
    }
    return done == 1;
}

void shmq_row_file_list(shmq_row_file *f, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count) {
    uint32_t most = *count, all = head_of(f).count, i = 0;
    uint64_t used = 0, at = marks_at(f) + all;
    const unsigned char *marks = f->bytes + marks_at(f);
    if (f->next_row != 0 && from >= f->next_place) { /* a caller that reads row by row goes on where it was */
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
            rows[(*count)++] = (shmq_row){.place = entry.place,
                                          .bytes = its,
                                          .length = entry.length,
                                          .enqueued_ns = entry.enqueued_ns,
                                          .expires_ns = entry.expires_ns};
            used += its != NULL ? entry.length : 0;
        }
        f->next_place = entry.place + 1;
        at += entry.length + f->tag_bytes;
    }
    f->next_row = i;
    f->next_at = at;
}

/* Reads the head, then the index and the marks whose sizes the head says. */
static shmq_status read_index(shmq_row_file *f, int fd, const shmq_row_cipher *by) {
    f->size = f->index_at = index_begin(by);
    if (!make_room(f, f->size)) {
        return SHMQ_OS;
    }
    if (!read_at(fd, f->bytes, f->size, 0)) {
        return errno == 0 ? SHMQ_CORRUPT : SHMQ_OS;
    }
    uint32_t count = head_of(f).count;
    if (count == 0 || count > SHMQ_FILE_ROWS) {
        return SHMQ_CORRUPT;
    }
    f->size += count * (sizeof(file_entry) + 1);
    if (!make_room(f, f->size)) {
        return SHMQ_OS;
    }
    if (!read_at(fd, f->bytes + f->index_at, f->size - f->index_at, f->index_at)) {
        return errno == 0 ? SHMQ_CORRUPT : SHMQ_OS;
    }
    return index_is_sound(f, by) ? SHMQ_OK : SHMQ_CORRUPT;
}

static void list_lives(const shmq_row_file *f, uint64_t from, uint64_t below, shmq_row_life *lives, uint32_t most,
                       uint32_t *count) {
    uint32_t all = head_of(f).count;
    uint64_t at = marks_at(f) + all;
    for (uint32_t i = 0; i < all && *count < most; i++) {
        file_entry entry = entry_of(f, i);
        if (entry.place >= from && entry.place < below) {
            lives[(*count)++] = (shmq_row_life){.place = entry.place,
                                                .length = entry.length,
                                                .enqueued_ns = entry.enqueued_ns,
                                                .expires_ns = entry.expires_ns,
                                                .at = at,
                                                .mark = marks_at(f) + i,
                                                .gone = f->bytes[marks_at(f) + i] != HERE};
        }
        at += entry.length + f->tag_bytes;
    }
}

shmq_status shmq_row_file_lives(int fd, const shmq_row_cipher *by, uint64_t from, uint64_t below, shmq_row_life *lives,
                                uint32_t *count, uint64_t *last) {
    shmq_row_file f = {.tag_bytes = by->wanted ? SHMQ_TAG_BYTES : 0};
    uint32_t most = *count;
    *count = 0;
    shmq_status status = read_index(&f, fd, by);
    if (status == SHMQ_OK) {
        *last = entry_of(&f, head_of(&f).count - 1).place;
        list_lives(&f, from, below, lives, most, count);
    }
    int error = errno;
    free(f.bytes);
    errno = error;
    return status;
}

/* Counts how many rows from the first on lie next to each other, and so do their marks. */
static uint32_t together(const shmq_row_life *lives, uint32_t count, uint32_t tag_bytes) {
    uint32_t i = 1;
    while (i < count && lives[i].mark == lives[i - 1].mark + 1 &&
           lives[i].at == lives[i - 1].at + lives[i - 1].length + tag_bytes) {
        i++;
    }
    return i;
}

/* Bytes beyond the end of the file are zeros, which no checksum fits. */
static bool read_some(int fd, unsigned char *to, uint64_t bytes, uint64_t at) {
    memset(to, 0, bytes);
    return read_at(fd, to, bytes, at) || errno == 0;
}

/* Rows, then their marks. */
static bool read_rows(shmq_row_file *f, int fd, const shmq_row_life *lives, shmq_row *rows, uint32_t count) {
    unsigned char *at = f->bytes + f->index_at, *marks = f->bytes + f->size - count;
    for (uint32_t i = 0, next; i < count; i = next) {
        uint64_t bytes = 0;
        next = i + together(&lives[i], count - i, f->tag_bytes);
        if (!read_some(fd, marks + i, next - i, lives[i].mark)) {
            return false;
        }
        for (uint32_t k = i; k < next; k++) {
            rows[k] = (shmq_row){.place = lives[k].place,
                                 .bytes = marks[k] == HERE ? at + bytes : NULL,
                                 .length = lives[k].length,
                                 .enqueued_ns = lives[k].enqueued_ns,
                                 .expires_ns = lives[k].expires_ns};
            bytes += lives[k].length + f->tag_bytes;
        }
        if (!read_some(fd, at, bytes, lives[i].at)) {
            return false;
        }
        at += bytes;
    }
    return true;
}

static shmq_status decrypt_some(const shmq_row_file *f, const shmq_row_cipher *by, const shmq_row_life *lives,
                                const shmq_row *rows, uint32_t count) {
    const file_salt *how = (const file_salt *)(f->bytes + sizeof(file_head));
    if (by->cipher == NULL || memcmp(how->check, by->cipher->check, sizeof how->check) != 0) {
        return SHMQ_DENIED;
    }
    shmq_file_cipher *s = by->cipher->begin(by->cipher, how->salt, by->place, false);
    bool works = s != NULL;
    for (uint32_t i = 0; i < count && works; i++) {
        const row_place place = {.entry = {.place = lives[i].place,
                                           .length = lives[i].length,
                                           .enqueued_ns = lives[i].enqueued_ns,
                                           .expires_ns = lives[i].expires_ns},
                                 .number = (uint32_t)(lives[i].mark - marks_at(f)),
                                 .count = head_of(f).count};
        unsigned char *bytes = (unsigned char *)(uintptr_t)rows[i].bytes;
        works = bytes == NULL ||
                by->cipher->decrypt(s, place.number, &place, sizeof place, bytes, rows[i].length) != SHMQ_OS;
    }
    shmq_status status = works ? SHMQ_OK : shmq_fail_errno("cannot decrypt messages on disk");
    by->cipher->end(s);
    return status;
}

shmq_status shmq_row_file_pick(shmq_row_file *f, int fd, const shmq_row_cipher *by, const shmq_row_life *lives,
                               shmq_row *rows, uint32_t count) {
    f->index_at = index_begin(by);
    f->tag_bytes = by->wanted ? SHMQ_TAG_BYTES : 0;
    f->size = f->index_at + count;
    for (uint32_t i = 0; i < count; i++) {
        f->size += lives[i].length + f->tag_bytes;
    }
    if (!make_room(f, f->size) || !read_some(fd, f->bytes, f->index_at, 0) || !read_rows(f, fd, lives, rows, count)) {
        return SHMQ_OS;
    }
    return by->wanted ? decrypt_some(f, by, lives, rows, count) : SHMQ_OK;
}

bool shmq_row_file_drop(int fd, const shmq_row_life *lives, uint32_t count) {
    unsigned char gone[SHMQ_FILE_ROWS];
    memset(gone, GONE, count);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && lives[next].mark == lives[next - 1].mark + 1; next++) {
        }
        for (uint32_t done = 0; done < next - i;) {
            ssize_t wrote = pwrite(fd, gone, next - i - done, (off_t)(lives[i].mark + done));
            if (wrote < 0 && errno != EINTR) {
                return false;
            }
            done += wrote > 0 ? (uint32_t)wrote : 0;
        }
    }
    return true;
}
