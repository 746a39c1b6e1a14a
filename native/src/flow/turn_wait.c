/* Waits for the turn of another mover. On a busy machine a process may find the mover's lock taken at each of its looks,
 * by others that get on. For a call that says Empty or Full then, only one turn that does not end is a reason to do so.
 * One that comes again tries for a while, whoever has the lock. */
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
    uint64_t until = shmq_now_ns() + back->queue->m->patience_ns;
    shmq_status status;
    while ((status = shmq_turn_begin(t, back)) == SHMQ_IN_USE && shmq_now_ns() < until) {
        sched_yield(); /* the mover may wait for this processor */
    }
    return status;
}

/* The call's own turns are no sign that others get on. */
shmq_status shmq_relief_for(shmq_queue *q, uint64_t until_ns, shmq_relief *r) {
    uint32_t before = shmq_load_seq(&q->page->turns_begun);
    shmq_status moved = shmq_upkeep.relieve(q->m, q, false);
    uint64_t now = shmq_now_ns(), patience = q->m->patience_ns;
    bool others = r->began_ns == 0 || before != r->turn;
    r->began_ns = r->began_ns != 0 ? r->began_ns : now;
    r->since_ns = others ? now : r->since_ns;
    r->turn = shmq_load_seq(&q->page->turns_begun);
    if (now < until_ns || !shmq_may_flow(q)) {
        return moved;
    }
    bool again = moved == SHMQ_IN_USE ? now - r->since_ns < patience
                                      : moved == SHMQ_EMPTY && others && now - r->began_ns < patience;
    if (again) {
        sched_yield(); /* the mover may wait for this processor */
    }
    return again ? SHMQ_OK : moved;
}
