/* One file of rows: a head, an index (place, length and times of each row), a mark for each row, then the rows. The
 * purger writes it once and reads it as a whole; later it changes only marks: a fetched row is marked as gone. In a
 * broker with a key each row is encrypted, with a tag behind it; index and marks are not. */
#ifndef SHMQ_ROW_FILE_H
#define SHMQ_ROW_FILE_H

#include "base/cipher.h"
#include "flow/flow.h"

/* The key and the identity by which files of one level of a queue are encrypted. */
typedef struct shmq_row_cipher {
    bool wanted; /* the broker has a key; false: its files are plain */
    const shmq_cipher *cipher; /* NULL: this process does not know the key */
    const char *place; /* segment, queue and level of the files: the checksum of the index covers it */
} shmq_row_cipher;

/* A file that was read, and how far its last reader came. */
typedef struct shmq_row_file {
    unsigned char *bytes;
    uint64_t size;
    uint64_t first, last; /* places in it; first > last: nothing was read */
    uint32_t index_at, tag_bytes; /* where the index begins; by how much a row is longer than the index says */
    uint64_t next_place, next_at; /* rows at places below lie before `next_row`, whose bytes begin at next_at */
    uint32_t next_row;
} shmq_row_file;

/* Writes the whole file. False: errno says why. */
bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count, const shmq_row_cipher *by);
/* Reads the whole file, if it is as long as its index says. SHMQ_CORRUPT: it makes no sense, or is of another level. SHMQ_OS:
 * errno says why; 0: the file ended too early. */
shmq_status shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size, const shmq_row_cipher *by);
/* Decrypts the rows of a file that was read; a changed row has a wrong checksum. SHMQ_DENIED: it needs another key. */
shmq_status shmq_row_file_open(shmq_row_file *f, const shmq_row_cipher *by);
/* Reads the marks of a file again. False: errno says why; 0: the marks make no sense. */
bool shmq_row_file_look_again(shmq_row_file *f, int fd);
/* The lives of rows with keys in [from, below), at most *count, from the index; *last: the last place in the file.
 * Reads no row, and needs no key. SHMQ_CORRUPT: the index makes no sense. SHMQ_OS: see errno. */
shmq_status shmq_row_file_lives(int fd, const shmq_row_cipher *by, uint64_t from, uint64_t below, shmq_row_life *lives,
                                uint32_t *count, uint64_t *last);
/* These rows, as their file listed them, into the bytes of `f`: what the file has no more fits no checksum. SHMQ_DENIED: it needs
 * another key. SHMQ_OS: see errno. */
shmq_status shmq_row_file_pick(shmq_row_file *f, int fd, const shmq_row_cipher *by, const shmq_row_life *lives,
                               shmq_row *rows, uint32_t count);
/* Marks them as gone. False: errno says why. */
bool shmq_row_file_drop(int fd, const shmq_row_life *lives, uint32_t count);
/* Marks the row of this place as gone, if the file has it. */
bool shmq_row_file_mark(shmq_row_file *f, int fd, uint64_t place);
/* Rows with keys in [from, below), at most *count, and no more than `bytes` beyond the first. They point into the
 * file's bytes; a row that is gone has none. */
void shmq_row_file_list(shmq_row_file *f, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count);

#endif
