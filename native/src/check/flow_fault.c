/* Rules that hold for a queue that flows to disk at each instant, also within a mover's turn and after its death. Each
 * says in which order it reads. P and `low` only rise while rows are there, and a turn ends with `unfinished` = 0 after
 * all that it did. */
#include "base/fault_text.h"
#include "check/faults.h"
#include "flow/flow.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "wake/due.h"

/* The words of a back ring, in an order of reads in which none can be further than the next one allows. */
typedef struct flow_words {
    uint64_t pulled, flushed, pulled_bytes, flushed_bytes, low, flow;
    uint64_t passed, passed_bytes, erased, erased_bytes; /* of fetched rows, from the front ring's words */
} flow_words;

static flow_words read_words(shmq_ring_shm *ring, shmq_ring_shm *front) {
    flow_words w = {.pulled = shmq_load_seq(&ring->pulled), .pulled_bytes = shmq_load_seq(&ring->pulled_bytes)};
    w.passed = shmq_load_seq(&front->passed);
    w.passed_bytes = shmq_load_seq(&front->passed_bytes);
    w.erased = shmq_load_seq(&front->fetched);
    w.erased_bytes = shmq_load_seq(&front->fetched_bytes);
    w.flushed = shmq_load_seq(&ring->flushed);
    w.flushed_bytes = shmq_load_seq(&ring->flushed_bytes);
    w.low = shmq_load_seq(&ring->low);
    w.flow = shmq_load_seq(&ring->flow);
    return w;
}

static bool same(const flow_words *a, const flow_words *b) {
    return a->pulled == b->pulled && a->flushed == b->flushed && a->pulled_bytes == b->pulled_bytes &&
           a->flushed_bytes == b->flushed_bytes && a->low == b->low && a->flow == b->flow && a->passed == b->passed &&
           a->passed_bytes == b->passed_bytes && a->erased == b->erased && a->erased_bytes == b->erased_bytes;
}

/* Between two turns the rows are keys in [low, P). All words only rise, so words that are the same twice were so in
 * between. */
static const char *check_rows(shmq_ring *r, shmq_ring_shm *front, const flow_words *w) {
    bool amid = shmq_load_seq(&r->queue->page->unfinished) != 0;
    flow_words again = read_words(r->shm, front);
    if (amid || !same(w, &again) || shmq_load_seq(&r->queue->page->unfinished) != 0) {
        return NULL;
    }
    uint64_t most = shmq_flow_is_on(w->flow) ? shmq_flow_place(w->flow) - w->low : 0;
    if (w->flushed - w->pulled > most) {
        return shmq_fault_text("the queue counts %llu messages on disk, but has only %llu places there",
                               (unsigned long long)(w->flushed - w->pulled), (unsigned long long)most);
    }
    if (w->erased - w->passed > w->flushed - w->pulled) {
        return shmq_fault_text("the queue counts %llu messages on disk, but %llu that were fetched from among them",
                               (unsigned long long)(w->flushed - w->pulled),
                               (unsigned long long)(w->erased - w->passed));
    }
    return w->flushed == w->pulled && w->flushed_bytes != w->pulled_bytes
               ? shmq_fault_text("the queue counts %llu bytes on disk, but no message there",
                                 (unsigned long long)(w->flushed_bytes - w->pulled_bytes))
               : NULL;
}

/* A purger that hands entries over raises `low` before P. It is amid its turn then, or P has risen by now. */
static bool hands_over(shmq_ring *r, shmq_ring_shm *front, const flow_words *w) {
    bool amid = shmq_load_seq(&r->queue->page->unfinished) != 0;
    flow_words again = read_words(r->shm, front);
    return w->low - shmq_flow_place(w->flow) <= SHMQ_TURN_ENTRIES && (amid || !same(w, &again));
}

static const char *check_waiting(shmq_ring_shm *ring) {
    uint64_t came = shmq_load_seq(&ring->came), low = shmq_load_seq(&ring->waiting_low); /* before `waiting` */
    uint64_t waiting = shmq_load_seq(&ring->waiting);
    if (came > waiting || low > waiting) {
        return "more delayed messages have come back from disk than went there";
    }
    return shmq_due_fault(shmq_load_seq(&ring->waiting_due));
}

const char *shmq_flow_fault(shmq_ring *r) {
    const shmq_queue *q = r->queue;
    shmq_ring front;
    if (shmq_level_look(q, q->levels + r->depth, &front) != NULL) {
        return NULL; /* the look at that ring says what is wrong with it */
    }
    flow_words w = read_words(r->shm, front.shm);
    if (w.pulled > w.flushed) {
        return "more messages have come back from disk than went there";
    }
    if (w.pulled_bytes > w.flushed_bytes) {
        return "more bytes have come back from disk than went there";
    }
    if (w.passed > w.erased || w.passed_bytes > w.erased_bytes) {
        return "the queue has passed more fetched messages than were fetched from disk";
    }
    if (SHMQ_UNLIKELY(shmq_flow_is_on(w.flow) && w.low > shmq_flow_place(w.flow)) && !hands_over(r, front.shm, &w)) {
        return "the messages on disk begin behind their end";
    }
    if (shmq_flow_place(w.flow) > shmq_load_seq(&r->shm->tail) + 1) {
        return "the messages on disk end beyond the tail, where no producer has put one";
    }
    if (w.flow != 0 && shmq_load_seq(&front.shm->cold) == 0 && shmq_load_seq(&front.shm->tail) != 0) {
        return "the queue has flowed to disk, but its front ring has no cold records, which order messages that come back";
    }
    uint64_t tried = shmq_load_seq(&r->shm->tried); /* before the tail, which only rises */
    if (tried > shmq_load_seq(&r->shm->tail) + 1) {
        return "a message that failed went to disk from beyond the tail, where no producer has put one";
    }
    const char *wrong = shmq_due_fault(shmq_load_seq(&r->shm->rows_due));
    if (wrong != NULL) {
        return wrong;
    }
    if ((wrong = check_waiting(r->shm)) != NULL) {
        return wrong;
    }
    return shmq_load_seq(&q->page->missed) > 1 ? "the word for a missed turn has a value that no process writes"
                                               : check_rows(r, front.shm, &w);
}

/* The entry is in a mover's turn: the turn sets `unfinished` before its first entry is MOVING, and 0 after its last. */
static bool is_movers(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    const shmq_ring_shm *back = shmq_level_ring(r->queue, shmq_depth_at(r));
    if ((word & SHMQ_FLAG_WAITS) != 0) {
        return shmq_load_seq((shmq_a64 *)(uintptr_t)&back->waiting_from) != 0;
    }
    uint64_t place = shmq_flow_place(shmq_load_seq(&r->shm->flow));
    uint64_t p = shmq_load_acquire(&((shmq_slot_shm *)slot)->position); /* SYNC ring.publish */
    return shmq_load_seq(&r->queue->page->unfinished) != 0 && p + SHMQ_TURN_ENTRIES >= place &&
           p < place + SHMQ_TURN_ENTRIES;
}

/* An entry of a front ring. If it came in before the last turn ended, it lies below `low`. */
static const char *check_front(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    shmq_queue_shm *page = r->queue->page;
    shmq_ring_shm *back = shmq_level_ring(r->queue, shmq_depth_at(r));
    uint32_t state = shmq_word_state(word);
    if (state == SHMQ_CLAIMED || state == SHMQ_QUARANTINED || state == SHMQ_PENDING ||
        (state == SHMQ_MOVING && !is_movers(r, slot, word))) {
        return "the slot of the front ring is in a state that no message from disk has";
    }
    if (!shmq_state_is_entry(state)) {
        return NULL;
    }
    bool amid = shmq_load_seq(&page->unfinished) != 0;
    uint64_t place = shmq_front_place(r, slot);
    if (place == UINT64_MAX) {
        return "the message from disk needs a cold record, but has none";
    }
    uint64_t handed = amid ? SHMQ_TURN_ENTRIES : 0; /* so many may lie at or above P, amid a turn */
    bool waited = (shmq_props(slot) & SHMQ_PROP_WAITED) != 0; /* it went from anywhere */
    if (!waited && place >= shmq_flow_place(shmq_load_seq(&back->flow)) + handed) {
        return "the message came back from a place on disk that no message has had";
    }
    return !amid && place >= shmq_load_seq(&back->low) && !shmq_is_fetched(slot)
               ? "the message came back from disk, but older ones may still be there"
               : NULL;
}

/* A flush leaves no entry behind that no consumer has had, except a put that waits for its taker. P is read first: then
 * both held at one instant. */
static bool is_left_behind(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    uint64_t flow = shmq_load_seq(&r->shm->flow), low = shmq_load_seq(&r->shm->low);
    uint64_t p = shmq_load_acquire(&((shmq_slot_shm *)slot)->position); /* SYNC ring.publish */
    uint32_t had = SHMQ_PROP_NOT_BEFORE | SHMQ_PROP_INTENT | SHMQ_PROP_IMMEDIATE;
    return shmq_flow_is_on(flow) && p >= low && p < shmq_flow_place(flow) && shmq_word_state(word) == SHMQ_AVAILABLE &&
           shmq_word_tag(word) == 0 && (word & SHMQ_FLAG_REDELIVERED) == 0 && (shmq_props(slot) & had) == 0;
}

const char *shmq_flow_entry_fault(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_is_front(r)) {
        return check_front(r, slot, word);
    }
    if (shmq_word_state(word) == SHMQ_MOVING && !is_movers(r, slot, word)) {
        return "the message is on its way to disk, but no mover has it";
    }
    return is_left_behind(r, slot, word)
               ? "the message was left in memory among those on disk, but no consumer has had it"
               : NULL;
}

bool shmq_is_row(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    uint64_t p = shmq_load_acquire(&((shmq_slot_shm *)slot)->position); /* SYNC ring.publish */
    if ((word & SHMQ_FLAG_WAITS) != 0) {
        return shmq_waiting_is_row(shmq_level_ring(r->queue, shmq_depth_at(r)));
    }
    return shmq_word_state(word) == SHMQ_MOVING && p < shmq_flow_place(shmq_load_seq(&r->shm->flow));
}
