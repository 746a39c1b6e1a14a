/* The purger, the mover that makes room in memory: entries go to disk, or from the back ring right into the front ring. */
#include <sched.h>

#include "base/clock.h"
#include "flow/waiting.h"
#include "limits/count.h"
#include "ring/ring.h"
#include "segment/alert_time.h"

/* Begins the level's flow: from here on its oldest entries go first. The slots that come free are those under the tail,
 * which need not be carried over what waits for takers. */
static shmq_status enter(shmq_mover *t) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t tail = shmq_load_seq(&ring->tail), place = shmq_flow_place(shmq_load_seq(&ring->flow));
    uint64_t head = shmq_head_position(t->back, shmq_load_seq(&ring->head));
    uint64_t from = head < tail ? head : tail;
    SHMQ_TRY(shmq_front_ready(t));
    from = from > place ? from : place;
    /* Overwrites what a dead purger's flush has left, which may name the same place. */
    shmq_flushing_say(ring, from, shmq_load_relaxed(&ring->flushed), shmq_load_relaxed(&ring->flushed_bytes));
    shmq_store_seq(&ring->low, from);
    shmq_store_seq(&ring->flow, shmq_flow_word(from, true));
    shmq_alerts_hurry(t->q->m);
    return SHMQ_OK;
}

static shmq_status move_oldest(shmq_mover *t, bool ring_full) {
    shmq_ring_shm *ring = t->back->shm;
    shmq_status status = shmq_flow_is_on(shmq_load_seq(&ring->flow)) ? SHMQ_OK : enter(t);
    bool rows = shmq_load_relaxed(&ring->low) < shmq_flow_place(shmq_load_seq(&ring->flow));
    if (status == SHMQ_OK && ring_full && !rows && shmq_hand_over(t) == SHMQ_OK) {
        return SHMQ_OK;
    }
    if (status == SHMQ_OK && (status = shmq_flush(t)) == SHMQ_OK && SHMQ_UNLIKELY(shmq_front_lacks(t->front) != 0)) {
        (void)shmq_front_need(t);
        shmq_trail_clear(); /* a later flush tries it again */
    }
    return status;
}

/* Makes room in the turn's level. Delayed entries go first, since they are wanted last: those in the producer's way;
 * where nothing else can go, all. */
static shmq_status make_room(shmq_mover *t, bool ring_full) {
    if (shmq_waiting_flush(t, t->back, SHMQ_TURN_ENTRIES) == SHMQ_OK) {
        return SHMQ_OK;
    }
    shmq_trail_clear(); /* of a disk that fails: what follows meets it, too */
    shmq_status status = move_oldest(t, ring_full);
    return status == SHMQ_EMPTY ? shmq_waiting_flush(t, t->back, UINT64_MAX) : status;
}

uint64_t shmq_could_go(const shmq_ring *back) {
    uint64_t tail = shmq_load_seq(&back->shm->tail), place = shmq_flow_place(shmq_load_seq(&back->shm->flow));
    uint64_t head = shmq_head_position(back, shmq_load_seq(&back->shm->head)), from = head > place ? head : place;
    return tail > from ? tail - from : 0;
}

/* Makes room in any level. The least important one goes first, since it is taken last. A single level may all go. */
static shmq_status make_room_anywhere(shmq_mover *t) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = t->q->levels; depth-- > 0 && status == SHMQ_EMPTY;) {
        shmq_ring *back = shmq_level(t->q, depth);
        if (t->q->levels == 1 || shmq_could_go(back) > 1 || shmq_load_relaxed(&back->shm->due) != 0) {
            SHMQ_TRY(shmq_turn_to(t, back));
            status = make_room(t, false);
        }
    }
    return status;
}

shmq_status shmq_purger_make_room(shmq_queue *q, shmq_ring *full) {
    shmq_mover t;
    if (!shmq_may_flow(q)) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_turn_begin(&t, full != NULL ? full : &q->first));
    shmq_status status = full != NULL ? make_room(&t, true) : make_room_anywhere(&t);
    shmq_turn_end(&t);
    if (status == SHMQ_OK) {
        shmq_wake_waiters(q);
    }
    return status;
}

/* The purger makes memory free for rows: it flushes less important levels, then newer entries of this one. If neither
 * helps, it brings in as many rows as memory allows. */
shmq_status shmq_purger_make_way(shmq_mover *t) {
    shmq_ring *back = t->back;
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = t->q->levels - 1; depth > back->depth && status == SHMQ_EMPTY; depth--) {
        shmq_ring *other = shmq_level(t->q, depth);
        if (shmq_could_go(other) > 1) {
            status = shmq_turn_to(t, other);
            status = status == SHMQ_OK ? make_room(t, false) : status;
        }
    }
    SHMQ_TRY(shmq_turn_to(t, back));
    return status == SHMQ_EMPTY ? move_oldest(t, false) : status;
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
