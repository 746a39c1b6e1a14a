/* Takes an entry of a queue that has flowed, by its place. It is in the back ring, in the front ring, on disk, or on
 * its way. */
#include <sched.h>

#include "flow/waiting.h"
#include "ring/ring.h"
#include "settle/settle.h"
#include "wake/wait.h"

static bool is_moving(const shmq_ring *back, uint64_t place) {
    const shmq_slot_shm *slot = shmq_slot_at(back, place);
    uint64_t word = shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->word); /* SYNC ring.publish */
    return shmq_word_state(word) == SHMQ_MOVING &&
           shmq_load_acquire((shmq_a64 *)(uintptr_t)&slot->position) == place; /* SYNC ring.publish */
}

static shmq_status no_slot(shmq_ring *back, uint64_t place) {
    return shmq_fail(SHMQ_NO_SPACE,
                     "no slot is free for a message that comes back from disk\n"
                     "position %llu; messages that came back before have all %llu slots\n"
                     "or settle messages in hand",
                     (unsigned long long)place, (unsigned long long)shmq_slot_count(shmq_front_of(back)));
}

/* Brings the row of this place. SHMQ_OK: look again. The lowest row comes with those that follow it, since they are
 * most likely wanted next. */
static shmq_status fetch(shmq_ring *back, uint64_t place, uint64_t low) {
    shmq_status status = place == low ? shmq_inhaler_bring(back) : SHMQ_EMPTY;
    if (status == SHMQ_OK || status == SHMQ_CORRUPT) {
        return status;
    }
    status = shmq_flow_fetch(back, place);
    if (status == SHMQ_NOT_FOUND) {
        return status;
    }
    return status == SHMQ_EMPTY ? no_slot(back, place) : status;
}

/* Brings a waiting row, which may have any place. */
static shmq_status fetch_waiting(shmq_ring *back, uint64_t place) {
    shmq_status status = shmq_waiting_fetch_at(back, place);
    return status == SHMQ_EMPTY ? no_slot(back, place) : status;
}

static bool find(shmq_ring *back, uint64_t place, uint64_t *position) {
    shmq_ring *front = shmq_front_of(back);
    bool found = shmq_front_find(front, place, position);
    if (found) {
        shmq_store_relaxed(&front->found, *position + 1); /* the next place is mostly the next one up */
    }
    return found;
}

shmq_status shmq_steal_at(shmq_ring *back, uint64_t place, bool ready, shmq_delivery *d) {
    shmq_turn_wait turn = {0};
    uint64_t until = 0, slice_end = 0; /* the clock is read during a wait only */
    for (;;) {
        uint64_t before = shmq_flow_at(back);
        shmq_status status = shmq_steal(back, place, ready, d);
        uint64_t flow = shmq_flow_at(back), low = shmq_load_seq(&back->shm->low), position;
        if (status != SHMQ_EMPTY || SHMQ_LIKELY(flow == 0)) {
            return status;
        }
        bool on_disk = shmq_flow_is_on(flow) && place >= low && place < shmq_flow_place(flow);
        if (find(back, place, &position)) {
            return shmq_steal(shmq_front_of(back), position, ready, d);
        }
        bool able = back->queue->m->backing_of != NULL;
        status = able && shmq_waiting_of(back->shm).count != 0 ? fetch_waiting(back, place) : SHMQ_NOT_FOUND;
        if (status == SHMQ_NOT_FOUND) {
            status = on_disk && able ? fetch(back, place, low) : SHMQ_EMPTY;
        }
        if (status == SHMQ_NOT_FOUND) { /* the row has come in, or gone, meanwhile */
            return find(back, place, &position) ? shmq_steal(shmq_front_of(back), position, ready, d)
                                                : shmq_steal(back, place, ready, d);
        }
        bool locked_out = status == SHMQ_IN_USE, waits = locked_out || is_moving(back, place);
        if (!waits && status == SHMQ_EMPTY) { /* a flush may have ended, or failed, during the look at the front ring */
            status = shmq_steal(back, place, ready, d);
            if (status != SHMQ_EMPTY) {
                return status;
            }
            waits = is_moving(back, place);
            if (!waits && shmq_flow_at(back) != before) {
                continue;
            }
        }
        if (!waits && status != SHMQ_OK) {
            return status;
        }
        if (waits) {
            uint64_t now = shmq_now_ns();
            slice_end = until != 0 ? slice_end : shmq_slice_end(back->queue->m);
            until = until != 0 ? until : now + back->queue->m->patience_ns;
            if (now >= slice_end && locked_out) {
                return SHMQ_INTERRUPTED; /* others get on: the caller looks for signals, and comes again */
            }
            if (status != SHMQ_OK && !(locked_out ? shmq_turn_goes_on(back->queue, &turn) : now < until)) {
                return status;
            }
            sched_yield(); /* the mover may wait for this processor */
        }
    }
}
