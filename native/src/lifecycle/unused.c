/* queue.expires: a process deletes a queue that was unused for so long. */
#include "base/wait_time.h"
#include "consumers/unused.h"
#include "lifecycle/delete.h"
#include "queue/settings.h"

uint64_t shmq_unused_end(shmq_queue *q, uint64_t now) {
    char dead_letter[SHMQ_NAME_MAX];
    if (shmq_unused_is_used(q)) {
        shmq_unused_begin(q);
        return shmq_unused_due(q);
    }
    if (shmq_dead_letter(q->page, dead_letter) != 0) {
        (void)shmq_or_seq(&q->m->upcalls, SHMQ_UPCALL_DEAD_LETTERS); /* for the interpreter: it knows the queue */
        return now + SHMQ_DEAD_LETTER_NS;
    }
    shmq_status status = shmq_queue_delete_unused(q, now);
    shmq_trail_clear(); /* for the caller nothing has failed */
    return status == SHMQ_OK || status == SHMQ_NOT_FOUND ? shmq_unused_due(q) : now + SHMQ_TICK_NS;
}
