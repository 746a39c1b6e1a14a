#include "look/browse.h"
#include "put/move.h"
#include "put/put.h"
#include "recovery/reap.h"
#include "settle/settle.h"
#include "wake/watch.h"
#include "act_move.h"

#include "act_group.h"

/* A letter as it is in hand, on its way. */
static shmq_outgoing letter_of(const act *a, unsigned to, struct iovec *piece) {
    const shmq_delivery *d = &a->held[0].d;
    *piece = (struct iovec){(void *)(uintptr_t)act_body_of(a->held[0].value, d->body_len), d->body_len};
    shmq_outgoing o = {.pieces = piece, .piece_count = 1, .body_len = d->body_len, .priority = d->priority};
    act_group_headers(a->q[to], a->held[0].value, &o);
    return o;
}

void act_move(act *a, unsigned to) {
    SHMQ_ASSERT(a->held_count != 0);
    uint64_t value = a->held[0].value;
    struct iovec piece;
    shmq_outgoing o = letter_of(a, to, &piece);
    shmq_status status;
    act_begin(a, CALL_MOVE, to, value);
    do {
        status = shmq_move(a->q[a->held[0].queue], &a->held[0].d, a->q[to], &o);
    } while (status == SHMQ_INTERRUPTED);
    shmq_unprepare(a->q[to], &o);
    act_end(a, CALL_MOVE, to, value, status);
    if (status == SHMQ_OK) {
        act_forget_oldest(a);
    }
}

/* From nobody's hands: in the history it is a move from before it was taken. */
static shmq_status move_ready(act *a, const shmq_delivery *seen, unsigned to) {
    shmq_queue *from = a->q[QUEUE_A];
    uint64_t value = act_value_of(seen);
    shmq_delivery d;
    act_begin(a, CALL_MOVE, to, value);
    shmq_status status = shmq_steal(shmq_level(from, seen->depth), seen->position, true, &d);
    if (status == SHMQ_OK) {
        struct iovec piece = {(void *)(uintptr_t)act_body_of(value, d.body_len), d.body_len};
        shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = d.body_len, .priority = d.priority};
        do {
            status = shmq_move(from, &d, a->q[to], &o);
        } while (status == SHMQ_INTERRUPTED);
        shmq_unprepare(a->q[to], &o);
    }
    act_end(a, CALL_MOVE, to, value, status);
    return status;
}

void act_move_all(act *a) {
    shmq_delivery seen;
    uint32_t reaped;
    a->last = shmq_reap_dead(a->m, &reaped);
    for (uint64_t at = 0; a->last == SHMQ_OK && shmq_browse(&a->q[QUEUE_A]->first, &at, &seen) == SHMQ_OK; at++) {
        a->last = move_ready(a, &seen, QUEUE_LIMITED);
    }
}

void act_dead_letter(act *a, unsigned to) {
    SHMQ_ASSERT(a->held_count != 0);
    if (shmq_lock(a->q[a->held[0].queue], &a->held[0].d) == SHMQ_OK) {
        act_move(a, to);
    }
}

void act_dead_letter_block(act *a, unsigned to, const char *name) {
    SHMQ_ASSERT(a->held_count != 0);
    if (shmq_lock(a->q[a->held[0].queue], &a->held[0].d) != SHMQ_OK) {
        return;
    }
    act_declare(a, to, name, false);
    if (a->last == SHMQ_OK) {
        act_view(a);
    }
    if (a->last == SHMQ_OK) {
        act_move(a, to);
    }
    if (a->last == SHMQ_OK) {
        act_view_end(a);
    }
}

static void move_half(act *a, unsigned to, bool decided) {
    act_receive(a, QUEUE_A, 0);
    SHMQ_ASSERT(a->held_count != 0);
    shmq_queue *from = a->q[a->held[0].queue];
    shmq_delivery *d = &a->held[0].d;
    struct iovec piece;
    shmq_outgoing o = letter_of(a, to, &piece);
    act_begin(a, CALL_MOVE, to, a->held[0].value);
    o.intent = shmq_intent(from->index, from->incarnation, d->depth, d->tag);
    o.source = d->position;
    shmq_add_unsettled(a->m, 1);
    SHMQ_ASSERT(shmq_lock(from, d) == SHMQ_OK && shmq_put(a->q[to], &o, 0) == SHMQ_OK);
    SHMQ_ASSERT(!decided || shmq_settle(from, d) == SHMQ_OK);
}

void act_move_undecided(act *a) { move_half(a, QUEUE_LIMITED, false); }

void act_move_decided(act *a) { move_half(a, QUEUE_LIMITED, true); }
