/* Wakes producers that wait for room, when there is room or at a shutdown, and threads that wait in join(). */
#include "limits/room_wake.h"
#include "base/futex.h"
#include "consumers/sleepers.h"
#include "layout/waiters.h"
#include "limits/line.h"

void shmq_notify_all(shmq_queue *q) {
    shmq_notify_consumers(q);
    shmq_wake_producers(q);
    shmq_wake_joiners(q);
}

void shmq_wake_producers(shmq_queue *q) {
    shmq_add_seq(&q->page->ring.full, 1);
    shmq_futex_wake(&q->page->ring.full, INT32_MAX);
    shmq_line_call_all(q);
}

void shmq_wake_joiners(shmq_queue *q) {
    shmq_store_seq(&q->page->ring.joiners, 0);
    shmq_add_seq(&q->page->ring.drained, 1);
    shmq_futex_wake(&q->page->ring.drained, INT32_MAX);
}

/* Wakes producers after a slot became free. Where the queue has a limit, each freed place wakes the first producer in
 * line. Where only the ring limits, a wake for each slot would cost a system call for each message. So only some slots
 * wake, and a blocked producer looks by itself at growing intervals. */
static SHMQ_NOINLINE void wake_producer(shmq_ring *r, const shmq_slot_shm *slot) {
    shmq_queue *q = r->queue;
    shmq_ring_shm *ring = &q->page->ring;
    uint64_t index = (uint64_t)((const unsigned char *)slot - r->slots) / r->slot_size;
    uint64_t stride = shmq_slot_count(r) / 16;
    bool limited = shmq_load_relaxed(&q->page->limited) != 0;
    if (limited && shmq_line_stands(q)) {
        shmq_line_call(q);
    } else if (limited || (index & ((stride < 256 ? stride : 256) - 1)) == 0) {
        shmq_add_seq(&ring->full, 1);
        shmq_futex_wake(&ring->full, 1);
    }
}

void shmq_wake_full(shmq_ring *r, const shmq_slot_shm *slot) {
    shmq_ring_shm *ring = &r->queue->page->ring; /* of the first level: producers wait there, for whatever level */
    if (SHMQ_UNLIKELY(shmq_load_seq(&ring->joiners) != 0)) {
        shmq_wake_joiners(r->queue);
    }
    if (SHMQ_UNLIKELY(shmq_waiters_in(shmq_load_seq(&ring->waiters)) != 0)) {
        wake_producer(r, slot);
    }
}
