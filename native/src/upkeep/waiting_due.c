/* Waiting rows that are due, or whose lives are over, come in: housekeeping fetches them, as entries of the front ring. A
 * file whose rows are all gone is deleted. */
#include "base/wait_time.h"
#include "flow/waiting.h"
#include "segment/alert_time.h"
#include "upkeep/row_pass.h"

#define PRICE_ROW \
    1u /* comes in with others: fewer at a time would mean that a sleeper wakes for each few, on a busy machine too late */

/* Fetches the due rows of one write. SHMQ_NOT_FOUND: no write from p->next on has any. */
static shmq_status fetch_some(shmq_piece *x) {
    const shmq_row_life *lives;
    uint32_t count = SHMQ_WAITED_AT_ONCE, passed = 0;
    SHMQ_TRY(shmq_heads_due(&x->t, &x->p->next, x->now, &lives, &count));
    shmq_budget_spend(x->b, SHMQ_PRICE_CHANGE + count * PRICE_ROW);
    shmq_status status = shmq_waiting_fetch(&x->t, lives, count, &passed);
    shmq_heads_pass(&x->t, x->p->next, passed);
    x->p->fetches++;
    if (passed != 0) {
        x->changed = true;
        x->p->fetched_ns = x->now;
    }
    return passed != 0 || status == SHMQ_NOT_FOUND ? SHMQ_OK : status;
}

static shmq_status look(shmq_piece *x) {
    uint32_t count = 0, turns = 0;
    shmq_status status;
    SHMQ_TRY(shmq_waiting_store(&x->t));
    while ((status = shmq_heads_extend(&x->t, &count)) == SHMQ_OK) {
        shmq_budget_spend(x->b, SHMQ_PRICE_FILE + count / 16);
        if (x->b->left == 0) {
            return SHMQ_OK;
        }
    }
    status = status == SHMQ_EMPTY ? SHMQ_OK : status;
    while (status == SHMQ_OK && turns < SHMQ_FETCHED_AT_ONCE && (turns == 0 || x->b->left != 0) && !x->t.unmarked) {
        status = fetch_some(x); /* once at least: the look alone may have spent the budget */
        turns++;
    }
    return status;
}

static void end(shmq_piece *x) {
    bool left = shmq_heads_earliest(&x->t, &x->p->earliest);
    if (!left) {
        shmq_alerts_hurry(x->t.q->m); /* the queue may have recovered */
    }
    if (!left && shmq_waiting_of(x->t.back->shm).count != 0) {
        const shmq_ordinal lost = shmq_waiting_end(x->t.back); /* their files are gone, or make no sense */
        (void)shmq_damage(x->t.q->m, "delayed messages on disk are lost, so many", lost.count);
        x->changed = true;
    }
    shmq_waiting_clear(&x->t);
}

static shmq_a64 *word(shmq_ring_shm *back) { return &back->waiting_due; }

static shmq_rows_pass *own(shmq_member *m) { return &m->rounds.waiting; }

/* Takers empty slots soon, or they have not come for long. */
static uint64_t rest(const shmq_rows_pass *p, uint64_t now) {
    uint64_t since = now > p->fetched_ns ? now - p->fetched_ns : 0;
    return now + (since < SHMQ_SHORT_SLEEP_NS ? SHMQ_SHORT_SLEEP_NS : since < SHMQ_TICK_NS ? since : SHMQ_TICK_NS);
}

/* Each file costs a lock and some calls of the system, however few of its rows are due. */
static uint64_t pause(const shmq_rows_pass *p) {
    uint64_t ns = p->fetches * SHMQ_FETCH_PAUSE_NS;
    return ns < SHMQ_LOOK_PAUSE_NS ? SHMQ_LOOK_PAUSE_NS : ns < SHMQ_LONGEST_PAUSE_NS ? ns : SHMQ_LONGEST_PAUSE_NS;
}

static const shmq_pass_kind kind = {.word = word, .own = own, .look = look, .end = end, .rest = rest, .pause = pause};

uint64_t shmq_waiting_due(const shmq_queue *q, uint64_t now) { return shmq_pass_due(&kind, q, now); }

uint64_t shmq_waiting_step(shmq_queue *q, uint64_t now, shmq_budget *b) { return shmq_pass_step(&kind, q, now, b); }
