/* A loaded selector: selector_load.c makes it, selector.c runs it. */
#ifndef SHMQ_SELECTOR_LOADED_H
#define SHMQ_SELECTOR_LOADED_H

#include "base/headers.h"
#include "selectors/like.h"
#include "selectors/selector.h"

enum shmq_operation {
    SHMQ_DO_NAME = 1,
    SHMQ_DO_FIELD,
    SHMQ_DO_CONSTANT,
    SHMQ_DO_EQUAL,
    SHMQ_DO_UNEQUAL,
    SHMQ_DO_LESS,
    SHMQ_DO_AT_MOST,
    SHMQ_DO_MORE,
    SHMQ_DO_AT_LEAST,
    SHMQ_DO_ADD,
    SHMQ_DO_SUBTRACT,
    SHMQ_DO_MULTIPLY,
    SHMQ_DO_DIVIDE,
    SHMQ_DO_NEGATE,
    SHMQ_DO_BETWEEN,
    SHMQ_DO_OUTSIDE,
    SHMQ_DO_IS_NULL,
    SHMQ_DO_IS_NOT_NULL,
    SHMQ_DO_IN,
    SHMQ_DO_NOT_IN,
    SHMQ_DO_LIKE,
    SHMQ_DO_NOT_LIKE,
    SHMQ_DO_NOT,
    SHMQ_DO_AND,
    SHMQ_DO_OR,
    SHMQ_DO_SKIP_IF_FALSE,
    SHMQ_DO_SKIP_IF_TRUE,
    SHMQ_OPERATIONS
};

typedef struct shmq_instruction {
    uint16_t operation;
    uint16_t a; /* the name's place among the names */
    uint16_t b;
} shmq_instruction;

/* A header that the selector asks for, found by its hash. Names with the same hash form a chain. */
typedef struct shmq_selector_name {
    const unsigned char *text;
    uint64_t beginning; /* its first 8 bytes; a shorter name is followed by zeros */
    uint16_t length;
    uint16_t next; /* place + 1 of the next name in the chain, 0: none */
} shmq_selector_name;

struct shmq_selector {
    uint32_t bytes; /* of the program */
    uint32_t constants;
    uint32_t instructions;
    uint32_t names;
    uint32_t hash_shift; /* 64 minus the bits of an index into the table of chains */
    shmq_value *constant;
    shmq_like **like; /* of constants that are patterns */
    shmq_instruction *code;
    shmq_selector_name *name;
    uint16_t *chain; /* place + 1 of the first name */
    unsigned char program[]; /* a copy, into which constants and names point */
};

static inline uint64_t shmq_name_beginning(const unsigned char *text, uint32_t length) {
    uint64_t word; /* 8 bytes can be read wherever a name lies: SHMQ_HEADERS_PADDING */
    memcpy(&word, text, 8);
    return length >= 8 ? word : word & ((UINT64_C(1) << (length * 8)) - 1);
}

static inline uint64_t shmq_selector_hash(uint64_t beginning, uint32_t length) {
    return (beginning + length) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The place of a name; s->names: the selector does not ask for it. */
static inline uint32_t shmq_selector_place(const shmq_selector *s, const unsigned char *text, uint32_t length) {
    uint64_t beginning = shmq_name_beginning(text, length);
    uint32_t next = s->chain[shmq_selector_hash(beginning, length) >> s->hash_shift];
    for (; next != 0; next = s->name[next - 1].next) {
        const shmq_selector_name *name = &s->name[next - 1];
        if (name->beginning == beginning && name->length == length &&
            (length <= 8 || memcmp(name->text + 8, text + 8, length - 8) == 0)) {
            return next - 1;
        }
    }
    return s->names;
}

#endif
