#include "consumers/privilege.h"
#include "consumers/group_book.h"
#include "queue/consumer_row.h"
#include "wake/watch.h"

/* The word that says whether this owner has a privilege. */
static shmq_a32 *privilege_of(shmq_queue *q, uint32_t owner) {
    if ((owner & SHMQ_OWNER_PROCESS) != 0) {
        return q->book != NULL ? &q->book->privileged : NULL;
    }
    shmq_consumer_shm *row = shmq_row_at(q, owner);
    return row != NULL ? &row->privileged : NULL;
}

void shmq_privilege_take(shmq_queue *q, uint32_t owner) {
    shmq_a32 *privilege = privilege_of(q, owner);
    if (privilege != NULL && shmq_load_relaxed(privilege) == 0 && shmq_cas32_seq(privilege, 0, 1)) {
        shmq_add_privileges(q->m, 1);
    }
}

void shmq_privilege_leave(shmq_queue *q, uint32_t owner) {
    shmq_a32 *privilege = privilege_of(q, owner);
    if (privilege != NULL && shmq_load_relaxed(privilege) != 0 && shmq_cas32_seq(privilege, 1, 0)) {
        shmq_add_privileges(q->m, -1);
    }
}
