#include "shmq/upkeep.h"

#include "shmq/due.h"
#include "shmq/reap.h"
#include "shmq/structure.h"

const shmq_upkeep_calls shmq_upkeep = {
    .reap_dead = shmq_reap_dead,
    .reap_row = shmq_reap_row,
    .look_for_due = shmq_due_look,
    .relieve = shmq_relieve,
    .release_queues = shmq_queues_release,
};
