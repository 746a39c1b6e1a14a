/* Rows whose lives are over. A pass goes over the lives in the backing's indexes, a piece of a file at a time, each
 * under the mover's lock. Rows that are over are dropped on disk, if they are the lowest and become no dead letters.
 * Others are fetched, and treated like any entry of the front ring.
 *
 * A level's word is never later than the end of the first life among its rows. The purger makes it earlier before it
 * writes rows, and so does a process that sets max_ttl. Only the end of a pass makes it later, under the lock under
 * which rows are written. */
#include "base/wait_time.h"
#include "settle/expire.h"
#include "time/times.h"
#include "upkeep/row_pass.h"
#include "wake/watch.h"

/* Rows that become dead letters may use one part of so many of the front ring's slots: consumers fetch what they want even
 * while the queue of dead letters is full. */
#define DEAD_LETTERS_SHARE 8u

/* How many of the lowest rows can be dropped on disk; *over: how many of these were not gone before. */
static uint32_t count_lowest(const shmq_piece *x, const shmq_row_life *lives, uint32_t count, uint32_t *over) {
    bool dead_letters = shmq_expired_are_dead_letters(x->t.q);
    uint32_t i = 0;
    *over = 0;
    for (; i < count && (lives[i].gone || (!dead_letters && shmq_piece_is_over(x, &lives[i]))); i++) {
        *over += !lives[i].gone;
    }
    return i;
}

static void drop_lowest(shmq_piece *x, const shmq_row_life *lives, uint32_t count, uint32_t over) {
    shmq_rows_drop_first(&x->t, lives, count);
    shmq_entries_ended(x->t.q, over, SHMQ_END_EXPIRED);
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
static shmq_status fetch(shmq_piece *x, uint64_t place) {
    shmq_budget_spend(x->b, SHMQ_PRICE_FETCH);
    if (shmq_fetched_room(&x->t, DEAD_LETTERS_SHARE) == 0 && shmq_expired_are_dead_letters(x->t.q)) {
        return SHMQ_EMPTY;
    }
    shmq_status status = shmq_fetch_at(&x->t, place);
    if (status == SHMQ_OK) {
        end_fetched(&x->t);
        x->p->again = x->changed = true;
    }
    return status;
}

static shmq_status look_at_each(shmq_piece *x, const shmq_row_life *lives, uint32_t count) {
    shmq_rows_pass *p = x->p;
    uint32_t fetched = 0;
    for (uint32_t i = 0; i < count; i++) {
        p->next = lives[i].place;
        if (lives[i].gone) {
            continue;
        }
        if (!shmq_piece_is_over(x, &lives[i])) {
            shmq_piece_note(x, &lives[i]);
            continue;
        }
        if (fetched == SHMQ_FETCHED_AT_ONCE || (fetched != 0 && x->b->left == 0) || x->t.unmarked) {
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
static shmq_status look_at_some(shmq_piece *x) {
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

static void end(shmq_piece *x) {
    uint64_t flow = shmq_load_seq(&x->t.back->shm->flow);
    shmq_rows_end_flow(&x->t);
    x->changed = x->changed || shmq_load_seq(&x->t.back->shm->flow) != flow; /* takers can have what lies behind */
}

static shmq_a64 *word(shmq_ring_shm *back) { return &back->rows_due; }

static shmq_rows_pass *own(shmq_member *m) { return &m->rounds.rows; }

static uint64_t rest(const shmq_rows_pass *p, uint64_t now) {
    (void)p;
    return now + SHMQ_DEAD_LETTER_NS;
}

static const shmq_pass_kind kind = {.word = word, .own = own, .look = look_at_some, .end = end, .rest = rest};

uint64_t shmq_rows_due(const shmq_queue *q, uint64_t now) { return shmq_pass_due(&kind, q, now); }

uint64_t shmq_rows_step(shmq_queue *q, uint64_t now, shmq_budget *b) { return shmq_pass_step(&kind, q, now, b); }

void shmq_rows_hurry(shmq_queue *q) {
    uint64_t now = shmq_now_ns(), rest = shmq_load_relaxed(&q->m->rounds.rows_rest_ns),
             latest = now + SHMQ_DEAD_LETTER_NS;
    uint64_t at = rest < now ? now : rest < latest ? rest : latest;
    if (shmq_flows(q) && shmq_due_at(&q->m->header->due, at)) {
        shmq_watch_hurry(q->m);
    }
}
