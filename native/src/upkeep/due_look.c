/* The duty "times". A word of the header says when the next thing in any queue is due; words of the queues say what it
 * is. */
#include "base/wait_time.h"
#include "lifecycle/handle_bind.h"
#include "upkeep/duty.h"
#include "wake/due.h"
#include "wake/watch.h"

/* When each duty of a queue is due. Answers the earliest time. */
static uint64_t due_in(const shmq_queue *q, uint64_t now, uint64_t due[SHMQ_QUEUE_DUTIES]) {
    uint64_t earliest = SHMQ_DUE_NEVER;
    for (uint32_t i = 0; i < SHMQ_QUEUE_DUTIES; i++) {
        due[i] = shmq_queue_duties[i].due(q, now);
        earliest = due[i] < earliest ? due[i] : earliest;
    }
    return earliest;
}

/* Does what is due in a queue; answers when to come again. The duty that would come next when the budget is spent is
 * the first of the next look. */
static uint64_t do_due(shmq_queue *q, uint64_t now, uint64_t due[SHMQ_QUEUE_DUTIES], shmq_budget *b) {
    uint32_t *turn = &q->m->rounds.queue_turn, first = *turn;
    uint64_t earliest = SHMQ_DUE_NEVER;
    bool left = false;
    for (uint32_t k = 0; k < SHMQ_QUEUE_DUTIES; k++) {
        uint32_t i = (first + k) % SHMQ_QUEUE_DUTIES;
        if (due[i] <= now && b->left != 0) {
            due[i] = shmq_queue_duties[i].step(q, now, b);
        } else if (due[i] <= now && !left) {
            *turn = i;
            left = true;
        }
        earliest = due[i] < earliest ? due[i] : earliest;
    }
    return earliest;
}

/* Looks at one queue; answers when to look again. *half: the look has ended in the middle of a ring. `view` is only for
 * a look: memory that others use is not written before the queue is bound. */
static uint64_t look_at(shmq_member *m, uint32_t index, uint64_t now, shmq_budget *b, bool *half) {
    shmq_queue view, *q;
    uint64_t due[SHMQ_QUEUE_DUTIES], earliest;
    *half = false;
    shmq_budget_spend(b, SHMQ_PRICE_QUEUE);
    if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) != SHMQ_ENTRY_LIVE || /* SYNC directory.entry */
        shmq_queue_look(m, index, &view) != NULL) {
        return SHMQ_DUE_NEVER;
    }
    shmq_budget_spend(b, (view.rings - 1) * SHMQ_PRICE_ENTRY);
    earliest = due_in(&view, now, due);
    if (earliest > now) {
        return earliest;
    }
    if (!shmq_queue_counters_try(m, index)) {
        return now + SHMQ_TICK_NS;
    }
    shmq_status status = shmq_queue_bind(m, index, 0, &q);
    if (status != SHMQ_OK) {
        return status == SHMQ_NOT_FOUND || status == SHMQ_CORRUPT ? SHMQ_DUE_NEVER : now + SHMQ_TICK_NS;
    }
    earliest = do_due(q, now, due, b);
    *half = shmq_is_half_looked_at(q, m->rounds.depth, &m->rounds);
    shmq_queue_unbind(q);
    return earliest;
}

bool shmq_is_time(const shmq_member *m, uint64_t now) {
    uint64_t word = shmq_load_relaxed(&m->header->due);
    return word != 0 && (shmq_is_due(shmq_due_time(word), now) || shmq_load_relaxed(&m->rounds.half) != 0);
}

/* Keeps what this process has left in the header's word. */
static void remember(shmq_member *m, uint64_t mark) {
    m->rounds.queues.mark = mark;
    shmq_store_relaxed(&m->rounds.half, mark != 0);
}

/* Begins a look: where this process' own last piece ended, else at the queue where the last look ended. */
static bool begin(shmq_member *m, uint64_t now, uint64_t *mark) {
    shmq_circle *c = &m->rounds.queues;
    shmq_a64 *due = &m->header->due;
    uint64_t left = c->mark;
    bool anew = !shmq_due_is_left(shmq_load_seq(due), left);
    remember(m, 0);
    if (anew ? !shmq_due_begin(due, now, m->patience_ns, mark)
             : !shmq_due_go_on(due, left, now, m->patience_ns, mark, &anew)) {
        return false;
    }
    if (!anew) {
        return true;
    }
    m->rounds.high = shmq_queue_high(m); /* a process that makes a later queue says itself when it is due */
    c->earliest = SHMQ_DUE_NEVER;
    c->left = m->rounds.high;
    c->next = c->next < m->rounds.high ? c->next : 0;
    return true;
}

bool shmq_times_step(shmq_member *m, uint64_t now, shmq_budget *b) {
    shmq_circle *c = &m->rounds.queues;
    shmq_a64 *word = &m->header->due;
    uint64_t mark;
    if (b->spare == NULL && now < m->rounds.go_on_ns && shmq_due_is_left(shmq_load_seq(word), c->mark)) {
        return true; /* other threads are to have the processor, too */
    }
    if (!begin(m, now, &mark)) {
        return false;
    }
    for (; c->left != 0 && b->left != 0; c->left--) {
        bool half;
        uint64_t due = look_at(m, (uint32_t)c->next, now, b, &half);
        if (half) {
            break; /* this queue is the first of the next piece */
        }
        c->earliest = due < c->earliest ? due : c->earliest;
        c->next = c->next + 1 < m->rounds.high ? c->next + 1 : 0;
    }
    bool whole = c->left == 0, told;
    if (whole) {
        c->next = 0;
        told = shmq_due_end(word, mark, c->earliest);
    } else {
        uint64_t rest = shmq_due_rest(now), longest = shmq_now_ns() + SHMQ_LONGEST_PAUSE_NS;
        m->rounds.go_on_ns = rest < longest ? rest : longest; /* others wait so long for what this piece has left */
        remember(m, shmq_due_leave(word, mark, m->rounds.go_on_ns, &told));
    }
    if (told) {
        shmq_watch_hurry(m);
    }
    return !whole;
}
