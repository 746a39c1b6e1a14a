/* One file of rows: its head, an index of (place, length, times of its life), a mark for each, then their bytes. Written once, but for the marks: a row that
 * was fetched by itself is marked as gone. Read as a whole. Of a broker with a key the bytes of each row are encrypted, with a tag behind
 * them; index and marks are not. */
#ifndef SHMQ_ROW_FILE_H
#define SHMQ_ROW_FILE_H

#include "shmq/cipher.h"
#include "shmq/flow.h"

/* How files of one level of a queue are encrypted. */
typedef struct shmq_row_cipher {
    bool wanted; /* the broker has a key; false: its files are plain */
    const shmq_cipher *cipher; /* NULL: this process does not know the key */
    const char *place; /* which segment, queue, level they belong to */
} shmq_row_cipher;

/* What was read of one, and where its last reader came to. */
typedef struct shmq_row_file {
    unsigned char *bytes;
    uint64_t size;
    uint64_t first, last; /* places in it; nothing was read: first > last */
    uint32_t index_at, tag_bytes; /* where its index begins, by how much each row is longer than its index says */
    uint64_t next_place, next_at; /* places below are before the row `next_row`, whose bytes are there */
    uint32_t next_row;
} shmq_row_file;

/* All of it. False: errno says why; 0: its end came too early. */
bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count, const shmq_row_cipher *by);
bool shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size);
/* SHMQ_OK: the index is sound, and the file as long as it says; rows are decrypted, and one that was changed has a wrong checksum.
 * SHMQ_CORRUPT: it makes no sense. SHMQ_DENIED: another key is needed. */
shmq_status shmq_row_file_open(shmq_row_file *f, const shmq_row_cipher *by);
/* The marks of a file that was read before. False: errno says why; 0: they make no sense. */
bool shmq_row_file_look_again(shmq_row_file *f, int fd);
/* What its index says of the lives of rows with keys in [from, below), at most *count; *last: the last place in it. Reads no row, and
 * needs no key. SHMQ_CORRUPT: it makes no sense. SHMQ_OS: see errno. */
shmq_status shmq_row_file_lives(int fd, const shmq_row_cipher *by, uint64_t from, uint64_t below, shmq_row_life *lives,
                                uint32_t *count, uint64_t *last);
/* Marks the row of this place as gone, if the file has it. */
bool shmq_row_file_mark(shmq_row_file *f, int fd, uint64_t place);
/* Rows with keys in [from, below), at most *count and no more than `bytes` beyond the first. They point to what was
 * read; one that is gone has no bytes. */
void shmq_row_file_list(shmq_row_file *f, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count);

#endif
