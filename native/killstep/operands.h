/* Which memory an instruction is about to touch: its operand as the disassembly of this program has it, read outside, and
 * the registers of a victim that stands before it. */
#ifndef SHMQ_KILLSTEP_OPERANDS_H
#define SHMQ_KILLSTEP_OPERANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OPERAND_REGISTERS 16u

/* One record of the file: address = base + index * scale + displacement. */
typedef struct operand {
    uint64_t instruction;
    int64_t displacement;
    uint8_t base, index, scale; /* registers as instructions number them; OPERAND_REGISTERS: none */
    uint8_t unused[5];
} operand;

typedef struct operands {
    const operand *first;
    uint64_t count;
} operands;

/* Sorted by instruction, as the file is. */
operands *operands_read(const char *path);
/* False: the instruction touches no memory that is known of. */
bool operands_touched(const operands *list, pid_t pid, uint64_t instruction, uint64_t *address);

#endif
