/* The bytes of a file of rows. In the machine's byte order: rows do not outlive the segment. */
#ifndef SHMQ_ROW_FORMAT_H
#define SHMQ_ROW_FORMAT_H

#include <string.h>

#include "base/crc32c.h"
#include "flow/row_file.h"

#define PLAIN UINT64_C(0x3430574f524d4853) /* "SHMROW04" */
#define ENCRYPTED UINT64_C(0x3530574f524d4853) /* "SHMROW05" */
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

/* The index's words about a row, authenticated with it. The row's ordinal is in its own bytes. */
typedef struct row_place {
    file_entry entry;
    uint32_t number, count; /* the row's number among those of its file */
} row_place;
static_assert(sizeof(file_salt) + sizeof(file_head) + SHMQ_TAG_BYTES + sizeof(file_entry) + 1 ==
                  SHMQ_ROW_BESIDE_ENCRYPTED,
              "that of a file with one row");

/* A file belongs to one level of one queue of one segment. */
static inline uint32_t sum_begin(const shmq_row_cipher *by) { return shmq_crc32c(0, by->place, strlen(by->place)); }

static inline uint32_t index_begin(const shmq_row_cipher *by) {
    return (uint32_t)(sizeof(file_head) + (by->wanted ? sizeof(file_salt) : 0));
}

#endif
