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
                     shmq_word_lap(word) == shmq_lap_of(&ring_queues[0]->first, board.put_position[number] - 1) &&
                     shmq_word_tag(word) == board.released_tag[number]; /* by that release, not by a later one */
        if (there && board.released_at[number] != 0 && board.released_at[number] < decided) {
            weak_fail("entry %llu is offered although entry %llu had been released before",
                      (unsigned long long)d->position, (unsigned long long)(board.put_position[number] - 1));
        }
    }
}

/* Where it decided is its last look at the epoch: nothing of a receive looks there behind that. */
static bool take_one(int t, shmq_delivery *d) {
    shmq_queue *q = ring_queues[t];
    if (!ring_receive(q, shmq_self(q), 0, d)) {
        return false;
    }
    check_nothing_is_passed(t, d, weak_last_look(&q->first.shm->epoch));
    return true;
}

static void release_both(int t, shmq_delivery *first, shmq_delivery *second) {
    bool in_order = first->position < second->position;
    shmq_delivery *all[2] = {in_order ? first : second, in_order ? second : first};
    uint64_t numbers[2] = {ring_read(all[0]), ring_read(all[1])};
    shmq_release_all(ring_queues[t], all, 2);
    for (int i = 0; i < 2; i++) {
        board.released_at[numbers[i]] = weak_event();
        board.released_tag[numbers[i]] = all[i]->tag;
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
        if (!take_one(t, &d)) {
            weak_yield();
            continue;
        }
        uint64_t number = ring_read(&d);
        shmq_delivery next;
        if (weak_chance(64) && take_one(t, &next)) {
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
