/* One file of rows: its head, an index of (place, length), a mark for each, then their bytes. Written once, but for the marks: a row that
 * was fetched by itself is marked as gone. Read as a whole. */
#ifndef SHMQ_ROW_FILE_H
#define SHMQ_ROW_FILE_H

#include "shmq/flow.h"

/* What was read of one, and where its last reader came to. */
typedef struct shmq_row_file {
    unsigned char *bytes;
    uint64_t size;
    uint64_t first, last; /* places in it; nothing was read: first > last */
    uint64_t next_place, next_at; /* places below are before the row `next_row`, whose bytes are there */
    uint32_t next_row;
} shmq_row_file;

/* All of it. False: errno says why; 0: its end came too early. */
bool shmq_row_file_write(int fd, const shmq_row *rows, uint32_t count);
bool shmq_row_file_read(shmq_row_file *f, int fd, uint64_t size);
/* The index is sound, and the file as long as it says: each row has its own checksum. */
bool shmq_row_file_sound(shmq_row_file *f);
/* The marks of a file that was read before. False: errno says why; 0: they make no sense. */
bool shmq_row_file_look_again(shmq_row_file *f, int fd);
/* Marks the row of this place as gone, if the file has it. */
bool shmq_row_file_mark(shmq_row_file *f, int fd, uint64_t place);
/* Rows with keys in [from, below), at most *count and no more than `bytes` beyond the first. They point to what was
 * read; one that is gone has no bytes. */
void shmq_row_file_list(shmq_row_file *f, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count);

#endif
