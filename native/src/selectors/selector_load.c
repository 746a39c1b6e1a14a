/* Loads the program of a selector, and checks once all that its run relies on. */
#include "selectors/program.h"

#include <stdlib.h>

#define FIXED 6u
#define INSTRUCTION_BYTES 5u
#define HASH_BITS_MAX 11u /* twice SHMQ_SELECTOR_NAMES */

/* How many values each operation takes off the stack. All but the skips leave one. */
static const uint8_t takes[SHMQ_OPERATIONS] = {
    [SHMQ_DO_EQUAL] = 2,    [SHMQ_DO_UNEQUAL] = 2,  [SHMQ_DO_LESS] = 2,          [SHMQ_DO_AT_MOST] = 2,
    [SHMQ_DO_MORE] = 2,     [SHMQ_DO_AT_LEAST] = 2, [SHMQ_DO_ADD] = 2,           [SHMQ_DO_SUBTRACT] = 2,
    [SHMQ_DO_MULTIPLY] = 2, [SHMQ_DO_DIVIDE] = 2,   [SHMQ_DO_NEGATE] = 1,        [SHMQ_DO_BETWEEN] = 3,
    [SHMQ_DO_OUTSIDE] = 3,  [SHMQ_DO_IS_NULL] = 1,  [SHMQ_DO_IS_NOT_NULL] = 1,   [SHMQ_DO_IN] = 1,
    [SHMQ_DO_NOT_IN] = 1,   [SHMQ_DO_LIKE] = 1,     [SHMQ_DO_NOT_LIKE] = 1,      [SHMQ_DO_NOT] = 1,
    [SHMQ_DO_AND] = 2,      [SHMQ_DO_OR] = 2,       [SHMQ_DO_SKIP_IF_FALSE] = 1, [SHMQ_DO_SKIP_IF_TRUE] = 1,
};

static shmq_status refuse(const char *fault, size_t figure) {
    return shmq_fail(SHMQ_CORRUPT, "the program of a selector is damaged\n%s: %zu\nmake the selector anew", fault,
                     figure);
}

static shmq_status no_memory(void) { return shmq_fail_errno("no memory for a selector"); }

static shmq_status read_constants(shmq_selector *s, const unsigned char **at, const unsigned char *end) {
    for (uint32_t i = 0; i < s->constants; i++) {
        *at = shmq_value_at(*at, end, &s->constant[i]);
        if (*at == NULL) {
            return refuse("a constant is of no known type", i);
        }
    }
    return SHMQ_OK;
}

static shmq_status add_name(shmq_selector *s, shmq_instruction *i) {
    if (i->a >= s->constants || s->constant[i->a].kind != SHMQ_VALUE_TEXT) {
        return refuse("the name of a header is not a text", i->a);
    }
    const shmq_value *text = &s->constant[i->a];
    uint32_t place = shmq_selector_place(s, text->text, text->length);
    if (place == s->names) {
        if (place == SHMQ_SELECTOR_NAMES) {
            return refuse("too many headers for one selector", place);
        }
        uint64_t beginning = shmq_name_beginning(text->text, text->length);
        uint16_t *chain = &s->chain[shmq_selector_hash(beginning, text->length) >> s->hash_shift];
        s->name[place] = (shmq_selector_name){text->text, beginning, (uint16_t)text->length, *chain};
        *chain = (uint16_t)(place + 1);
        s->names++;
    }
    i->a = (uint16_t)place;
    return SHMQ_OK;
}

static shmq_status add_pattern(shmq_selector *s, uint32_t constant) {
    bool fault;
    if (constant >= s->constants || s->constant[constant].kind != SHMQ_VALUE_BYTES) {
        return refuse("a pattern is not bytes", constant);
    }
    if (s->like[constant] == NULL) {
        s->like[constant] = shmq_like_made(s->constant[constant].text, s->constant[constant].length, &fault);
        if (s->like[constant] == NULL) {
            return fault ? refuse("a pattern is malformed", constant) : no_memory();
        }
    }
    return SHMQ_OK;
}

static shmq_status check_operands(shmq_selector *s, shmq_instruction *i, uint32_t left) {
    switch (i->operation) {
    case SHMQ_DO_NAME:
        return add_name(s, i);
    case SHMQ_DO_FIELD:
        return i->a < SHMQ_FIELDS ? SHMQ_OK : refuse("a field does not exist", i->a);
    case SHMQ_DO_CONSTANT:
        return i->a < s->constants ? SHMQ_OK : refuse("a constant does not exist", i->a);
    case SHMQ_DO_IN:
    case SHMQ_DO_NOT_IN:
        return i->a + (uint32_t)i->b <= s->constants ? SHMQ_OK : refuse("a list ends behind the constants", i->a);
    case SHMQ_DO_LIKE:
    case SHMQ_DO_NOT_LIKE:
        return add_pattern(s, i->a);
    case SHMQ_DO_SKIP_IF_FALSE:
    case SHMQ_DO_SKIP_IF_TRUE:
        return i->a <= left ? SHMQ_OK : refuse("a skip ends behind the last instruction", i->a);
    default:
        return SHMQ_OK;
    }
}

/* `found[n]`: for an instruction n that a skip leads to, 1 + the number of values on the stack before it. */
static shmq_status check_code(shmq_selector *s, const unsigned char *at, uint32_t stack, uint16_t *found) {
    uint32_t depth = 0;
    for (uint32_t n = 0; n < s->instructions; n++, at += INSTRUCTION_BYTES) {
        shmq_instruction *i = &s->code[n];
        *i = (shmq_instruction){at[0], (uint16_t)shmq_length_at(at + 1), (uint16_t)shmq_length_at(at + 3)};
        if (i->operation == 0 || i->operation >= SHMQ_OPERATIONS) {
            return refuse("an operation does not exist", i->operation);
        }
        if (found[n] != 0 && found[n] != depth + 1) {
            return refuse("a skip changes what is on the stack, instruction", n);
        }
        if (depth < takes[i->operation]) {
            return refuse("the stack is empty, instruction", n);
        }
        SHMQ_TRY(check_operands(s, i, s->instructions - n - 1));
        if (i->operation == SHMQ_DO_SKIP_IF_FALSE || i->operation == SHMQ_DO_SKIP_IF_TRUE) {
            uint32_t to = n + 1 + i->a;
            if (found[to] != 0 && found[to] != depth + 1) {
                return refuse("two skips differ in what is on the stack, instruction", n);
            }
            found[to] = (uint16_t)(depth + 1);
            continue;
        }
        depth = depth - takes[i->operation] + 1;
        if (depth > stack) {
            return refuse("the stack holds more values than announced, instruction", n);
        }
    }
    bool agree = found[s->instructions] == 0 || found[s->instructions] == depth + 1;
    return depth == 1 && agree ? SHMQ_OK : refuse("values are left at the end", depth);
}

static shmq_status load(shmq_selector *s, size_t bytes) {
    const unsigned char *at = s->program + FIXED, *end = s->program + bytes;
    uint32_t stack = s->program[1], most = s->constants < SHMQ_SELECTOR_NAMES ? s->constants : SHMQ_SELECTOR_NAMES;
    uint32_t bits = 1;
    while (bits < HASH_BITS_MAX && (UINT32_C(1) << bits) < 2 * most) {
        bits++;
    }
    s->hash_shift = 64 - bits;
    /* One more of each than needed: no allocation asks for 0 bytes. */
    s->constant = calloc(s->constants + 1, sizeof(*s->constant));
    s->like = calloc(s->constants + 1, sizeof(*s->like));
    s->code = calloc(s->instructions + 1, sizeof(*s->code));
    s->name = calloc(most + 1, sizeof(*s->name));
    s->chain = calloc((size_t)1 << bits, sizeof(*s->chain));
    if (s->constant == NULL || s->like == NULL || s->code == NULL || s->name == NULL || s->chain == NULL) {
        return no_memory();
    }
    SHMQ_TRY(read_constants(s, &at, end));
    if ((size_t)(end - at) != (size_t)s->instructions * INSTRUCTION_BYTES) {
        return refuse("the length of the instructions is wrong, in bytes", (size_t)(end - at));
    }
    uint16_t *found = calloc(s->instructions + 1, sizeof(*found));
    if (found == NULL) {
        return no_memory();
    }
    shmq_status status = check_code(s, at, stack, found);
    free(found);
    return status;
}

shmq_status shmq_selector_load(const void *program, size_t bytes, shmq_selector **selector) {
    const unsigned char *at = program;
    *selector = NULL;
    if (bytes < FIXED || bytes > SHMQ_SELECTOR_BYTES) {
        return refuse("the length of the program is out of range, in bytes", bytes);
    }
    if (at[0] != SHMQ_SELECTOR_VERSION || at[1] == 0) {
        return refuse("the program is of another version", at[0]);
    }
    shmq_selector *s = calloc(1, sizeof(*s) + bytes + SHMQ_HEADERS_PADDING);
    if (s == NULL) {
        return no_memory();
    }
    memcpy(s->program, at, bytes);
    s->bytes = (uint32_t)bytes;
    s->constants = shmq_length_at(s->program + 2);
    s->instructions = shmq_length_at(s->program + 4);
    shmq_status status = load(s, bytes);
    if (status != SHMQ_OK) {
        shmq_selector_free(s);
        return status;
    }
    *selector = s;
    return SHMQ_OK;
}

void shmq_selector_free(shmq_selector *s) {
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; s->like != NULL && i < s->constants; i++) {
        free(s->like[i]);
    }
    free(s->constant);
    free(s->like);
    free(s->code);
    free(s->name);
    free(s->chain);
    free(s);
}
