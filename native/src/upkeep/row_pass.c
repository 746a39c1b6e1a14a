#include "upkeep/row_pass.h"
#include "base/wait_time.h"
#include "consumers/sleepers.h"
#include "limits/count.h"
#include "wake/due.h"

static uint64_t max_ttl_of(const shmq_queue *q) { return shmq_load_relaxed(&q->page->settings.max_ttl_ns); }

static bool is_of(const shmq_rows_pass *p, const shmq_ring *back) {
    return p->unfinished && p->index == back->queue->index && p->incarnation == back->queue->incarnation &&
           p->depth == back->depth;
}

static void begin(const shmq_pass_kind *kind, shmq_rows_pass *p, const shmq_ring *back, uint64_t now) {
    const shmq_queue *q = back->queue;
    *p = (shmq_rows_pass){.unfinished = true,
                          .index = q->index,
                          .incarnation = q->incarnation,
                          .depth = back->depth,
                          .earliest = SHMQ_DUE_NEVER,
                          .word = shmq_load_seq(kind->word(back->shm)),
                          .max_ttl_ns = max_ttl_of(q),
                          .began_ns = now,
                          .fetched_ns = p->fetched_ns};
}

bool shmq_piece_is_over(const shmq_piece *x, const shmq_row_life *life) {
    return shmq_life_end(x->t.q, life->enqueued_ns, life->expires_ns) <= x->now;
}

void shmq_piece_note(shmq_piece *x, const shmq_row_life *life) {
    uint64_t ends = shmq_life_end(x->t.q, life->enqueued_ns, life->expires_ns);
    x->p->earliest = ends < x->p->earliest ? ends : x->p->earliest;
}

/* Ends the pass. A word that was lowered meanwhile stays. Under the lock no row was written that the pass has not
 * seen. */
static void end(const shmq_pass_kind *kind, shmq_piece *x) {
    shmq_rows_pass *p = x->p;
    shmq_a64 *word = kind->word(x->t.back->shm);
    uint64_t rest = kind->pause != NULL ? p->began_ns + kind->pause(p) : shmq_due_rest(p->began_ns);
    kind->end(x);
    uint64_t next = p->again ? rest : p->earliest;
    next = next == SHMQ_DUE_NEVER ? 0 : (next < rest ? rest : next) & ~SHMQ_DUE_LOOKING;
    if (p->max_ttl_ns == max_ttl_of(x->t.q)) {
        (void)shmq_cas_seq(word, p->word, next);
        if (p->max_ttl_ns !=
            max_ttl_of(x->t.q)) { /* it was set meanwhile, and found the word that the CAS has replaced */
            shmq_rows_due_by(x->t.back, word, 1);
        }
    }
    p->unfinished = false;
}

/* Answers as `look` does. */
static shmq_status do_piece(const shmq_pass_kind *kind, shmq_ring *back, shmq_rows_pass *p, uint64_t now,
                            shmq_budget *b) {
    shmq_piece x = {.p = p, .now = now, .b = b};
    SHMQ_TRY(shmq_turn_begin(&x.t, back));
    shmq_status status = kind->look(&x);
    if (status == SHMQ_NOT_FOUND) {
        end(kind, &x);
    }
    shmq_turn_end(&x.t);
    if (x.changed) {
        shmq_wake_waiters(back->queue);
        shmq_notify_starved(back->queue);
    }
    return status;
}

/* Answers when to come again. */
static uint64_t step(const shmq_pass_kind *kind, shmq_ring *back, uint64_t now, shmq_budget *b) {
    shmq_rows_pass *p = kind->own(back->queue->m);
    if (!shmq_may_flow(back->queue)) {
        return now + SHMQ_DEAD_LETTER_NS; /* a process with a backing can do it */
    }
    if (!is_of(p, back)) {
        if (p->unfinished && now - p->looked_ns < back->queue->m->patience_ns) {
            return now + SHMQ_TICK_NS; /* another level's pass ends first: there is one in a process */
        }
        begin(kind, p, back, now);
    }
    shmq_status status = SHMQ_OK;
    while (status == SHMQ_OK && b->left != 0) {
        status = do_piece(kind, back, p, now, b);
        if (status != SHMQ_IN_USE) { /* beside a stopped mover it does not keep other passes waiting */
            p->looked_ns = now;
        }
    }
    if (status == SHMQ_OK) {
        return now;
    }
    /* Beside busy movers a pass that begins anew would never end. */
    p->unfinished = status == SHMQ_IN_USE || (status == SHMQ_EMPTY && kind->pause != NULL);
    if (status == SHMQ_EMPTY) {
        shmq_store_relaxed(&back->queue->m->rounds.rows_rest_ns, shmq_due_rest(p->began_ns));
    }
    shmq_trail_clear(); /* for the caller nothing has failed */
    uint64_t next = shmq_due_time(shmq_load_seq(kind->word(back->shm)));
    if (status == SHMQ_EMPTY || (status == SHMQ_IN_USE && kind->pause != NULL)) {
        return kind->rest(p, now);
    }
    return status == SHMQ_NOT_FOUND ? next : now + (status == SHMQ_IN_USE ? SHMQ_TICK_NS : SHMQ_DEAD_LETTER_NS);
}

static uint64_t due_of(const shmq_pass_kind *kind, const shmq_queue *q, uint32_t depth, uint64_t now) {
    uint64_t due = shmq_due_time(shmq_load_seq(kind->word(shmq_level_ring(q, depth))));
    return shmq_is_due(due, now) ? now : due;
}

uint64_t shmq_pass_due(const shmq_pass_kind *kind, const shmq_queue *q, uint64_t now) {
    uint64_t earliest = SHMQ_DUE_NEVER;
    bool is_in_service = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE;
    for (uint32_t depth = 0; depth < q->levels && is_in_service; depth++) {
        uint64_t due = due_of(kind, q, depth, now);
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}

/* Has this process begun a pass over rows of this queue? */
static bool is_half_passed(const shmq_pass_kind *kind, const shmq_queue *q, uint64_t now, const shmq_rows_pass *p) {
    return p->unfinished && p->index == q->index && p->incarnation == q->incarnation &&
           shmq_pass_due(kind, q, now) <= now;
}

uint64_t shmq_pass_step(const shmq_pass_kind *kind, shmq_queue *q, uint64_t now, shmq_budget *b) {
    const shmq_rows_pass *p = kind->own(q->m);
    uint32_t first = is_half_passed(kind, q, now, p) ? p->depth : 0; /* another level's pass would forget this one */
    uint64_t earliest = SHMQ_DUE_NEVER;
    bool is_in_service = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE; /* another duty may have ended the queue */
    for (uint32_t i = 0; i < q->levels && is_in_service; i++) {
        uint32_t depth = (first + i) % q->levels;
        uint64_t due = due_of(kind, q, depth, now);
        due = due <= now && b->left != 0 ? step(kind, shmq_level(q, depth), now, b) : due;
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}
