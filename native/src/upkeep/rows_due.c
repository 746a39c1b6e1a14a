/* Rows whose lives are over. A pass goes over the lives in the backing's indexes, a piece of a file at a time, each
 * under the mover's lock. Rows that are over are dropped on disk, if they are the lowest and become no dead letters.
 * Others are fetched, and treated like any entry of the front ring.
 *
 * A level's word is never later than the end of the first life among its rows. The mover makes it earlier before it
 * writes rows, and so does a process that sets max_ttl. Only the end of a pass makes it later, under the lock under
 * which rows are written. */
#include "shmq/duty.h"
#include "shmq/facts.h"
#include "shmq/flow.h"
#include "shmq/level.h"
#include "shmq/ring_time.h"
#include "shmq/sleepers.h"

#define FETCHED_AT_ONCE 32u /* takers and producers wait for the lock meanwhile */
/* Rows that become dead letters may use one part of so many of the front ring's slots: consumers fetch what they want even
 * while the queue of dead letters is full. */
#define DEAD_LETTERS_SHARE 8u

/* One piece of a pass. */
typedef struct piece {
    shmq_mover t;
    shmq_rows_pass *p;
    uint64_t now;
    shmq_budget *b;
    bool changed; /* rows are gone: a waiting process may go on */
} piece;

static bool is_of(const shmq_rows_pass *p, const shmq_ring *back) {
    return p->unfinished && p->index == back->queue->index && p->incarnation == back->queue->incarnation &&
           p->depth == back->depth;
}

static uint64_t max_ttl_of(const shmq_queue *q) { return shmq_load_relaxed(&q->page->settings.max_ttl_ns); }

static void begin(shmq_rows_pass *p, const shmq_ring *back, uint64_t now) {
    const shmq_queue *q = back->queue;
    *p = (shmq_rows_pass){.unfinished = true,
                          .index = q->index,
                          .incarnation = q->incarnation,
                          .depth = back->depth,
                          .earliest = SHMQ_DUE_NEVER,
                          .word = shmq_load_seq(&back->shm->rows_due),
                          .max_ttl_ns = max_ttl_of(q),
                          .began_ns = now};
}

static bool is_over(const piece *x, const shmq_row_life *life) {
    return shmq_life_end(x->t.q, life->enqueued_ns, life->expires_ns) <= x->now;
}

/* How many of the lowest rows can be dropped on disk; *over: how many of these were not gone before. */
static uint32_t count_lowest(const piece *x, const shmq_row_life *lives, uint32_t count, uint32_t *over) {
    bool dead_letters = shmq_expired_are_dead_letters(x->t.q);
    uint32_t i = 0;
    *over = 0;
    for (; i < count && (lives[i].gone || (!dead_letters && is_over(x, &lives[i]))); i++) {
        *over += !lives[i].gone;
    }
    return i;
}

static void drop_lowest(piece *x, const shmq_row_life *lives, uint32_t count, uint32_t over) {
    shmq_rows_drop_first(&x->t, lives, count);
    if (x->t.q->counters != NULL) {
        shmq_add_relaxed(&x->t.q->counters->expired, over);
    }
    x->p->next = lives[count - 1].place + 1;
    x->changed = true;
    shmq_budget_spend_all(x->b);
}

/* Ends the life of the entry that was just fetched, the last of the front ring. */
static void end_fetched(const shmq_mover *t) {
    uint64_t last = shmq_load_seq(&t->front->shm->tail) - 1;
    shmq_slot_shm *slot = shmq_slot_at(t->front, last);
    (void)shmq_drop_expired(t->front, slot, shmq_load_seq(&slot->word)); /* else it waits to become a dead letter */
}

/* SHMQ_EMPTY: no slot for the row. SHMQ_NOT_FOUND: the row is damaged; its taker is told. */
static shmq_status fetch(piece *x, uint64_t place) {
    shmq_budget_spend(x->b, SHMQ_PRICE_FETCH);
    if (shmq_fetched_have(x->t.front, DEAD_LETTERS_SHARE) && shmq_expired_are_dead_letters(x->t.q)) {
        return SHMQ_EMPTY;
    }
    shmq_status status = shmq_fetch_at(&x->t, place);
    if (status == SHMQ_OK) {
        end_fetched(&x->t);
        x->p->again = x->changed = true;
    }
    return status;
}

static shmq_status look_at_each(piece *x, const shmq_row_life *lives, uint32_t count) {
    shmq_rows_pass *p = x->p;
    uint32_t fetched = 0;
    for (uint32_t i = 0; i < count; i++) {
        p->next = lives[i].place;
        if (lives[i].gone) {
            continue;
        }
        if (!is_over(x, &lives[i])) {
            uint64_t ends = shmq_life_end(x->t.q, lives[i].enqueued_ns, lives[i].expires_ns);
            p->earliest = ends < p->earliest ? ends : p->earliest;
            continue;
        }
        if (fetched == FETCHED_AT_ONCE || (fetched != 0 && x->b->left == 0) || x->t.unmarked) {
            return SHMQ_OK; /* at least one is fetched: the look alone may have spent the budget */
        }
        shmq_status status = fetch(x, lives[i].place);
        if (status != SHMQ_OK && status != SHMQ_NOT_FOUND) {
            return status;
        }
        fetched++;
    }
    p->next = lives[count - 1].place + 1;
    return SHMQ_OK;
}

/* SHMQ_OK: there are more rows. SHMQ_NOT_FOUND: there are none. SHMQ_EMPTY: no slot for a row that is over. */
static shmq_status look_at_some(piece *x) {
    static _Thread_local shmq_row_life lives[SHMQ_TURN_ENTRIES];
    const shmq_mover *t = &x->t;
    uint64_t flow = shmq_load_seq(&t->back->shm->flow), low = shmq_load_relaxed(&t->back->shm->low);
    uint32_t count = SHMQ_TURN_ENTRIES, over;
    x->p->next = x->p->next > low ? x->p->next : low;
    if (!shmq_flow_is_on(flow) || x->p->next >= shmq_flow_place(flow)) {
        return SHMQ_NOT_FOUND;
    }
    SHMQ_TRY(t->backing->list(t->backing->context, x->p->next, shmq_flow_place(flow), lives, &count));
    if (count == 0) {
        return SHMQ_NOT_FOUND;
    }
    shmq_budget_spend(x->b, SHMQ_PRICE_FILE + count / 16);
    uint32_t lowest = x->p->next == low ? count_lowest(x, lives, count, &over) : 0;
    if (lowest != 0) {
        drop_lowest(x, lives, lowest, over);
        return SHMQ_OK;
    }
    return look_at_each(x, lives, count);
}

/* Ends the pass. A word that was lowered meanwhile stays. Under the lock no row was written that the pass has not
 * seen. */
static void end(piece *x) {
    shmq_rows_pass *p = x->p;
    uint64_t rest = shmq_due_rest(p->began_ns), next = p->again ? rest : p->earliest;
    uint64_t flow = shmq_load_seq(&x->t.back->shm->flow);
    shmq_rows_end_flow(&x->t);
    x->changed = x->changed || shmq_load_seq(&x->t.back->shm->flow) != flow; /* takers can have what lies behind */
    next = next == SHMQ_DUE_NEVER ? 0 : (next < rest ? rest : next) & ~SHMQ_DUE_LOOKING;
    if (p->max_ttl_ns == max_ttl_of(x->t.q)) {
        (void)shmq_cas_seq(&x->t.back->shm->rows_due, p->word, next);
        if (p->max_ttl_ns !=
            max_ttl_of(x->t.q)) { /* it was set meanwhile, and found the word that the CAS has replaced */
            shmq_rows_due_at(x->t.back, 1);
        }
    }
    p->unfinished = false;
}

/* Answers as look_at_some does. */
static shmq_status do_piece(shmq_ring *back, shmq_rows_pass *p, uint64_t now, shmq_budget *b) {
    piece x = {.p = p, .now = now, .b = b};
    SHMQ_TRY(shmq_turn_begin(&x.t, back));
    shmq_status status = look_at_some(&x);
    if (status == SHMQ_NOT_FOUND) {
        end(&x);
    }
    shmq_turn_end(&x.t);
    if (x.changed) {
        shmq_wake_waiters(back->queue);
        shmq_notify_starved(back->queue);
    }
    return status;
}

/* Answers when to come again. */
static uint64_t step(shmq_ring *back, uint64_t now, shmq_rows_pass *p, shmq_budget *b) {
    if (!shmq_may_flow(back->queue)) {
        return now + SHMQ_DEAD_LETTER_NS; /* a process with a backing can do it */
    }
    if (!is_of(p, back)) {
        if (p->unfinished && now - p->looked_ns < back->queue->m->patience_ns) {
            return now + SHMQ_TICK_NS; /* another level's pass ends first: there is one in a process */
        }
        begin(p, back, now);
    }
    shmq_status status = SHMQ_OK;
    while (status == SHMQ_OK && b->left != 0) {
        status = do_piece(back, p, now, b);
        if (status != SHMQ_IN_USE) { /* beside a stopped mover it does not keep other passes waiting */
            p->looked_ns = now;
        }
    }
    if (status == SHMQ_OK) {
        return now;
    }
    p->unfinished = status == SHMQ_IN_USE; /* else a pass beside busy movers would never end */
    if (status == SHMQ_EMPTY) {
        shmq_store_relaxed(&back->queue->m->rounds.rows_rest_ns, shmq_due_rest(p->began_ns));
    }
    shmq_trail_clear(); /* for the caller nothing has failed */
    uint64_t next = shmq_due_time(shmq_load_seq(&back->shm->rows_due));
    return status == SHMQ_NOT_FOUND ? next : now + (status == SHMQ_IN_USE ? SHMQ_TICK_NS : SHMQ_DEAD_LETTER_NS);
}

static uint64_t due_of(const shmq_queue *q, uint32_t depth, uint64_t now) {
    uint64_t due = shmq_due_time(shmq_load_seq(&shmq_level_ring(q, depth)->rows_due));
    return shmq_is_due(due, now) ? now : due;
}

uint64_t shmq_rows_due(const shmq_queue *q, uint64_t now) {
    uint64_t earliest = SHMQ_DUE_NEVER;
    bool is_in_service = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE;
    for (uint32_t depth = 0; depth < q->levels && is_in_service; depth++) {
        uint64_t due = due_of(q, depth, now);
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}

void shmq_rows_hurry(shmq_queue *q) {
    uint64_t now = shmq_now_ns(), rest = shmq_load_relaxed(&q->m->rounds.rows_rest_ns),
             latest = now + SHMQ_DEAD_LETTER_NS;
    uint64_t at = rest < now ? now : rest < latest ? rest : latest;
    if (shmq_flows(q) && shmq_due_at(&q->m->header->due, at)) {
        shmq_watch_hurry(q->m);
    }
}

/* Has this process begun a pass over rows of this queue? */
static bool is_half_passed(const shmq_queue *q, uint64_t now, const shmq_rows_pass *p) {
    return p->unfinished && p->index == q->index && p->incarnation == q->incarnation && shmq_rows_due(q, now) <= now;
}

uint64_t shmq_rows_step(shmq_queue *q, uint64_t now, shmq_budget *b) {
    shmq_rows_pass *p = &q->m->rounds.rows;
    uint32_t first = is_half_passed(q, now, p) ? p->depth : 0; /* a pass over another level would forget this one */
    uint64_t earliest = SHMQ_DUE_NEVER;
    bool is_in_service = shmq_load_seq(&q->page->state) == SHMQ_QUEUE_LIVE; /* another duty may have ended the queue */
    for (uint32_t i = 0; i < q->levels && is_in_service; i++) {
        uint32_t depth = (first + i) % q->levels;
        uint64_t due = due_of(q, depth, now);
        due = due <= now && b->left != 0 ? step(shmq_level(q, depth), now, p, b) : due;
        earliest = due < earliest ? due : earliest;
    }
    return earliest;
}
