/* Random traffic of one thread on one queue, as one membership: everything that a process does, and each body says which
 * message it is. A thread that settles a message notes it on the board; a message settled twice is found at once, a lost one
 * at the end. */
#ifndef SHMQ_TESTS_MEMBER_TRAFFIC_H
#define SHMQ_TESTS_MEMBER_TRAFFIC_H

#include <sched.h>

#include "limits/slot_free.h"
#include "scratch_queue.h"

#define BOARD_MESSAGES (1u << 20)
#define TRAFFIC_HELD 12u
#define TRAFFIC_VIEWS 4u
#define INLINE_ROOM 128u

#if defined(__SANITIZE_THREAD__)
#define RACING __attribute__((no_sanitize_thread, noinline))
#else
#define RACING __attribute__((noinline))
#endif

typedef struct message_board {
    shmq_a64 next;
    shmq_a64 settled_count;
    shmq_a32 settled[BOARD_MESSAGES];
    shmq_a64 steps, holes, carried, redelivered, blocked, died, viewed, browsed;
} message_board;

typedef struct held_view {
    uint32_t pin;
    uint64_t number, length;
    const unsigned char *bytes;
} held_view;

typedef struct member_worker {
    shmq_member *m;
    shmq_queue *q;
    message_board *board;
    uint64_t random;
    shmq_delivery held[TRAFFIC_HELD];
    uint32_t held_count;
    held_view views[TRAFFIC_VIEWS];
    uint32_t view_count;
    uint32_t consumer_row; /* 0: takes as the process */
} member_worker;

static inline uint64_t worker_random(member_worker *w) { return xorshift(&w->random) >> 11; }

static inline void body_write(unsigned char *bytes, uint64_t length, uint64_t number) {
    memcpy(bytes, &number, sizeof(number));
    for (uint64_t i = sizeof(number); i < length; i++) {
        bytes[i] = (unsigned char)(number * 31 + i);
    }
}

static inline uint64_t body_check(const unsigned char *bytes, uint64_t length) {
    uint64_t number;
    CHECK(length >= sizeof(number));
    memcpy(&number, bytes, sizeof(number));
    for (uint64_t i = sizeof(number); i < length; i++) {
        CHECK_EQUAL(bytes[i], (unsigned char)(number * 31 + i));
    }
    return number;
}

/* Bytes that a producer may be writing: the copy counts only after a look at the word, so this is no race to report. */
RACING static void copy_racing(unsigned char *to, const unsigned char *from, uint64_t length) {
    for (uint64_t i = 0; i < length; i++) {
        to[i] = ((const volatile unsigned char *)from)[i];
    }
}

static inline void note_settled(member_worker *w, uint64_t number) {
    CHECK(number < BOARD_MESSAGES);
    CHECK_EQUAL(shmq_add_relaxed(&w->board->settled[number], 1), 0);
    shmq_add_relaxed(&w->board->settled_count, 1);
}

static inline void worker_put(member_worker *w, uint64_t wait_ns) {
    static _Thread_local unsigned char bytes[40000];
    uint64_t kind = worker_random(w) % 8, room = kind < 5 ? 100 : kind < 7 ? 1000 : 30000;
    uint64_t length = 8 + worker_random(w) % room;
    if (shmq_load_relaxed(&w->board->next) >= BOARD_MESSAGES - 64) {
        return;
    }
    uint64_t number = shmq_add_relaxed(&w->board->next, 1);
    body_write(bytes, length, number);
    struct iovec piece = {.iov_base = bytes, .iov_len = length};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = length};
    shmq_status status;
    if (kind == 6) { /* a loan: written in place, then put */
        status = shmq_take_block(w->q, length, 0, &(shmq_relief){0}, &o.block);
        if (status == SHMQ_OK) {
            body_write(shmq_at(w->m, o.block.offset), length, number);
        }
    } else {
        status = SHMQ_OK;
    }
    uint64_t until = wait_ns != 0 ? shmq_now_ns() + wait_ns : 0;
    status = status == SHMQ_OK ? shmq_put(w->q, &o, until) : status;
    if (status != SHMQ_OK) {
        CHECK(status == SHMQ_FULL_COUNT || status == SHMQ_FULL_RING || status == SHMQ_FULL_MEMORY ||
              status == SHMQ_INTERRUPTED);
        shmq_unprepare(w->q, &o);
        shmq_add_relaxed(&w->board->blocked, 1);
        note_settled(w, number); /* never was there */
    }
}

static inline void worker_put_some(member_worker *w) {
    unsigned char bytes[4][64];
    struct iovec pieces[4];
    shmq_outgoing o[4];
    uint64_t first = shmq_add_relaxed(&w->board->next, 4);
    CHECK(first + 4 < BOARD_MESSAGES);
    for (uint32_t i = 0; i < 4; i++) {
        body_write(bytes[i], sizeof bytes[i], first + i);
        pieces[i] = (struct iovec){.iov_base = bytes[i], .iov_len = sizeof bytes[i]};
        o[i] = (shmq_outgoing){.pieces = &pieces[i], .piece_count = 1, .body_len = sizeof bytes[i]};
        CHECK_EQUAL(shmq_prepare(w->q, &o[i], 0), SHMQ_OK);
    }
    uint32_t done = 0;
    (void)shmq_put_some(w->q, o, 4, &done);
    for (uint32_t i = done; i < 4; i++) {
        note_settled(w, first + i);
    }
}

static inline uint32_t worker_owner(const member_worker *w) {
    return w->consumer_row != 0 ? w->consumer_row : shmq_self(w->q);
}

static inline void worker_settle(member_worker *w, shmq_delivery *d) {
    uint64_t number = body_check(d->bytes, d->body_len);
    if (shmq_settle(w->q, d) == SHMQ_OK) {
        note_settled(w, number);
    }
}

static inline shmq_copied copy_body(void *to, const shmq_queue *q, const shmq_delivery *d) {
    (void)q;
    if (d->body == 0) {
        copy_racing(to, d->bytes, d->body_len);
    } else {
        memcpy(to, d->bytes, d->body_len < INLINE_ROOM ? d->body_len : INLINE_ROOM);
        (void)body_check(d->bytes, d->body_len);
    }
    return SHMQ_COPIED;
}

static inline void worker_get(member_worker *w) {
    unsigned char copy[INLINE_ROOM];
    shmq_delivery d;
    const shmq_getting g = {.contents = 256, .copy = copy_body, .to = copy};
    shmq_status status = shmq_get(w->q, &g, &d);
    if (status == SHMQ_POISONED) {
        worker_settle(w, &d);
    } else if (status == SHMQ_OK) {
        uint64_t number;
        memcpy(&number, copy, sizeof number);
        note_settled(w, d.body == 0 ? body_check(copy, d.body_len) : number);
    }
}

static inline bool worker_receive(member_worker *w, uint64_t wait_ns) {
    shmq_delivery *d = &w->held[w->held_count];
    if (w->held_count == TRAFFIC_HELD) {
        return false;
    }
    const shmq_taking t = {.owner = worker_owner(w),
                           .row = wait_ns != 0 ? w->consumer_row : 0,
                           .until_ns = wait_ns != 0 ? shmq_now_ns() + wait_ns : 0};
    shmq_status status = shmq_receive(w->q, &t, d);
    if (status != SHMQ_OK && status != SHMQ_POISONED) {
        CHECK_EQUAL(status, SHMQ_EMPTY);
        return false;
    }
    (void)body_check(d->bytes, d->body_len);
    if (shmq_word_tag(d->word) > 1) {
        shmq_add_relaxed(&w->board->redelivered, 1);
    }
    w->held_count++;
    return true;
}

static inline void worker_outcome(member_worker *w) {
    if (w->held_count == 0) {
        return;
    }
    uint32_t at = (uint32_t)(worker_random(w) % w->held_count);
    shmq_delivery d = w->held[at];
    w->held[at] = w->held[--w->held_count];
    shmq_add_relaxed(&w->board->carried,
                     shmq_word_carried(shmq_load_seq(&shmq_slot_at(&w->q->first, d.position)->word)));
    switch (worker_random(w) % 6) {
    case 0:
        (void)shmq_release(w->q, &d, false);
        break;
    case 1:
        (void)shmq_release(w->q, &d, true);
        break;
    case 2:
        (void)shmq_lock(w->q, &d);
        worker_settle(w, &d);
        break;
    default:
        worker_settle(w, &d);
        break;
    }
}

/* A view outlives the delivery: its bytes stay while others use the slot again. */
static inline void worker_view(member_worker *w) {
    if (w->view_count == TRAFFIC_VIEWS || w->held_count == 0) {
        if (w->view_count != 0) {
            held_view *v = &w->views[--w->view_count];
            CHECK_EQUAL(body_check(v->bytes, v->length), v->number);
            shmq_block_unpin(w->m, v->pin, v->length);
        }
        return;
    }
    shmq_delivery *d = &w->held[w->held_count - 1];
    held_view *v = &w->views[w->view_count];
    if (d->body != 0 && shmq_block_pin(w->m, shmq_body_offset(d->body), d->body_gen, d->body_len, &v->pin)) {
        v->number = body_check(d->bytes, d->body_len);
        v->length = d->body_len;
        v->bytes = d->bytes;
        w->view_count++;
        shmq_add_relaxed(&w->board->viewed, 1);
    }
}

static inline void worker_browse(member_worker *w) {
    uint64_t position = 0;
    unsigned char copy[INLINE_ROOM];
    for (int i = 0; i < 20; i++) {
        shmq_delivery d;
        if (shmq_browse(&w->q->first, &position, &d) != SHMQ_OK) {
            return;
        }
        if (d.body == 0) {
            copy_racing(copy, d.bytes, d.body_len);
            if (shmq_browse_valid(&w->q->first, &d)) {
                (void)body_check(copy, d.body_len);
                shmq_add_relaxed(&w->board->browsed, 1);
            }
        }
        position++;
    }
}

static inline bool nobody_is_dead(void *context, uint32_t row) {
    (void)context, (void)row;
    return false;
}

static inline uint32_t all_are_named(void *context, uint64_t offset, uint32_t generation) {
    (void)context, (void)offset, (void)generation;
    return UINT32_MAX;
}

static inline void worker_look(member_worker *w) {
    shmq_census census;
    uint64_t where;
    shmq_block_usage usage;
    switch (worker_random(w) % 5) {
    case 0:
        shmq_ring_census(w->q, &census);
        break;
    case 1:
        CHECK(shmq_ring_fault(&w->q->first, &where) == NULL);
        break;
    case 2:
        (void)shmq_blocks_sweep(w->m, nobody_is_dead, all_are_named, NULL);
        break;
    case 3:
        CHECK(shmq_blocks_fault(w->m) == NULL);
        shmq_blocks_usage(w->m, &usage);
        break;
    default:
        (void)shmq_ring_ready(w->q);
        break;
    }
}

/* A claim as put makes it, with its place in the count; NULL: the slot under the tail is not free. */
static inline shmq_slot_shm *worker_claim(member_worker *w) {
    shmq_ring_shm *ring = w->q->first.shm;
    uint64_t t = shmq_load_seq(&ring->tail);
    shmq_slot_shm *slot = shmq_slot_at(&w->q->first, t);
    uint64_t word = shmq_load_seq(&slot->word);
    uint64_t claimed = shmq_word(shmq_lap_of(&w->q->first, t), 0, shmq_self(w->q), 0, SHMQ_CLAIMED);
    bool limited = shmq_load_seq(&w->q->page->maxsize) != 0;
    if (limited) {
        shmq_moving(w->q, 1);
    }
    bool free = shmq_word_state(word) == SHMQ_FREE && shmq_word_lap(word) == shmq_lap_of(&w->q->first, t);
    bool counted = free && limited && shmq_count_take(w->q, 1);
    bool done = free && counted == limited && shmq_cas_seq(&slot->word, word, claimed);
    if (counted && !done) {
        shmq_count_give(w->q, 1);
    }
    if (limited) {
        shmq_moving(w->q, -1);
    }
    if (!done) {
        return NULL;
    }
    shmq_cas_seq(&ring->tail, t, t + 1);
    if (shmq_word_carried(word)) {
        shmq_and_seq(&w->q->first.carried[(t & w->q->first.mask) >> 6], ~(UINT64_C(1) << (t & 63)));
    }
    return slot;
}

/* Claims like a put, stands still until others have made a hole of it, and cleans up behind itself. */
static inline void worker_stand_still(member_worker *w) {
    shmq_slot_shm *slot = worker_claim(w);
    if (slot == NULL) {
        return;
    }
    uint64_t until = shmq_now_ns() + 20 * w->m->patience_ns, word;
    while (shmq_word_state(shmq_load_seq(&slot->word)) == SHMQ_CLAIMED && shmq_now_ns() < until) {
        usleep(1000);
    }
    do {
        word = shmq_load_seq(&slot->word);
        CHECK(shmq_word_state(word) == SHMQ_CLAIMED || shmq_word_state(word) == SHMQ_QUARANTINED);
        CHECK_EQUAL(shmq_word_owner(word), shmq_self(w->q));
    } while (!shmq_slot_free(&w->q->first, slot, word));
    shmq_add_relaxed(&w->board->holes, shmq_word_state(word) == SHMQ_QUARANTINED);
}

static inline void worker_rows(member_worker *w) {
    uint32_t row;
    if (shmq_row_open(w->q, SHMQ_CONSUMER, &row) == SHMQ_OK) {
        shmq_row_closing(w->q, row);
        CHECK(shmq_row_close(w->q, row) == SHMQ_OK || true); /* interrupted: the row goes with the member */
    }
}

static inline void worker_step(member_worker *w) {
    uint64_t kind = worker_random(w) % 1000;
    shmq_add_relaxed(&w->board->steps, 1);
    if (kind < 380) {
        worker_put(w, kind < 20 ? 2000000 : 0);
    } else if (kind < 410) {
        worker_put_some(w);
    } else if (kind < 560) {
        worker_get(w);
    } else if (kind < 720) {
        (void)worker_receive(w, kind < 580 ? 2000000 : 0);
    } else if (kind < 890) {
        worker_outcome(w);
    } else if (kind < 950) {
        worker_view(w);
    } else if (kind < 980) {
        worker_browse(w);
    } else if (kind < 990) {
        worker_look(w);
    } else if (kind < 994) {
        worker_rows(w);
    } else if (kind < 997) {
        uint32_t reaped;
        (void)shmq_reap_dead(w->m, &reaped);
    } else if (kind < 998) {
        worker_stand_still(w);
    }
}

/* Everything that it holds goes back or is settled. */
static inline void worker_finish(member_worker *w) {
    while (w->held_count != 0) {
        worker_outcome(w);
    }
    while (w->view_count != 0) {
        held_view *v = &w->views[--w->view_count];
        CHECK_EQUAL(body_check(v->bytes, v->length), v->number);
        shmq_block_unpin(w->m, v->pin, v->length);
    }
}

/* Hand over at once: producers only put, consumers only take, and hardly anything lies in between. Order that a publish
 * or a settlement fails to make does not come by chance then, by some other word that both have touched since. */
static inline void worker_hand_over(member_worker *w, bool produces) {
    shmq_add_relaxed(&w->board->steps, 1);
    if (produces) {
        uint64_t head = shmq_load_relaxed(&w->q->first.shm->head) & SHMQ_POSITION_MASK;
        if (shmq_load_relaxed(&w->q->first.shm->tail) - head < 4) {
            worker_put(w, 0);
        } else {
            sched_yield();
        }
        return;
    }
    if (worker_receive(w, 0)) {
        worker_view(w);
        worker_outcome(w);
    } else {
        worker_get(w);
    }
}

#endif
