/* The allowed contents of a header block, for code that reads or writes many at once. shmq/headers.py explains what is
 * not allowed. */
#ifndef SHMQ_PY_HEADERS_H
#define SHMQ_PY_HEADERS_H

#include "py_column.h"

/* A name comes once in a header block: each is compared with those before it. Python reads blocks with more names. */
#define NAMES_COMPARED 64u

/* In all that follows false without an exception means: not plain. */
static inline bool add(column *to, const void *bytes, size_t size) {
    if (!column_add(to, bytes, size)) {
        PyErr_NoMemory();
        return false;
    }
    return true;
}

static inline bool add_end(column *ends, size_t end) {
    int32_t value = (int32_t)end;
    return end <= INT32_MAX && add(ends, &value, sizeof value);
}

/* UTF-8 as Python reads it: no form longer than needed, no surrogate, nothing above U+10FFFF. */
static inline bool is_text(const unsigned char *at, size_t bytes) {
    const unsigned char *end = at + bytes;
    while (at < end) {
        uint32_t first = *at++;
        if (first < 0x80) {
            continue;
        }
        size_t more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        uint32_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        uint32_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (first < 0xC2 || first > 0xF4 || (size_t)(end - at) < more || *at < least || *at > most) {
            return false;
        }
        for (size_t i = 1; i < more; i++) {
            if ((at[i] & 0xC0) != 0x80) {
                return false;
            }
        }
        at += more;
    }
    return true;
}

static inline bool name_is_reserved(const unsigned char *name, size_t length) {
    return (length >= 5 && memcmp(name, "shmq-", 5) == 0) || (length >= 3 && memcmp(name, "JMS", 3) == 0);
}

static inline bool name_fits(const unsigned char *name, size_t length) {
    return length > 0 && !name_is_reserved(name, length) && is_text(name, length);
}

static inline bool is_content_type(const unsigned char *at, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (at[i] < 0x20 || at[i] > 0x7E) {
            return false;
        }
    }
    return length >= 1 && length <= 255;
}

static inline bool is_group(const unsigned char *at, size_t length) {
    return length >= 1 && length <= SHMQ_GROUP_MAX && is_text(at, length);
}

#endif
