/* Selectors `k = number`, and messages with such a header. */
#ifndef SHMQ_TESTS_NUMBER_SELECTOR_H
#define SHMQ_TESTS_NUMBER_SELECTOR_H

#include <string.h>

#include "base/headers.h"
#include "selectors/row_selector.h"
#include "scratch_queue.h"

/* `spare` more constants make its program longer, and are not used. */
static inline shmq_selector *number_selector(unsigned char number, unsigned char spare) {
    unsigned char program[512] = {SHMQ_SELECTOR_VERSION, 1 + 1, 2 + spare, 0, 3, 0, SHMQ_HEADER_TEXT, 1, 0, 'k'};
    static const unsigned char code[15] = {1, 0, 0, 0, 0, 3, 1, 0, 0, 0, 4, 0, 0, 0, 0}; /* name 0, constant 1, = */
    unsigned char *at = program + 10;
    for (int i = 0; i <= spare; i++) {
        *at++ = SHMQ_HEADER_INT8;
        *at++ = number;
    }
    memcpy(at, code, sizeof code);
    shmq_selector *s;
    CHECK_EQUAL(shmq_selector_load(program, (size_t)(at - program) + sizeof code, &s), SHMQ_OK);
    return s;
}

static inline bool is_selected(void *context, const shmq_ring *level, const shmq_delivery *d) {
    return shmq_delivery_selected(context, level, d);
}

static inline shmq_status put_of(shmq_queue *q, unsigned char number) {
    unsigned char headers[7] = {SHMQ_HEADERS_VERSION, 4, 0, 1, 'k', SHMQ_HEADER_INT8, number};
    uint64_t body = number;
    struct iovec piece = {.iov_base = &body, .iov_len = sizeof body};
    shmq_outgoing o = {
        .headers = headers, .headers_len = sizeof headers, .pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    return shmq_put(q, &o, 0);
}

#endif
