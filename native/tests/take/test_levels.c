/* Queues of several levels: the order, what comes above a taker that is below, deaths, and what a look at all levels tells. */
#include "check/check.h"
#include "check/memory_use.h"
#include "consumers/ranks.h"
#include "layout/run.h"
#include "queue/cold.h"
#include "scratch_queue.h"

enum { LEVELS = 3, LOW = 3, MIDDLE = 4, HIGH = 5 }; /* priorities of the three levels */

static shmq_member *m, *other, *eye;
static shmq_queue *q, *theirs;
static shmq_finding finding;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = scratch_levels(m, "jobs", maxsize, LEVELS);
    theirs = scratch_levels(other, "jobs", maxsize, LEVELS);
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
}

static const char *part_fault(const char *name) {
    for (int i = 0; i < SHMQ_PARTS; i++) {
        if (strcmp(shmq_part_name(i), name) == 0) {
            shmq_part_check(eye, i, &finding);
        }
    }
    return finding.fault;
}

static shmq_verdict_kind verdict(void) {
    shmq_queue view;
    CHECK(shmq_queue_look(eye, q->index, &view) == NULL);
    shmq_queue_check(&view, &finding);
    return finding.verdict;
}

static void all_sound(void) {
    for (int i = 0; i < SHMQ_PARTS; i++) {
        shmq_part_check(eye, i, &finding);
        CHECK_EQUAL(finding.verdict, SHMQ_SOUND);
    }
    CHECK_EQUAL(verdict(), SHMQ_SOUND);
    check_ring(q);
}

static void end(void) {
    all_sound();
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_observer_close(eye);
    shmq_queue_unbind(q);
    scratch_close_unless_dead(other, theirs);
    scratch_detach(m);
    scratch_remove();
}

static void put_some_everywhere(void) {
    for (uint64_t i = 0; i < 30; i++) {
        static const uint8_t priorities[] = {LOW, HIGH, MIDDLE};
        CHECK_EQUAL(put_as(q, i, priorities[i % 3]), SHMQ_OK);
    }
}

/* Shows S27, S28, S33. */
TEST(levels_are_strict_and_each_is_in_order) {
    begin(0);
    put_some_everywhere();
    static const uint64_t first[] = {1, 2, 0}; /* of HIGH, MIDDLE, LOW */
    for (int level = 0; level < LEVELS; level++) {
        for (uint64_t i = first[level]; i < 30; i += 3) {
            CHECK_EQUAL(get_number(theirs), i);
        }
    }
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    end();
}

static int arrivals;

/* Puts above the taker while it looks at something below, as if another did so at that moment. */
static bool late_arrival(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)context;
    (void)d;
    if (arrivals > 0 && level->depth == 2) {
        arrivals--;
        CHECK_EQUAL(put_as(theirs, 100 + (uint64_t)arrivals, arrivals % 2 == 0 ? HIGH : MIDDLE), SHMQ_OK);
    }
    return true;
}

/* Shows S35, S37, S38, G1. */
TEST(what_arrives_above_a_taker_on_its_way_down_is_taken_first) {
    begin(0);
    shmq_subscription s;
    shmq_subscription_begin(&s, late_arrival, NULL);
    CHECK_EQUAL(put_as(q, 1, LOW), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 2, LOW), SHMQ_OK);
    shmq_delivery d;
    for (arrivals = 4; arrivals > 0;) {
        uint64_t expected = 100 + (uint64_t)arrivals - 1;
        CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), expected);
        CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 1);
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(get_number(theirs), 1);
    shmq_subscription_end(&s);
    end();
}

/* Shows S27: what is put behind a claim of its level waits for it, and nothing lower goes before it meanwhile. */
TEST(what_is_behind_a_claim_above_is_not_overtaken_from_below) {
    begin(0);
    shmq_delivery d;
    CHECK_EQUAL(put_as(q, 3, LOW), SHMQ_OK);
    uint64_t claimed = claim_by_hand(theirs); /* on the first level */
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK); /* a claim alone is none's put yet */
    CHECK_EQUAL(number_of(&d), 3);
    shmq_offer_cancel(q, &d);
    CHECK_EQUAL(put_as(q, 1, HIGH), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_EMPTY);
    CHECK_EQUAL(d.depth, 0);
    CHECK_EQUAL(d.position, claimed);
    uint64_t waited;
    CHECK_EQUAL(await_number(q, &waited), 1); /* the patience ends the wait */
    CHECK_EQUAL(get_number(q), 3);
    scratch_kill(other);
    reap_all(m, 1); /* the hole is buried */
    end();
}

static shmq_delivery released[2];

/* Gives back above, likewise. */
static bool late_release(void *context, const shmq_ring *level, const shmq_delivery *d) {
    int *left = context;
    (void)d;
    if (*left > 0 && level->depth == 2) {
        (*left)--;
        CHECK_EQUAL(shmq_release(theirs, &released[*left], false), SHMQ_OK);
    }
    return true;
}

/* Shows S38, R2. */
TEST(what_is_given_back_above_a_taker_on_its_way_down_is_taken_first) {
    begin(0);
    shmq_subscription s;
    int left = 2;
    shmq_subscription_begin(&s, late_release, &left);
    CHECK_EQUAL(put_as(q, 1, HIGH), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 2, MIDDLE), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 3, LOW), SHMQ_OK);
    released[0] = receive(theirs, shmq_self(theirs));
    released[1] = receive(theirs, shmq_self(theirs));
    CHECK_EQUAL(released[0].depth, 0);
    CHECK_EQUAL(released[1].depth, 1);
    for (uint64_t expected = 2; expected-- > 0;) {
        shmq_delivery d;
        CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), expected + 1);
        CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(get_number(q), 3);
    shmq_subscription_end(&s);
    end();
}

/* Each goes back to its level, marked, before what came later there. Shows G1. */
TEST(what_the_dead_held_goes_back_to_its_level) {
    begin(0);
    put_some_everywhere();
    for (int i = 0; i < 15; i++) {
        (void)receive(theirs, shmq_self(theirs)); /* all of the first level, half of the second */
    }
    all_sound();
    scratch_kill(other);
    all_sound(); /* what waits for its reaper is no damage */
    reap_all(m, 1);
    for (uint64_t i = 1; i < 30; i += 3) {
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(d.deaths, 1);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    for (uint64_t i = 2; i < 30; i += 3) {
        CHECK_EQUAL(get_number(q), i);
    }
    CHECK_EQUAL(get_number(q), 0);
    end();
}

TEST(a_limit_counts_all_levels) {
    begin(64);
    for (uint64_t i = 0; i < 64; i++) {
        CHECK_EQUAL(put_as(q, i, (uint8_t)(LOW + i % 3)), SHMQ_OK);
    }
    CHECK_EQUAL(put_as(q, 64, HIGH), SHMQ_FULL_COUNT);
    uint64_t count = shmq_load_seq(&q->page->count);
    CHECK_EQUAL(count & SHMQ_COUNT_MASK, 64);
    all_sound();
    shmq_store_seq(&q->page->count, count - 1);
    CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
    CHECK(strstr(finding.fault, "the count says 63 entries, the slots say 64") != NULL);
    CHECK_EQUAL(finding.depth, 0);
    CHECK_EQUAL(finding.where, SHMQ_NO_SLOT);
    shmq_store_seq(&q->page->count, count);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, 64);
    CHECK_EQUAL(shmq_load_seq(&q->page->count) & SHMQ_COUNT_MASK, 0);
    end();
}

TEST(damage_is_told_with_its_level_and_slot) {
    begin(0);
    put_some_everywhere();
    shmq_bodies bodies;
    shmq_queue view;
    CHECK(shmq_queue_look(eye, q->index, &view) == NULL);
    shmq_bodies_check(&view, &bodies, &finding);
    CHECK_EQUAL(finding.verdict, SHMQ_SOUND);
    CHECK_EQUAL(bodies.verified, 30);
    for (uint32_t depth = 0; depth < LEVELS; depth++) {
        shmq_ring *level = shmq_level(q, depth);
        shmq_slot_shm *slot = shmq_slot_at(level, 4 + depth);
        uint64_t word = shmq_load_seq(&slot->word), head = shmq_load_seq(&level->shm->head);
        shmq_store_seq(&slot->word, word | 15);
        CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
        CHECK(strstr(finding.fault, "the slot is in a state that this version does not know") != NULL);
        CHECK_EQUAL(finding.depth, depth);
        CHECK_EQUAL(finding.where, 4 + depth);
        shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_ACQUIRED, SHMQ_OWNER_PROCESS | 77, 1));
        CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
        CHECK(strstr(finding.fault, "a process that does not exist") != NULL);
        CHECK_EQUAL(finding.depth, depth);
        CHECK_EQUAL(finding.where, 4 + depth);
        shmq_store_seq(&slot->word, word);
        shmq_store_seq(&level->shm->head, 12);
        CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
        CHECK(strstr(finding.fault, "the head is beyond the tail") != NULL);
        CHECK_EQUAL(finding.depth, depth);
        CHECK_EQUAL(finding.where, SHMQ_NO_SLOT);
        shmq_store_seq(&level->shm->head, 5);
        CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
        CHECK(strstr(finding.fault, "no consumer will be offered it") != NULL);
        CHECK_EQUAL(finding.depth, depth);
        CHECK_EQUAL(finding.where, 0);
        shmq_store_seq(&level->shm->head, head);
        slot->inline_area[0] ^= 1;
        shmq_bodies_check(&view, &bodies, &finding);
        CHECK_EQUAL(finding.verdict, SHMQ_DAMAGED);
        CHECK_EQUAL(finding.depth, depth);
        CHECK_EQUAL(finding.where, 4 + depth);
        CHECK_EQUAL(bodies.verified, 29); /* the levels below it were counted as well */
        CHECK_EQUAL(bodies.damaged, 1);
        slot->inline_area[0] ^= 1;
        all_sound();
    }
    end();
}

TEST(bodies_and_deliveries_of_all_levels_are_counted) {
    begin(0);
    static unsigned char large[5000];
    struct iovec piece = {.iov_base = large, .iov_len = sizeof large};
    for (uint8_t priority = LOW; priority <= HIGH; priority++) {
        shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof large, .priority = priority};
        CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    }
    all_sound(); /* each block is named by a slot of some level */
    shmq_delivery taken[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        taken[i] = receive(theirs, shmq_self(theirs));
    }
    shmq_store_seq(&other->process->unsettled, 2);
    CHECK(strstr(part_fault("references of blocks"), "has 3 messages in hand, but counts 2") != NULL);
    shmq_store_seq(&other->process->unsettled, 3);
    for (int i = 0; i < LEVELS; i++) {
        CHECK_EQUAL(shmq_settle(theirs, &taken[i]), SHMQ_OK);
    }
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.used, 0);
    end();
}

TEST(constants_of_a_level_that_make_no_sense_are_told) {
    begin(0);
    shmq_queue_shm *page = q->page;
    uint64_t rings = page->level_rings;
    for (uint32_t depth = 1; depth < LEVELS; depth++) {
        shmq_ring_shm *ring = shmq_level_ring(q, depth);
        uint64_t slots = ring->slots, carried = ring->carried;
        ring->slots = shmq_level_ring(q, depth - 1)->slots;
        CHECK(part_fault("queue directory")[0] != 0);
        ring->slots = page->ring.slots - SHMQ_GRANULE_BYTES; /* somebody else's memory */
        CHECK(strstr(part_fault("queue directory"), "the offset of the queue's ring makes no sense") != NULL);
        CHECK_EQUAL(verdict(), SHMQ_DAMAGED);
        CHECK(strstr(finding.fault, "the offset of the queue's ring makes no sense") != NULL);
        CHECK_EQUAL(finding.depth, depth);
        ring->slots = slots;
        ring->carried = m->size;
        CHECK(strstr(part_fault("queue directory"), "the offset of the queue's ring makes no sense") != NULL);
        ring->carried = carried;
        ring->shift++;
        CHECK(part_fault("queue directory")[0] != 0);
        ring->shift--;
        shmq_store_seq(&ring->cold, 64);
        CHECK(strstr(part_fault("queue directory"), "cold records") != NULL);
        shmq_store_seq(&ring->cold, 0);
        all_sound();
    }
    page->level_rings = rings + 64;
    CHECK(part_fault("queue directory")[0] != 0);
    page->level_rings = m->size;
    CHECK(strstr(part_fault("queue directory"), "the queue's levels makes no sense") != NULL);
    page->level_rings = rings;
    page->levels = SHMQ_LEVELS_MAX + 1;
    CHECK(strstr(part_fault("queue directory"), "the queue's levels makes no sense") != NULL);
    page->levels = 2;
    CHECK(part_fault("queue directory")[0] != 0);
    page->levels = LEVELS;
    end();
}

/* The levels above it go on, and nothing reads what is said to be elsewhere. */
TEST(a_level_that_makes_no_sense_is_left_out_by_who_goes_over_all) {
    begin(0);
    put_some_everywhere();
    shmq_ring_shm *ring = shmq_level_ring(q, 1);
    uint64_t slots = ring->slots;
    ring->slots = q->page->ring.slots - SHMQ_GRANULE_BYTES; /* somebody else's memory */
    shmq_census c;
    shmq_ring_census(q, &c);
    CHECK_EQUAL(c.ready, 10);
    CHECK(shmq_ring_ready(q));
    shmq_memory_use use;
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK(shmq_memory_use_of(m, q->index, &use));
    CHECK(use.slots != 0);
    CHECK_EQUAL(use.bodies, 0);
    static unsigned char large[5000];
    shmq_structure_unlock(m);
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK(shmq_memory_use_of(m, q->index, &use));
    CHECK_EQUAL(use.bodies, 0); /* of the level that is left out */
    ring->slots = slots;
    CHECK(shmq_memory_use_of(m, q->index, &use));
    CHECK(use.bodies >= sizeof large);
    ring->slots = q->page->ring.slots - SHMQ_GRANULE_BYTES;
    shmq_structure_unlock(m);
    shmq_delivery d[10];
    for (int i = 0; i < 10; i++) {
        d[i] = receive(q, shmq_self(q));
        CHECK_EQUAL(d[i].depth, 0);
    }
    CHECK(!shmq_ring_ready(q));
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(shmq_release(q, &d[i], false), SHMQ_OK);
    }
    reap_all(m, 0);
    ring->slots = slots;
    shmq_ring_census(q, &c);
    CHECK_EQUAL(c.ready, 31);
    shmq_store_seq(&m->header->damage, 0);
    end();
}

/* A handle's own consumer, which nobody closes: it counts as another only with something in hand, on whatever level. */
TEST(an_idle_implicit_one_lets_an_exclusive_one_in) {
    begin(0);
    shmq_row_terms alone = {.kind = SHMQ_CONSUMER, .exclusive = true};
    shmq_row_terms implicit = {.kind = SHMQ_CONSUMER, .implicit = true};
    uint32_t theirs = 0, row = 0;
    CHECK_EQUAL(shmq_row_open_as(q, &implicit, &theirs), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 1, 9), SHMQ_OK);
    CHECK_EQUAL(put_as(q, 2, 0), SHMQ_OK);
    for (int i = 0; i < 2; i++) { /* of the first level, then of the last */
        shmq_delivery d = receive(q, theirs), other = receive(q, shmq_self(q));
        CHECK_EQUAL(shmq_row_open_as(q, &alone, &row), SHMQ_REFUSED);
        CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
        CHECK_EQUAL(shmq_row_open_as(q, &alone, &row), SHMQ_OK); /* though somebody else has one in hand */
        CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK);
        CHECK_EQUAL(shmq_release(q, &other, false), SHMQ_OK);
        CHECK_EQUAL(get_number(q), (uint64_t)(i == 0 ? 1 : 2));
        CHECK_EQUAL(put_as(q, 3, 0), SHMQ_OK);
    }
    CHECK_EQUAL(get_number(q), 3);
    CHECK_EQUAL(get_number(q), 3);
    CHECK_EQUAL(shmq_row_close(q, theirs), SHMQ_OK);
    end();
}

/* A level gets cold records of its own; a rebuild of the map finds them, and they go with the queue. */
TEST(each_level_has_cold_records_of_its_own) {
    begin(0);
    uint32_t free_before = (uint32_t)shmq_granules_free(m);
    CHECK_EQUAL(shmq_cold_need(shmq_level(q, 2)), SHMQ_OK);
    CHECK_EQUAL(shmq_cold_need(shmq_level(q, 1)), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->cold), 0);
    CHECK_EQUAL(free_before - shmq_granules_free(m), 2 * shmq_cold_granules(q->first.shift));
    all_sound();
    CHECK_EQUAL(shmq_structure_lock(other), SHMQ_OK);
    uint64_t lost;
    CHECK_EQUAL(shmq_run_take(other, 3, SHMQ_GRANULE_RING, &lost), SHMQ_OK);
    scratch_kill(other);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK); /* rebuilds */
    shmq_structure_unlock(m);
    reap_all(m, 1);
    CHECK_EQUAL(free_before - shmq_granules_free(m), 2 * shmq_cold_granules(q->first.shift));
    all_sound();
    shmq_queue *gone = scratch_levels(m, "gone", 64, 10);
    CHECK_EQUAL(shmq_cold_need(shmq_level(gone, 9)), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    shmq_queue_unbind(gone);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    shmq_queues_release(m);
    shmq_structure_unlock(m);
    CHECK_EQUAL(free_before - shmq_granules_free(m), 2 * shmq_cold_granules(q->first.shift));
    end();
}

/* A consumer that takes wakes another one only for what is there, on its level or below. Shows S45, S55. */
TEST(the_baton_looks_into_the_levels_below) {
    static const struct {
        uint8_t taken, other; /* 0: nothing else */
        bool behind_a_held_one, wakes;
    } cases[] = {{HIGH, 0, false, false},      {LOW, 0, false, false},     {HIGH, HIGH, false, true},
                 {HIGH, LOW, false, true},     {HIGH, MIDDLE, true, true}, {MIDDLE, LOW, true, true},
                 {MIDDLE, MIDDLE, true, true}, {LOW, LOW, false, true},    {MIDDLE, 0, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(0);
        shmq_delivery taken;
        if (cases[i].behind_a_held_one) {
            CHECK_EQUAL(put_as(q, 7, LOW), SHMQ_OK);
            CHECK_EQUAL(shmq_offer(q, shmq_self(q), &taken), SHMQ_OK);
            CHECK_EQUAL(shmq_offer_acquire(q, &taken), SHMQ_OK);
        }
        CHECK_EQUAL(put_as(q, 1, cases[i].taken), SHMQ_OK);
        if (cases[i].other != 0) {
            CHECK_EQUAL(put_as(q, 2, cases[i].other), SHMQ_OK);
        }
        uint32_t row;
        CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &row), SHMQ_OK);
        uint32_t before = shmq_announce(theirs, row, false);
        CHECK_EQUAL(get_number(q), 1);
        CHECK_EQUAL(shmq_load_seq(&shmq_row_at(theirs, row)->wake) != before, cases[i].wakes);
        (void)shmq_withdraw(theirs, row, false);
        CHECK_EQUAL(shmq_row_close(theirs, row), SHMQ_OK);
        if (cases[i].behind_a_held_one) {
            CHECK_EQUAL(shmq_settle(q, &taken), SHMQ_OK);
        }
        end();
    }
}

int main(void) { return run_tests(); }
