/* Faults of the table of groups. */
#include "base/fault_text.h"
#include "check/faults.h"
#include "groups/group.h"
#include "groups/group_words.h"

const char *shmq_groups_fault(const shmq_queue *q) {
    for (uint32_t group = 1, last = shmq_groups_laid(q); group <= last; group++) {
        uint64_t word = shmq_load_seq(&shmq_group_at(q, group)->owner);
        uint64_t refused = shmq_load_seq(&shmq_group_at(q, group)->refused);
        uint32_t owner = shmq_group_owner(word), row = owner & 0xfffu;
        if (q->grouping == SHMQ_GROUPS_NONE && (word != 0 || refused != 0)) {
            return shmq_fault_text("message group %u is in use, but the queue has no groups", group);
        }
        if (row >= ((owner & SHMQ_OWNER_PROCESS) != 0 ? SHMQ_PROCESS_ROWS : SHMQ_CONSUMER_ROWS)) {
            return shmq_fault_text("message group %u has an owner whose row number is out of range: %u", group, row);
        }
        if (shmq_is_refused(refused) && shmq_refused_depth(refused) >= q->levels) {
            return shmq_fault_text("message group %u waits at level %u, but the queue has %u levels", group,
                                   shmq_refused_depth(refused), q->levels);
        }
    }
    return NULL;
}
