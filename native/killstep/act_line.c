#include "limits/line.h"
#include "limits/waiters.h"
#include "put/put.h"
#include "act_line.h"

static shmq_ticket_shm *ticket_of(const act *a) {
    return &a->q[QUEUE_LIMITED]->tickets[a->ticket.number % SHMQ_TICKETS];
}

shmq_a32 *act_line_stand(act *a) {
    SHMQ_ASSERT(shmq_line_enter(a->q[QUEUE_LIMITED], &a->ticket, SMALL_BYTES));
    return &ticket_of(a)->wake;
}

void act_line_take_over(act *a) {
    shmq_queue *q = a->q[QUEUE_LIMITED];
    a->ticket = (shmq_ticket){.in_line = true};
    uint64_t word = shmq_load_seq(&ticket_of(a)->word);
    shmq_store_seq(&ticket_of(a)->word, shmq_ticket_word(shmq_ticket_lap(word), a->m->row, shmq_ticket_state(word)));
    shmq_waiters waiters = shmq_room_waiters(q, q->counters);
    shmq_join_count(&waiters);
}

void act_line_put(act *a, uint64_t value) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)act_body_of(value, SMALL_BYTES), .iov_len = SMALL_BYTES};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = SMALL_BYTES, .wait.ticket = a->ticket};
    act_begin(a, CALL_PUT, QUEUE_LIMITED, value);
    act_end(a, CALL_PUT, QUEUE_LIMITED, value, shmq_put(a->q[QUEUE_LIMITED], &o, 0));
}

void act_line_leave(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_LIMITED, 0);
    shmq_line_leave(a->q[QUEUE_LIMITED], &a->ticket);
    act_end(a, CALL_OTHER, QUEUE_LIMITED, 0, SHMQ_OK);
}

static bool everybody(void *context, uint32_t row) {
    (void)context, (void)row;
    return true;
}

void act_line_clear(act *a) { shmq_line_recover(a->q[QUEUE_LIMITED], &(shmq_liveness){.is_dead = everybody}); }
