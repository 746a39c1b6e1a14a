#include "recovery/reap.h"
#include "upkeep/duty.h"
#include "upkeep/relief.h"

const shmq_upkeep_calls shmq_upkeep = {
    .reap_dead = shmq_reap_dead,
    .reap_row = shmq_reap_row,
    .round = shmq_upkeep_round,
    .finish = shmq_upkeep_finish,
    .thorough = shmq_upkeep_thorough,
    .relieve = shmq_relieve,
    .fronts_lack = shmq_fronts_lack,
    .release_unused = shmq_release_unused,
};
