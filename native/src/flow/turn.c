/* The mover's turn: a process takes the lock, ends what a dead mover has left half done, and moves some entries. */
#include "flow/turn.h"
#include "base/clock.h"
#include "consumers/sleepers.h"
#include "flow/flow.h"
#include "limits/count.h"
#include "segment/descriptors.h"
#include "wake/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define MOVER_BYTE (UINT64_C(1) << 41) /* offset of the first queue's lock byte in the segment's file */

bool shmq_may_flow(const shmq_queue *q) { return q->m->backing_of != NULL; }

static int lock_mover(const shmq_queue *q, short how) {
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)(MOVER_BYTE + q->index), .l_len = 1};
    return shmq_has_locks(q->m) ? fcntl(q->m->lock_fd, F_OFD_SETLK, &lock) : -1;
}

static bool try_lock(shmq_queue *q) {
    shmq_a64 *word = &q->m->movers[q->index / 64]; /* for other threads of this process */
    uint64_t bit = UINT64_C(1) << q->index % 64;
    if ((shmq_or_seq(word, bit) & bit) != 0) {
        return false;
    }
    if (lock_mover(q, F_WRLCK) == 0) {
        shmq_after_kernel(&q->page->unfinished);
        shmq_store_seq(&q->page->turns_begun, shmq_load_relaxed(&q->page->turns_begun) + 1);
        return true;
    }
    shmq_and_seq(word, ~bit);
    return false;
}

static void unlock(shmq_queue *q) {
    shmq_before_kernel(&q->page->unfinished);
    (void)lock_mover(q, F_UNLCK);
    shmq_and_seq(&q->m->movers[q->index / 64], ~(UINT64_C(1) << q->index % 64));
    if (shmq_load_seq(&q->page->missed) != 0) { /* a process that missed the lock has set it before the unlock */
        shmq_store_seq(&q->page->missed, 0);
        shmq_notify_starved(q);
        shmq_wake_waiters(q);
        sched_yield(); /* its turn is next: a process that moves all the time would have the lock whenever others look */
    }
}

/* Processes that count the slots meanwhile must count anew: each turn makes a new version of the counts. */
static void turn_over(shmq_queue *q) {
    shmq_room_give(q, shmq_load_seq(&q->page->limited), 0, 0);
    shmq_store_seq(&q->page->unfinished, 0);
}

shmq_status shmq_turn_to(shmq_mover *t, shmq_ring *back) {
    shmq_queue *q = back->queue;
    t->back = back;
    t->front = shmq_front_of(back);
    t->waiting = NULL; /* until it is wanted */
    t->fetched = 0;
    return q->m->backing_of != NULL ? q->m->backing_of(q, back->depth, &t->backing) : SHMQ_OK;
}

/* Recovers the queue, also without a backing: `unswept` tells the next mover with a backing to clean up the disk. */
static void recover(shmq_queue *q) {
    shmq_store_seq(&q->page->unswept, UINT32_MAX); /* before `unfinished` says that all is well */
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_mover t = {.q = q};
        shmq_ring *back = shmq_level(q, depth);
        shmq_flow_recover(back, shmq_front_of(back));
        if (q->m->backing_of != NULL && shmq_turn_to(&t, back) == SHMQ_OK) {
            (void)shmq_erase_last(&t);
        }
    }
}

shmq_status shmq_turn_begin_anyhow(shmq_mover *t, shmq_ring *back) {
    shmq_queue *q = back->queue;
    *t = (shmq_mover){.q = q};
    if (!try_lock(q)) {
        shmq_store_seq(&q->page->missed, 1);
        if (!try_lock(q)) {
            return SHMQ_IN_USE;
        }
    }
    shmq_status status = shmq_turn_to(t, back);
    if (status != SHMQ_OK) {
        unlock(q);
        return status;
    }
    shmq_add_unsettled(q->m, 1); /* so that the watcher notices soon if this process dies */
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        recover(q);
    }
    shmq_store_seq(&q->page->unfinished, (uint32_t)getpid());
    return SHMQ_OK;
}

void shmq_turn_end(shmq_mover *t) {
    shmq_queue *q = t->q;
    free(t->buffer);
    turn_over(q);
    shmq_add_unsettled(q->m, -1);
    unlock(q);
}

shmq_status shmq_turn_begin(shmq_mover *t, shmq_ring *back) {
    SHMQ_TRY(shmq_turn_begin_anyhow(t, back));
    bool unswept = (shmq_load_seq(&t->q->page->unswept) & (SHMQ_UNMARKED | 1) << back->depth) != 0;
    shmq_status status = SHMQ_UNLIKELY(unswept) && t->backing != NULL ? shmq_erase_last(t) : SHMQ_OK;
    if (status != SHMQ_OK) {
        shmq_turn_end(t);
    }
    return status;
}

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

void shmq_flow_mend(shmq_queue *q) {
    if (shmq_load_seq(&q->page->unfinished) == 0 || !try_lock(q)) {
        return; /* else a living mover holds the lock, and recovers by itself */
    }
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        recover(q);
        turn_over(q);
    }
    unlock(q);
    shmq_notify_starved(q);
}
