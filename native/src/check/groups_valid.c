/* The table of groups. */
#include "dispatch/group_words.h"

const char *shmq_groups_valid(const shmq_queue *q) {
    for (uint32_t group = 1; group <= SHMQ_GROUPS; group++) {
        uint64_t word = shmq_load_seq(&shmq_group_at(q, group)->owner);
        uint64_t refused = shmq_load_seq(&shmq_group_at(q, group)->refused);
        uint32_t owner = shmq_group_owner(word), row = owner & 0xfffu;
        if (q->grouping == SHMQ_GROUPS_NONE && (word != 0 || refused != 0)) {
            return "a group in a queue without groups";
        }
        if (row >= ((owner & SHMQ_OWNER_PROCESS) != 0 ? SHMQ_PROCESS_ROWS : SHMQ_CONSUMER_ROWS)) {
            return "a group of an owner that there is not";
        }
        if (shmq_is_refused(refused) && shmq_refused_depth(refused) >= q->levels) {
            return "a group that waits at a level that there is not";
        }
    }
    return NULL;
}
