/* Which process is dead? Everything that repairs a structure asks its caller: in production the kernel's locks say so, in a
 * test whatever the test wants to be true. The answer may not be "dead" for a process that can still write. */
#ifndef SHMQ_SEGMENT_LIVENESS_H
#define SHMQ_SEGMENT_LIVENESS_H

#include "segment/member.h"

typedef bool (*shmq_row_dead)(void *context, uint32_t process_row);

typedef struct shmq_liveness {
    shmq_row_dead is_dead; /* asked after the word that names the row was read */
    void *context;
    bool leaving; /* not dead: it goes by itself. All it holds goes back, no death is counted, its claims are its own */
} shmq_liveness;

/* As the lock bytes say. */
shmq_liveness shmq_liveness_by_lock(shmq_member *m);

static inline bool shmq_is_dead(const shmq_liveness *l, uint32_t process_row) {
    return l->is_dead(l->context, process_row);
}

#endif
