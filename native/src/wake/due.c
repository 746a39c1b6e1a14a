#include "wake/due.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "queue/queue_facts.h"
#include "wake/watch.h"

bool shmq_due_at(shmq_a64 *word, uint64_t at) {
    at = at < 2 ? 2 : at & ~SHMQ_DUE_LOOKING;
    for (;;) {
        uint64_t seen = shmq_load_seq(word);
        uint64_t before = shmq_due_time(seen);
        if (before <= at && (seen & SHMQ_DUE_LOOKING) == 0) {
            return false;
        }
        if (shmq_cas_seq(word, seen, before <= at ? before : at)) {
            return at < before;
        }
    }
}

bool shmq_due_begin(shmq_a64 *word, uint64_t now, uint64_t patience_ns, uint64_t *mark) {
    uint64_t seen = shmq_load_seq(word);
    *mark = (now + patience_ns) | SHMQ_DUE_LOOKING;
    return shmq_is_due(shmq_due_time(seen), now) && shmq_cas_seq(word, seen, *mark);
}

bool shmq_due_end(shmq_a64 *word, uint64_t mark, uint64_t earliest) {
    uint64_t next = earliest == SHMQ_DUE_NEVER ? 0 : earliest < 2 ? 2 : earliest & ~SHMQ_DUE_LOOKING;
    /* Otherwise something came during the look, and the process that made it due has left a time for one more look. */
    return !shmq_cas_seq(word, mark, next) && next != 0 && shmq_due_at(word, next);
}

uint64_t shmq_due_leave(shmq_a64 *word, uint64_t mark, uint64_t at, bool *earlier) {
    uint64_t left = (at + SHMQ_SHORT_SLEEP_NS) | SHMQ_DUE_LOOKING;
    *earlier = false;
    if (shmq_cas_seq(word, mark, left)) {
        return left;
    }
    /* Another process took the mark away, and left a time for its own entry only. */
    *earlier = shmq_due_at(word, at);
    return 0;
}

bool shmq_due_go_on(shmq_a64 *word, uint64_t left, uint64_t now, uint64_t patience_ns, uint64_t *mark, bool *anew) {
    uint64_t seen = shmq_load_seq(word);
    *mark = (now + patience_ns) | SHMQ_DUE_LOOKING;
    *anew = seen != left;
    return shmq_due_is_left(seen, left) && shmq_cas_seq(word, seen, *mark);
}

#define SHARE 4

uint64_t shmq_due_rest(uint64_t began) {
    uint64_t now = shmq_now_ns();
    return now > began ? now + SHARE * (now - began) : now;
}

void shmq_make_due(shmq_ring *r, uint64_t at) {
    (void)shmq_due_at(&r->shm->due, at);
    if (shmq_due_at(&r->queue->m->header->due, at)) {
        shmq_watch_hurry(r->queue->m);
    }
}

void shmq_due_recover(shmq_ring *r) {
    shmq_queue *q = r->queue;
    if (shmq_load_relaxed(&q->page->settings.expires_ns) != SHMQ_NEVER) {
        (void)shmq_due_at(&q->m->header->due, 1);
    }
    /* A process may have died between max_ttl and its due words. The word of a life of its own comes before the row. */
    bool ages = shmq_load_relaxed(&q->page->settings.max_ttl_ns) != SHMQ_NEVER;
    if (ages && r->shm->kind != SHMQ_RING_FRONT && shmq_load_seq(&r->shm->flow) != 0) {
        (void)shmq_due_at(&r->shm->rows_due, 1); /* before the header's word */
        (void)shmq_due_at(&r->shm->waiting_due, 1);
        (void)shmq_due_at(&q->m->header->due, 1);
    }
    if (shmq_load_seq(&r->shm->cold) != 0 || shmq_ring_ages(q)) { /* otherwise nothing is ever due there */
        shmq_make_due(r, 1);
    }
}

const char *shmq_due_fault(uint64_t word) {
    uint64_t time = shmq_due_time(word);
    return time == SHMQ_DUE_NEVER || time <= shmq_now_ns() + SHMQ_DUE_LONGEST
               ? NULL
               : "the time at which something is due is later than any can be";
}
