/* Reading heads that others may be writing: each byte that decides is read once. */
#include "shmq/head.h"

#include "shmq/atomic.h"

typedef uint64_t __attribute__((aligned(1), may_alias)) loose_word;

/* Not memcpy: the compiler may read the source of that again, later. Torn bytes are expected here, and found by whoever
 * looks at the slot's word afterwards; so ThreadSanitizer is not asked. */
__attribute__((no_sanitize("thread"))) void shmq_head_copy(unsigned char *to, const unsigned char *from,
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

bool shmq_head_user(const unsigned char *head, uint32_t head_len, uint32_t *bytes) {
    *bytes = 0;
    if (head_len == 0) {
        return true;
    }
    if (head_len < SHMQ_HEAD_FIXED || byte_at(head) != SHMQ_HEAD_VERSION) {
        return false;
    }
    uint32_t user = byte_at(head + 1) | byte_at(head + 2) << 8;
    if (user > head_len - SHMQ_HEAD_FIXED) {
        return false;
    }
    *bytes = user;
    return true;
}

const unsigned char *shmq_head_own(const unsigned char *head, uint32_t head_len, uint32_t number, uint32_t *length) {
    uint32_t user;
    if (head_len == 0 || !shmq_head_user(head, head_len, &user)) {
        return NULL;
    }
    for (uint32_t at = SHMQ_HEAD_FIXED + user; head_len - at >= 3;) {
        uint32_t found = byte_at(head + at), bytes = byte_at(head + at + 1) | byte_at(head + at + 2) << 8;
        at += 3;
        if (bytes > head_len - at) {
            return NULL;
        }
        if (found == number) {
            *length = bytes;
            return head + at;
        }
        at += bytes;
    }
    return NULL;
}
