/* Selectors: conditions on a message's headers, as programs that are run in the midst of a scan.
 *
 * A program is made by shmq/selector/program.py from the text that the user gave. It computes on a stack of values; it
 * has no backward jumps, so it ends. Loading checks all of it; whatever bytes it is given, it refuses them or gives a
 * selector that can be run without harm.
 *
 *   offset  bytes  what
 *   0       1      version of the format, 1
 *   1       1      most values on the stack, 1 to 255
 *   2       2      constants
 *   4       2      instructions
 *   6       ...    constants, one after the other: values as in a header block, see headers.h
 *   ...     5 each instructions: operation 1, a 2, b 2 (0 where they mean nothing)
 *
 *   operation            takes  gives
 *   1  name a            0      1      the header that constant a (text) names; NULL if there is none
 *   2  field a           0      1      the message's own: see enum shmq_selector_field
 *   3  constant a        0      1
 *   4  = 5 <> 6 < 7 <= 8 > 9 >=     2  1
 *   10 + 11 - 12 * 13 /  2      1
 *   14 negated           1      1
 *   15 between           3      1      value, low, high
 *   16 outside           3      1      NOT BETWEEN
 *   17 is null           1      1
 *   18 is not null       1      1
 *   19 in a, b           1      1      b constants from a on
 *   20 not in a, b       1      1
 *   21 like a            1      1      constant a (bytes) is a pattern, see like.h
 *   22 not like a        1      1
 *   23 not               1      1
 *   24 and               2      1
 *   25 or                2      1
 *   26 skip if false a   0      0      where the top of the stack is false, a instructions are passed over
 *   27 skip if true a    0      0
 *
 * Every way to an instruction finds as many values on the stack; at the end there is one, and TRUE selects. */
#ifndef SHMQ_SELECTORS_SELECTOR_H
#define SHMQ_SELECTORS_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SHMQ_SELECTOR_VERSION 1u
#define SHMQ_SELECTOR_BYTES (1u << 18) /* of a program; a text of 4,096 characters gives at most a tenth of it */
#define SHMQ_SELECTOR_STACK 255u       /* values */
#define SHMQ_SELECTOR_NAMES 1024u      /* different headers that one selector asks for */

enum shmq_selector_field {
    SHMQ_FIELD_MESSAGE_ID = 0,
    SHMQ_FIELD_PRIORITY = 1,
    SHMQ_FIELD_REDELIVERED = 2,
    SHMQ_FIELD_TIMESTAMP = 3,
    SHMQ_FIELD_DELIVERY_COUNT = 4,
    SHMQ_FIELD_GROUP = 5,
    SHMQ_FIELDS = 6
};

/* The parts of a message that a selector may ask for. */
typedef struct shmq_fields {
    const unsigned char *headers; /* may lie in shared memory and be written meanwhile */
    uint32_t headers_len;         /* bytes that may be read there */
    uint64_t message_id;
    uint64_t enqueued_wall_ms;
    uint8_t priority;
    bool redelivered;
    uint32_t delivery_count;    /* with the delivery that comes next */
    const unsigned char *group; /* may lie in shared memory, too; NULL: the group that the header block names, if any */
    uint32_t group_len;
} shmq_fields;

typedef struct shmq_selector shmq_selector;

/* SHMQ_CORRUPT for what is no program, SHMQ_OS without memory. The program may go afterwards. */
shmq_status shmq_selector_load(const void *program, size_t bytes, shmq_selector **selector);
void shmq_selector_free(shmq_selector *selector);

/* Is it true for this message? A header block that makes no sense, or is torn, selects nothing or something. A caller
 * that acts on the answer makes sure that the message is still the same one. Any number of threads at once. Takes no
 * memory but the stack's: 28 KiB, and 64 KiB more for header blocks of more than 2 KiB. */
bool shmq_selects(const shmq_selector *selector, const shmq_fields *fields);

#endif
