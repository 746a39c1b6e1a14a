/* Waits for the turn of another mover. On a busy machine a process may find the mover's lock taken at each of its looks,
 * by others that get on. Only one turn that does not end is a reason to give up. */
#include <sched.h>

#include "shmq/flow.h"

bool shmq_turn_goes_on(const shmq_queue *q, shmq_turn_wait *w) {
    uint64_t now = shmq_now_ns();
    uint32_t turn = shmq_load_seq(&q->page->turns_begun);
    if (w->since_ns == 0 || w->turn != turn) {
        *w = (shmq_turn_wait){.since_ns = now, .turn = turn};
    }
    return now - w->since_ns < q->m->patience_ns;
}

shmq_status shmq_turn_await(shmq_mover *t, shmq_ring *back) {
    shmq_turn_wait wait = {0};
    shmq_status status;
    while ((status = shmq_turn_begin(t, back)) == SHMQ_IN_USE && shmq_turn_goes_on(back->queue, &wait)) {
        sched_yield(); /* the mover may wait for this processor */
    }
    return status;
}
