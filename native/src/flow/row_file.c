/* The format of a file of rows. In the machine's byte order: rows do not outlive the segment. */
#include "flow/row_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#define PLAIN UINT64_C(0x3430574f524d4853) /* "SHMROW04" */
#define ENCRYPTED UINT64_C(0x3530574f524d4853) /* "SHMROW05" */
#define PIECES 512
#define PIECE_BYTES (UINT64_C(1) << 16) /* of encrypted rows, at one time */
#define HERE 0x00 /* marks; any other is damage */
#define GONE 0xa5

typedef struct file_head {
    uint64_t magic;
    uint32_t sum; /* CRC-32C of segment, queue and level, then of what follows, up to the marks */
    uint32_t count;
} file_head;

/* Follows the head of an encrypted file. */
typedef struct file_salt {
    uint8_t salt[SHMQ_SALT_BYTES];
    uint8_t check[SHMQ_CHECK_BYTES]; /* of the key */
} file_salt;

typedef struct file_entry {
    uint64_t place, length;
    uint64_t enqueued_ns, expires_ns; /* as in the row: the search for ended lives reads the index only */
} file_entry;

/* What the index says of a row, authenticated with it. The row's ordinal is in its own bytes. */
typedef struct row_place {
    file_entry entry;
    uint32_t number, count; /* the row's number among those of its file */
} row_place;
static_assert(sizeof(file_salt) + sizeof(file_head) + SHMQ_TAG_BYTES + sizeof(file_entry) + 1 ==
                  SHMQ_ROW_BESIDE_ENCRYPTED,
              "that of a file with one row");

/* A file belongs to one level of one queue of one segment. */
static uint32_t sum_begin(const shmq_row_cipher *by) { return shmq_crc32c(0, by->place, strlen(by->place)); }

static uint32_t index_begin(const shmq_row_cipher *by) {
    return (uint32_t)(sizeof(file_head) + (by->wanted ? sizeof(file_salt) : 0));
}

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
        pieces[used++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)rows[i].bytes, .iov_len = (size_t)rows[i].length};
        if (used == PIECES || i + 1 == head->count) {
            if (!write_all(fd, pieces, used)) {
                return false;
            }
            used = 0;
        }
    }
    return true;
}

bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count, const shmq_row_cipher *by) {
    file_entry entries[SHMQ_TURN_ENTRIES] = {{.place = 0}};
    unsigned char marks[SHMQ_TURN_ENTRIES] = {HERE};
    file_head head = {.count = count};
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (file_entry){.place = rows[i].place,
                                  .length = rows[i].length,
                                  .enqueued_ns = rows[i].enqueued_ns,
                                  .expires_ns = rows[i].expires_ns};
    }
    return by->wanted ? write_encrypted(fd, &head, entries, marks, rows, by)
                      : write_plain(fd, &head, entries, marks, rows, by);
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
    return head.magic == (by->wanted ? ENCRYPTED : PLAIN) && head.count != 0 && head.count <= SHMQ_TURN_ENTRIES &&
           marks_at(f) + head.count <= f->size &&
           head.sum == shmq_crc32c(sum_begin(by), f->bytes + sizeof head, marks_at(f) - sizeof head) &&
           marks_make_sense(f, head.count);
}

/* Are so many bytes just what the index says? */
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

/* The index first: a file that was changed may be of any length. */
shmq_status shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size, const shmq_row_cipher *by) {
    uint64_t most = sizeof(file_head) + sizeof(file_salt) + SHMQ_TURN_ENTRIES * (sizeof(file_entry) + 1);
    f->first = 1;
    f->last = 0;
    f->next_row = 0;
    f->size = size < most ? size : most;
    f->index_at = index_begin(by);
    f->tag_bytes = by->wanted ? SHMQ_TAG_BYTES : 0;
    if (!make_room(f, f->size) || !read_all(fd, f->bytes, f->size)) {
        return SHMQ_OS;
    }
    if (!index_is_sound(f, by) || !is_as_long(f, size)) {
        return SHMQ_CORRUPT; /* also for a plain file where rows are encrypted: no process of the broker wrote it */
    }
    uint64_t begun = f->size;
    f->size = size;
    return make_room(f, size) && read_all(fd, f->bytes + begun, size - begun) ? SHMQ_OK : SHMQ_OS;
}

/* A row that cannot be decrypted gets bytes that no checksum fits. */
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
    uint32_t count = head_of(f).count, i = 0;
    while (i < count && entry_of(f, i).place != place) {
        i++;
    }
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
            rows[(*count)++] = (shmq_row){.place = entry.place, .bytes = its, .length = entry.length};
            used += its != NULL ? entry.length : 0;
        }
        f->next_place = entry.place + 1;
        at += entry.length + f->tag_bytes;
    }
    f->next_row = i;
    f->next_at = at;
}

shmq_status shmq_row_file_lives(int fd, const shmq_row_cipher *by, uint64_t from, uint64_t below, shmq_row_life *lives,
                                uint32_t *count, uint64_t *last) {
    static _Thread_local unsigned char
        index[sizeof(file_head) + sizeof(file_salt) + SHMQ_TURN_ENTRIES * (sizeof(file_entry) + 1)];
    shmq_row_file f = {.bytes = index, .index_at = index_begin(by)};
    uint32_t most = *count;
    *count = 0;
    for (ssize_t got = 1; got != 0 && f.size < sizeof index;) {
        got = pread(fd, index + f.size, sizeof index - f.size, (off_t)f.size);
        if (got < 0 && errno != EINTR) {
            return SHMQ_OS;
        }
        f.size += got > 0 ? (uint64_t)got : 0;
    }
    if (!index_is_sound(&f, by)) {
        return SHMQ_CORRUPT;
    }
    const unsigned char *marks = index + marks_at(&f);
    uint32_t all = head_of(&f).count;
    *last = entry_of(&f, all - 1).place;
    for (uint32_t i = 0; i < all && *count < most; i++) {
        file_entry entry = entry_of(&f, i);
        if (entry.place >= from && entry.place < below) {
            lives[(*count)++] = (shmq_row_life){.place = entry.place,
                                                .length = entry.length,
                                                .enqueued_ns = entry.enqueued_ns,
                                                .expires_ns = entry.expires_ns,
                                                .gone = marks[i] != HERE};
        }
    }
    return SHMQ_OK;
}
