/* Looking at rows without taking them: what a browser is shown of rows that were changed or are gone, and since when the oldest waits. */
#include <pthread.h>
#include <stdlib.h>

#include "faulty_backing.h"
#include "flow_pair.h"
#include "memory_rows.h"

#define MANY UINT64_C(9000)

static uint64_t rows_of(shmq_queue *of, uint32_t depth) {
    return shmq_rows_of(shmq_level(of, depth)->shm, shmq_level(of, of->levels + depth)->shm).count;
}

/* One that was put at this time. */
static void put_at(shmq_queue *to, uint64_t number, uint8_t priority, uint64_t enqueued_ns) {
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number,
                       .priority = priority,
                       .enqueued_ns = enqueued_ns};
    CHECK_EQUAL(shmq_put(to, &o, 0), SHMQ_OK);
}

/* Rows in memory of this process, which a test may change. Places are numbers: the queue is new. */
static void begin_in_memory(void) {
    begin();
    m->backing_of = other->backing_of = memory_rows_of;
    put_numbers(q, 0, MANY);
    CHECK_EQUAL(memory_row_count, shmq_flow_rows(q));
}

static uint64_t peek_number(uint64_t *place) {
    shmq_delivery d;
    CHECK_EQUAL(shmq_flow_peek(&q->first, place, &d), SHMQ_OK);
    CHECK_EQUAL(d.depth, SHMQ_ON_DISK);
    return number_of(&d);
}

/* Other libraries have taken them all. In a process of its own, which has looked at no row yet. */
TEST(without_a_thread_s_key_a_look_at_rows_is_refused_and_said_why) {
    begin();
    put_numbers(q, 0, MANY);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_key_t key;
        shmq_delivery d;
        uint64_t place = 0;
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
        while (pthread_key_create(&key, NULL) == 0) {
        }
        for (int i = 0; i < 2; i++) {
            CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_OS);
            CHECK(strstr(shmq_trail(), "no pthread key is left") != NULL);
        }
        get_numbers(q, 0, MANY / 2); /* takers need none */
        CHECK_EQUAL(shmq_member_leave(m, false), SHMQ_OK);
        exit(0);
    }
    scratch_wait(child);
    get_numbers(q, MANY / 2, MANY / 2);
    end();
}

TEST(a_look_goes_to_the_first_row_at_or_above_a_place) {
    begin_in_memory();
    uint64_t first = memory_rows[0].place, place = 0;
    shmq_delivery d;
    CHECK_EQUAL(peek_number(&place), first);
    CHECK_EQUAL(place, first);
    place = first + 10;
    CHECK_EQUAL(peek_number(&place), first + 10);
    CHECK_EQUAL(place, first + 10);
    place = UINT64_MAX;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_EMPTY);
    get_numbers(q, 0, MANY);
    place = 0;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_EMPTY); /* it flows no more */
    CHECK_EQUAL(shmq_flow_fetch(&q->first, first), SHMQ_NOT_FOUND);
    end();
}

/* Its taker is told; a browser has none of it, and cannot be told each time that it looks. */
TEST(a_changed_row_is_passed_and_told_to_its_taker) {
    begin_in_memory();
    uint64_t number = memory_rows[0].place, place = 0, told = 0;
    unsigned char *bytes = (unsigned char *)(uintptr_t)memory_rows[0].bytes;
    bytes[memory_rows[0].length - 1] ^= 1;
    CHECK_EQUAL(peek_number(&place), number + 1);
    CHECK_EQUAL(place, memory_rows[1].place);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    for (uint64_t i = 0; i < MANY;) {
        uint64_t got;
        shmq_status status = try_number(q, &got);
        told += status == SHMQ_CORRUPT;
        i += status == SHMQ_CORRUPT; /* the one that was changed */
        if (status == SHMQ_OK) {
            CHECK_EQUAL(got, i++);
        }
    }
    CHECK_EQUAL(told, 1);
    end();
}

TEST(a_row_that_came_in_by_itself_is_passed) {
    begin_in_memory();
    uint64_t number = memory_rows[0].place, place = 0;
    const unsigned char *bytes = memory_rows[0].bytes;
    memory_rows[0].bytes = NULL; /* as a backing says that it was erased */
    CHECK_EQUAL(peek_number(&place), number + 1);
    memory_rows[0].bytes = bytes;
    place = 0;
    CHECK_EQUAL(peek_number(&place), number);
    get_numbers(theirs, 0, MANY);
    end();
}

/* A browser that goes on reads many rows in one turn. */
TEST(what_was_read_with_others_is_passed_when_it_has_gone) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = shmq_load_seq(&q->first.shm->low), first = peek_number(&place), turns;
    place++;
    CHECK_EQUAL(peek_number(&place), first + 1); /* and some more */
    place++;
    turns = shmq_load_seq(&q->page->turns_begun);
    CHECK_EQUAL(peek_number(&place), first + 2);
    CHECK_EQUAL(shmq_load_seq(&q->page->turns_begun), turns);
    place++;
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal_at(&theirs->first, place, true, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), first + 3);
    CHECK_EQUAL(peek_number(&place), first + 4);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    get_numbers(theirs, 0, first + 3);
    get_numbers(theirs, first + 4, 2);
    place = 0;
    CHECK_EQUAL(peek_number(&place), shmq_load_seq(&q->first.shm->low)); /* numbers are places here */
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_EMPTY);
    end();
}

TEST(a_browser_that_goes_back_among_what_it_has_read_sees_it_again) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = shmq_load_seq(&q->first.shm->low), first = peek_number(&place), turns;
    for (uint64_t i = 1; i < 20; i++) {
        place++;
        CHECK_EQUAL(peek_number(&place), first + i);
    }
    turns = shmq_load_seq(&q->page->turns_begun);
    for (uint64_t back = 19; back > 1; back--) { /* the first row was read by itself */
        uint64_t at = place - (19 - back);
        CHECK_EQUAL(peek_number(&at), first + back);
    }
    CHECK_EQUAL(shmq_load_seq(&q->page->turns_begun), turns);
    get_numbers(q, 0, MANY);
    end();
}

TEST(rows_of_a_broker_that_was_closed_are_not_those_of_the_next) {
    for (uint64_t from = 0; from < 10 * MANY; from += MANY) {
        begin();
        put_numbers(q, from, MANY);
        if (from / MANY % 2 != 0) { /* only every second one lies where one lay that this thread has looked at */
            get_numbers(q, from, MANY);
            end();
            continue;
        }
        uint64_t place = shmq_load_seq(&q->first.shm->low) + from / MANY, first = place; /* among what it has read */
        for (uint64_t i = 0; i < 10; i++, place++) {
            CHECK_EQUAL(peek_number(&place), from + first + i);
        }
        uint64_t purged;
        CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
        end();
    }
}

TEST(where_the_store_has_no_rows_a_look_ends) {
    begin();
    put_numbers(q, 0, MANY);
    shmq_delivery d;
    uint64_t place = 0;
    m->backing_of = memory_rows_of; /* where there are none, whatever the words say */
    CHECK_EQUAL(memory_row_count, 0);
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_flow_oldest(q), 0);
    m->backing_of = other->backing_of;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_OK);
    get_numbers(q, 0, MANY);
    end();
}

TEST(a_disk_that_cannot_be_read_is_told_to_who_looks) {
    begin();
    put_numbers(q, 0, MANY);
    faulty_begin(m);
    uint64_t place = 0;
    shmq_delivery d;
    faulty.reads = 1;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_OS);
    CHECK(strstr(shmq_trail(), "cannot be read") != NULL);
    faulty.reads = 1;
    CHECK_EQUAL(shmq_flow_oldest(q), 0);
    CHECK(strcmp(shmq_trail(), "") == 0); /* for who counts, nothing has failed */
    CHECK(shmq_flow_oldest(q) != 0);
    faulty_end(m);
    get_numbers(q, 0, MANY);
    end();
}

/* Of each level the first row; what lies in memory counts elsewhere. */
TEST(the_oldest_row_is_that_of_any_level) {
    begin();
    uint64_t since = shmq_now_ns() / 2; /* the machine may have been up for a minute */
    for (uint32_t oldest = 0; oldest < 3; oldest++) {
        shmq_queue *levels = scratch_levels(m, "levels", 0, 3);
        CHECK_EQUAL(shmq_flow_oldest(levels), 0);
        for (uint64_t i = 0; i < 1500; i++) {
            uint32_t depth = i % 3;
            uint8_t priority = (uint8_t)((2 - depth) * 4);
            put_at(levels, i, priority, since + i * 1000 + (depth == oldest ? 0 : SECOND));
        }
        CHECK_EQUAL(shmq_flow_oldest(levels), 0); /* all of it is in memory */
        for (uint32_t depth = 0; depth < 3; depth++) {
            CHECK_EQUAL(shmq_purger_make_room(levels, NULL), SHMQ_OK);
        }
        CHECK(rows_of(levels, 0) > 0 && rows_of(levels, 1) > 0 && rows_of(levels, 2) > 0);
        uint64_t place = 0;
        shmq_delivery d;
        CHECK_EQUAL(shmq_flow_peek(shmq_level(levels, oldest), &place, &d), SHMQ_OK);
        uint64_t number = number_of(&d);
        CHECK_EQUAL(number % 3, oldest);
        CHECK_EQUAL(shmq_flow_oldest(levels), since + number * 1000);
        m->backing_of = NULL;
        CHECK_EQUAL(shmq_flow_oldest(levels), 0); /* this process does not know where rows are */
        m->backing_of = other->backing_of;
        CHECK_EQUAL(shmq_queue_delete(levels), SHMQ_OK);
        shmq_queue_unbind(levels);
    }
    end();
}

TEST(while_another_moves_nobody_knows_the_oldest) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t oldest = shmq_flow_oldest(q), place = 3000;
    shmq_delivery d;
    CHECK(oldest != 0);
    CHECK_EQUAL(peek_number(&place), 3000); /* so this thread has the oldest no more */
    place = 4000;
    hold_mover_lock(other, q, F_WRLCK);
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_flow_oldest(q), 0);
    hold_mover_lock(other, q, F_UNLCK);
    CHECK_EQUAL(shmq_flow_oldest(q), oldest);
    get_numbers(theirs, 0, MANY);
    end();
}

int main(void) { return run_tests(); }
