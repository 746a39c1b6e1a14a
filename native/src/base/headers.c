/* Reads header blocks that other processes may be writing: each byte on which a decision rests is read once. */
#include "base/headers.h"

typedef uint64_t __attribute__((aligned(1), may_alias)) loose_word;

/* Not memcpy: the compiler may read its source again, later. A copy with bytes of two messages is expected here: the
 * caller looks at the slot's word afterwards and drops it. So ThreadSanitizer is not asked. */
__attribute__((no_sanitize("thread"))) void shmq_headers_copy(unsigned char *to, const unsigned char *from,
                                                              uint32_t bytes) {
    static const loose_word zero;
    if (bytes < 8) {
        for (uint32_t i = 0; i < bytes; i++) {
            to[i] = ((const volatile unsigned char *)from)[i];
        }
    } else {
        for (uint32_t i = 0; i + 8 < bytes; i += 8) {
            *(loose_word *)(to + i) = *(const volatile loose_word *)(from + i);
        }
        *(loose_word *)(to + bytes - 8) = *(const volatile loose_word *)(from + bytes - 8);
    }
    *(loose_word *)(to + bytes) = zero;
}

__attribute__((no_sanitize("thread"))) static uint32_t byte_at(const unsigned char *at) {
    return *(const volatile unsigned char *)at;
}

bool shmq_headers_user(const unsigned char *headers, uint32_t headers_len, uint32_t *bytes) {
    *bytes = 0;
    if (headers_len == 0) {
        return true;
    }
    if (headers_len < SHMQ_HEADERS_FIXED || byte_at(headers) != SHMQ_HEADERS_VERSION) {
        return false;
    }
    uint32_t user = byte_at(headers + 1) | byte_at(headers + 2) << 8;
    if (user > headers_len - SHMQ_HEADERS_FIXED) {
        return false;
    }
    *bytes = user;
    return true;
}

const unsigned char *shmq_headers_own(const unsigned char *headers, uint32_t headers_len, uint32_t number,
                                      uint32_t *length) {
    uint32_t user;
    if (headers_len == 0 || !shmq_headers_user(headers, headers_len, &user)) {
        return NULL;
    }
    for (uint32_t at = SHMQ_HEADERS_FIXED + user; headers_len - at >= 3;) {
        uint32_t found = byte_at(headers + at), bytes = byte_at(headers + at + 1) | byte_at(headers + at + 2) << 8;
        at += 3;
        if (bytes > headers_len - at) {
            return NULL;
        }
        if (found == number) {
            *length = bytes;
            return headers + at;
        }
        at += bytes;
    }
    return NULL;
}
