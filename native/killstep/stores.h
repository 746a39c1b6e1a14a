/* Recording a long operation faster: between two instructions that may write to memory nothing can differ, so the victim
 * runs from one such instruction to the next. Where they are is read from the disassembly of this program, outside; each gets a
 * breakpoint in the victim's own copy of the code.
 *
 * The trace that results has one step for each time that such an instruction is about to be executed. */
#ifndef SHMQ_KILLSTEP_STORES_H
#define SHMQ_KILLSTEP_STORES_H

#include "tracee.h"

/* A file of addresses, 8 bytes each. */
stores *stores_read(const char *path);
/* May this instruction write to memory other than its stack? Where nothing is known of it: yes. */
bool stores_may_write(const stores *list, uint64_t address);
void stores_record(stage *s, const victim_plan *plan, const stores *list, trace *t);

#endif
