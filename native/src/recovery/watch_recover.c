/* The reaper vacates the watches of dead processes. */
#include "recovery/recover.h"
#include "wake/watch.h"

void shmq_watch_recover(shmq_member *m, const shmq_liveness *l) {
    for (int index = 0; index < 2; index++) {
        uint64_t word = shmq_load_seq(&m->header->watch[index]);
        uint32_t row = shmq_watch_row(word);
        if (word == 0 || row >= SHMQ_PROCESS_ROWS) {
            continue;
        }
        uint64_t owner = shmq_load_acquire(&m->rows[row].word); /* SYNC row.owner */
        if (shmq_row_generation(owner) == (uint32_t)(word >> 32) && shmq_is_dead(l, row)) {
            shmq_cas_seq(&m->header->watch[index], word, 0);
        }
    }
}
