#include "shmq/liveness.h"

static bool is_dead_by_lock(void *context, uint32_t row) { return shmq_process_dead(context, row); }

shmq_liveness shmq_liveness_by_lock(shmq_member *m) {
    return (shmq_liveness){.is_dead = is_dead_by_lock, .context = m};
}
