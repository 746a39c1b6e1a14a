/* A ring that is full, with nothing on disk: its oldest entries go into the front ring, and meet no disk. Shows G8. */
#include "queue/cold.h"
#include "flow_pair.h"

static uint64_t slots_of(const shmq_ring *r) { return shmq_slot_count(r); }

/* Entries that the front ring takes while there are no rows. */
static uint64_t room(void) { return slots_of(shmq_front_of(&q->first)) / 4; }

static bool flows(void) { return shmq_flow_is_on(shmq_load_seq(&q->first.shm->flow)); }

/* Shows S103. */
TEST(a_burst_that_the_front_ring_has_room_for_meets_no_disk) {
    begin();
    uint64_t slots = slots_of(&q->first), put = 0, got = 0;
    put_numbers(q, 0, slots + room());
    put = slots + room();
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    CHECK(!flows());
    for (int round = 0; round < 30; round++) { /* a queue that stays as deep does not, either */
        get_numbers(theirs, got, room());
        put_numbers(q, put, room());
        put += room();
        got += room();
    }
    CHECK_EQUAL(scratch_spill_files(false), 0);
    CHECK_EQUAL(census_of(q).ready, put - got);
    get_numbers(theirs, got, put - got);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Shows S103. */
TEST(a_queue_that_has_overflowed_has_its_front_in_memory) {
    begin();
    uint64_t slots = slots_of(&q->first), place = 0;
    put_numbers(q, 0, 2 * slots);
    CHECK(shmq_flow_rows(q) >= slots - room());
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->low), room());
    shmq_delivery d;
    for (uint64_t i = 0; i < slots; i++, place++) {
        CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(d.depth == SHMQ_ON_DISK, i >= room());
    }
    get_numbers(q, 0, 2 * slots);
    end();
}

TEST(what_is_in_somebody_s_hands_stays_and_is_first_when_it_comes_back) {
    begin();
    uint64_t slots = slots_of(&q->first);
    put_numbers(q, 0, 10);
    shmq_delivery held = receive(theirs, shmq_self(theirs));
    put_numbers(q, 10, slots);
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    get_numbers(q, 1, 20);
    CHECK_EQUAL(shmq_release(theirs, &held, false), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 0);
    get_numbers(q, 21, slots - 11);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* As a mover leaves it that dies when `shown` of three entries are in the front ring; `low` and the flow word say nothing of it yet. */
static void die_amid(uint64_t shown) {
    shmq_mover t;
    shmq_ordinal last = {.count = 0};
    shmq_coming coming[3];
    shmq_row rows[3];
    uint64_t at[3];
    CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
    CHECK_EQUAL(shmq_cold_need(t.front), SHMQ_OK);
    shmq_store_seq(&t.back->shm->low, 0);
    shmq_store_seq(&t.back->shm->flow, shmq_flow_word(0, true));
    for (uint64_t p = 0; p < 3; p++) {
        shmq_slot_shm *slot = shmq_slot_at(t.back, p);
        uint64_t word = shmq_load_seq(&slot->word);
        CHECK(shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word))));
        at[p] = t.used;
        rows[p].place = p;
        CHECK_EQUAL(shmq_row_write(&t, t.back, slot, word, p, &last, &rows[p]), SHMQ_OK);
    }
    uint64_t tail;
    uint32_t count = UINT32_MAX;
    CHECK_EQUAL(shmq_front_room(t.front, &tail, &count), SHMQ_OK);
    for (uint64_t p = 0; p < 3; p++) {
        rows[p].bytes = t.buffer + at[p];
        CHECK_EQUAL(shmq_front_fill(&t, &rows[p], tail + p, &last, 0, &coming[p]), SHMQ_OK);
        shmq_store_seq(&shmq_cold_at(t.front, shmq_slot_at(t.front, tail + p))->ordinal, 0);
        shmq_store_seq(&shmq_cold_at(t.front, shmq_slot_at(t.front, tail + p))->ordinal_bytes, 0);
    }
    shmq_flushing_say(t.back->shm, 3, 0, 0);
    for (uint64_t p = 0; p < shown; p++) {
        CHECK(shmq_front_show(&t, tail + p, &coming[p]));
    }
    shmq_turn_end(&t);
    shmq_store_seq(&q->page->unfinished, 1);
}

TEST(what_a_dead_mover_has_handed_over_comes_once) {
    for (uint64_t shown = 0; shown <= 3; shown++) {
        begin();
        uint64_t slots = slots_of(&q->first);
        put_numbers(q, 0, slots);
        die_amid(shown);
        put_numbers(q, slots, slots / 2); /* its first turn puts right what the dead one has left */
        CHECK_EQUAL(census_of(q).ready, slots + slots / 2);
        get_numbers(theirs, 0, slots + slots / 2);
        CHECK_EQUAL(get_number(q), UINT64_MAX);
        end();
    }
}

TEST(what_was_handed_over_is_no_row) {
    begin();
    uint64_t slots = slots_of(&q->first);
    put_numbers(q, 0, 2 * slots);
    uint64_t rows = shmq_flow_rows(q);
    shmq_store_seq(&q->page->unfinished, 1); /* as one that died before it did anything */
    shmq_flow_mend(theirs);
    CHECK_EQUAL(shmq_flow_rows(q), rows);
    get_numbers(q, 0, 2 * slots);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

int main(void) { return run_tests(); }
