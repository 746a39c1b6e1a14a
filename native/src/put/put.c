/* Room in a queue, and the producers that wait for it. */
#include "put/put.h"
#include "base/futex.h"
#include "flow/flow.h"
#include "limits/count.h"
#include "limits/slot_free.h"
#include "limits/waiters.h"
#include "put/overflow.h"
#include "wake/wait.h"

static bool is_counted_full(shmq_status status) { return shmq_no_room(status) && status != SHMQ_FULL_RING; }

/* Puts. Where the count says "full" while a recount is asked for, the producer counts first. Before that it ends a turn
 * that a dead mover has left half done. */
static shmq_status put_counted(shmq_queue *q, shmq_outgoing *o) {
    for (;;) {
        shmq_status status = shmq_put_now(q, o);
        if (!is_counted_full(status) || shmq_load_seq(&q->page->recount_due) == 0) {
            return status;
        }
        if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->unfinished) != 0)) {
            shmq_flow_mend(q);
        }
        if (!shmq_recount(q)) {
            return status;
        }
    }
}

/* Returns when a blocked producer's sleep ends at the latest. A recount that traffic spoiled is tried again soon, since
 * no process may come to wake the producer. */
static uint64_t sleep_end(shmq_queue *q, shmq_status why, uint64_t until_ns, uint64_t piece_ns) {
    uint64_t now = shmq_now_ns();
    bool spoiled = is_counted_full(why) && shmq_load_seq(&q->page->recount_due) != 0;
    uint64_t piece = spoiled ? SHMQ_SHORT_SLEEP_NS : piece_ns;
    return until_ns > now && until_ns - now > piece ? now + piece : until_ns;
}

/* One sleep of a blocked producer. It counts itself as a waiter before its last look. So a process that frees a slot,
 * or asks for a recount, after that look sees the waiter. */
static shmq_status wait_once(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, uint64_t piece_ns) {
    shmq_ring_shm *ring = &q->page->ring;
    shmq_waiters waiters = shmq_room_waiters(q, q->counters);
    uint32_t seen = shmq_load_seq(&ring->full);
    shmq_join_count(&waiters);
    shmq_status status = put_counted(q, o);
    if (shmq_no_room(status) &&
        shmq_sleep(q->m, &ring->full, seen, sleep_end(q, status, until_ns, piece_ns)) == SHMQ_INTERRUPTED) {
        status = SHMQ_INTERRUPTED;
    }
    shmq_leave_count(&waiters);
    return status;
}

/* One sleep of a producer in line, until it is called, or for a piece of time. A call lets it look at once. A look by
 * time is there for stopped processes: the first in line looks for the process that should have called it. The second
 * looks for the first, the others for both. */
static shmq_status wait_in_line(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    uint32_t seen;
    if (!shmq_line_answer(q, &o->wait.ticket, &seen)) {
        return SHMQ_FULL_COUNT; /* passed long ago: it goes to the end of the line */
    }
    shmq_status status = put_counted(q, o);
    uint64_t piece = o->wait.ticket.second ? q->m->patience_ns / 4 : q->m->patience_ns;
    if (shmq_no_room(status) &&
        shmq_line_sleep(q, &o->wait.ticket, seen, sleep_end(q, status, until_ns, piece)) == SHMQ_INTERRUPTED) {
        status = SHMQ_INTERRUPTED;
    }
    return status;
}

static uint32_t wants(const shmq_outgoing *o) {
    return o->wait.more ? SHMQ_WANTS_ALL : (uint32_t)(o->headers_len + o->body_len);
}

/* A queue with a limit has a line. A producer that finds the line full waits beside it, and looks by time. */
static shmq_status wait_for_room(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, uint64_t piece_ns) {
    bool lines = shmq_load_relaxed(&q->page->limited) != 0 && shmq_overflow_of(q) == SHMQ_OVERFLOW_WAIT;
    if (!lines) {
        shmq_line_leave(q, &o->wait.ticket);
    } else if (o->wait.ticket.in_line || shmq_line_enter(q, &o->wait.ticket, wants(o))) {
        return wait_in_line(q, o, until_ns);
    }
    return wait_once(q, o, until_ns, piece_ns);
}

/* The tries that a call has made so far to find room. */
typedef struct room_try {
    shmq_status moved; /* of the last try to make room by the disk */
    bool locked_out; /* in the last try another process was the mover, and kept it from making room */
    bool stuck; /* ... and that one's turn does not end */
    bool upkept; /* all duties were done */
} room_try;

/* Notes whether another mover kept the call from making room. If the same turn always does, the call does without. */
static void note_lock(const shmq_queue *q, shmq_outgoing *o, room_try *try, bool taken) {
    try->locked_out = taken;
    if (SHMQ_LIKELY(!taken)) {
        o->wait.turn.since_ns = 0;
    }
    try->stuck = taken && !shmq_turn_goes_on(q, &o->wait.turn);
}

static bool is_disk_full(shmq_status moved) { return moved == SHMQ_FULL_DISK || moved == SHMQ_NO_SPACE; }

/* The ring is full, and nothing of it can go to disk: what consumers hold, and what waits for its time, stays in its
 * slots. Has the producer looked as far as there are slots? */
static bool look_far(shmq_outgoing *o) {
    bool looked = o->wait.far;
    o->wait.far = true;
    return looked;
}

/* Makes room by the disk. A queue that may flow moves its oldest entries to disk, if its ring is full or it has as many
 * bytes in memory as max_memory allows. SHMQ_INTERRUPTED: there is room; try again. SHMQ_FULL_DISK, SHMQ_NO_SPACE:
 * messages on disk have to go first. Where no more entries can go to disk, one message may exceed max_memory, and goes
 * to disk next. The same holds for a producer that does not wait for the mover at work. */
static shmq_status flow_for_room(shmq_queue *q, shmq_outgoing *o, shmq_status status, bool waits, room_try *try) {
    bool resident = status == SHMQ_FULL_RESIDENT;
    uint32_t overflow = shmq_overflow_of(q);
    try->locked_out = try->stuck = false;
    if (!resident && status != SHMQ_FULL_RING) {
        return status; /* a limit of the whole queue */
    }
    if (!shmq_may_flow(q)) { /* with disk=0 everything stays in memory, and max_memory does not limit it */
        o->wait.beyond = resident;
        return resident || !look_far(o) ? SHMQ_INTERRUPTED : status;
    }
    shmq_status moved = shmq_purger_make_room(q, resident ? NULL : shmq_level_for(q, o->priority));
    o->wait.beyond =
        resident && (moved == SHMQ_EMPTY || (moved == SHMQ_IN_USE && (!waits || overflow != SHMQ_OVERFLOW_WAIT)));
    if (moved == SHMQ_OK || o->wait.beyond ||
        (!resident && (moved == SHMQ_EMPTY || is_disk_full(moved)) && !look_far(o))) {
        return SHMQ_INTERRUPTED;
    }
    note_lock(q, o, try, moved == SHMQ_IN_USE);
    bool failed = is_disk_full(moved) || (shmq_is_failure(moved) && overflow != SHMQ_OVERFLOW_DROP_OLDEST);
    return failed ? moved : status;
}

/* Says whether the producer would get on by waiting for another mover. */
static bool waits_for_mover(const room_try *try) { return try->locked_out && !try->stuck; }

/* Drops the oldest. Where another mover keeps it on disk, the producer drops no newer one instead, nor one for which the
 * mover makes room, unless that mover is stuck. */
static bool drop_oldest(shmq_ring *r, shmq_outgoing *o, shmq_status why, room_try *try) {
    bool in_use;
    if (waits_for_mover(try)) {
        return false;
    }
    bool dropped = shmq_drop_oldest(r->queue, r->depth, why, &in_use);
    if (why != SHMQ_FULL_RING) {
        note_lock(r->queue, o, try, in_use);
    }
    return dropped || (try->stuck && shmq_drop_oldest(r->queue, r->depth, why, NULL));
}

/* max_memory is used up, and the disk: to drop something is no remedy, for it limits what is in memory, not the queue. */
static bool waits_for_disk(shmq_status status, const room_try *try) {
    return status == SHMQ_FULL_RESIDENT && is_disk_full(try->moved);
}

/* The producer drops the oldest until its message fits, or until none is left that can be dropped. A message that fits
 * the limits may find the ring full, or max_memory used up. Then the oldest entries go to disk, and none is dropped. */
static shmq_status put_and_drop(shmq_ring *r, shmq_outgoing *o, room_try *try) {
    shmq_status status;
    do {
        status = put_counted(r->queue, o);
        if (!shmq_no_room(status)) {
            break;
        }
        try->moved = flow_for_room(r->queue, o, status, false, try);
    } while (try->moved == SHMQ_INTERRUPTED || (!waits_for_disk(status, try) && drop_oldest(r, o, status, try)));
    return status;
}

/* Says whether the producer may try again. Others may take the room each time that it makes some. It tries until its
 * time is over, or, if it does not wait, for the patience. */
static bool in_time(const shmq_queue *q, uint64_t until_ns, uint64_t slice_end, uint64_t *patience_end) {
    uint64_t now = shmq_now_ns();
    if (until_ns != 0) {
        return now < until_ns && now < slice_end;
    }
    *patience_end = *patience_end != 0 ? *patience_end : now + q->m->patience_ns;
    return now < *patience_end;
}

/* The last try of a producer whose time is over. It does what is due, which may free room. A message that a limit of the queue kept
 * out may then find memory full, and entries go to disk. */
static shmq_status put_at_last(shmq_queue *q, shmq_outgoing *o, room_try *try) {
    if (!try->upkept) {
        shmq_upkeep.thorough(q->m);
        try->upkept = true;
    }
    shmq_status status = put_counted(q, o);
    for (int tries = 0; tries < 4 && shmq_no_room(status) && !is_disk_full(try->moved); tries++) {
        try->moved = flow_for_room(q, o, status, false, try);
        if (try->moved != SHMQ_INTERRUPTED) {
            return is_disk_full(try->moved) ? status : try->moved;
        }
        status = put_counted(q, o);
    }
    return status;
}

/* Waits once more for a producer whose time is over: it has room as soon as other movers end their turns. */
static shmq_status wait_for_mover(shmq_queue *q, shmq_outgoing *o) {
    return wait_once(q, o, shmq_now_ns() + SHMQ_SHORT_SLEEP_NS, SHMQ_SHORT_SLEEP_NS);
}

static bool is_over(uint64_t until_ns) { return until_ns == 0 || shmq_now_ns() >= until_ns; }

/* Puts if there is room. */
SHMQ_INLINE shmq_status put_at_once(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    SHMQ_TRY(shmq_queue_enter(q));
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->shut_down) != SHMQ_OPEN)) {
        return SHMQ_SHUT_DOWN;
    }
    SHMQ_TRY(shmq_prepare(q, o, until_ns));
    return shmq_put_now(q, o);
}

/* Waits for room, and puts. `status`: of the first try. */
static shmq_status put_waiting(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, shmq_status status, room_try *try) {
    if (!o->made.prepared) {
        return status; /* of its body, for which there is no memory */
    }
    shmq_ring *r = shmq_level_for(q, o->priority);
    uint64_t piece =
        SHMQ_SHORT_SLEEP_NS; /* the producer looks soon, then seldom: consumers wake it at some slots only */
    bool waited = false;
    uint32_t turns = 0;
    uint64_t slice_end = shmq_slice_end(q->m), flow_end = 0;
    while (shmq_no_room(status)) {
        try->moved = flow_for_room(q, o, status, until_ns != 0, try);
        if (try->moved != status && !is_disk_full(try->moved)) {
            if (try->moved != SHMQ_INTERRUPTED) {
                return try->moved;
            }
            /* Others may take the room each time: a producer that does not wait exceeds max_memory then, as they do. */
            o->wait.beyond = o->wait.beyond || (until_ns == 0 && status == SHMQ_FULL_RESIDENT && turns++ != 0);
            status = put_counted(q, o);
            if (SHMQ_LIKELY(!shmq_no_room(status) || in_time(q, until_ns, slice_end, &flow_end))) {
                continue;
            }
        }
        uint32_t overflow = shmq_overflow_of(q); /* may be altered during the wait */
        until_ns = overflow == SHMQ_OVERFLOW_REJECT ? 0 : until_ns;
        if (overflow == SHMQ_OVERFLOW_DROP_OLDEST && !waits_for_disk(status, try) &&
            !shmq_no_room(status = put_and_drop(r, o, try))) {
            break;
        }
        if (shmq_patience_over(r, &r->putting, 0, 0)) {
            piece = SHMQ_SHORT_SLEEP_NS;
        }
        bool over = is_over(until_ns), mover = waits_for_mover(try);
        if (over) {
            status = put_at_last(q, o, try);
            if (!shmq_no_room(status) || !(mover || waits_for_mover(try))) {
                break;
            }
        }
        waited = true;
        o->wait.lacking = try->moved == SHMQ_FULL_DISK ? SHMQ_FULL_DISK : status;
        status = over ? wait_for_mover(q, o) : wait_for_room(q, o, until_ns, piece);
        piece = piece < q->m->patience_ns ? piece * 2 : piece;
        if (shmq_no_room(status)) {
            SHMQ_TRY(shmq_queue_enter(q));
            if (shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN) {
                return SHMQ_SHUT_DOWN;
            }
            if (shmq_now_ns() >= slice_end) {
                return shmq_slice_over(q->m);
            }
        }
    }
    if (waited && status == SHMQ_OK && !shmq_line_serves_all(q) &&
        shmq_waiters_in(shmq_load_seq(&q->page->ring.waiters)) != 0) {
        /* The baton: a producer that was woken for room and found it wakes the next one. */
        shmq_add_seq(&q->page->ring.full, 1);
        shmq_futex_wake(&q->page->ring.full, 1);
    }
    return is_disk_full(try->moved) && shmq_no_room(status) ? try->moved : status;
}

/* A producer for whose slots there is no memory sleeps like one that waits for a block; then its caller calls again. */
static SHMQ_NOINLINE shmq_status sleep_for_slots(shmq_queue *q, uint64_t until_ns) {
    shmq_member *m = q->m;
    shmq_waiters waiters = shmq_memory_waiters(m, m->process);
    uint32_t seen = shmq_load_seq(&m->header->memory_full);
    uint64_t now = shmq_now_ns();
    if (until_ns == 0 || now >= until_ns) {
        return SHMQ_FULL_MEMORY;
    }
    shmq_join_count(&waiters);
    uint64_t until = until_ns - now > SHMQ_TICK_NS ? now + SHMQ_TICK_NS : until_ns;
    (void)shmq_sleep(m, &m->header->memory_full, seen, until); /* ends by time if the wake came before it */
    shmq_leave_count(&waiters);
    return shmq_slice_over(m);
}

/* The first try had this status: the producer waits for room, or for memory. */
static SHMQ_NOINLINE shmq_status put_slowly(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, shmq_status status) {
    room_try try = {.moved = SHMQ_EMPTY};
    uint64_t tries_end = shmq_now_ns() + SHMQ_SLICE_NS;
    status = put_waiting(q, o, until_ns, status, &try);
    while (shmq_is_short(status) && !is_disk_full(try.moved) &&
           (try.moved = shmq_relief_for(q, !is_over(until_ns), &o->wait.relief)) == SHMQ_OK) {
        if (shmq_now_ns() >= tries_end) {
            return shmq_slice_over(q->m);
        }
        try.moved = SHMQ_EMPTY;
        status = put_waiting(q, o, until_ns, put_at_once(q, o, until_ns), &try);
    }
    if (status == SHMQ_NO_SPACE && !is_disk_full(try.moved)) { /* once more, to report what is lacking */
        status = put_waiting(q, o, until_ns, put_at_once(q, o, until_ns), &try);
    }
    if (status == SHMQ_FULL_MEMORY) {
        status = shmq_is_failure(try.moved) ? try.moved : sleep_for_slots(q, until_ns);
        status = try.moved == SHMQ_FULL_DISK && status == SHMQ_FULL_MEMORY ? try.moved : status;
    }
    return status;
}

shmq_status shmq_put(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    shmq_status status = put_at_once(q, o, until_ns); /* before any look at the clock */
    if (SHMQ_UNLIKELY(status != SHMQ_OK) && !o->wait.brief) {
        status = put_slowly(q, o, until_ns, status);
    }
    if (SHMQ_UNLIKELY(o->wait.ticket.in_line) && status != SHMQ_INTERRUPTED && !(status == SHMQ_OK && o->wait.more)) {
        shmq_line_leave(q, &o->wait.ticket);
    }
    return status;
}
