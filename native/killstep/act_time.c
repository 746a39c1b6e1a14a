/* Operations on messages that wait for a time, expire, or are lent for a time. */
#include "lifecycle/declare.h"
#include "put/immediate.h"
#include "put/put.h"
#include "queue/settings.h"
#include "settle/hold.h"
#include "time/receipt.h"
#include "time/times.h"
#include "upkeep/duty.h"
#include "act_time.h"

#include "virtual.h"

void act_put_timed(act *a, unsigned queue, uint64_t value, uint64_t delay_ns, uint64_t ttl_ns) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)act_body_of(value, SMALL_BYTES), .iov_len = SMALL_BYTES};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = SMALL_BYTES};
    o.not_before_ns = delay_ns != 0 ? virtual_clock() + delay_ns : 0;
    o.expires_ns = ttl_ns != 0 ? virtual_clock() + ttl_ns : 0;
    act_begin(a, CALL_PUT, queue, value);
    shmq_status status;
    while ((status = shmq_put(a->q[queue], &o, 0)) == SHMQ_INTERRUPTED) {
    }
    if (status != SHMQ_OK) {
        shmq_unprepare(a->q[queue], &o);
    }
    act_end(a, CALL_PUT, queue, value, status);
}

shmq_outgoing act_immediate_begin(act *a, unsigned queue, uint64_t value) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)act_body_of(value, SMALL_BYTES), .iov_len = SMALL_BYTES};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = SMALL_BYTES};
    act_begin(a, CALL_PUT, queue, value);
    o.receipt = shmq_receipt_begin(a->m);
    while ((a->last = shmq_put(a->q[queue], &o, 0)) == SHMQ_INTERRUPTED) {
    }
    if (a->last != SHMQ_OK) {
        shmq_unprepare(a->q[queue], &o);
    }
    act_end(a, CALL_PUT, queue, value, a->last);
    return o;
}

/* In the history a put that was accepted, then a get: what is withdrawn is taken by its own putter. */
void act_immediate(act *a, unsigned queue, uint64_t value, uint64_t until_ns) {
    shmq_outgoing o = act_immediate_begin(a, queue, value);
    shmq_lock_seen seen = {0};
    shmq_status status;
    act_begin(a, CALL_GET, queue, 0);
    while ((status = shmq_immediate(a->q[queue], &o, until_ns, &seen)) == SHMQ_INTERRUPTED) {
    }
    shmq_receipt_end(a->m, o.receipt);
    act_end(a, CALL_GET, queue, value, status == SHMQ_EMPTY ? SHMQ_OK : SHMQ_EMPTY);
}

void act_release_later(act *a, uint64_t delay_ns, bool attempt) {
    SHMQ_ASSERT(a->held_count != 0);
    unsigned queue = a->held[0].queue;
    uint64_t value = a->held[0].value;
    act_begin(a, CALL_RELEASE, queue, value);
    shmq_status status;
    while ((status = shmq_release_until(a->q[queue], &a->held[0].d, attempt, virtual_clock() + delay_ns)) ==
           SHMQ_INTERRUPTED) {
    }
    act_end(a, CALL_RELEASE, queue, value, status);
    act_forget_oldest(a);
}

void act_touch(act *a) {
    SHMQ_ASSERT(a->held_count != 0);
    act_begin(a, CALL_OTHER, a->held[0].queue, 0);
    act_end(a, CALL_OTHER, a->held[0].queue, 0, shmq_touch(a->q[a->held[0].queue], &a->held[0].d));
}

void act_look(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_due_look(a->m);
    act_end(a, CALL_OTHER, QUEUE_A, 0, SHMQ_OK);
}

/* Of each piece the budget is that of a queue and some entries: so each leaves its marks in the queue's word and the header's. */
void act_look_in_pieces(act *a) {
    bool left = true;
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    while (left) {
        shmq_budget budget = {.left = 2 * SHMQ_PRICE_QUEUE};
        left = shmq_times_step(a->m, virtual_clock(), &budget);
        virtual_clock_set(virtual_clock() + LATER_NS); /* the rest between two of them */
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, SHMQ_OK);
}

/* In the history a deletion, which whoever looks first may do; begun before that: what is in the queue goes with it. */
void act_unused(act *a, unsigned queue, uint64_t ns) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_EXPIRES, ns);
    a->last = shmq_queue_alter(a->q[queue], &d, &differs);
    virtual_clock_set(virtual_clock() + 2 * ns);
    act_begin(a, CALL_DELETE, queue, 0);
}

void act_look_unused(act *a, unsigned queue) {
    shmq_due_look(a->m);
    act_end(a, CALL_DELETE, queue, 0, SHMQ_OK);
}

void act_lease(act *a, unsigned queue, uint64_t ns) {
    shmq_store_seq(&a->q[queue]->page->settings.lease_ns, ns);
    a->last = shmq_time_declared(a->q[queue], 1u << SHMQ_SET_LEASE);
}

void act_wait_till_later(act *a) {
    (void)a;
    virtual_clock_set(virtual_clock() + 2 * LATER_NS);
}
