/* Each structure is put right after a death that only the test's predicate knows of: the "dead" are other memberships of
 * this process, whose locks are held all the time. */
#include "blocks/slab.h"
#include "recovery/recover.h"
#include "wake/watch.h"
#include "scratch_queue.h"

static shmq_member *a, *b, *c;
static shmq_queue *qa, *qb, *qc;
static uint32_t asked;

static bool is_row(void *context, uint32_t row) {
    asked++;
    return row == *(uint32_t *)context;
}

static shmq_liveness without(const shmq_member *dead) {
    static uint32_t row;
    row = dead->row;
    asked = 0;
    return (shmq_liveness){.is_dead = is_row, .context = &row};
}

static bool nobody(void *context, uint32_t row) {
    (void)context, (void)row;
    return false;
}

static const shmq_liveness all_live = {.is_dead = nobody};

static void begin(uint64_t maxsize) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    c = scratch_attach();
    qa = scratch_queue(a, "jobs", maxsize, true);
    qb = scratch_queue(b, "jobs", maxsize, true);
    qc = scratch_queue(c, "jobs", maxsize, true);
}

static void check_all(void) {
    check_segment(a);
    check_ring(qa);
}

/* `b` was declared dead and its row may be somebody else's: its lock goes, nothing of it is written any more. */
static void end(void) {
    check_all();
    scratch_kill(b);
    scratch_close(c, qc);
    scratch_close(a, qa);
    scratch_remove();
}

/* Shows E13, E14. */
TEST(the_ring_goes_back_to_the_living) {
    begin(1024);
    static unsigned char large[5000];
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    for (uint64_t i = 1; i < 6; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    shmq_delivery settling = receive(qb, row), taken = receive(qb, row), steals = receive(qb, shmq_self(qb)), offered;
    CHECK_EQUAL(shmq_lock(qb, &steals), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(qb, row, &offered), SHMQ_OK);
    shmq_a64 *word = &shmq_slot_at(&qb->first, settling.position)->word;
    uint64_t was = shmq_load_seq(word);
    CHECK(shmq_cas_seq(word, was, shmq_word_to(was, SHMQ_DEQUEUED, row, settling.tag)));
    shmq_delivery living = receive(qc, shmq_self(qc));
    uint64_t claimed = claim_by_hand(qb), hole = claim_by_hand(qb);
    word = &shmq_slot_at(&qb->first, hole)->word;
    was = shmq_load_seq(word);
    CHECK(shmq_cas_seq(word, was, shmq_word_to(was, SHMQ_QUARANTINED, shmq_self(qb), 0)));
    check_all(); /* what the dead leave, and nobody has repaired, is no damage */

    shmq_ring_recover(qa, &all_live);
    CHECK_EQUAL(state_at(qa, claimed), SHMQ_CLAIMED);
    CHECK_EQUAL(state_at(qa, settling.position), SHMQ_DEQUEUED);
    CHECK_EQUAL(state_at(qa, taken.position), SHMQ_ACQUIRED);

    shmq_liveness l = without(b);
    for (int times = 0; times < 2; times++) { /* repeatable */
        shmq_ring_recover(qa, &l);
        CHECK(asked > 0);
        CHECK_EQUAL(state_at(qa, settling.position), SHMQ_FREE);
        CHECK_EQUAL(state_at(qa, taken.position), SHMQ_AVAILABLE);
        CHECK_EQUAL(state_at(qa, steals.position), SHMQ_AVAILABLE);
        CHECK_EQUAL(state_at(qa, offered.position), SHMQ_ACQUIRED); /* taken over by the living one meanwhile */
        CHECK_EQUAL(state_at(qa, claimed), SHMQ_FREE);
        CHECK_EQUAL(state_at(qa, hole), SHMQ_FREE);
    }
    CHECK_EQUAL(living.position, offered.position);
    CHECK_EQUAL(shmq_slot_at(&qa->first, taken.position)->deaths, 1);
    CHECK_EQUAL(shmq_slot_at(&qa->first, steals.position)->deaths, 0);
    CHECK_EQUAL(shmq_settle(qc, &living), SHMQ_OK);
    check_ring(qa);
    CHECK_EQUAL(get_number(qa), 1); /* in their order, from where the head had passed */
    CHECK_EQUAL(get_number(qa), 2);
    CHECK_EQUAL(get_number(qa), 4);
    CHECK_EQUAL(get_number(qa), 5);
    CHECK_EQUAL(get_number(qa), UINT64_MAX);
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 0);
    l = without(b);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

TEST(who_leaves_by_itself_dies_no_death) {
    begin(0);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_delivery taken = receive(qb, shmq_self(qb));
    uint64_t claimed = claim_by_hand(qb);
    shmq_liveness l = without(b);
    l.leaving = true;
    shmq_ring_recover(qa, &l);
    CHECK_EQUAL(state_at(qa, taken.position), SHMQ_AVAILABLE);
    CHECK_EQUAL(shmq_slot_at(&qa->first, taken.position)->deaths, 0);
    CHECK_EQUAL(state_at(qa, claimed), SHMQ_CLAIMED); /* its own to finish */
    l.leaving = false;
    shmq_ring_recover(qa, &l);
    CHECK_EQUAL(state_at(qa, claimed), SHMQ_FREE);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

/* Shows C12. */
TEST(sleepers_and_rows_of_the_dead_go_and_those_of_the_living_stay) {
    begin(0);
    uint32_t dead, browser, forgotten, living;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_GETTER, &dead), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_BROWSER, &browser), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(qc, SHMQ_GETTER, &forgotten), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(qc, SHMQ_GETTER, &living), SHMQ_OK);
    shmq_announce(qb, dead, false);
    shmq_announce(qb, browser, true);
    uint32_t before = shmq_announce(qc, forgotten, false), quiet = shmq_announce(qc, living, false);
    shmq_sleepers_shm *chunk = &qa->page->sleepers[0];
    shmq_and_seq(&chunk->idle, ~(UINT64_C(1) << forgotten)); /* a notifier died with this bit in its hand */
    shmq_liveness l = without(b);
    shmq_sleepers_recover(qa, &l);
    CHECK_EQUAL(shmq_load_seq(&chunk->idle), UINT64_C(1) << living);
    CHECK_EQUAL(shmq_load_seq(&chunk->browse), 0);
    CHECK_EQUAL(shmq_load_seq(&shmq_row_at(qa, forgotten)->wake), before + 1);
    CHECK_EQUAL(shmq_load_seq(&shmq_row_at(qa, living)->wake), quiet);
    CHECK_EQUAL(shmq_load_seq(&chunk->used), (UINT64_C(1) << dead) | (UINT64_C(1) << browser) |
                                                 (UINT64_C(1) << forgotten) | (UINT64_C(1) << living));
    check_all();
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    shmq_consumers_recover(qa, &all_live);
    CHECK_EQUAL(__builtin_popcountll(shmq_load_seq(&chunk->used)), 4);
    shmq_consumers_recover(qa, &l);
    shmq_structure_unlock(a);
    CHECK_EQUAL(shmq_load_seq(&chunk->used), (UINT64_C(1) << forgotten) | (UINT64_C(1) << living));
    CHECK_EQUAL(shmq_row_state(shmq_load_seq(&shmq_row_at(qa, dead)->word)), SHMQ_ROW_FREE);
    CHECK_EQUAL(shmq_row_generation(shmq_load_seq(&shmq_row_at(qa, browser)->word)), 1);
    check_all();
    (void)shmq_withdraw(qc, forgotten, false);
    (void)shmq_withdraw(qc, living, false);
    CHECK_EQUAL(shmq_row_close(qc, forgotten), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(qc, living), SHMQ_OK);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

TEST(views_of_the_dead_end_and_those_of_the_living_stay) {
    begin(0);
    static unsigned char large[5000];
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    shmq_delivery d = receive(qc, shmq_self(qc));
    uint32_t dead_pin, living_pin;
    CHECK(shmq_block_pin(b, shmq_body_offset(d.body), d.body_gen, 5000, &dead_pin));
    CHECK(shmq_block_pin(c, shmq_body_offset(d.body), d.body_gen, 5000, &living_pin));
    shmq_block_location location;
    CHECK(shmq_block_locate(a, shmq_body_offset(d.body), &location));
    shmq_liveness l = without(b);
    shmq_pins_recover(a, b->row, &all_live);
    shmq_pins_recover(a, c->row, &l);
    CHECK_EQUAL(__builtin_popcountll(shmq_load_seq(&location.block->word) & SHMQ_VIEW_MASK), 2);
    check_all();
    shmq_pins_recover(a, b->row, &l);
    shmq_pins_recover(a, b->row, &l);
    CHECK_EQUAL(shmq_load_seq(&b->page->pins[dead_pin].cell), 0);
    CHECK_EQUAL(__builtin_popcountll(shmq_load_seq(&location.block->word) & SHMQ_VIEW_MASK), 1);
    check_all();
    CHECK_EQUAL(shmq_settle(qc, &d), SHMQ_OK);
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 1); /* the living view */
    shmq_block_unpin(c, living_pin, 5000);
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 0);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

TEST(claims_in_the_counters_of_the_dead_go) {
    begin(1024);
    shmq_counters_shm *dead = qb->counters, *living = qc->counters;
    shmq_moving(qb, 1);
    join_room(qb, dead);
    join_room(qc, living);
    uint64_t attached = shmq_load_seq(&living->attached);
    CHECK(attached != 0);
    check_all();
    shmq_liveness l = without(b);
    for (int times = 0; times < 2; times++) {
        CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
        shmq_counters_recover(a, &l);
        shmq_structure_unlock(a);
        CHECK_EQUAL(shmq_load_seq(&dead->attached), 0);
        CHECK_EQUAL(shmq_load_seq(&dead->moving), 0);
        CHECK_EQUAL(shmq_load_seq(&dead->waiting), 0);
        CHECK_EQUAL(shmq_load_seq(&living->attached), attached);
        CHECK_EQUAL(shmq_load_seq(&living->waiting), 1);
        CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&qa->first.shm->waiters)), 1);
        CHECK_EQUAL(shmq_load_seq(&qa->page->recount_due), 1);
        check_all();
    }
    leave_room(qc, living);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

TEST(the_watch_of_the_dead_is_vacant) {
    begin(0);
    shmq_watcher dead, living;
    shmq_watch_enter(&dead, b, &b->header->memory_full);
    shmq_watch_enter(&living, c, &c->header->memory_full);
    CHECK_EQUAL(dead.index, 0);
    CHECK_EQUAL(living.index, 1);
    uint64_t second = shmq_load_seq(&a->header->watch[1]);
    shmq_watch_recover(a, &all_live);
    CHECK(shmq_load_seq(&a->header->watch[0]) != 0);
    shmq_liveness l = without(b);
    shmq_watch_recover(a, &l);
    shmq_watch_recover(a, &l);
    CHECK_EQUAL(shmq_load_seq(&a->header->watch[0]), 0);
    CHECK_EQUAL(shmq_load_seq(&a->header->watch[1]), second);
    check_all();
    shmq_watch_leave(&living);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    end();
}

/* All of it at once, by the one call that production uses. */
TEST(a_process_that_the_predicate_calls_dead_is_reaped_whole) {
    begin(1024);
    static unsigned char large[5000];
    uint32_t row, pin, generation = b->row_generation;
    shmq_block lent;
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_delivery taken = receive(qb, row);
    CHECK(shmq_block_pin(b, shmq_body_offset(taken.body), taken.body_gen, 5000, &pin));
    CHECK_EQUAL(shmq_block_take(b, 9000, &lent), SHMQ_OK);
    shmq_announce(qb, row, false);
    shmq_moving(qb, 1);
    (void)claim_by_hand(qb);
    uint32_t reaped = 99;
    CHECK_EQUAL(shmq_reap(a, &all_live, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 0);
    shmq_liveness l = without(b);
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 1);
    CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK); /* the row is FREE: nobody to be dead */
    CHECK_EQUAL(reaped, 0);
    uint64_t word = shmq_load_seq(&a->rows[b->row].word);
    CHECK_EQUAL(word, shmq_row_word(generation + 1, 0, SHMQ_ROW_FREE));
    check_all();
    shmq_census census = census_of(qa);
    CHECK_EQUAL(census.ready, 2);
    CHECK_EQUAL(census.unsettled + census.claimed + census.holes, 0);
    CHECK(shmq_load_seq(&qa->page->recount_due) != 0);
    CHECK(shmq_recount(qa));
    CHECK_EQUAL(shmq_load_seq(&qa->page->count) & UINT32_MAX, 2);
    CHECK_EQUAL(shmq_load_seq(&qa->page->sleepers[0].used), 0);
    CHECK_EQUAL(shmq_load_seq(&qa->page->sleepers[0].idle), 0);
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 1); /* the body of the message that went back */
    CHECK_EQUAL(usage.building, 0);
    end();
}

int main(void) { return run_tests(); }
