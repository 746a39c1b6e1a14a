/* Levels of priority: nobody gets a less important message that was put, or given back, after a more important one was
 * there for all. Shows S35, S37. */
#include "small_ring.h"

#define EACH 4u

/* By message: when its put or its release began, and had returned; 0: not yet. */
static uint64_t began[2 * EACH], returned[2 * EACH];
static uint32_t tags[2 * EACH]; /* of the delivery that ended so; 0: it was put */

static void set_up(void) { ring_set_up_levels(2); }

static void begin(void) {
    ring_begin();
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        began[i] = returned[i] = tags[i] = 0;
    }
}

static bool is_high(uint64_t number) { return number % 2 == 1; }

static bool put(int t, uint64_t number) {
    uint64_t body[BODY_WORDS];
    ring_body(body, number);
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {
        .pieces = &piece, .piece_count = 1, .body_len = sizeof body, .priority = is_high(number) ? 9 : 0};
    began[number] = weak_event();
    if (shmq_put(ring_queues[t], &o, 0) != SHMQ_OK) {
        return false;
    }
    board.put_position[number] = o.made.position;
    returned[number] = weak_event();
    board.total++;
    return true;
}

/* As it is, without a step. */
static bool is_untouched(uint64_t number) {
    shmq_ring *high = shmq_level(ring_queues[0], 0);
    uint64_t word, position = board.put_position[number];
    __builtin_memcpy(&word, (const void *)&shmq_slot_at(high, position)->word, 8);
    return shmq_word_state(word) == SHMQ_AVAILABLE && shmq_word_lap(word) == shmq_lap_of(high, position) &&
           shmq_word_tag(word) == tags[number];
}

/* This one was received by a call that began then. */
static void check_nothing_above(uint64_t number, uint64_t call_began) {
    uint64_t since = began[number] > call_began ? began[number] : call_began;
    for (uint64_t high = 1; high < 2 * EACH; high += 2) {
        if (returned[high] != 0 && returned[high] < since && is_untouched(high)) {
            weak_fail("message %llu is offered although %llu was there before", (unsigned long long)number,
                      (unsigned long long)high);
        }
    }
}

static bool take_one(int t, bool may_release) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    uint64_t call_began = weak_event();
    if (!ring_receive(q, shmq_self(q), 0, &d)) {
        return false;
    }
    uint64_t number = ring_read(&d);
    if (!is_high(number)) {
        check_nothing_above(number, call_began);
    }
    if (may_release && weak_chance(80)) {
        began[number] = weak_event();
        returned[number] = 0;
        WEAK_CHECK(shmq_release(q, &d, false) == SHMQ_OK);
        tags[number] = d.tag;
        returned[number] = weak_event();
    } else if (shmq_settle(q, &d) == SHMQ_OK) {
        ring_note_got(number);
    }
    return true;
}

static void thread(int t) {
    if (t < 2) {
        for (uint64_t i = 0; i < EACH; i++) {
            while (!put(t, (uint64_t)t * EACH + i)) {
                weak_yield();
            }
        }
        return;
    }
    for (int idle = 0; idle < 3;) {
        idle = take_one(t, true) ? 0 : idle + (board.total == 2 * EACH);
        weak_yield();
    }
}

static void end(void) {
    while (take_one(0, false)) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_levels = {"levels", "the more important first", 4, false, set_up, begin, thread, end};
