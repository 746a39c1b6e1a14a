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

/* Others get on while messages go to disk, of whichever queue: what came free there they may have taken. A flush of the
 * call itself ends with SHMQ_OK, and then there is memory, or others have taken it. Turns that move nothing count for
 * nothing, so callers that find nothing to move do not keep each other trying. */
shmq_status shmq_relief_for(shmq_queue *q, bool waits, shmq_relief *r) {
    shmq_status moved = shmq_upkeep.relieve(q->m, q, false);
    if (moved == SHMQ_OK || waits || !shmq_may_flow(q)) {
        return moved;
    }
    uint64_t now = shmq_now_ns();
    uint32_t flushes = shmq_load_seq(&q->m->header->flushes);
    bool first = r->since_ns == 0;
    if (first || r->flushes != flushes) {
        *r = (shmq_relief){.since_ns = now, .flushes = flushes, .seen = !first};
    }
    bool hope = moved == SHMQ_IN_USE || (moved == SHMQ_EMPTY && (first || r->seen));
    bool again = hope && now - r->since_ns < q->m->patience_ns;
    if (again) {
        sched_yield(); /* the mover may wait for this processor */
    }
    return again ? SHMQ_OK : moved;
}
