/* The reaper frees groups of dead processes, after their entries are back in the queue. */
#include "groups/group.h"
#include "groups/group_words.h"
#include "recovery/recover.h"

static bool is_of_the_dead(const shmq_queue *q, uint64_t word, const shmq_liveness *l) {
    uint32_t owner = shmq_group_owner(word);
    if ((owner & SHMQ_OWNER_PROCESS) != 0) {
        return shmq_is_dead(l, owner & 0xfffu);
    }
    shmq_consumer_shm *consumer = shmq_row_at(q, owner);
    uint64_t row = consumer != NULL ? shmq_load_acquire(&consumer->word) : 0; /* SYNC row.owner */
    return shmq_row_state(row) != SHMQ_ROW_FREE && shmq_is_dead(l, shmq_row_inner(row));
}

void shmq_groups_recover(shmq_queue *q, const shmq_liveness *l) {
    if (q->grouping == SHMQ_GROUPS_NONE) {
        return;
    }
    for (uint32_t group = 1, last = shmq_groups_laid(q); group <= last; group++) {
        uint64_t word = shmq_load_seq(&shmq_group_at(q, group)->owner);
        if (shmq_group_is_free(q, word)) {
            shmq_group_turn_back(q, group);
        } else if (is_of_the_dead(q, word, l)) {
            (void)shmq_group_free(q, group, word);
        }
    }
    (void)shmq_groups_recheck(q); /* the dead process may have stolen a message from an owner */
}
