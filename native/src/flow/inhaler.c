/* The inhaler, the mover that brings rows back: the oldest ones, in their order; or those that a taker wants, or whose time has come. Where memory is
 * short, it is a purger first. */
#include "flow/waiting.h"

/* Rows that are to come in by themselves: the first in [*place, end) that `wants` names, or waiting rows. */
typedef struct fetching {
    uint64_t *place, end;
    shmq_wants_row *wants;
    void *context;
    const shmq_row_life *waiting;
    uint32_t count, *passed;
} fetching;

/* Brings in rows once: those that `f` names; without `f` the oldest rows. */
static shmq_status inhale_once(shmq_mover *t, const fetching *f) {
    return f == NULL            ? shmq_pull(t)
           : f->waiting != NULL ? shmq_fetch_waiting(t, f->waiting, f->count, f->passed)
                                : shmq_fetch_first(t, f->place, f->end, f->wants, f->context);
}

static shmq_status inhale(shmq_mover *t, const fetching *f) {
    if (shmq_bytes_free(t->q) < shmq_flow_share(t->q->m)) {
        (void)shmq_purger_make_way(t);
    }
    return inhale_once(t, f);
}

/* Brings in rows again after memory was short. */
static shmq_status inhale_more(shmq_mover *t, const fetching *f, shmq_status status) {
    if (SHMQ_UNLIKELY(shmq_is_short(status)) &&
        (shmq_purger_make_way(t) == SHMQ_OK || shmq_upkeep.relieve(t->q->m, t->q, true) == SHMQ_OK)) {
        status = inhale_once(t, f);
    }
    if (SHMQ_UNLIKELY(shmq_is_short(status) || status == SHMQ_IN_USE)) { /* memory and disk are full, or locked */
        t->has_kept = true;
        status = inhale_once(t, f);
    }
    return status;
}

shmq_status shmq_inhaler_bring(shmq_ring *back) {
    shmq_mover t;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    shmq_status status = shmq_flow_is_on(shmq_load_seq(&back->shm->flow)) ? inhale(&t, NULL) : SHMQ_OK;
    if (status == SHMQ_EMPTY && shmq_waiting_flush(&t, t.front, UINT64_MAX) == SHMQ_OK) { /* they had its slots */
        status = shmq_pull(&t);
    }
    status = inhale_more(&t, NULL, status);
    shmq_turn_end(&t);
    return shmq_is_short(status) ? SHMQ_FULL_MEMORY : status;
}

static shmq_status fetch(shmq_mover *t, const fetching *f) {
    shmq_status status = inhale_more(t, f, inhale(t, f));
    return shmq_is_short(status) ? SHMQ_EMPTY : status;
}

shmq_status shmq_fetch(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context) {
    const fetching f = {.place = place, .end = end, .wants = wants, .context = context};
    return fetch(t, &f);
}

shmq_status shmq_waiting_fetch(shmq_mover *t, const shmq_row_life *lives, uint32_t count, uint32_t *passed) {
    const fetching f = {.waiting = lives, .count = count, .passed = passed};
    return fetch(t, &f);
}

static shmq_row_use any(void *context, const shmq_delivery *row) {
    (void)context;
    (void)row;
    return SHMQ_ROW_WANTED;
}

shmq_status shmq_fetch_at(shmq_mover *t, uint64_t place) {
    uint64_t at = place;
    return shmq_fetch(t, &at, place + 1, any, NULL);
}

shmq_status shmq_flow_fetch(shmq_ring *back, uint64_t place) {
    shmq_mover t;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    bool on = shmq_flow_is_on(shmq_load_seq(&back->shm->flow));
    shmq_status status = on ? shmq_fetch_at(&t, place) : SHMQ_NOT_FOUND;
    shmq_turn_end(&t);
    return status;
}

shmq_status shmq_inhaler_bring_waiting(shmq_ring *back) {
    shmq_mover t;
    const shmq_row_life *lives;
    uint64_t from = 0;
    uint32_t count = 0, passed;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    shmq_status status = shmq_waiting_store(&t);
    while (status == SHMQ_OK) {
        status = shmq_heads_extend(&t, &count);
    }
    count = SHMQ_WAITED_AT_ONCE;
    status = status == SHMQ_EMPTY ? shmq_heads_due(&t, &from, UINT64_MAX, &lives, &count) : status;
    if (status == SHMQ_OK) {
        status = shmq_waiting_fetch(&t, lives, count, &passed);
        shmq_heads_pass(&t, from, passed);
        status = passed != 0 ? SHMQ_OK : status;
    } else if (status == SHMQ_NOT_FOUND) {
        (void)shmq_waiting_end(back); /* those that are left are lost */
        shmq_waiting_clear(&t);
        status = SHMQ_EMPTY;
    }
    shmq_turn_end(&t);
    return status;
}

void shmq_front_order(const shmq_ring *front) {
    shmq_mover t;
    if (shmq_turn_begin(&t, shmq_level(front->queue, shmq_depth_at(front))) == SHMQ_OK) {
        shmq_front_look_at_order(t.front);
        shmq_turn_end(&t);
    }
}
