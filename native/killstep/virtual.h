/* Time and process ids that are the same in every run. The clock goes on by a little with every look, and by the whole
 * limit with every sleep that nobody ends, so a patience costs no time and is measured without noise. */
#ifndef SHMQ_KILLSTEP_VIRTUAL_H
#define SHMQ_KILLSTEP_VIRTUAL_H

#include <stdint.h>

#define VIRTUAL_START UINT64_C(1000000000000)

void virtual_clock_set(uint64_t ns);
uint64_t virtual_clock(void); /* without moving it */
uint64_t *virtual_clock_word(void);
void virtual_wall_step(uint64_t ns); /* for this process: somebody has set the wall clock */
void virtual_pid_set(int pid);
/* From here on malloc does the same in every run: for victims. */
void virtual_heap_begin(void);
/* Called whenever this process is about to sleep with a limit. */
void virtual_before_sleep(void (*call)(void));

#endif
