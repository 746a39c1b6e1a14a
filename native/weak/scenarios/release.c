/* release: once it has returned, nobody gets a later entry first. A taker's get happens where it looks at the epoch. Shows S2, R1. */
#include "small_ring.h"

#define MESSAGES 7u

static void set_up(void) { ring_set_up(0); }

static void begin(void) { ring_begin(); }

/* Entries before this one that were there for everybody when the taker decided: released before, and taken by nobody. */
static void check_nothing_is_passed(int t, const shmq_delivery *d, uint64_t decided) {
    (void)t;
    for (uint64_t number = 0; number < MESSAGES; number++) {
        if (board.put_position[number] == 0 || board.put_position[number] - 1 >= d->position) {
            continue;
        }
        shmq_slot_shm *slot = shmq_slot_at(&ring_queues[0]->first, board.put_position[number] - 1);
        uint64_t word;
        __builtin_memcpy(&word, (const void *)&slot->word, 8); /* as it is, without a step */
        bool there = shmq_word_state(word) == SHMQ_AVAILABLE &&
                     shmq_word_lap(word) == shmq_turn(&ring_queues[0]->first, board.put_position[number] - 1) &&
                     shmq_word_tag(word) == board.released_tag[number]; /* by that release, not by a later one */
        if (there && board.released_at[number] != 0 && board.released_at[number] < decided) {
            weak_fail("entry %llu is offered although entry %llu had been released before",
                      (unsigned long long)d->position, (unsigned long long)(board.put_position[number] - 1));
        }
    }
}

/* The one in hand, and another one that was just offered, if we get it. */
static void release_both(int t, shmq_delivery *first, shmq_delivery *second) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery *all[2] = {first, second};
    uint32_t count = 1;
    uint64_t numbers[2] = {ring_read(first)};
    check_nothing_is_passed(t, second, weak_last_look(&q->first.shm->epoch));
    shmq_status status = shmq_offer_acquire(q, second);
    if (status == SHMQ_OK || status == SHMQ_POISONED) {
        numbers[count++] = ring_read(second);
    }
    if (count == 2 && second->position < first->position) {
        all[0] = second;
        all[1] = first;
    }
    shmq_release_all(q, all, count);
    board.released_at[numbers[0]] = weak_event();
    board.released_tag[numbers[0]] = first->tag;
    if (count == 2) {
        board.released_at[numbers[1]] = board.released_at[numbers[0]];
        board.released_tag[numbers[1]] = second->tag;
    }
}

static void thread(int t) {
    shmq_queue *q = ring_queues[t];
    if (t == 0) {
        for (uint64_t number = 0; number < MESSAGES; number++) {
            while (!ring_put(t, number, 0)) {
                weak_yield();
            }
        }
        return;
    }
    for (int tries = 0; tries < 12 || board.total < MESSAGES; tries++) {
        shmq_delivery d;
        if (shmq_offer(q, shmq_self(q), &d) != SHMQ_OK) {
            weak_yield();
            continue;
        }
        check_nothing_is_passed(t, &d, weak_last_look(&q->first.shm->epoch));
        shmq_status status = shmq_offer_acquire(q, &d);
        if (status != SHMQ_OK && status != SHMQ_POISONED) {
            continue;
        }
        uint64_t number = ring_read(&d);
        shmq_delivery next;
        if (weak_chance(64) && shmq_offer(q, shmq_self(q), &next) == SHMQ_OK) {
            release_both(t, &d, &next);
        } else if (weak_chance(160)) {
            WEAK_CHECK(shmq_release(q, &d, weak_chance(128)) == SHMQ_OK);
            board.released_at[number] = weak_event();
            board.released_tag[number] = d.tag;
        } else if (shmq_settle(q, &d) == SHMQ_OK) {
            ring_note_got(number);
        }
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, MESSAGES);
    ring_check_words();
}

const weak_scenario weak_release = {"release", "release turns the head back", 4, false, set_up, begin, thread, end};
