/* The header block: the headers that stand before a body. Those of the user by name, then shmq's own fields.
 *
 *   offset  bytes  what
 *   0       1      version of the format, 1
 *   1       2      U, bytes of the user's headers
 *   3       U      headers, one after the other: length of the name 1 (1 to 255), name, value
 *   3 + U   rest   own fields, one after the other: number 1, length 2, content
 *
 *   value   kind 1, then: none 0, false 1 and true 2 nothing; ints with sign 3: 1, 4: 2, 5: 4, 6: 8; float 7: 8, finite;
 *           text 8 and bytes 9: length 2, content
 *   own     1 content type, 2 death, 3 group, 4 routing key; a number that is not known is passed over
 *
 * Numbers are little endian, text is UTF-8. No headers at all: no header block, length 0. docs/headers.md has an
 * example.
 *
 * A process that reads a header block reads what any other may have written, so each length is checked before it is used. Where
 * it lies in shared memory it is copied before it is looked at: what was checked must not change before it is used. */
#ifndef SHMQ_BASE_HEADERS_H
#define SHMQ_BASE_HEADERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHMQ_HEADERS_VERSION 1u
#define SHMQ_HEADERS_FIXED 3u   /* bytes before the first header */
#define SHMQ_GROUP_MAX 255u  /* bytes of a group's name */
#define SHMQ_HEADERS_PADDING 8u /* bytes after a copy that may be read and mean nothing */

enum shmq_header_kind {
    SHMQ_HEADER_NONE = 0,
    SHMQ_HEADER_FALSE = 1,
    SHMQ_HEADER_TRUE = 2,
    SHMQ_HEADER_INT8 = 3,
    SHMQ_HEADER_INT16 = 4,
    SHMQ_HEADER_INT32 = 5,
    SHMQ_HEADER_INT64 = 6,
    SHMQ_HEADER_FLOAT = 7,
    SHMQ_HEADER_TEXT = 8,
    SHMQ_HEADER_BYTES = 9
};

enum shmq_headers_own { SHMQ_OWN_CONTENT_TYPE = 1, SHMQ_OWN_DEATH = 2, SHMQ_OWN_GROUP = 3, SHMQ_OWN_ROUTING_KEY = 4 };

/* A value as it is computed with. Text and bytes stay where they were read. */
enum shmq_value_kind {
    SHMQ_VALUE_NULL = 0,
    SHMQ_VALUE_TRUTH,
    SHMQ_VALUE_EXACT,       /* 64 bits with sign */
    SHMQ_VALUE_APPROXIMATE, /* never NaN */
    SHMQ_VALUE_TEXT,
    SHMQ_VALUE_BYTES,
    SHMQ_VALUE_UNSEEN /* not looked for yet; never computed with */
};

typedef struct shmq_value {
    uint32_t kind;
    uint32_t length; /* of text and bytes */
    union {
        bool truth;
        int64_t exact;
        double approximate;
        const unsigned char *text;
    };
} shmq_value;

/* Unaligned little-endian numbers, sign extended. */
static inline int64_t shmq_signed_at(const unsigned char *at, uint32_t bytes) {
    int8_t one;
    int16_t two;
    int32_t four;
    int64_t eight;
    switch (bytes) {
    case 1:
        memcpy(&one, at, 1);
        return one;
    case 2:
        memcpy(&two, at, 2);
        return two;
    case 4:
        memcpy(&four, at, 4);
        return four;
    default:
        memcpy(&eight, at, 8);
        return eight;
    }
}

static inline uint32_t shmq_length_at(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }

/* The value at `at`. Answers where the next one begins, NULL for what is no value. `at` may not change meanwhile. */
static inline const unsigned char *shmq_value_at(const unsigned char *at, const unsigned char *end, shmq_value *value) {
    static const uint8_t sizes[] = {0, 0, 0, 1, 2, 4, 8, 8, 2, 2};
    if (at == end || *at > SHMQ_HEADER_BYTES || (size_t)(end - at) <= sizes[*at]) {
        return NULL;
    }
    uint32_t kind = *at++;
    value->length = 0;
    switch (kind) {
    case SHMQ_HEADER_NONE:
        value->kind = SHMQ_VALUE_NULL;
        return at;
    case SHMQ_HEADER_FALSE:
    case SHMQ_HEADER_TRUE:
        value->kind = SHMQ_VALUE_TRUTH;
        value->truth = kind == SHMQ_HEADER_TRUE;
        return at;
    case SHMQ_HEADER_FLOAT:
        value->kind = SHMQ_VALUE_APPROXIMATE;
        memcpy(&value->approximate, at, 8);
        return isfinite(value->approximate) ? at + 8 : NULL;
    case SHMQ_HEADER_TEXT:
    case SHMQ_HEADER_BYTES:
        value->kind = kind == SHMQ_HEADER_TEXT ? SHMQ_VALUE_TEXT : SHMQ_VALUE_BYTES;
        value->length = shmq_length_at(at);
        value->text = at + 2;
        return (size_t)(end - value->text) < value->length ? NULL : value->text + value->length;
    default:
        value->kind = SHMQ_VALUE_EXACT;
        value->exact = shmq_signed_at(at, sizes[kind]);
        return at + sizes[kind];
    }
}

/* Where the next one begins, without a look at what this one is; NULL for what is no value. */
static inline const unsigned char *shmq_value_behind(const unsigned char *at, const unsigned char *end) {
    static const uint8_t sizes[] = {1, 1, 1, 2, 3, 5, 9, 9, 3, 3};
    if (at == end || *at > SHMQ_HEADER_BYTES || (size_t)(end - at) < sizes[*at]) {
        return NULL;
    }
    size_t bytes = sizes[*at] + (*at >= SHMQ_HEADER_TEXT ? shmq_length_at(at + 1) : 0);
    return (size_t)(end - at) < bytes ? NULL : at + bytes;
}

/* A copy of bytes that others may be writing; `to` gets SHMQ_HEADERS_PADDING zeros behind them. */
void shmq_headers_copy(unsigned char *to, const unsigned char *from, uint32_t bytes);

/* Bytes of the user's headers, which begin at SHMQ_HEADERS_FIXED; false for what is no header block of this version. An
 * empty header block has none. Others may be writing. */
bool shmq_headers_user(const unsigned char *headers, uint32_t headers_len, uint32_t *bytes);

/* One of shmq's own fields by its number; NULL if there is none. Others may be writing: what is answered lies within the
 * head, copy it before it is looked at. */
const unsigned char *shmq_headers_own(const unsigned char *headers, uint32_t headers_len, uint32_t number,
                                      uint32_t *length);

#endif
