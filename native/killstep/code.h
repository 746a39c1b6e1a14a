/* The driver's own machine code, which is the victim's: where its instructions are, read from the disassembly outside, and
 * breakpoints in the victim's copy of it.
 *
 * A stop at a breakpoint is taken six times as fast here as a single step or a debug register, whose traps go by way of
 * the hypervisor (5, 31 and 24 us). */
#ifndef SHMQ_KILLSTEP_CODE_H
#define SHMQ_KILLSTEP_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The kinds of an instruction, in the upper byte of its address in the file. */
#define CODE_INSTRUCTION 0x1u /* any */
#define CODE_WRITES 0x2u /* it may write to memory other than its stack */
#define CODE_REPEATS 0x4u /* itself (rep stos): a single step is one turn */
#define CODE_CHANGES 0x8u /* others have seen something differ after it, in a run before: code_has_changed */

typedef struct code {
    uint64_t first, end; /* of the pages that hold any */
    uint8_t *kinds; /* by address; 0: no instruction begins there */
    const unsigned char *original;
    uint8_t broken_kinds; /* which of them have breakpoints in what follows */
    unsigned char *broken; /* the code */
    uint8_t *has_broken; /* by page: any */
} code;

/* A file of instructions, 8 bytes each, in the order of their addresses. */
code *code_read(const char *path);
/* 0: no instruction that is known begins there. */
uint8_t code_kind(const code *c, uint64_t address);
void code_has_changed(code *c, uint64_t address);
/* Of an instruction that writes, which never jumps: the one after it. */
uint64_t code_behind(const code *c, uint64_t address);

/* Breakpoints at all instructions of some kinds in a victim's code, but for one that is open, and one more anywhere. */
typedef struct breakpoints {
    code *code;
    pid_t pid;
    uint8_t kinds;
    uint64_t open, extra; /* 0: none */
} breakpoints;

void breakpoints_set(breakpoints *b, code *c, pid_t pid, uint8_t kinds);
void breakpoints_move(breakpoints *b, uint64_t open, uint64_t extra);

/* One breakpoint in the code of a victim that has no others. */
void breakpoint_put(pid_t pid, uint64_t address);
void breakpoint_take(pid_t pid, uint64_t address);

#endif
