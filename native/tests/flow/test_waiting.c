/* Delayed messages go to disk where slots or memory are short, and come back to their places when they are due. */
#include "flow/waiting.h"
#include "upkeep/duty.h"
#include "flow_pair.h"

#define HOUR (3600 * SECOND)
#define MANY 5000u

static shmq_status put_at(shmq_queue *to, uint64_t number, uint64_t due_ns, uint64_t expires_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number,
                       .not_before_ns = due_ns,
                       .expires_ns = expires_ns};
    shmq_status status = shmq_put(to, &o, 0);
    if (status != SHMQ_OK) {
        shmq_unprepare(to, &o);
    }
    return status;
}

static void put_later(shmq_queue *to, uint64_t from, uint64_t count, uint64_t delay_ns) {
    for (uint64_t i = from; i < from + count; i++) {
        CHECK_EQUAL(put_at(to, i, shmq_now_ns() + delay_ns, 0), SHMQ_OK);
    }
}

static uint64_t waiting(void) { return shmq_waiting_rows(q).count; }

/* Shows G5. */
TEST(more_wait_than_there_are_slots_and_others_pass) {
    begin();
    put_later(q, 0, MANY, HOUR);
    CHECK(waiting() >= MANY - shmq_slot_count(&q->first));
    CHECK_EQUAL(census_of(q).delayed, MANY);
    CHECK(counts_agree(q));
    CHECK(shmq_disk_bytes(q) > waiting() * sizeof(uint64_t));
    CHECK(shmq_flow_size(q) >= shmq_disk_bytes(q));
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        CHECK_EQUAL(get_number(theirs), i);
    }
    put_numbers(q, 0, 3 * shmq_slot_count(&q->first)); /* rows of both kinds */
    CHECK(shmq_flow_rows(q) != 0);
    get_numbers(theirs, 0, 3 * shmq_slot_count(&q->first));
    CHECK_EQUAL(census_of(q).delayed, MANY);
    check_ring(q);
    uint64_t purged = 0;
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, MANY);
    CHECK(census_of(q).delayed == 0 && waiting() == 0 && shmq_flow_size(q) == 0);
    CHECK_EQUAL(scratch_spill_files(false), 0);
    end();
}

/* Shows that place and time are kept: what is due is first, though it comes from disk behind others. */
TEST(what_is_due_comes_at_its_place) {
    begin();
    uint64_t due = shmq_now_ns() + 2 * SECOND, waited;
    put_numbers(q, 0, 2);
    for (uint64_t i = 2; i < MANY; i++) {
        CHECK_EQUAL(put_at(q, i, due, 0), SHMQ_OK);
    }
    put_numbers(q, MANY, 20);
    CHECK_EQUAL(get_number(theirs), 0);
    CHECK(shmq_now_ns() < due && waiting() != 0);
    get_numbers(theirs, 1, 1);
    get_numbers(theirs, MANY, 10);
    while (shmq_now_ns() < due) {
        shmq_upkeep_thorough(m);
    }
    bool seen[MANY] = {false};
    for (uint64_t i = 2; i < MANY; i++) { /* of those that are due at once the order is that in which they come back */
        uint64_t number = await_number(theirs, &waited);
        if (number >= MANY) { /* they came in after a pass that had found no slot */
            i--;
            continue;
        }
        CHECK(number >= 2 && !seen[number]);
        seen[number] = true;
    }
    CHECK(waiting() == 0 && census_of(q).delayed == 0);
    while (get_number(q) != UINT64_MAX) {
    }
    CHECK_EQUAL(scratch_spill_files(false), 0);
    end();
}

/* Shows G5. */
TEST(each_comes_when_it_is_due_however_they_lie) {
    begin();
    uint64_t now = shmq_now_ns(), got = 0, waited, latest = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_at(q, i, now + SECOND / 4 + i * 7919 % MANY * (SECOND / MANY), 0), SHMQ_OK);
    }
    CHECK(waiting() != 0);
    for (; got < MANY; got++) {
        uint64_t i = await_number(theirs, &waited);
        uint64_t late = shmq_now_ns() - (now + SECOND / 4 + i * 7919 % MANY * (SECOND / MANY));
        CHECK((int64_t)late >= 0);
        latest = late > latest ? late : latest;
    }
    printf("at most %llu ms late\n", (unsigned long long)(latest / 1000000));
    end();
}

TEST(a_taker_asleep_is_woken_when_one_is_due) {
    begin();
    uint64_t due = shmq_now_ns() + SECOND / 2, waited;
    put_later(q, 0, shmq_slot_count(&q->first), HOUR);
    CHECK_EQUAL(put_at(q, MANY, due, 0), SHMQ_OK);
    for (uint64_t i = 0; i < shmq_slot_count(&q->first); i++) { /* the one goes to disk as well */
        CHECK_EQUAL(put_at(q, i, shmq_now_ns() + HOUR, 0), SHMQ_OK);
    }
    CHECK_EQUAL(await_number(theirs, &waited), MANY);
    uint64_t now = shmq_now_ns();
    CHECK(now >= due);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Shows G5. */
TEST(browsers_and_movers_find_them_at_their_places) {
    begin();
    const uint64_t many = 6 * shmq_slot_count(&q->first);
    for (uint64_t i = 0; i < many; i++) { /* each third one is ready */
        CHECK_EQUAL(i % 3 == 0 ? put_number(q, i) : put_at(q, i, shmq_now_ns() + HOUR, 0), SHMQ_OK);
    }
    CHECK(waiting() != 0 && shmq_flow_rows(q) != 0);
    shmq_delivery d;
    uint64_t place = 0;
    for (uint64_t i = 0; i < many; i++, place++) {
        CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
    }
    CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_EMPTY);
    for (uint64_t i = 1; i < 100; i += 3) {
        CHECK_EQUAL(shmq_steal_at(&theirs->first, i, true, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK(d.held_until_ns > shmq_now_ns() + HOUR / 2);
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_steal_at(&theirs->first, i, true, &d), SHMQ_EMPTY);
    }
    CHECK_EQUAL(census_of(q).delayed, many - (many + 2) / 3 - 33);
    place = 1;
    CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 2);
    for (uint64_t i = 0; i < many; i += 3) {
        CHECK_EQUAL(get_number(q), i);
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

static const shmq_backing *real;
static shmq_status (*real_of)(shmq_queue *, uint32_t, const shmq_backing **);
static uint32_t reads_left;

static shmq_status failing_read(void *context, uint64_t erased, uint64_t from, uint64_t below, uint64_t bytes,
                                shmq_row *rows, uint32_t *count) {
    if (reads_left == 0) {
        return shmq_fail(SHMQ_OS, "a read fails on purpose");
    }
    reads_left--;
    return real->read(context, erased, from, below, bytes, rows, count);
}

static shmq_status failing_backing_of(shmq_queue *queue, uint32_t depth, const shmq_backing **backing) {
    static shmq_backing calls;
    SHMQ_TRY(real_of(queue, depth, &real));
    calls = *real;
    calls.read = failing_read;
    *backing = &calls;
    return SHMQ_OK;
}

/* A look reads them in several turns. Rows lie in the order of their times, the last one first, so each read brings places below
 * those of the one before. A read that fails leaves what was read in order. */
TEST(a_look_of_several_turns_has_them_in_order_also_behind_a_read_that_failed) {
    enum { FIRST = 9000, ALL = 12000 };
    begin();
    for (uint64_t i = 0; i < FIRST; i++) {
        CHECK_EQUAL(put_at(q, i, shmq_now_ns() + 2 * HOUR - i * SECOND / 10, 0), SHMQ_OK);
    }
    shmq_delivery d;
    uint64_t place = 0;
    real_of = other->backing_of;
    other->backing_of = failing_backing_of;
    for (uint32_t look = 0; look < 2; look++) { /* it fails in the first piece, then in a later one */
        reads_left = look == 0 ? 2 : 5;
        place = 0;
        CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_OS);
        shmq_trail_clear();
    }
    reads_left = UINT32_MAX;
    for (uint64_t i = FIRST; i < ALL; i++) {
        CHECK_EQUAL(put_at(q, i, shmq_now_ns() + HOUR, 0), SHMQ_OK);
    }
    place = 0;
    for (uint64_t i = 0; i < ALL; i++, place++) {
        CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
    }
    CHECK_EQUAL(shmq_browse_place(&theirs->first, &place, &d), SHMQ_EMPTY);
    other->backing_of = real_of;
    end();
}

TEST(what_expires_before_it_is_due_is_dropped) {
    begin();
    uint64_t now = shmq_now_ns();
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_at(q, i, now + HOUR, i % 2 == 0 ? now + 2 * SECOND : 0), SHMQ_OK);
    }
    CHECK(waiting() != 0);
    while (census_of(q).delayed + census_of(q).ready != MANY / 2) {
        shmq_upkeep_thorough(m);
        CHECK_EQUAL(get_number(q), UINT64_MAX);
        CHECK(shmq_now_ns() < now + 60 * SECOND);
    }
    end();
}

TEST(limits_count_what_waits_on_disk) {
    scratch_create_flowing();
    scratch_spill_begin();
    m = scratch_attach_flowing();
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_MEMORY, .max_memory = 8000, .create = true};
    q = scratch_declare(m, "limited", d, 3000);
    for (uint64_t i = 0; i < 3000; i++) {
        CHECK_EQUAL(put_at(q, i, shmq_now_ns() + HOUR, 0), SHMQ_OK);
    }
    CHECK_EQUAL(put_number(q, 1), SHMQ_FULL_COUNT);
    CHECK(waiting() >= 2000);
    CHECK((shmq_load_seq(&q->page->resident) & SHMQ_WEIGHT_MASK) <= 8000);
    CHECK(shmq_recount(q) || shmq_count_fault(q) == NULL);
    CHECK(shmq_count_fault(q) == NULL);
    shmq_queue_unbind(q);
    shmq_member_leave(m, true);
    shmq_member_free(m);
    scratch_remove();
    scratch_spill_end();
}

/* As a mover leaves it that dies behind W2; and behind the decision, as `decided` rows say. */
TEST(a_death_amid_a_turn_leaves_each_message_once) {
    for (int decided = 0; decided < 2; decided++) {
        begin();
        put_later(q, 0, 10, HOUR);
        shmq_ring_shm *ring = q->first.shm;
        shmq_mover t;
        CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
        if (decided) {
            CHECK_EQUAL(shmq_waiting_flush(&t, t.back, UINT64_MAX), SHMQ_OK);
            CHECK_EQUAL(waiting(), 10);
        }
        shmq_store_seq(&ring->waiting_from, 1);
        shmq_store_seq(&ring->waiting_to_bytes, 80);
        for (uint64_t p = 0; p < 10 && !decided; p++) {
            shmq_slot_shm *slot = shmq_slot_at(t.back, p);
            uint64_t word = shmq_load_seq(&slot->word);
            shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_MOVING, 0, 0) | SHMQ_FLAG_WAITS);
        }
        CHECK_EQUAL(census_of(q).delayed, 10);
        shmq_flow_recover(t.back, t.front);
        CHECK_EQUAL(shmq_load_seq(&ring->waiting_from), 0);
        CHECK_EQUAL(census_of(q).delayed, 10);
        CHECK_EQUAL(state_at(q, 0), decided ? SHMQ_FREE : SHMQ_HELD);
        shmq_turn_end(&t);
        end();
    }
}

TEST(files_that_are_lost_are_counted_out) {
    begin();
    uint64_t due = shmq_now_ns() + 2 * SECOND, got = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_at(q, i, due, 0), SHMQ_OK);
    }
    uint64_t rows = waiting();
    CHECK(rows != 0 && shmq_now_ns() < due);
    (void)scratch_spill_files(true);
    while (census_of(q).delayed != 0) {
        got += get_number(q) != UINT64_MAX;
        shmq_upkeep_thorough(m);
        CHECK(shmq_now_ns() < due + 60 * SECOND);
    }
    CHECK_EQUAL(waiting(), 0);
    while (get_number(q) != UINT64_MAX) {
        got++;
    }
    CHECK_EQUAL(got, MANY - rows);
    CHECK(shmq_load_seq(&m->header->damage) != 0);
    shmq_store_seq(&m->header->damage, 0);
    end();
}

TEST(a_full_disk_keeps_them_in_their_slots) {
    begin();
    uint64_t disk = m->disk, put = 0;
    m->disk = 20000;
    while (put < 10 * MANY && put_at(q, put, shmq_now_ns() + HOUR, 0) == SHMQ_OK) {
        put++;
    }
    CHECK(put < 10 * MANY && waiting() != 0 && shmq_flow_size(q) <= 20000);
    CHECK_EQUAL(census_of(q).delayed, put);
    m->disk = disk;
    put_later(q, put, MANY, HOUR);
    CHECK_EQUAL(census_of(q).delayed, put + MANY);
    uint64_t purged = 0;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, put + MANY);
    end();
}

TEST(what_is_wanted_before_its_time_comes_in_held_and_may_go_again) {
    begin();
    shmq_queue *more = scratch_flowing(m, "more", MEMORY);
    put_later(q, 0, MANY, HOUR);
    put_later(more, 0, MANY, HOUR);
    uint64_t rows = waiting(), at = 0;
    shmq_delivery d;
    CHECK_EQUAL(shmq_waiting_peek(&q->first, NULL, &at, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 0);
    at = 0;
    CHECK_EQUAL(shmq_waiting_peek(&more->first, NULL, &at, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_waiting_fetch_at(&theirs->first, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_waiting_fetch_at(&theirs->first, 0), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_waiting_fetch_at(&q->first, UINT64_MAX / 2), SHMQ_NOT_FOUND);
    at = 0;
    CHECK_EQUAL(shmq_waiting_peek(&q->first, NULL, &at, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 1);
    CHECK_EQUAL(shmq_inhaler_bring_waiting(&q->first), SHMQ_OK);
    CHECK_EQUAL(waiting(), rows - 1 - SHMQ_WAITED_AT_ONCE);
    CHECK_EQUAL(census_of(q).delayed, MANY);
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
    at = 0;
    CHECK_EQUAL(shmq_waiting_peek(&q->first, NULL, &at, &d), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_waiting_fetch_at(&q->first, 5), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_waiting_flush(&t, t.front, UINT64_MAX), SHMQ_OK);
    shmq_turn_end(&t);
    CHECK_EQUAL(waiting(), rows);
    CHECK_EQUAL(shmq_waiting_first(q), 0);
    CHECK_EQUAL(census_of(q).delayed, MANY);
    shmq_queue_unbind(more);
    end();
}

/* Each write has its rows by time, and all that a lap held is one: so a look touches few files. */
TEST(files_have_their_rows_in_the_order_of_their_times) {
    static shmq_row_life lives[SHMQ_FILE_ROWS];
    begin();
    uint64_t now = shmq_now_ns(), slots = shmq_slot_count(&q->first), first = 0, file = UINT64_MAX, files = 0;
    for (uint64_t i = 0; i < 3 * slots; i++) {
        CHECK_EQUAL(put_at(q, i, now + HOUR + i * 7919 % slots, 0), SHMQ_OK);
    }
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
    CHECK_EQUAL(shmq_waiting_store(&t), SHMQ_OK);
    for (uint32_t count = SHMQ_FILE_ROWS; count != 0; count = SHMQ_FILE_ROWS) {
        CHECK_EQUAL(t.waiting->list(t.waiting->context, first, UINT64_MAX, lives, &count), SHMQ_OK);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(i == 0 || lives[i].expires_ns >= lives[i - 1].expires_ns);
        }
        if (count == 0) {
            break;
        }
        files += lives[0].first != file;
        file = lives[0].first;
        first = lives[count - 1].place + 1;
    }
    shmq_turn_end(&t);
    CHECK(files != 0 && files <= 1 + 3 * slots / (SHMQ_TURN_BYTES / 200));
    end();
}

/* It makes rows due earlier than their files were sorted by. Shows G5. */
TEST(max_ttl_holds_for_what_waits_on_disk) {
    begin();
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_at(q, i, shmq_now_ns() + HOUR + i * 7919 % MANY * SECOND, 0), SHMQ_OK);
    }
    CHECK(waiting() != 0);
    shmq_mover t;
    uint32_t rows;
    CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
    CHECK_EQUAL(shmq_waiting_store(&t), SHMQ_OK);
    while (shmq_heads_extend(&t, &rows) == SHMQ_OK) { /* as a look does before the change */
    }
    shmq_turn_end(&t);
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_TTL, .max_ttl_ns = SECOND / 100};
    int differs;
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_OK);
    for (uint64_t until = shmq_now_ns() + 60 * SECOND; census_of(q).delayed + census_of(q).ready != 0;) {
        shmq_upkeep_thorough(m);
        CHECK_EQUAL(get_number(theirs), UINT64_MAX);
        CHECK(shmq_now_ns() < until);
    }
    CHECK(waiting() == 0 && scratch_spill_files(false) == 0);
    end();
}

int main(void) { return run_tests(); }
