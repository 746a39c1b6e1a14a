/* Messages move from one queue to another while a mover dies anywhere: each is in one of them, once; and when a move has
 * returned, nobody gets a later entry of the other queue first. */
#include "put/move.h"
#include "queue/cold.h"
#include "recovery/recover.h"
#include "small_ring.h"

#define MESSAGES 7u

static uint64_t moved_to[MESSAGES], moved_at[MESSAGES]; /* + 1; the event at which the move had returned */

static void set_up(void) {
    ring_set_up_two();
    CHECK_EQUAL(shmq_cold_need(&ring_others[0]->first), SHMQ_OK);
}

static void begin(void) {
    ring_begin();
    for (uint32_t i = 0; i < MESSAGES; i++) {
        moved_to[i] = 0;
    }
    if (weak_chance(128)) {
        weak_die_somewhere(1, ring_members[1]->row);
    }
}

static bool has_died(void *context, uint32_t row) {
    (void)context;
    return weak_is_dead(row);
}

static shmq_status look_at_source(void *context, uint64_t intent, uint64_t place, uint32_t owner, bool *there) {
    const int *t = context;
    *there = shmq_move_source(ring_queues[*t], intent, place, owner);
    return SHMQ_OK;
}

/* In the order of a reaper: what was decided first, then what is given back. */
static void reap(int t) {
    shmq_liveness l = {.is_dead = has_died, .context = NULL};
    WEAK_CHECK(shmq_moves_decide(ring_others[t], &l, look_at_source, &t) == SHMQ_OK);
    shmq_ring_recover(ring_queues[t], &l);
    shmq_ring_recover(ring_others[t], &l);
}

static void move_one(int t) {
    shmq_queue *from = ring_queues[t], *to = ring_others[t];
    shmq_delivery d;
    if (!ring_receive(from, shmq_self(from), 0, &d)) {
        return;
    }
    uint64_t body[BODY_WORDS], number = ring_read(&d);
    ring_body(body, number);
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    shmq_status status = shmq_move(from, &d, to, &o);
    WEAK_CHECK(status == SHMQ_OK || status == SHMQ_FULL_RING);
    if (status == SHMQ_OK) {
        moved_to[number] = o.made.position + 1;
        moved_at[number] = weak_event();
    } else {
        WEAK_CHECK(shmq_release(from, &d, false) == SHMQ_OK);
    }
}

/* Entries of the other queue before this one that nobody has touched since their moves returned; as they are, without a
 * step. */
static void check_nothing_is_passed(shmq_queue *q, const shmq_delivery *d, uint64_t decided) {
    for (uint64_t number = 0; number < MESSAGES; number++) {
        uint64_t word, position = moved_to[number] - 1;
        if (moved_to[number] == 0 || position >= d->position || moved_at[number] >= decided) {
            continue;
        }
        __builtin_memcpy(&word, (const void *)&shmq_slot_at(&q->first, position)->word, 8);
        if (shmq_word_state(word) == SHMQ_AVAILABLE && shmq_word_lap(word) == shmq_lap_of(&q->first, position) &&
            shmq_word_tag(word) == 0) {
            weak_fail("entry %llu is offered although %llu was moved before", (unsigned long long)d->position,
                      (unsigned long long)position);
        }
    }
}

static void look_at_offered(shmq_queue *q, const shmq_delivery *d) {
    if (weak_running && q->index == ring_others[0]->index) {
        check_nothing_is_passed(q, d, weak_last_look(&q->first.shm->epoch));
    }
}

static bool take_one(shmq_queue *q) { return ring_get_until(q, 0, look_at_offered) != UINT64_MAX; }

static void thread(int t) {
    if (t == 0) {
        for (uint64_t i = 0; i < MESSAGES; i++) {
            while (!ring_put(t, i, 0)) {
                weak_yield();
            }
        }
        return;
    }
    bool reaped = false;
    for (int i = 0; i < 12 || (t == 3 && board.total < MESSAGES); i++) {
        if (t < 3) {
            move_one(t);
        } else {
            (void)take_one(ring_others[t]);
            (void)(t == 3 && i % 4 == 3 &&
                   take_one(ring_queues[t])); /* else nobody makes room when the movers have ended */
            if (t == 3 && !reaped && weak_is_dead(ring_members[1]->row)) {
                reap(t);
                reaped = true;
            }
        }
        if (weak_chance(64)) {
            weak_yield();
        }
    }
}

static void end(void) {
    reap(0);
    while (take_one(ring_queues[0]) || take_one(ring_others[0])) {
    }
    ring_check_got(0, MESSAGES);
    ring_check_words();
}

const weak_scenario weak_move = {"move", "moves, and the death of a mover", 5, false, set_up, begin, thread, end};
