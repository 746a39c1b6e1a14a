/* Room: blocked producers, and the old entry under the tail. */
#include "shmq/overflow.h"
#include "shmq/ring.h"
#include "shmq/sleepers.h"
#include "shmq/wait.h"
#include "shmq/waiters.h"

/* May the tail step over what is in this slot at position p, on its way to a FREE one? */
static bool can_step_over(uint64_t word, int32_t ahead) {
    uint32_t state = shmq_word_state(word);
    if (ahead >= 0) {
        return true; /* used at its turn or later (FREE at its turn is what is looked for) */
    }
    return ahead == -1 &&
           (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED || state == SHMQ_QUARANTINED || state == SHMQ_BROKEN);
}

/* How many slots from t on would have to be carried to reach a FREE one; 0: none in reach. The look-ahead keeps a ring
 * that is full of unwanted entries from turning its own laps for ever. Where a count limits, each place that it grants is
 * to be found, wherever it is. */
static uint64_t room(shmq_ring *r, uint64_t t) {
    uint64_t reach = shmq_load_relaxed(&r->queue->page->maxsize) != 0 ? r->mask : shmq_slot_count(r) / 2;
    uint64_t first = shmq_load_seq(&shmq_slot_at(r, t)->word); /* SYNC ring.free; a last look, as in claim() */
    int32_t behind = shmq_lap_ahead(first, shmq_turn(r, t));
    if (behind == -1 && !can_step_over(first, behind)) {
        return 0; /* a claim of the lap before: it may be a stopped one's, so this is a matter of patience */
    }
    for (uint64_t k = 1; k <= reach; k++) {
        uint64_t word = shmq_load_seq(&shmq_slot_at(r, t + k)->word); /* SYNC ring.free */
        int32_t ahead = shmq_lap_ahead(word, shmq_turn(r, t + k));
        if (ahead == 0 && shmq_word_state(word) == SHMQ_FREE) {
            return k;
        }
        if (!can_step_over(word, ahead)) {
            return 0;
        }
    }
    return 0;
}

bool shmq_carry(shmq_ring *r, uint64_t t) {
    uint64_t reach = room(r, t);
    for (uint64_t k = 0; k < reach; k++) {
        uint64_t p = t + k;
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.free */
        uint32_t state = shmq_word_state(word);
        uint32_t turn = shmq_turn(r, p);
        if (shmq_lap_ahead(word, turn) == -1) {
            uint64_t bumped = word + (UINT64_C(1) << 32);
            if (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) {
                /* The bit first: the bitmap may have one too many, never one too few. */
                shmq_or_seq(&r->carried[(p & r->mask) >> 6], UINT64_C(1) << (p & 63));
                bumped |= SHMQ_FLAG_CARRIED; /* T17 */
            } else if (state != SHMQ_QUARANTINED && state != SHMQ_BROKEN) {
                break;
            }
            if (!shmq_cas_seq(&slot->word, word, bumped)) { /* T5, T17 */
                break;
            }
        } else if (shmq_lap_ahead(word, turn) == 0 && state == SHMQ_FREE) {
            break;
        }
        shmq_cas_seq(&r->shm->tail, p, p + 1); /* SYNC ring.tail: p is used at its turn before the tail passes it */
        shmq_tail_passed(r, p);
    }
    return reach != 0;
}

bool shmq_slot_free(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    shmq_queue *q = r->queue;
    uint32_t limited = shmq_load_relaxed(&q->page->limited), now;
    uint64_t bytes = limited & SHMQ_LIMITED_BYTES ? shmq_slot_bytes(slot, word) : 0;
    if (limited != 0) {
        shmq_moving(q, 1);
    }
    bool freed =
        shmq_cas_seq(&slot->word, word, shmq_word_freed(word)); /* T3, T6, T8, T10, T14, T16: the caller says */
    if (limited != 0) {
        if (freed && q->counters != NULL) { /* without a line nobody sees us move: the count stays one too high */
            shmq_room_give(q, limited, 1, bytes == SHMQ_UNWEIGHED ? 0 : bytes);
        }
        shmq_moving(q, -1);
    }
    if (freed) {
        now = shmq_load_seq(&q->page->limited);
        if (SHMQ_UNLIKELY((now & ~limited) != 0 || bytes == SHMQ_UNWEIGHED)) {
            shmq_recount_ask(q); /* a limit came between our look and our CAS, or nobody knows what was taken for it */
        }
        shmq_wake_full(r, (uint64_t)((unsigned char *)slot - r->slots) / r->slot_size);
    }
    return freed;
}

bool shmq_owner_dead(shmq_queue *q, uint32_t owner) {
    if (owner & SHMQ_OWNER_PROCESS) {
        return shmq_process_dead(q->m, owner & 0xfffu);
    }
    shmq_consumer_shm *row = shmq_row_at(q, owner);
    if (row == NULL) {
        return false;
    }
    uint64_t word = shmq_load_acquire(&row->word); /* SYNC row.owner */
    return shmq_row_state(word) != SHMQ_ROW_FREE && shmq_process_dead(q->m, shmq_row_inner(word));
}

bool shmq_claim_bury(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    uint64_t body = shmq_word_state(word) == SHMQ_DEQUEUED ? shmq_peek(&slot->body) : 0;
    if (body != 0) {
        uint32_t generation = shmq_peek(&slot->body_gen);
        if (shmq_load_seq(&slot->word) != word) {
            return true;
        }
        shmq_block_drop(r->queue->m, shmq_body_offset(body), generation, shmq_body_bit(body));
    }
    return shmq_slot_free(r, slot, word); /* T3: a tombstone, at the next lap, never FREE of the same one; T6; T16 */
}

bool shmq_claim_clear(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, bool overdue) {
    shmq_queue *q = r->queue;
    uint32_t state = shmq_word_state(word);
    uint32_t owner = shmq_word_owner(word);
    switch (state) {
    case SHMQ_CLAIMED:
        if (shmq_owner_dead(q, owner)) {
            return shmq_claim_bury(r, slot, word);
        }
        return overdue && owner != shmq_self(q) &&
               shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_QUARANTINED, owner, 0)); /* T4, SYNC ring.hole */
    case SHMQ_QUARANTINED:
    case SHMQ_DEQUEUED:
        return shmq_owner_dead(q, owner) && shmq_claim_bury(r, slot, word);
    default:
        return false;
    }
}

/* Every claim below `below` was made before this caller began to wait: all of them are overdue at once, so that many
 * stopped producers (a frozen container) cost one patience together. */
static bool quarantine_overdue(shmq_ring *r, uint64_t below) {
    bool changed = false;
    uint64_t first = below > shmq_slot_count(r) ? below - shmq_slot_count(r) : 0;
    for (uint64_t p = first; p < below; p++) {
        shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.claim */
        if (shmq_word_state(word) == SHMQ_CLAIMED && shmq_word_lap(word) == shmq_turn(r, p)) {
            changed |= shmq_claim_clear(r, slot, word, true);
        }
    }
    return changed;
}

bool shmq_patience_over(shmq_ring *r, shmq_patience *wait, uint64_t position, uint64_t word) {
    uint64_t now = shmq_now_ns(), below = 0;
    if (!shmq_cas32_seq(&wait->busy, 0, 1)) {
        return false;
    }
    if (wait->since_ns == 0 || wait->position != position || wait->word != word) {
        wait->since_ns = now;
        wait->position = position;
        wait->word = word;
        wait->below = shmq_load_seq(&r->shm->tail);
    } else if (now - wait->since_ns >= r->queue->m->patience_ns) {
        wait->since_ns = 0;
        below = wait->below;
    }
    shmq_store_seq(&wait->busy, 0);
    return below != 0 && quarantine_overdue(r, below);
}

static bool is_counted_full(shmq_status status) { return status == SHMQ_FULL_COUNT || status == SHMQ_FULL_BYTES; }

/* Put; where the count says "full" and somebody has asked for a recount, count first. */
static shmq_status put_counted(shmq_queue *q, shmq_outgoing *o) {
    for (;;) {
        shmq_status status = shmq_put_now(q, o);
        if (!is_counted_full(status) || shmq_load_seq(&q->page->recount_due) == 0 || !shmq_recount(q)) {
            return status;
        }
    }
}

/* The oldest out for the newest, until it fits, or until nothing is there that can be dropped. */
static shmq_status put_and_drop(shmq_ring *r, shmq_outgoing *o) {
    shmq_status status;
    do {
        status = put_counted(r->queue, o);
    } while (shmq_no_room(status) && shmq_drop_oldest(r->queue, r->depth, status));
    return status;
}

/* When a sleep of a blocked producer ends by itself. A recount that traffic spoiled is tried again soon: nobody may come and
 * wake us. */
static uint64_t sleep_end(shmq_queue *q, shmq_status why, uint64_t until_ns, uint64_t piece_ns) {
    uint64_t now = shmq_now_ns();
    bool spoiled = is_counted_full(why) && shmq_load_seq(&q->page->recount_due) != 0;
    uint64_t piece = spoiled ? SHMQ_SHORT_SLEEP_NS : piece_ns;
    return until_ns > now && until_ns - now > piece ? now + piece : until_ns;
}

/* One sleep of a blocked producer. The count of waiters is raised before the last look, so whoever frees a slot, or asks
 * for a recount, after that look sees the waiter. */
static shmq_status wait_once(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, uint64_t piece_ns) {
    shmq_ring_shm *ring = &q->page->ring;
    shmq_waiters crowd = shmq_room_waiters(q, q->counters);
    uint32_t seen = shmq_load_seq(&ring->full);
    shmq_join_count(&crowd);
    shmq_status status = put_counted(q, o);
    if (shmq_no_room(status) &&
        shmq_sleep(q->m, &ring->full, seen, sleep_end(q, status, until_ns, piece_ns)) == SHMQ_INTERRUPTED) {
        status = SHMQ_INTERRUPTED;
    }
    shmq_leave_count(&crowd);
    return status;
}

/* The same of one who stands in line. Whoever is called comes at once; a look by itself is for those who are stopped: of the
 * one who owes the call, by the first, of the first, by the second; of both, by the others. */
static shmq_status wait_in_line(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    uint32_t seen;
    if (!shmq_line_answer(q, &o->ticket, &seen)) {
        return SHMQ_FULL_COUNT; /* passed long ago: to the end of the line */
    }
    shmq_status status = put_counted(q, o);
    uint64_t piece = o->ticket.second ? q->m->patience_ns / 4 : q->m->patience_ns;
    if (shmq_no_room(status) &&
        shmq_line_sleep(q, &o->ticket, seen, sleep_end(q, status, until_ns, piece)) == SHMQ_INTERRUPTED) {
        status = SHMQ_INTERRUPTED;
    }
    return status;
}

static uint32_t wants(const shmq_outgoing *o) {
    return o->more ? SHMQ_WANTS_ALL : (uint32_t)(o->head_len + o->body_len);
}

/* A queue with a limit has a line; whoever finds it full waits beside it, and looks by time. */
static shmq_status wait_for_room(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns, uint64_t piece_ns) {
    bool lines = shmq_load_relaxed(&q->page->limited) != 0 && shmq_overflow_of(q) == SHMQ_OVERFLOW_WAIT;
    if (!lines) {
        shmq_line_leave(q, &o->ticket);
    } else if (o->ticket.held || shmq_line_enter(q, &o->ticket, wants(o))) {
        return wait_in_line(q, o, until_ns);
    }
    return wait_once(q, o, until_ns, piece_ns);
}

static shmq_status put_waiting(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    SHMQ_TRY(shmq_queue_usable(q));
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->shut_down) != SHMQ_OPEN)) {
        return SHMQ_SHUT_DOWN;
    }
    SHMQ_TRY(shmq_prepare(q, o, until_ns));
    shmq_ring *r = shmq_level_for(q, o->priority);
    shmq_status status = shmq_put_now(q, o);
    if (SHMQ_LIKELY(!shmq_no_room(status))) {
        return status; /* before any look at the clock */
    }
    uint64_t piece =
        SHMQ_SHORT_SLEEP_NS; /* a full ring is looked at soon, then seldom: consumers wake only at some slots */
    bool waited = false;
    uint64_t slice_end = shmq_slice_end(q->m);
    while (shmq_no_room(status)) {
        uint32_t overflow = shmq_overflow_of(q); /* may be altered while we wait */
        until_ns = overflow == SHMQ_OVERFLOW_REJECT ? 0 : until_ns;
        if (overflow == SHMQ_OVERFLOW_DROP_OLDEST && !shmq_no_room(status = put_and_drop(r, o))) {
            break;
        }
        if (shmq_patience_over(r, &r->putting, 0, 0)) {
            piece = SHMQ_SHORT_SLEEP_NS;
        }
        if (until_ns == 0 || shmq_now_ns() >= until_ns) {
            shmq_look_for_dead(q->m);
            status = put_counted(q, o);
            break;
        }
        waited = true;
        o->lacking = status;
        status = wait_for_room(q, o, until_ns, piece);
        piece = piece < q->m->patience_ns ? piece * 2 : piece;
        if (shmq_no_room(status)) {
            SHMQ_TRY(shmq_queue_usable(q));
            if (shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN) {
                return SHMQ_SHUT_DOWN;
            }
            if (shmq_now_ns() >= slice_end) {
                return shmq_slice_over(q->m);
            }
        }
    }
    if (waited && status == SHMQ_OK && !shmq_line_serves_all(q) &&
        shmq_waiters_in(shmq_load_seq(&q->page->ring.waiters)) != 0) {
        /* The baton: whoever was woken for room and found it wakes the next. */
        shmq_add_seq(&q->page->ring.full, 1);
        shmq_futex_wake(&q->page->ring.full, 1);
    }
    return status;
}

/* A producer for whose slots there is no memory sleeps as one that waits for a block, and then is to call again. */
static __attribute__((noinline)) shmq_status sleep_for_slots(shmq_queue *q, uint64_t until_ns) {
    shmq_member *m = q->m;
    shmq_waiters crowd = shmq_memory_waiters(m, m->process);
    uint32_t seen = shmq_load_seq(&m->header->memory_full);
    uint64_t now = shmq_now_ns();
    if (until_ns == 0 || now >= until_ns) {
        return SHMQ_FULL_MEMORY;
    }
    shmq_join_count(&crowd);
    uint64_t until = until_ns - now > SHMQ_TICK_NS ? now + SHMQ_TICK_NS : until_ns;
    (void)shmq_sleep(m, &m->header->memory_full, seen, until); /* by time, if a wake came before */
    shmq_leave_count(&crowd);
    return shmq_slice_over(m);
}

shmq_status shmq_put(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    shmq_status status = put_waiting(q, o, until_ns);
    if (SHMQ_UNLIKELY(status == SHMQ_FULL_MEMORY)) {
        status = sleep_for_slots(q, until_ns);
    }
    if (SHMQ_UNLIKELY(o->ticket.held) && status != SHMQ_INTERRUPTED && !(status == SHMQ_OK && o->more)) {
        shmq_line_leave(q, &o->ticket);
    }
    return status;
}
