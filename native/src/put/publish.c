/* put: the producer claims a slot by one CAS, fills it, and publishes it by another. */
#include <string.h>

#include "base/crc32c.h"
#include "consumers/sleepers.h"
#include "flow/flow.h"
#include "groups/group.h"
#include "limits/count.h"
#include "limits/room_wake.h"
#include "limits/slot_free.h"
#include "limits/waiters.h"
#include "put/overflow.h"
#include "put/put.h"
#include "queue/alert.h"
#include "queue/cold.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"
#include "segment/alert_time.h"
#include "segment/wall_clock.h"
#include "settle/ending.h"
#include "settle/settle.h"
#include "time/times.h"
#include "wake/wait.h"
#include "wake/watch.h"

/* The checksum of the queue, and of the fields that it covers besides headers and body: those that do not change after
 * the publish. */
static uint32_t crc_of_fields(const shmq_queue *q, const shmq_outgoing *o) {
    unsigned char fields[24] = {0};
    uint32_t body_len = (uint32_t)o->body_len;
    uint16_t headers_len = (uint16_t)o->headers_len;
    memcpy(fields, &o->made.message_id, 8);
    memcpy(fields + 8, &o->enqueued_ns, 8);
    memcpy(fields + 16, &body_len, 4);
    memcpy(fields + 20, &headers_len, 2);
    fields[22] = o->content;
    fields[23] = o->priority;
    return shmq_crc32c(q->checksum_start, fields, sizeof fields);
}

/* Computes the checksum. `to`: the body is copied there, too; NULL: it is not. */
static uint32_t crc_of_message(const shmq_queue *q, const shmq_outgoing *o, unsigned char *to) {
    uint32_t crc = crc_of_fields(q, o);
    if (o->headers_len != 0) {
        crc = shmq_crc32c(crc, o->headers, o->headers_len);
    }
    for (uint32_t i = 0; i < o->piece_count; i++) {
        const struct iovec *piece = &o->pieces[i];
        if (to == NULL) {
            crc = shmq_crc32c(crc, piece->iov_base, piece->iov_len);
        } else {
            crc = shmq_crc32c_copy(crc, piece->iov_base, piece->iov_len, to);
            to += piece->iov_len;
        }
    }
    return crc;
}

static void copy_pieces(unsigned char *to, const shmq_outgoing *o) {
    for (uint32_t i = 0; i < o->piece_count; i++) {
        memcpy(to, o->pieces[i].iov_base, o->pieces[i].iov_len);
        to += o->pieces[i].iov_len;
    }
}

/* Takes a block for the body. While there is no memory, the producer waits for it. */
shmq_status shmq_take_block(shmq_queue *q, uint64_t bytes, uint64_t until_ns, shmq_relief *relief, shmq_block *block) {
    shmq_member *m = q->m;
    shmq_waiters waiters = shmq_memory_waiters(m, m->process);
    uint64_t slice_end = shmq_slice_end(m), tries_end = 0;
    for (uint64_t backoff = SHMQ_SHORT_SLEEP_NS;; backoff = backoff < m->patience_ns ? backoff * 2 : backoff) {
        uint32_t seen = shmq_load_seq(&m->header->memory_full);
        shmq_status status = shmq_block_take(m, bytes, block), slept = SHMQ_OK, moved;
        if (!shmq_is_short(status)) {
            return status;
        }
        uint64_t now = shmq_now_ns();
        bool over = until_ns == 0 || now >= until_ns;
        tries_end = tries_end != 0 ? tries_end : now + SHMQ_SLICE_NS;
        if ((moved = shmq_relief_for(q, !over, relief)) == SHMQ_OK) {
            if (now >= tries_end) {
                return shmq_slice_over(m);
            }
            continue;
        }
        if (status == SHMQ_NO_SPACE) {
            return shmq_block_take(m, bytes, block); /* to report what is lacking */
        }
        if (shmq_is_failure(moved)) {
            return moved;
        }
        if (over) {
            uint64_t deaths = shmq_load_relaxed(&m->header->deaths);
            shmq_upkeep.thorough(m); /* a producer that never sleeps does its upkeep here */
            status = shmq_load_relaxed(&m->header->deaths) == deaths ? status : shmq_block_take(m, bytes, block);
            return status == SHMQ_FULL_MEMORY && moved == SHMQ_FULL_DISK ? moved : status;
        }
        SHMQ_TRY(shmq_queue_enter(q));
        shmq_join_count(&waiters);
        /* SYNC block.memory: the producer counts itself as a waiter, then looks again: a process that frees a block
         * sees the waiter, or this look sees the block */
        status = shmq_block_take(m, bytes, block);
        if (status == SHMQ_FULL_MEMORY) {
            uint64_t until = until_ns - now > backoff ? now + backoff : until_ns;
            slept = shmq_sleep(m, &m->header->memory_full, seen, until);
        }
        shmq_leave_count(&waiters);
        if (status != SHMQ_FULL_MEMORY) {
            return status;
        }
        if (slept == SHMQ_INTERRUPTED || shmq_now_ns() >= slice_end) {
            return shmq_slice_over(m);
        }
    }
}

static uint64_t weight_of(const shmq_outgoing *o) { return o->headers_len + o->body_len; }

shmq_status shmq_prepare(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    if (o->made.prepared) {
        return SHMQ_OK;
    }
    if (o->headers_len > SHMQ_HEADERS_MAX || o->body_len > SHMQ_BODY_MAX) {
        return shmq_fail(SHMQ_TOO_LARGE, "the message is too large\n%llu bytes, at most %llu\nsplit the body",
                         (unsigned long long)o->body_len, (unsigned long long)SHMQ_BODY_MAX);
    }
    if (o->enqueued_ns == 0) {
        o->enqueued_ns = shmq_put_ns(q->m);
    }
    o->made.group =
        SHMQ_UNLIKELY(q->grouping != SHMQ_GROUPS_NONE) ? shmq_group_of_headers(q, o->headers, o->headers_len) : 0;
    if (SHMQ_UNLIKELY(o->made.group != 0)) {
        SHMQ_TRY(shmq_cold_need(&q->first)); /* places for groups lie there */
    }
    SHMQ_TRY(shmq_time_prepare(shmq_level_for(q, o->priority), o));
    /* Before the copy: a CAS behind it would wait until the copy has left the processor's store buffer. */
    o->made.message_id = SHMQ_UNLIKELY(o->kept_id != 0) ? o->kept_id : shmq_new_id(q->m);
    unsigned char *body = NULL;
    if (o->block.offset == 0 && o->headers_len + o->body_len > q->first.inline_bytes) {
        uint64_t start = shmq_body_start(o->headers_len);
        o->wait.lacking = SHMQ_FULL_MEMORY;
        SHMQ_TRY(o->wait.brief ? shmq_block_take(q->m, start + o->body_len, &o->block)
                               : shmq_take_block(q, start + o->body_len, until_ns, &o->wait.relief, &o->block));
        unsigned char *to = shmq_at(q->m, o->block.offset);
        if (o->headers_len != 0) {
            memcpy(to, o->headers, o->headers_len);
        }
        body = to + start;
    }
    if (q->crc_at_put) {
        o->made.crc = crc_of_message(q, o, body);
    } else {
        o->made.crc = 0;
        if (body != NULL) {
            copy_pieces(body, o);
        }
    }
    o->made.prepared = true;
    /* Signed: a message that keeps an old time causes no look, and does not turn the clock back for the others. */
    if ((int64_t)(o->enqueued_ns - shmq_load_relaxed(&q->m->gone_looked_ns)) > (int64_t)SHMQ_SLICE_NS) {
        shmq_store_relaxed(&q->m->gone_looked_ns, o->enqueued_ns);
        (void)shmq_member_gone(q->m); /* the next call sees the result */
        shmq_alerts_tick(q->m);
    }
    return SHMQ_OK;
}

void shmq_unprepare(shmq_queue *q, shmq_outgoing *o) {
    if (SHMQ_UNLIKELY(shmq_member_is_closed(q->m))) { /* the close has given back what this process had */
        o->wait.ticket = (shmq_ticket){0};
        o->block.offset = 0;
        o->made.prepared = false;
        return;
    }
    shmq_line_leave(q, &o->wait.ticket);
    if (o->block.offset != 0) {
        shmq_block_drop(q->m, o->block.offset, o->block.generation, 0);
        o->block.offset = 0;
    }
    o->made.prepared = false;
}

/* The tail lags by a few places at the most. A producer that has moved it on so often is misled by a damaged word. */
#define LONGEST_HELP (UINT64_C(1) << 20)

/* Steps 1 to 5 of put. On success o->made.position is CLAIMED by this process. */
static shmq_status claim(shmq_ring *r, shmq_outgoing *o) {
    shmq_ring_shm *ring = r->shm;
    for (uint64_t steps = 0;; steps++) {
        uint64_t t = shmq_load_seq(&ring->tail); /* SYNC ring.tail: words that it has passed were written before it */
        /* The slot behind this one must have memory, too: scans go up to the tail. Only in the first lap of a ring can
         * it have none. */
        if (SHMQ_UNLIKELY(t + 1 >= shmq_load_acquire(&ring->laid))) { /* SYNC ring.laid */
            SHMQ_TRY(shmq_ring_lay(r, t));
            continue;
        }
        uint32_t lap = shmq_lap_of(r, t);
        shmq_slot_shm *slot = shmq_slot_at(r, t);
        /* SYNC ring.free: the last reader's reads before this producer's writes. Seq: this is also a blocked producer's
         * last look. */
        uint64_t word = shmq_load_seq(&slot->word);
        int32_t ahead = shmq_lap_ahead(word, lap);
        if (ahead > 0 || (ahead == 0 && shmq_word_state(word) != SHMQ_FREE)) {
            /* The producer moves the tail on for others, also when the word is a lap ahead. A claim that was buried
             * before its producer moved the tail leaves just that. Without help every producer would spin here for
             * ever. */
            shmq_cas_seq(&ring->tail, t, t + 1);
            if (SHMQ_UNLIKELY(steps > LONGEST_HELP)) {
                return shmq_damage(r->queue->m, "the tail of a ring is far behind its slots", t);
            }
            continue;
        }
        if (ahead == 0) {
            if (!shmq_cas_seq(&slot->word, word, shmq_word(lap, 0, shmq_self(r->queue), 0, SHMQ_CLAIMED))) { /* T1 */
                continue;
            }
            shmq_cas_seq(&ring->tail, t, t + 1); /* SYNC ring.tail */
            shmq_tail_passed(r, t);
            if (shmq_word_carried(word)) {
                shmq_and_seq(&r->carried[(t & r->mask) >> 6], ~shmq_carried_bit(r, t));
            }
            o->made.position = t;
            return SHMQ_OK;
        }
        if (ahead < -1) {
            SHMQ_TRY(shmq_mark_broken(r, slot, word, lap));
            continue;
        }
        if (!shmq_claim_clear(r, slot, word, false) && !shmq_carry(r, t, o->wait.far)) {
            return SHMQ_FULL_RING;
        }
    }
}

/* Producers that stand in line are served first. A move does not wait for them, since it never waits: its message was
 * put before theirs. */
static bool admit(shmq_queue *q, const shmq_outgoing *o, shmq_ticket *ticket, shmq_room *theirs) {
    return o->intent != 0 || shmq_overflow_of(q) != SHMQ_OVERFLOW_WAIT || shmq_line_admit(q, ticket, theirs);
}

/* Takes room without regard to max_memory: nothing in memory can go to disk. */
static shmq_status take_beyond(shmq_queue *q, uint32_t limited, const shmq_outgoing *o, const shmq_room *theirs) {
    SHMQ_TRY(shmq_room_take(q, limited & ~SHMQ_LIMITED_RESIDENT, weight_of(o), theirs));
    if (limited & SHMQ_LIMITED_RESIDENT) {
        shmq_resident_add(q, weight_of(o));
    }
    return SHMQ_OK;
}

/* Returns the status of a queue in which the messages of the producers in line take all room. */
static shmq_status full_for(uint32_t limited) {
    return limited & SHMQ_LIMITED_COUNT   ? SHMQ_FULL_COUNT
           : limited & SHMQ_LIMITED_BYTES ? SHMQ_FULL_BYTES
                                          : SHMQ_FULL_RESIDENT;
}

SHMQ_INLINE shmq_status claim_counted(shmq_ring *r, shmq_outgoing *o, shmq_ticket *ticket) {
    shmq_queue *q = r->queue;
    uint32_t limited = shmq_load_relaxed(&q->page->limited), now;
    shmq_room theirs = {0};
    shmq_status status;
    if (SHMQ_LIKELY(limited == 0)) {
        status = claim(r, o);
    } else if (SHMQ_UNLIKELY(shmq_line_stands(q)) && !admit(q, o, ticket, &theirs)) {
        return full_for(limited);
    } else {
        shmq_moving(q, 1);
        status = SHMQ_UNLIKELY(o->wait.beyond) ? take_beyond(q, limited, o, &theirs)
                                               : shmq_room_take(q, limited, weight_of(o), &theirs);
        if (status == SHMQ_OK && (status = claim(r, o)) != SHMQ_OK) {
            shmq_room_give(q, limited, 1, weight_of(o));
        }
        shmq_moving(q, -1);
    }
    if (SHMQ_UNLIKELY((now = shmq_load_seq(&q->page->limited)) != limited) && status == SHMQ_OK) {
        shmq_room_late(q, now & ~limited, weight_of(o)); /* the queue got a limit between the look and the claim */
    }
    return status;
}

/* Takes step 6: all work between claim and publish. It makes no allocation and no system call. */
SHMQ_INLINE void fill(shmq_ring *r, const shmq_outgoing *o) {
    shmq_slot_shm *slot = shmq_slot_at(r, o->made.position);
    /* SYNC ring.browse: a reader that copies a byte written from here on sees CLAIMED when it looks at the word again.
     * An acquire at the claim would not give that: it keeps these writes behind the look at FREE, not behind this
     * producer's own CLAIMED. */
    shmq_fence_release();
    shmq_store_release(&slot->position, o->made.position); /* SYNC ring.publish: all of the slot before its AVAILABLE */
    shmq_write_once(&slot->message_id, o->made.message_id);
    shmq_write_once(&slot->enqueued_ns, o->enqueued_ns);
    shmq_write_once(&slot->body_len, (uint32_t)o->body_len);
    shmq_store_relaxed(&slot->summary, shmq_summary(o->made.crc, (uint16_t)o->headers_len));
    uint64_t props = SHMQ_UNLIKELY(shmq_is_recorded(o)) ? shmq_time_fill(r, slot, o) : 0;
    shmq_store_relaxed(&slot->tally, (uint64_t)o->content << 16 | (uint64_t)o->priority << 24 | props << 32);
    if (o->block.offset != 0) {
        shmq_write_once(&slot->body, shmq_body_ref(o->block.offset, 0));
        shmq_write_once(&slot->body_gen, o->block.generation);
        return;
    }
    shmq_write_once(&slot->body, 0);
    shmq_write_once(&slot->body_gen, 0);
    if (o->headers_len != 0) {
        memcpy(slot->inline_area, o->headers, o->headers_len);
    }
    copy_pieces(slot->inline_area + o->headers_len, o);
}

/* Step 8. False: this producer was stopped so long that its claim became a hole; it abandons the claim and puts
 * again. */
SHMQ_INLINE bool publish(shmq_ring *r, shmq_outgoing *o) {
    shmq_queue *q = r->queue;
    shmq_slot_shm *slot = shmq_slot_at(r, o->made.position);
    uint32_t lap = shmq_lap_of(r, o->made.position);
    uint64_t claimed = shmq_word(lap, 0, shmq_self(q), 0, SHMQ_CLAIMED);
    uint32_t state = SHMQ_UNLIKELY(shmq_is_delayed(o)) ? SHMQ_HELD : SHMQ_AVAILABLE;
    uint32_t owner = 0;
    if (SHMQ_UNLIKELY(o->intent != 0)) {
        state = SHMQ_PENDING; /* the mover's, until its source is settled */
        owner = shmq_self(q);
    }
    if (SHMQ_UNLIKELY(!shmq_cas_seq(&slot->word, claimed, shmq_word(lap, 0, owner, 0, state)))) { /* T2 */
        return false;
    }
    shmq_changed_at(r, o->made.position);
    if (o->block.offset != 0) {
        shmq_block_share(q->m, &o->block); /* SYNC block.publish: the slot names it before it is SHARED */
    }
    return true;
}

/* Gives up the producer's own claim: T3, or T6 if the claim has become a hole. */
static void abandon(shmq_ring *r, const shmq_outgoing *o) {
    shmq_slot_shm *slot = shmq_slot_at(r, o->made.position);
    uint64_t word = shmq_word(shmq_lap_of(r, o->made.position), 0, shmq_self(r->queue), 0, SHMQ_CLAIMED);
    while (!shmq_cas_seq(&slot->word, word, shmq_word_freed(word))) { /* T3, T6 */
        /* At the lap that the word has now: the tail may have carried the hole on to later laps. */
        word = shmq_load_acquire(&slot->word); /* SYNC ring.hole */
        if (shmq_word_state(word) != SHMQ_QUARANTINED || shmq_word_owner(word) != shmq_self(r->queue)) {
            return;
        }
    }
    shmq_wake_full(r, slot);
}

/* The first of these claims became a hole: the producer puts it and all after it again at the tail, in order. Their
 * places in the count stay taken, so no process may believe a count of the slots until they have slots again. Returns
 * how many were put. */
static uint32_t put_again(shmq_ring *r, shmq_outgoing *o, uint32_t count, shmq_status *status) {
    shmq_queue *q = r->queue;
    uint32_t done = 0;
    shmq_moving(q, 1);
    /* A new version of the count, before any slot changes: a recount may read `moving` before and after all of this. */
    shmq_room_give(q, shmq_load_seq(&q->page->limited), 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        abandon(r, &o[i]);
    }
    while (done < count && (*status = claim(r, &o[done])) == SHMQ_OK) {
        fill(r, &o[done]);
        if (publish(r, &o[done])) {
            done++;
        } else {
            abandon(r, &o[done]);
        }
    }
    for (uint32_t i = done; i < count; i++) {
        shmq_room_give(q, shmq_load_seq(&q->page->limited), 1, weight_of(&o[i]));
    }
    shmq_moving(q, -1);
    return done;
}

/* Checks that the put came before a deletion. False: the queue was deleted meanwhile, and the message with it. */
static bool put_in_time(shmq_ring *r, shmq_outgoing *o) {
    if (SHMQ_LIKELY(shmq_put_in_time(r, o->made.position))) {
        return true;
    }
    o->block.offset = 0; /* the block was the entry's, which is gone */
    return false;
}

/* Claims, fills and publishes in order: every put goes this way. `ticket`: the place in line of all of them. *done: how
 * many were put; where it fails it leaves no claim behind. Inline: for a single message the loops vanish. */
SHMQ_INLINE shmq_status put(shmq_ring *r, shmq_outgoing *o, uint32_t count, shmq_ticket *ticket, uint32_t *done) {
    uint32_t claimed = 0, i = 0;
    shmq_status status = SHMQ_OK;
    while (claimed < count && (status = claim_counted(r, &o[claimed], ticket)) == SHMQ_OK) {
        claimed++;
    }
    for (uint32_t k = 0; k < claimed; k++) {
        fill(r, &o[k]);
    }
    while (i < claimed && publish(r, &o[i])) {
        i++;
    }
    if (SHMQ_UNLIKELY(i < claimed)) {
        shmq_status again = SHMQ_OK;
        i += put_again(r, &o[i], claimed - i, &again);
        status = again != SHMQ_OK ? again : status;
    }
    *done = i;
    return status;
}

SHMQ_INLINE void published(shmq_ring *r, const shmq_outgoing *o) {
    shmq_time_published(r, o);
    if (o->block.offset != 0 && SHMQ_UNLIKELY(shmq_alert_weighs(r->queue))) {
        shmq_alert_weigh(r->queue, weight_of(o));
    }
}

void shmq_published(shmq_ring *r, const shmq_outgoing *o) { published(r, o); }

/* After the publish of `count`: wakes sleepers, and counts. Returns how many of them are in: fewer if the queue was
 * deleted meanwhile. */
SHMQ_INLINE uint32_t put_done(shmq_ring *r, shmq_outgoing *o, uint32_t count) {
    uint32_t wake = count < 4 ? count : 4, in = count;
    for (uint32_t k = 0; k < count; k++) {
        published(r, &o[k]);
    }
    shmq_add_relaxed(&r->queue->counters->put, count);
    do { /* once in any case: browsers sleep without an idle bit */
        shmq_notify(r->queue);
    } while (--wake != 0 && shmq_anybody_idle(r->queue));
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&r->queue->m->met) != 0)) {
        shmq_reap_met(r->queue->m); /* others may wait for what the dead process holds */
    }
    while (in != 0 && !put_in_time(r, &o[in - 1])) {
        in--;
    }
    return in;
}

shmq_status shmq_put_some(shmq_queue *q, shmq_outgoing *o, uint32_t count, uint32_t *done) {
    shmq_ticket *ticket = &o->wait.ticket;
    *done = 0;
    shmq_ring *r = shmq_level_for(q, o->priority); /* all have one priority */
    /* Lays slots before the claim rather than after it: takers wait for what is claimed. */
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&r->shm->tail) + count >= shmq_load_relaxed(&r->shm->laid))) {
        SHMQ_TRY(shmq_ring_lay(r, shmq_load_relaxed(&r->shm->tail) + count - 1));
    }
    shmq_status status = put(r, o, count, ticket, done);
    if (SHMQ_UNLIKELY(ticket->in_line)) {
        shmq_outgoing *next = &o[*done < count ? *done : count - 1];
        shmq_line_hand_on(ticket, &next->wait.ticket);
        if (*done == count && !next->wait.more) {
            shmq_line_leave(q, &next->wait.ticket);
        }
    }
    uint32_t made = *done;
    if (made != 0 && (*done = put_done(r, o, made)) != made) {
        status = SHMQ_NOT_FOUND;
    }
    return *done == count ? SHMQ_OK : status;
}

shmq_status shmq_put_now(shmq_queue *q, shmq_outgoing *o) {
    uint32_t done;
    shmq_ring *r = shmq_level_for(q, o->priority);
    shmq_status status = put(r, o, 1, &o->wait.ticket, &done);
    if (SHMQ_UNLIKELY(done == 0)) {
        return status;
    }
    if (SHMQ_UNLIKELY(o->intent != 0)) {
        return SHMQ_OK; /* half of a move: no taker can have it yet */
    }
    return put_done(r, o, 1) == 1 ? SHMQ_OK : SHMQ_NOT_FOUND;
}
