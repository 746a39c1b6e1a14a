/* The counts that a process keeps are those that a look at every slot finds, whatever was done since, and by whom. This
 * holds after a death between a slot and the word of its stretch, too. Shows G6. */
#include <pthread.h>

#include "ring/stretch.h"
#include "upkeep/duty.h"
#include "scratch_queue.h"

#define SIZE 5000u /* a ring of several stretches */
#define TURNS 40000u
#define HELD 64u

static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

static void put_some(shmq_queue *q, uint64_t *seed) {
    for (uint64_t left = draw(seed, 40); left != 0; left--) {
        uint64_t number = draw(seed, 1000);
        struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
        shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .priority = number % 10};
        o.not_before_ns = number % 7 == 0 ? shmq_now_ns() + draw(seed, 1000000) : 0;
        o.expires_ns = number % 11 == 0 ? shmq_now_ns() + draw(seed, 1000000) : 0;
        shmq_status status = shmq_put(q, &o, 0);
        if (status != SHMQ_OK) {
            shmq_unprepare(q, &o);
        }
    }
}

typedef struct hand {
    shmq_queue *q;
    shmq_delivery of;
} hand;

static void settle_some(hand *hands, uint32_t *held, uint64_t *seed) {
    while (*held != 0 && draw(seed, 3) != 0) {
        uint32_t i = (uint32_t)draw(seed, *held);
        hand h = hands[i];
        hands[i] = hands[--*held];
        switch (draw(seed, 4)) {
        case 0:
            (void)shmq_release(h.q, &h.of, true);
            break;
        case 1:
            (void)shmq_release_until(h.q, &h.of, true, shmq_now_ns() + draw(seed, 1000000));
            break;
        default:
            (void)shmq_settle(h.q, &h.of);
        }
    }
}

static void take_some(shmq_queue *q, hand *hands, uint32_t *held, uint64_t *seed) {
    uint64_t number;
    for (uint64_t left = draw(seed, 40); left != 0; left--) {
        const shmq_taking t = {.owner = shmq_self(q)};
        if (*held < HELD && draw(seed, 4) == 0) {
            hands[*held].q = q;
            *held += shmq_receive(q, &t, &hands[*held].of) == SHMQ_OK;
        } else {
            (void)try_number(q, &number);
        }
    }
}

static void check_mixed(uint64_t seed, uint64_t size, uint32_t levels) {
    scratch_create(false);
    shmq_member *members[] = {scratch_attach(), scratch_attach()};
    shmq_queue *queues[] = {scratch_levels(members[0], "jobs", size, levels),
                            scratch_levels(members[1], "jobs", size, levels)};
    hand hands[HELD];
    uint32_t held = 0;
    uint64_t purged;
    for (uint32_t turn = 0; turn < TURNS / 40; turn++) {
        shmq_queue *q = queues[draw(&seed, 2)];
        uint64_t what = draw(&seed, 100);
        if (what < 45) {
            put_some(q, &seed);
        } else if (what < 85) {
            take_some(q, hands, &held, &seed);
        } else if (what < 98) {
            settle_some(hands, &held, &seed);
        } else if (what < 99) {
            shmq_upkeep_finish(q->m, SHMQ_EVERY_DUTY, NULL);
        } else if (draw(&seed, 10) == 0) {
            CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
        }
        if (!counts_agree(queues[turn % 2])) {
            fprintf(stderr, "after turn %u, what %u\n", turn, (unsigned)what);
            CHECK(false);
        }
    }
    while (held != 0) {
        settle_some(hands, &held, &seed);
    }
    CHECK(counts_agree(queues[0]) && counts_agree(queues[1]));
    for (uint32_t i = 0; i < 2; i++) {
        shmq_queue_unbind(queues[i]);
        CHECK_EQUAL(shmq_member_leave(members[i], true), SHMQ_OK);
        shmq_member_free(members[i]);
    }
    scratch_remove();
}

/* A look that nothing follows asks for no slot; a change in one stretch leaves the others known. */
static void test_only_what_changed_is_looked_at_again(void) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    shmq_queue *q = scratch_queue(m, "jobs", SIZE, true);
    for (uint32_t i = 0; i < 3000; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    CHECK(counts_agree(q));
    uint32_t first = shmq_load_seq(&q->first.stretches[0]), third = shmq_load_seq(&q->first.stretches[2]);
    CHECK_EQUAL(first & third & SHMQ_STRETCH_KNOWN, SHMQ_STRETCH_KNOWN);
    CHECK_EQUAL(get_number(q), 0);
    CHECK_EQUAL(shmq_load_seq(&q->first.stretches[0]), first + 1);
    CHECK_EQUAL(get_number(q), 1);
    CHECK_EQUAL(shmq_load_seq(&q->first.stretches[0]), first + 1); /* nobody has counted since: nothing is written */
    CHECK_EQUAL(shmq_load_seq(&q->first.stretches[2]), third);
    CHECK(counts_agree(q));
    scratch_close(m, q);
    scratch_remove();
}

/* As if it had died right after the CAS that ended its get. */
static void test_a_death_before_the_word_leaves_no_wrong_count(void) {
    scratch_create(false);
    shmq_member *alive = scratch_attach(), *dead = scratch_attach();
    shmq_queue *q = scratch_queue(alive, "jobs", 0, true);
    (void)scratch_queue(dead, "jobs", 0, true);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(counts_agree(q));
    shmq_slot_shm *slot = shmq_slot_at(&q->first, 0);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word_freed(word)));
    CHECK(!counts_agree(q));
    scratch_kill(dead);
    reap_all(alive, 1);
    CHECK(counts_agree(q));
    scratch_close(alive, q);
    scratch_remove();
}

static shmq_queue *met;
static shmq_a32 done;

static void *put_and_get(void *unused) {
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t number;
        CHECK_EQUAL(put_number(met, i), SHMQ_OK);
        if (i % 3 != 0) {
            (void)try_number(met, &number);
        }
    }
    return unused;
}

static void *count_on(void *unused) {
    shmq_census c;
    while (shmq_load_seq(&done) == 0) {
        shmq_ring_sizes(met, &c);
    }
    return unused;
}

/* The counts of a queue at rest are right, whatever counts and changes met before. */
static void test_what_changes_amid_a_count_is_counted_later(void) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    for (uint32_t round = 0; round < 20; round++) {
        pthread_t of[4];
        char name[] = {(char)('a' + round), 0};
        met = scratch_queue(m, name, 0, true);
        shmq_store_seq(&done, 0);
        for (uint32_t i = 0; i < 4; i++) {
            CHECK_EQUAL(pthread_create(&of[i], NULL, i < 2 ? put_and_get : count_on, NULL), 0);
        }
        for (uint32_t i = 0; i < 4; i++) {
            if (i == 2) {
                shmq_store_seq(&done, 1);
            }
            CHECK_EQUAL(pthread_join(of[i], NULL), 0);
        }
        CHECK(counts_agree(met));
        CHECK_EQUAL(shmq_queue_delete(met), SHMQ_OK);
        shmq_queue_unbind(met);
    }
    scratch_detach(m);
    scratch_remove();
}

int main(void) {
    test_what_changes_amid_a_count_is_counted_later();
    test_only_what_changed_is_looked_at_again();
    test_a_death_before_the_word_leaves_no_wrong_count();
    uint64_t seed = shmq_now_ns();
    fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    check_mixed(seed, SIZE, 1);
    check_mixed(seed, SIZE / 4, 3);
    check_mixed(seed, 50, 1); /* the ring turns often, over what is in hand or delayed */
    return 0;
}
