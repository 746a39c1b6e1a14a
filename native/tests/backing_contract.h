/* Promises of every backing (`struct shmq_backing`), as one suite: each store has a subject, and all run the same. The
 * words are those of docs/protocol-flow.md#the-backing. Shows G8. */
#ifndef SHMQ_TESTS_BACKING_CONTRACT_H
#define SHMQ_TESTS_BACKING_CONTRACT_H

#include <string.h>

#include "base/crc32c.h"
#include "flow/flow.h"
#include "check.h"

#define CONTRACT_ROWS 64u
#define CONTRACT_LONGEST 500u

/* A store under test. Two views are what two processes have of it. */
typedef struct contract_subject {
    const char *name;
    void (*begin)(void); /* a new store, without rows */
    void (*end)(void);
    const shmq_backing *(*view)(uint32_t which); /* 0 or 1 */
    /* As a process that begins anew: what the view has in memory is gone. NULL: views have nothing in memory. */
    void (*forget)(uint32_t which);
    void (*fill)(bool full); /* there is room for no row, or for some again */
    bool (*other_level)(void); /* the views are of another level of the queue from here on. False: there is one only */
    uint64_t (*bytes)(void); /* on disk. NULL: nothing is */
    uint64_t (*counted)(uint64_t rows, uint64_t weight); /* as the budget counts them */
    uint64_t (*byte_count)(
        void); /* bytes at rest that may be changed; NULL: they are in memory, where nothing changes them */
    void (*flip)(uint64_t byte, uint8_t bits); /* of these; twice: as before */
} contract_subject;

static const contract_subject *subject;
static const shmq_backing *views[2];
static uint64_t erased, lowest; /* as the mover counts them; below which nothing is a row any more */

/* ---- rows, which say their place and prove that they are whole, as those of row.c do ---------------------------------- */

static inline uint64_t contract_length(uint64_t place) { return 100 + place * 37 % (CONTRACT_LONGEST - 100); }

static inline void contract_fill(uint64_t place, uint64_t version, unsigned char *bytes) {
    uint64_t length = contract_length(place), head[2] = {place, version};
    for (uint64_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)(place * 7 + version * 13 + i);
    }
    memcpy(bytes + 4, head, sizeof head);
    uint32_t sum = shmq_crc32c(0, bytes + 4, length - 4);
    memcpy(bytes, &sum, sizeof sum);
}

/* UINT64_MAX: it was changed, and its own checksum says so. */
static inline uint64_t contract_version(const shmq_row *row) {
    uint64_t head[2];
    uint32_t sum;
    if (row->length != contract_length(row->place)) {
        return UINT64_MAX;
    }
    memcpy(&sum, row->bytes, sizeof sum);
    memcpy(head, row->bytes + 4, sizeof head);
    bool sound = sum == shmq_crc32c(0, row->bytes + 4, row->length - 4) && head[0] == row->place;
    return sound ? head[1] : UINT64_MAX;
}

/* Places first, first + step, ... */
static inline shmq_status contract_write(uint32_t which, bool sweeps, uint64_t low, uint64_t from, uint64_t first,
                                         uint64_t step, uint32_t count, uint64_t version) {
    static unsigned char bytes[CONTRACT_ROWS][CONTRACT_LONGEST];
    shmq_row rows[CONTRACT_ROWS];
    CHECK(count <= CONTRACT_ROWS);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t place = first + i * step;
        contract_fill(place, version, bytes[i]);
        rows[i] = (shmq_row){.place = place,
                             .bytes = bytes[i],
                             .length = contract_length(place),
                             .enqueued_ns = place + 1,
                             .expires_ns = place % 3 * version};
    }
    return views[which]->write(views[which]->context, sweeps, low, from, rows, count);
}

static inline void contract_put(uint32_t which, uint64_t first, uint32_t count, uint64_t version) {
    CHECK_EQUAL(contract_write(which, false, 0, first, first, 1, count, version), SHMQ_OK);
}

static inline uint32_t contract_read(uint32_t which, uint64_t from, uint64_t below, uint64_t bytes, uint32_t most,
                                     shmq_row *rows) {
    uint32_t count = most;
    CHECK_EQUAL(views[which]->read(views[which]->context, erased, from, below, bytes, rows, &count), SHMQ_OK);
    CHECK(count <= most);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(rows[i].place >= from && rows[i].place < below && (i == 0 || rows[i].place > rows[i - 1].place));
    }
    return count;
}

/* From `first` on `count` rows are there, one at each `step`, as they were written; there are no others in between. */
static inline void contract_has(uint32_t which, uint64_t first, uint64_t step, uint32_t count, uint64_t version) {
    uint64_t from = first, seen = 0;
    shmq_row rows[7];
    for (uint32_t got; (got = contract_read(which, from, first + count * step, UINT64_MAX, 7, rows)) != 0;) {
        for (uint32_t i = 0; i < got; i++) {
            CHECK_EQUAL(rows[i].place, first + seen++ * step);
            CHECK(rows[i].bytes != NULL);
            CHECK_EQUAL(contract_version(&rows[i]), version);
        }
        from = rows[got - 1].place + 1;
    }
    CHECK_EQUAL(seen, count);
}

static inline void contract_has_none(uint32_t which, uint64_t from, uint64_t below) {
    shmq_row row;
    CHECK_EQUAL(contract_read(which, from, below, UINT64_MAX, 1, &row), 0);
}

static inline void contract_erase(uint32_t which, uint64_t place) {
    CHECK_EQUAL(views[which]->erase(views[which]->context, erased, place), SHMQ_OK);
    erased++;
}

static inline void contract_forget(uint32_t which) {
    subject->forget(which);
    views[which] = subject->view(which);
}

/* ---- what is promised -------------------------------------------------------------------------------------------------- */

/* Shows S118, S190. */
static void rows_come_back_as_they_were_put_and_in_their_order(void) {
    contract_has_none(0, 0, UINT64_MAX);
    contract_put(0, 1000, 40, 1);
    contract_put(0, 1040, 24, 1);
    contract_has(0, 1000, 1, 64, 1);
    contract_has_none(0, 0, 1000);
    contract_has_none(0, 1064, UINT64_MAX);
    CHECK_EQUAL(contract_write(0, false, 1000, 1064, 1070, 3, 20, 1), SHMQ_OK); /* with places that nobody has */
    contract_has(0, 1070, 3, 20, 1);
}

static void a_read_begins_anywhere_and_ends_where_it_was_told(void) {
    shmq_row rows[64];
    contract_put(0, 500, 30, 1);
    contract_put(0, 600, 30, 1);
    for (uint64_t from = 490; from < 640; from++) { /* forward, then backward */
        uint64_t first = from <= 500 ? 500 : from < 530 ? from : from <= 600 ? 600 : from;
        uint32_t count = contract_read(0, from, UINT64_MAX, 0, 64, rows);
        CHECK_EQUAL(count, first < 630); /* no bytes beyond the first: it comes whatever it has */
        CHECK(count == 0 || rows[0].place == first);
    }
    for (uint64_t from = 529; from >= 500; from--) {
        CHECK_EQUAL(contract_read(0, from, from + 1, UINT64_MAX, 64, rows), 1);
        CHECK_EQUAL(rows[0].place, from);
        CHECK_EQUAL(contract_version(&rows[0]), 1);
    }
    CHECK_EQUAL(contract_read(0, 510, 515, UINT64_MAX, 64, rows), 5);
    CHECK_EQUAL(contract_read(0, 510, 515, UINT64_MAX, 3, rows), 3);
    uint64_t two = contract_length(510) + contract_length(511);
    uint32_t count = contract_read(0, 510, 530, two, 64, rows);
    CHECK(count >= 2 && count <= 3); /* the last one may exceed what was asked for */
    CHECK_EQUAL(contract_read(0, 530, 600, UINT64_MAX, 64, rows), 0);
    CHECK_EQUAL(contract_read(0, 510, 510, UINT64_MAX, 64, rows), 0);
}

/* Shows S202. */
static void rows_that_a_dead_mover_left_go_with_the_next_write(void) {
    contract_put(0, 0, 20, 1);
    contract_put(0, 20, 20, 2); /* and it dies before it says so */
    CHECK_EQUAL(contract_write(1, true, 0, 20, 20, 1, 10, 3), SHMQ_OK);
    contract_has(1, 0, 1, 20, 1);
    contract_has(1, 20, 1, 10, 3);
    contract_has_none(1, 30, UINT64_MAX);
    contract_put(1, 30, 5, 4); /* dies, too */
    CHECK_EQUAL(contract_write(0, true, 0, 30, 0, 1, 0, 0), SHMQ_OK); /* there is none to put */
    contract_has_none(0, 30, UINT64_MAX);
    contract_has(0, 20, 1, 10, 3);
}

/* The sweeper names the rows that are left: all in between stay. */
static void a_sweep_takes_no_row_in_between(void) {
    contract_put(0, 0, 10, 1);
    contract_put(0, 10, 10, 1);
    contract_put(0, 20, 10, 1);
    CHECK_EQUAL(contract_write(0, true, 13, 30, 30, 1, 10, 1), SHMQ_OK);
    contract_has(0, 13, 1, 27, 1);
    contract_has(1, 13, 1, 27, 1);
}

static void what_one_process_writes_the_other_reads(void) {
    for (uint64_t turn = 0; turn < 12; turn++) {
        uint32_t writer = turn & 1;
        contract_put(writer, turn * 10, 10, turn);
        contract_has(!writer, turn * 10, 1, 10, turn);
        contract_has(writer, turn * 10, 1, 10, turn);
    }
    if (subject->forget != NULL) {
        contract_forget(0);
        contract_has(0, 60, 1, 10, 6);
        contract_has(0, 110, 1, 10, 11);
    }
}

/* Rows below `low` may have been deleted, or not. */
static void rows_stay_until_low_has_passed_them(void) {
    for (uint64_t turn = 0; turn < 6; turn++) {
        contract_put(turn & 1, turn * 10, 10, turn);
    }
    for (lowest = 0; lowest < 60; lowest++) {
        shmq_row row;
        CHECK_EQUAL(contract_read(lowest % 3 == 0, lowest, 60, 0, 1, &row), 1);
        CHECK_EQUAL(row.place, lowest);
        CHECK_EQUAL(contract_version(&row), lowest / 10);
    }
    CHECK_EQUAL(contract_write(0, true, lowest, 60, 60, 1, 5, 6), SHMQ_OK);
    contract_has(1, 60, 1, 5, 6);
}

static void what_was_read_stays_until_the_next_call(void) {
    contract_put(0, 0, 30, 1);
    contract_put(0, 30, 30, 1);
    shmq_row mine[30], other[30];
    CHECK_EQUAL(contract_read(0, 0, 30, UINT64_MAX, 30, mine), 30);
    CHECK_EQUAL(contract_read(1, 30, 60, UINT64_MAX, 30, other), 30);
    contract_put(1, 60, 4, 1);
    for (uint32_t i = 0; i < 30; i++) {
        CHECK(contract_version(&mine[i]) == 1 && contract_version(&other[i]) == 1);
    }
}

/* It has no bytes; or it is there no more. */
static bool is_gone(uint32_t which, uint64_t place) {
    shmq_row row;
    uint32_t count = contract_read(which, place, place + 1, UINT64_MAX, 1, &row);
    return count == 0 || row.bytes == NULL;
}

/* Shows S190, S191. */
static void an_erased_row_is_gone_for_everybody_and_no_other(void) {
    contract_put(0, 0, 30, 1);
    contract_put(0, 30, 30, 1);
    contract_has(1, 0, 1, 30, 1); /* its own copy */
    contract_erase(0, 0);
    contract_erase(1, 17);
    contract_erase(0, 59);
    for (uint32_t which = 0; which < 2; which++) {
        CHECK(is_gone(which, 0) && is_gone(which, 17) && is_gone(which, 59));
        contract_has(which, 1, 1, 16, 1);
        contract_has(which, 18, 1, 41, 1);
    }
    CHECK_EQUAL(views[0]->erase(views[0]->context, erased, 17), SHMQ_OK); /* as whoever comes to a death does */
    CHECK_EQUAL(views[0]->erase(views[0]->context, erased, 1000), SHMQ_OK); /* nobody has it */
    if (subject->forget != NULL) {
        contract_forget(1);
        CHECK(is_gone(1, 17));
        contract_has(1, 18, 1, 41, 1);
    }
}

/* Of [from, below), as they were written; how many of them are there. Erased ones may be told of. */
static uint32_t contract_lives(uint32_t which, uint64_t from, uint64_t below, uint64_t version) {
    shmq_row_life lives[7];
    uint32_t there = 0;
    for (uint32_t got = 7; from < below && got != 0; from = got != 0 ? lives[got - 1].place + 1 : below) {
        got = 7;
        CHECK_EQUAL(views[which]->list(views[which]->context, from, below, lives, &got), SHMQ_OK);
        CHECK(got <= 7);
        for (uint32_t i = 0; i < got; i++) {
            uint64_t place = lives[i].place;
            CHECK(place >= from && place < below && (i == 0 || place > lives[i - 1].place));
            CHECK_EQUAL(lives[i].length, contract_length(place));
            CHECK(lives[i].enqueued_ns == place + 1 && lives[i].expires_ns == place % 3 * version);
            there += !lives[i].gone;
        }
    }
    return there;
}

static void lives_are_listed_as_they_were_put_and_without_what_is_gone(void) {
    CHECK_EQUAL(contract_lives(0, 0, UINT64_MAX, 5), 0);
    contract_put(0, 10, 30, 5);
    contract_put(1, 50, 30, 5);
    CHECK_EQUAL(contract_write(0, false, 10, 100, 100, 4, 10, 5), SHMQ_OK);
    for (uint32_t which = 0; which < 2; which++) {
        CHECK_EQUAL(contract_lives(which, 0, UINT64_MAX, 5), 70);
        CHECK_EQUAL(contract_lives(which, 35, 55, 5), 10);
        CHECK_EQUAL(contract_lives(which, 40, 50, 5), 0);
        CHECK_EQUAL(contract_lives(which, 97, 109, 5), 3);
    }
    contract_erase(0, 12);
    contract_erase(1, 79);
    for (uint32_t which = 0; which < 2; which++) {
        CHECK_EQUAL(contract_lives(which, 0, UINT64_MAX, 5), 68);
        CHECK_EQUAL(contract_lives(which, 12, 13, 5), 0);
        CHECK_EQUAL(contract_lives(which, 79, 101, 5), 1);
    }
}

/* Those at these indices of what was listed, of rows from 100 on. A version of 0: it is gone. */
static void contract_pick(uint32_t which, const shmq_row_life *lives, const uint32_t *which_ones, uint32_t count,
                          uint64_t version) {
    shmq_row_life wanted[8];
    shmq_row rows[8];
    for (uint32_t i = 0; i < count; i++) {
        wanted[i] = lives[which_ones[i]];
    }
    CHECK_EQUAL(views[which]->pick(views[which]->context, wanted, rows, count), SHMQ_OK);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(rows[i].place == 100 + which_ones[i] && (rows[i].bytes == NULL) == (version == 0));
        CHECK(version == 0 || contract_version(&rows[i]) == version);
    }
}

static void some_rows_are_picked_and_dropped_whatever_else_their_write_has(void) {
    static const uint32_t first[] = {0, 1, 2, 9, 11, 12, 39}, others[] = {3, 8, 10, 13, 38}, last[] = {39};
    shmq_row_life lives[40], wanted[7];
    uint32_t count = 40;
    if (views[0]->pick == NULL) { /* its reads do as well */
        CHECK(views[0]->drop == NULL);
        return;
    }
    contract_put(0, 0, 10, 1);
    contract_put(0, 100, 40, 2);
    CHECK_EQUAL(views[1]->list(views[1]->context, 100, 200, lives, &count), SHMQ_OK);
    CHECK_EQUAL(count, 40);
    contract_pick(1, lives, first, 7, 2);
    contract_pick(1, lives, others, 5, 2);
    for (uint32_t i = 0; i < 7; i++) {
        wanted[i] = lives[first[i]];
    }
    for (uint32_t again = 0; again < 2; again++) { /* as who comes to a death does */
        CHECK_EQUAL(views[0]->drop(views[0]->context, wanted, 7), SHMQ_OK);
    }
    erased += 7;
    for (uint32_t which = 0; which < 2; which++) {
        contract_pick(which, lives, first, 7, 0);
        contract_pick(which, lives, others, 5, 2);
        CHECK_EQUAL(contract_lives(which, 100, 200, 2), 33);
        CHECK(is_gone(which, 100) && is_gone(which, 139) && !is_gone(which, 103));
    }
    CHECK_EQUAL(views[0]->discard(views[0]->context, 100), SHMQ_OK);
    shmq_row row;
    CHECK_EQUAL(views[1]->pick(views[1]->context, &lives[last[0]], &row, 1), SHMQ_NOT_FOUND);
    CHECK_EQUAL(views[1]->drop(views[1]->context, &lives[last[0]], 1), SHMQ_OK);
    contract_has(1, 0, 1, 10, 1);
}

/* Shows S190. */
static void nothing_is_left_of_what_was_cleared(void) {
    contract_put(0, 0, 30, 1);
    contract_put(0, 30, 30, 1);
    contract_has(1, 0, 1, 60, 1);
    CHECK_EQUAL(views[0]->clear(views[0]->context), SHMQ_OK);
    CHECK_EQUAL(views[0]->clear(views[0]->context), SHMQ_OK);
    contract_has_none(0, 0, UINT64_MAX);
    contract_put(1, 70, 10, 2);
    contract_has(0, 70, 1, 10, 2);
    contract_has(1, 70, 1, 10, 2);
}

/* Shows S202. */
static void without_room_nothing_is_written_and_all_else_goes_on(void) {
    contract_put(0, 0, 30, 1);
    subject->fill(true);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(contract_write(0, i == 2, 0, 30, 30, 1, 30, 2), SHMQ_NO_SPACE);
        CHECK(strlen(shmq_trail()) > 10);
        contract_has_none(0, 30, UINT64_MAX);
        contract_has(0, 0, 1, 30, 1);
        contract_has(1, 0, 1, 30, 1);
    }
    contract_erase(0, 5); /* needs no room */
    CHECK(is_gone(0, 5) && is_gone(1, 5));
    subject->fill(false);
    contract_put(0, 30, 30, 3);
    contract_has(1, 30, 1, 30, 3);
    contract_has(1, 6, 1, 24, 1);
}

static void without_room_all_can_be_cleared(void) {
    contract_put(0, 0, 30, 1);
    subject->fill(true);
    CHECK_EQUAL(views[0]->clear(views[0]->context), SHMQ_OK);
    subject->fill(false);
    contract_has_none(1, 0, UINT64_MAX);
}

/* Shows S190. */
static void levels_keep_their_rows_apart(void) {
    contract_put(0, 0, 30, 1);
    if (!subject->other_level()) {
        return;
    }
    views[0] = subject->view(0);
    contract_has_none(0, 0, UINT64_MAX);
    contract_put(0, 0, 30, 2);
    contract_has(0, 0, 1, 30, 2);
    contract_has(1, 0, 1, 30, 1);
    CHECK_EQUAL(views[0]->clear(views[0]->context), SHMQ_OK);
    contract_has(1, 0, 1, 30, 1);
}

/* The budget counts by `counted`: it is never less than what is there. Shows S134. */
static void rows_take_no_more_room_than_was_counted(void) {
    uint64_t weight = 0, rows = 0, place = 0;
    static const uint32_t counts[] = {1, 2, 30, CONTRACT_ROWS, 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        contract_put(0, place, counts[i], 1);
        for (uint32_t k = 0; k < counts[i]; k++) {
            weight += shmq_row_weight(contract_length(place + k));
        }
        place += counts[i];
        rows += counts[i];
        CHECK(subject->bytes() <= subject->counted(rows, weight) && subject->bytes() > weight);
    }
    CHECK_EQUAL(views[0]->clear(views[0]->context), SHMQ_OK);
    CHECK_EQUAL(subject->bytes(), 0);
}

/* Bits are flipped at rest: a row is as it was put, or its own checksum says that it is not, or it is not there. */
static void a_changed_byte_is_never_delivered(uint64_t seed, uint64_t flips) {
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1, spoilt = 0, missing = 0;
    contract_put(0, 0, 16, 1);
    contract_put(0, 16, 16, 1);
    contract_put(0, 32, 16, 1);
    contract_erase(0, 20);
    for (uint64_t i = 0; i < flips; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t byte = (state >> 16) % subject->byte_count();
        uint8_t bits = (uint8_t)(1u << (state & 7) | 1u << (state >> 4 & 7)); /* a mark is four bits from another one */
        subject->flip(byte, bits);
        contract_forget(1);
        uint32_t sound = 0, seen = 0;
        shmq_row rows[64];
        for (uint64_t from = 0; from < 48;) {
            uint32_t got = contract_read(1, from, 48, UINT64_MAX, 64, rows);
            for (uint32_t k = 0; k < got; k++) {
                uint64_t version = rows[k].bytes != NULL ? contract_version(&rows[k]) : 0;
                CHECK(version == 1 || version == UINT64_MAX || (version == 0 && rows[k].place == 20));
                sound += version == 1;
                seen++;
            }
            from = got != 0 ? rows[got - 1].place + 1 : 48;
        }
        CHECK(sound >= 31 && seen <= 48); /* two files of three are as they were */
        CHECK(contract_lives(1, 0, 48, 1) >= 31); /* and of the third one nothing else is said */
        spoilt += sound < 47 && seen == 48;
        missing += seen < 48;
        subject->flip(byte, bits);
    }
    CHECK(flips < 1000 || (spoilt > 0 && missing > 0)); /* of rows, and of what says where they are */
    contract_forget(1);
    contract_has(1, 0, 1, 20, 1);
    contract_has(1, 21, 1, 27, 1);
}

static inline void contract_begin(const contract_subject *of) {
    subject = of;
    erased = lowest = 0;
    subject->begin();
    views[0] = subject->view(0);
    views[1] = subject->view(1);
}

static inline void contract_hold(const contract_subject *of, uint64_t seed, uint64_t flips) {
    static void (*const all[])(void) = {rows_come_back_as_they_were_put_and_in_their_order,
                                        a_read_begins_anywhere_and_ends_where_it_was_told,
                                        rows_that_a_dead_mover_left_go_with_the_next_write,
                                        a_sweep_takes_no_row_in_between,
                                        what_one_process_writes_the_other_reads,
                                        rows_stay_until_low_has_passed_them,
                                        what_was_read_stays_until_the_next_call,
                                        an_erased_row_is_gone_for_everybody_and_no_other,
                                        some_rows_are_picked_and_dropped_whatever_else_their_write_has,
                                        lives_are_listed_as_they_were_put_and_without_what_is_gone,
                                        nothing_is_left_of_what_was_cleared,
                                        without_room_nothing_is_written_and_all_else_goes_on,
                                        without_room_all_can_be_cleared,
                                        levels_keep_their_rows_apart};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        contract_begin(of);
        all[i]();
        of->end();
    }
    if (of->bytes != NULL) {
        contract_begin(of);
        rows_take_no_more_room_than_was_counted();
        of->end();
    }
    if (of->byte_count != NULL) {
        contract_begin(of);
        a_changed_byte_is_never_delivered(seed, flips);
        of->end();
    }
}

#endif
