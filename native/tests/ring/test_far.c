/* After more messages than any test can send: laps of 32 bits and positions of 44 begin with 0 again. A process that
 * was away meanwhile, or comes then for the first time, finds the entries that are there. Shows G1. */
#include "wake/watch.h"
#include "../killstep/ring_place.h"
#include "scratch_queue.h"

#define LAPS(count) ((uint64_t)(count) * 1024)
#define LAPS_BEGIN_AGAIN LAPS(UINT64_C(1) << 32)
#define POSITIONS_BEGIN_AGAIN (SHMQ_POSITION_MASK + 1)

static shmq_member *m;
static shmq_queue *q;

static void begin_with(uint64_t maxsize, uint64_t position) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", maxsize, true);
    CHECK_EQUAL(shmq_slot_count(&q->first), maxsize);
    ring_place(&q->first, position, 0);
}

static void begin(uint64_t position) { begin_with(1024, position); }

static void end(void) {
    check_ring(q);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_queue_unbind(q);
    shmq_member_leave(m, true);
    scratch_remove();
}

static uint64_t take(shmq_subscription *s) {
    shmq_delivery d;
    shmq_status status = shmq_offer_to(q, shmq_self(q), s, &d);
    if (status != SHMQ_OK) {
        CHECK_EQUAL(status, SHMQ_EMPTY);
        return UINT64_MAX;
    }
    CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
    uint64_t number = number_of(&d);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    return number;
}

static void put_some(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
}

/* How much has gone by before it: half and all of the laps, half and all of the positions, a little less or more. */
static const uint64_t far[] = {
    LAPS_BEGIN_AGAIN / 2 - 5,      LAPS_BEGIN_AGAIN / 2 + 5,      LAPS_BEGIN_AGAIN - 5,      LAPS_BEGIN_AGAIN + 5,
    POSITIONS_BEGIN_AGAIN / 2 - 5, POSITIONS_BEGIN_AGAIN / 2 + 5, POSITIONS_BEGIN_AGAIN - 5, POSITIONS_BEGIN_AGAIN + 5,
};
#define FAR (sizeof far / sizeof far[0])

/* Shows S2, S23. */
static void order_is_kept_where_numbers_begin_again(void) {
    for (unsigned i = 0; i < FAR; i++) {
        begin(far[i]);
        put_some(0, 1024);
        CHECK_EQUAL(put_number(q, 1024), SHMQ_FULL_COUNT);
        for (uint64_t n = 0; n < 1024; n++) {
            CHECK_EQUAL(get_number(q), n);
        }
        CHECK_EQUAL(get_number(q), UINT64_MAX);
        end();
    }
}

static void a_taker_of_some_that_comes_now_finds_what_it_wants(void) {
    for (unsigned i = 0; i < FAR; i++) {
        begin(far[i]);
        shmq_subscription s;
        shmq_subscription_begin(&s, wants_even, NULL);
        put_some(1, 9);
        for (uint64_t n = 2; n < 10; n += 2) {
            CHECK_EQUAL(take(&s), n);
        }
        CHECK_EQUAL(take(&s), UINT64_MAX);
        shmq_subscription_end(&s);
        end();
    }
}

/* Older than a lap, too. */
static void a_taker_of_some_finds_what_was_carried(void) {
    for (unsigned i = 0; i < FAR; i++) {
        begin(far[i]);
        shmq_subscription s;
        shmq_subscription_begin(&s, wants_even, NULL);
        put_some(1, 2);
        shmq_delivery taken[2];
        taken[0] = receive(q, shmq_self(q));
        taken[1] = receive(q, shmq_self(q));
        for (uint64_t n = 0; n < 3000; n++) {
            CHECK_EQUAL(put_number(q, n), SHMQ_OK);
            CHECK_EQUAL(get_number(q), n);
        }
        CHECK_EQUAL(take(&s), UINT64_MAX);
        for (unsigned k = 0; k < 2; k++) {
            CHECK_EQUAL(shmq_release(q, &taken[k], false), SHMQ_OK);
        }
        CHECK_EQUAL(take(&s), 2);
        CHECK_EQUAL(take(&s), UINT64_MAX);
        CHECK_EQUAL(get_number(q), 1);
        shmq_subscription_end(&s);
        end();
    }
}

/* All that this process knows of the queue is from before. In rings of more than 4,096 slots laps tell that it was away, in
 * others the position of what it finds. Shows S2. */
static void one_that_was_away_for_long_takes_in_order(void) {
    for (unsigned i = 0; i < 2 * FAR; i++) {
        begin_with(i < FAR ? 1024 : 8192, far[i % FAR]);
        put_some(1, 3);
        shmq_store_relaxed(&q->first.near, 0);
        for (uint64_t n = 1; n <= 3; n++) {
            CHECK_EQUAL(get_number(q), n);
        }
        CHECK_EQUAL(get_number(q), UINT64_MAX);
        end();
    }
}

static void what_one_that_was_away_for_long_gives_back_is_first_again(void) {
    for (unsigned i = 0; i < FAR; i++) {
        begin(far[i]);
        put_some(1, 3);
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK_EQUAL(get_number(q), 2);
        uint64_t now = shmq_load_relaxed(&q->first.near);
        shmq_store_relaxed(&q->first.near, 0);
        CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
        shmq_store_relaxed(&q->first.near, now);
        CHECK_EQUAL(get_number(q), 1);
        CHECK_EQUAL(get_number(q), 3);
        end();
    }
}

static uint64_t behind_the_tail(void) {
    return (shmq_load_seq(&q->first.shm->tail) - shmq_load_seq(&q->first.shm->head)) & SHMQ_POSITION_MASK;
}

/* They have cursors of their own and never move it; else it would be further behind one day than 44 bits can say. */
static void the_head_does_not_stay_behind_where_all_take_some(void) {
    begin(0);
    shmq_subscription s;
    shmq_subscription_begin(&s, wants_all, NULL);
    put_some(0, 1); /* in slot 0 for ever: the first place of each lap is nobody's */
    shmq_delivery taken;
    CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &taken), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(q, &taken), SHMQ_OK);
    for (uint64_t n = 1; n < 6000; n++) {
        CHECK_EQUAL(put_number(q, n), SHMQ_OK);
        CHECK_EQUAL(take(&s), n);
        CHECK(behind_the_tail() <= 2048 + 1);
    }
    CHECK_EQUAL(shmq_release(q, &taken, false), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 0);
    shmq_subscription_end(&s);
    end();
}

static void the_head_does_not_stay_behind_where_nobody_takes(void) {
    scratch_create(false);
    m = scratch_attach();
    shmq_declaration d = {
        .given = 1u << SHMQ_SET_OVERFLOW, .overflow = SHMQ_OVERFLOW_DROP_OLDEST, .checksum = true, .create = true};
    q = scratch_declare(m, "jobs", d, 10);
    for (uint64_t n = 0; n < 6000; n++) {
        CHECK_EQUAL(put_number(q, n), SHMQ_OK);
        CHECK(behind_the_tail() <= 2048 + 1);
    }
    for (uint64_t n = 5990; n < 6000; n++) {
        CHECK_EQUAL(get_number(q), n);
    }
    end();
}

/* A consumer that looks whether there is anything begins at the head, which says nothing of what is older than a lap. Shows
 * S2. Shows G1. */
static void what_comes_back_from_laps_ago_is_there_for_who_looks(void) {
    begin(0);
    put_some(0, 1);
    shmq_delivery taken = receive(q, shmq_self(q));
    for (uint64_t n = 1; n < 3000; n++) {
        CHECK_EQUAL(put_number(q, n), SHMQ_OK);
        CHECK_EQUAL(get_number(q), n);
    }
    CHECK(!shmq_ring_ready(q));
    CHECK_EQUAL(shmq_release(q, &taken, false), SHMQ_OK);
    CHECK(shmq_ring_ready(q));
    CHECK_EQUAL(get_number(q), 0);
    CHECK(!shmq_ring_ready(q));
    end();
}

/* Somebody has held it while the ring went round so often. Shows S2. */
static void what_was_held_for_so_long_is_first(uint64_t laps, bool by_cursor) {
    begin(0);
    shmq_subscription s;
    shmq_subscription_begin(&s, wants_all, NULL);
    put_some(7, 1);
    shmq_delivery taken = receive(q, shmq_self(q));
    shmq_slot_shm *slot = shmq_slot_at(&q->first, taken.position);
    uint64_t word = shmq_load_seq(&slot->word), now = LAPS(laps) + 1;
    ring_place(&q->first, now, 0);
    shmq_store_seq(&slot->word, shmq_word(shmq_lap_of(&q->first, now), shmq_word_tag(word), shmq_word_owner(word),
                                          SHMQ_FLAG_CARRIED, shmq_word_state(word)));
    shmq_or_seq(&q->first.carried[0], UINT64_C(1) << taken.position);
    check_ring(q);
    put_some(8, 1000);
    CHECK_EQUAL(by_cursor ? take(&s) : get_number(q), 8);
    CHECK_EQUAL(shmq_release(q, &taken, false), SHMQ_OK);
    CHECK_EQUAL(by_cursor ? take(&s) : get_number(q), 7);
    CHECK_EQUAL(by_cursor ? take(&s) : get_number(q), 9);
    shmq_subscription_end(&s);
    end();
}

/* One flipped bit of the head leads to a position of which a slot's lap may say that it is there. No message is lost by that,
 * and who takes is told once. */
static void a_damaged_head_harms_no_message(void) {
    for (unsigned i = 0; i < FAR * SHMQ_POSITION_BITS; i++) {
        begin_with(i % 2 == 0 ? 1024 : 8192, far[i / SHMQ_POSITION_BITS]);
        put_some(1, 3);
        uint64_t head = shmq_load_seq(&q->first.shm->head), bit = UINT64_C(1) << i % SHMQ_POSITION_BITS;
        CHECK(shmq_cas_seq(&q->first.shm->head, head, head ^ bit));
        uint64_t told = 0;
        for (uint64_t n = 1; n <= 3;) {
            shmq_delivery d;
            shmq_status status = shmq_offer(q, shmq_self(q), &d);
            if (status == SHMQ_CORRUPT) {
                CHECK(++told <= 1);
                continue;
            }
            if (status == SHMQ_EMPTY) { /* up to a lap ahead no slot says that anything is wrong */
                CHECK((head & bit) == 0 && bit <= shmq_slot_count(&q->first));
                break;
            }
            CHECK_EQUAL(status, SHMQ_OK);
            CHECK(number_of(&d) >= n);
            n = number_of(&d) + 1;
            CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
        }
        CHECK_EQUAL(shmq_load_seq(&m->header->damage), told);
        shmq_queue_unbind(q);
        shmq_member_leave(m, true);
        scratch_remove();
    }
}

/* ---- under load ------------------------------------------------------------------------------------------------------ */

enum { PRODUCERS = 2, TAKERS = 3, EACH = 20000 };

typedef struct board {
    shmq_a64 taken;
    shmq_a32 times[PRODUCERS][EACH];
} board;

static void produce(uint64_t producer) {
    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t number = producer << 32 | i;
        CHECK_EQUAL(put_patiently(q, &number, sizeof number, shmq_now_ns() + 60 * SECOND), SHMQ_OK);
    }
}

/* The first two take whatever comes, by the head; the others what they want, by a path: everything. */
static void take_all(board *b, unsigned number) {
    uint64_t last[PRODUCERS] = {0};
    shmq_subscription s;
    shmq_subscription_begin(&s, wants_all, NULL);
    while (shmq_load_seq(&b->taken) < PRODUCERS * EACH) {
        shmq_delivery d;
        shmq_status status =
            shmq_offer_wait_to(q, shmq_self(q), number < 2 ? NULL : &s, 0, shmq_now_ns() + SECOND / 100, &d);
        if (status == SHMQ_EMPTY) {
            continue;
        }
        CHECK_EQUAL(status, SHMQ_OK);
        uint64_t value = number_of(&d), producer = value >> 32, i = value & UINT32_MAX;
        if (shmq_offer_finish(q, &d) != SHMQ_OK) {
            continue;
        }
        CHECK(producer < PRODUCERS && i < EACH);
        CHECK(i + 1 > last[producer]);
        last[producer] = i + 1;
        shmq_add_seq(&b->times[producer][i], 1);
        shmq_add_seq(&b->taken, 1);
    }
    shmq_subscription_end(&s);
}

/* Each process its own member; the numbers begin again in the midst of it. Shows S2, S23, G1. */
static void all_are_taken_once_and_in_order_while_numbers_begin_again(void) {
    begin(POSITIONS_BEGIN_AGAIN - PRODUCERS * EACH / 2);
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(b != MAP_FAILED);
    pid_t children[PRODUCERS + TAKERS];
    for (unsigned i = 0; i < PRODUCERS + TAKERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            m = scratch_attach();
            q = scratch_queue(m, "jobs", 1024, true);
            if (i < PRODUCERS) {
                produce(i);
            } else {
                take_all(b, i - PRODUCERS);
            }
            _exit(0);
        }
    }
    for (unsigned i = 0; i < PRODUCERS + TAKERS; i++) {
        int status = 0;
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK_EQUAL(status, 0);
    }
    for (unsigned i = 0; i < PRODUCERS * EACH; i++) {
        CHECK_EQUAL(shmq_load_seq(&b->times[i / EACH][i % EACH]), 1);
    }
    CHECK(shmq_load_seq(&q->first.shm->tail) >= POSITIONS_BEGIN_AGAIN + PRODUCERS * EACH / 2);
    CHECK(behind_the_tail() <= 2048 + 1);
    munmap(b, sizeof *b);
    shmq_reap_now(m);
    end();
}

int main(void) {
    order_is_kept_where_numbers_begin_again();
    a_taker_of_some_that_comes_now_finds_what_it_wants();
    a_taker_of_some_finds_what_was_carried();
    one_that_was_away_for_long_takes_in_order();
    what_one_that_was_away_for_long_gives_back_is_first_again();
    the_head_does_not_stay_behind_where_all_take_some();
    the_head_does_not_stay_behind_where_nobody_takes();
    what_comes_back_from_laps_ago_is_there_for_who_looks();
    for (uint64_t laps = UINT64_C(1) << 30; laps <= UINT64_C(1) << 35; laps += UINT64_C(1) << 30) {
        what_was_held_for_so_long_is_first(laps + 5, false);
        what_was_held_for_so_long_is_first(laps + 5, true);
    }
    a_damaged_head_harms_no_message();
    all_are_taken_once_and_in_order_while_numbers_begin_again();
    return 0;
}
