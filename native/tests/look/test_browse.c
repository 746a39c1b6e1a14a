/* Looking on: browsers, counts, waits that end for a reason, and words that make no sense to any of them. */
#include <pthread.h>

#include "ring/ring.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", maxsize, true);
}

static void end(void) {
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_sweep_own(m), SHMQ_OK);
    scratch_detach(m);
    scratch_remove();
}

/* The messages that a browser sees from 0 on, as a number with a digit a message. */
static uint64_t shown(void) {
    uint64_t position = 0, all = 0;
    shmq_delivery d;
    while (shmq_browse(&q->first, &position, &d) == SHMQ_OK) {
        all = all * 10 + number_of(&d);
        CHECK(shmq_browse_valid(&q->first, &d));
        position++;
    }
    return all;
}

TEST(test_a_mover_passes_what_consumers_hold_and_nothing_else) {
    begin(0);
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    shmq_delivery held[3];
    for (uint32_t i = 0; i < 3; i++) {
        held[i] = receive(q, shmq_self(q));
    }
    const uint64_t first = held[0].position;
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 3);
    CHECK_EQUAL(shmq_release(q, &held[1], false), SHMQ_OK);
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 1);
    CHECK_EQUAL(shmq_pass_held(&q->first, first + 1), first + 1);
    CHECK_EQUAL(shmq_pass_held(&q->first, first + 5), first + 5);
    CHECK_EQUAL(shmq_settle(q, &held[0]), SHMQ_OK);
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 1); /* what has gone, too */
    CHECK_EQUAL(shmq_pass_held(&q->first, first + 2), first + 3);
    CHECK_EQUAL(shmq_settle(q, &held[2]), SHMQ_OK);
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 1);
    shmq_delivery second = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 3); /* it goes on behind what it has passed */
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 3);
    CHECK_EQUAL(shmq_release(q, &second, false), SHMQ_OK);
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 1);
    second = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 3);
    CHECK_EQUAL(shmq_release_until(q, &second, false, shmq_now_ns() + UINT64_C(10000000000)), SHMQ_OK);
    CHECK_EQUAL(shmq_pass_held(&q->first, first), first + 1); /* a mover takes what is delayed */
    end();
}

/* Shows S1, S20, S30. */
TEST(test_a_browser_sees_what_is_there_in_order_whoever_holds_it) {
    begin(0);
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    CHECK_EQUAL(shown(), 12345);
    shmq_delivery first = receive(q, shmq_self(q)), second = receive(q, shmq_self(q)), third;
    CHECK_EQUAL(shmq_lock(q, &first), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &third), SHMQ_OK);
    CHECK_EQUAL(shown(), 12345);
    CHECK_EQUAL(shmq_settle(q, &second), SHMQ_OK);
    CHECK_EQUAL(shown(), 1345);
    CHECK(!shmq_browse_valid(&q->first, &second));
    shmq_offer_cancel(q, &third);
    CHECK_EQUAL(shmq_settle(q, &first), SHMQ_OK);
    CHECK_EQUAL(shown(), 345);
    end();
}

TEST(test_a_browser_sees_entries_that_the_ring_has_turned_over) {
    begin(0);
    shmq_delivery old[3];
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
        old[i - 1] = receive(q, shmq_self(q));
    }
    for (uint64_t i = 0; i < 2 * shmq_slot_count(&q->first); i++) {
        CHECK_EQUAL(put_number(q, 9), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 9);
    }
    CHECK_EQUAL(put_number(q, 4), SHMQ_OK);
    CHECK_EQUAL(shown(), 1234);
    shmq_census census = census_of(q);
    CHECK_EQUAL(census.unsettled, 3);
    CHECK_EQUAL(census.ready, 1);
    CHECK_EQUAL(census.first_position, old[0].position);
    CHECK_EQUAL(shmq_release(q, &old[1], true), SHMQ_OK);
    CHECK(shmq_ring_ready(q));
    CHECK_EQUAL(get_number(q), 2);
    CHECK_EQUAL(shmq_settle(q, &old[0]), SHMQ_OK);
    CHECK_EQUAL(shown(), 34);
    CHECK_EQUAL(shmq_settle(q, &old[2]), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 4);
    CHECK_EQUAL(shown(), 0);
    CHECK(!shmq_ring_ready(q));
    uint64_t beyond = shmq_load_seq(&q->first.shm->tail) + 5;
    shmq_delivery d;
    CHECK_EQUAL(shmq_browse(&q->first, &beyond, &d), SHMQ_EMPTY);
    end();
}

/* Shows S1, E1, E3. */
TEST(test_a_browser_stops_at_a_claim_and_passes_that_of_the_dead) {
    begin(0);
    shmq_member *other = scratch_attach();
    shmq_queue *theirs = scratch_queue(other, "jobs", 0, true);
    uint64_t position = claim_by_hand(theirs), at = 0;
    CHECK_EQUAL(put_number(q, 5), SHMQ_OK);
    shmq_delivery d;
    CHECK_EQUAL(shmq_browse(&q->first, &at, &d), SHMQ_EMPTY);
    CHECK(at == position && d.word != 0);
    shmq_status status;
    do {
        status = shmq_browse_wait(q, &at, shmq_now_ns() + 3000000);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_EMPTY);
    scratch_kill(other);
    CHECK_EQUAL(shown(), 5);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    end();
}

typedef struct waiting {
    shmq_status status;
    shmq_delivery d;
    uint32_t owner, row;
    int kind;
    shmq_a32 done;
} waiting;

static void *wait_thread(void *argument) {
    waiting *w = argument;
    uint64_t until = shmq_now_ns() + 20 * SECOND;
    do {
        if (w->kind == 0) {
            w->status = shmq_offer_wait(q, w->owner, w->row, until, &w->d);
        } else if (w->kind == 1) {
            w->status = shmq_browse_wait(q, &(uint64_t){0}, until);
        } else {
            w->status = shmq_ring_join(q, until);
        }
    } while (w->status == SHMQ_INTERRUPTED);
    shmq_store_seq(&w->done, 1);
    return NULL;
}

static void until_somebody_sleeps(void) {
    while (!shmq_anybody_idle(q) && shmq_load_seq(&q->page->sleepers[0].browse) == 0) {
        usleep(1000);
    }
}

/* Shows S53, C11. */
TEST(test_a_wait_ends_with_a_message_a_shutdown_or_the_close_of_its_consumer) {
    begin(0);
    pthread_t thread;
    waiting w = {.owner = shmq_self(q)};
    CHECK(pthread_create(&thread, NULL, wait_thread, &w) == 0);
    until_somebody_sleeps();
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(w.status, SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(q, &w.d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &w.d), SHMQ_OK);
    for (uint32_t how = SHMQ_DRAINING; how <= SHMQ_STOPPED; how++) {
        CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_OPEN), SHMQ_OK);
        CHECK(pthread_create(&thread, NULL, wait_thread, &w) == 0);
        until_somebody_sleeps();
        CHECK_EQUAL(shmq_queue_shut_down(q, how), SHMQ_OK);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_EQUAL(w.status, SHMQ_SHUT_DOWN);
        CHECK_EQUAL(put_number(q, 1), SHMQ_SHUT_DOWN);
        CHECK_EQUAL(shmq_offer_wait(q, shmq_self(q), 0, 0, &w.d), SHMQ_SHUT_DOWN);
        CHECK_EQUAL(shmq_browse_wait(q, &(uint64_t){0}, shmq_now_ns() + SECOND), SHMQ_SHUT_DOWN);
    }
    CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_OPEN), SHMQ_OK);
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &w.row), SHMQ_OK);
    w.owner = w.row;
    CHECK(pthread_create(&thread, NULL, wait_thread, &w) == 0);
    until_somebody_sleeps();
    shmq_row_closing(q, w.row);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(w.status, SHMQ_CLOSED);
    CHECK_EQUAL(shmq_row_close(q, w.row), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(q, w.row), SHMQ_OK); /* once more: nothing to do */
    w = (waiting){.kind = 1};
    CHECK(pthread_create(&thread, NULL, wait_thread, &w) == 0);
    until_somebody_sleeps();
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(w.status, SHMQ_OK);
    end();
}

TEST(test_join_ends_when_the_last_message_is_settled) {
    begin(0);
    CHECK_EQUAL(shmq_ring_join(q, 0), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(shmq_ring_join(q, 0), SHMQ_TIMEOUT);
    uint64_t until = shmq_now_ns() + 3000000;
    shmq_status status;
    while ((status = shmq_ring_join(q, until)) == SHMQ_INTERRUPTED) {
    }
    CHECK_EQUAL(status, SHMQ_TIMEOUT);
    CHECK_EQUAL(shmq_ring_join(q, shmq_now_ns() + 60 * SECOND), SHMQ_INTERRUPTED); /* a piece of it */
    pthread_t thread;
    waiting w = {.kind = 2};
    CHECK(pthread_create(&thread, NULL, wait_thread, &w) == 0);
    while (shmq_load_seq(&q->first.shm->joiners) == 0) {
        usleep(1000);
    }
    CHECK_EQUAL(get_number(q), 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(w.status, SHMQ_OK);
    CHECK_EQUAL(shmq_offer_wait(q, shmq_self(q), 0, shmq_now_ns() + 60 * SECOND, &w.d), SHMQ_INTERRUPTED);
    CHECK_EQUAL(shmq_browse_wait(q, &(uint64_t){0}, shmq_now_ns() + 60 * SECOND), SHMQ_INTERRUPTED);
    end();
}

TEST(test_headers_and_body_come_as_they_were_put_inline_and_in_a_block) {
    begin(0);
    static unsigned char body[3000], headers[300];
    memset(body, 'b', sizeof body);
    memset(headers, 'h', sizeof headers);
    for (uint32_t length = 10; length <= sizeof body; length += sizeof body - 10) {
        struct iovec pieces[2] = {{body, length / 2}, {body, length - length / 2}};
        shmq_outgoing o = {
            .headers = headers, .headers_len = 20, .pieces = pieces, .piece_count = 2, .body_len = length};
        CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK(d.headers_len == 20 && d.body_len == length);
        CHECK(memcmp(d.headers, headers, 20) == 0 && memcmp(d.bytes, body, length) == 0);
        CHECK(shmq_delivery_intact(q, &d));
        unsigned char *byte = (unsigned char *)(uintptr_t)(d.bytes + length - 1);
        *byte ^= 1;
        CHECK(!shmq_delivery_intact(q, &d));
        *byte ^= 1;
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    shmq_outgoing large = {.body_len = SHMQ_BODY_MAX + 1};
    CHECK_EQUAL(shmq_put(q, &large, 0), SHMQ_TOO_LARGE);
    large = (shmq_outgoing){.headers_len = SHMQ_HEADERS_MAX + 1};
    CHECK_EQUAL(shmq_put(q, &large, 0), SHMQ_TOO_LARGE);
    shmq_outgoing empty = {0};
    CHECK_EQUAL(shmq_put(q, &empty, 0), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK(d.body_len == 0 && shmq_delivery_intact(q, &d));
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

/* A slot says something impossible: it is set aside, told once, and everybody goes on with the next. Shows E20. */
TEST(test_slots_that_make_no_sense_are_set_aside) {
    begin(0);
    const uint32_t states[] = {SHMQ_PENDING, 13, 12, 15};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        uint64_t t = shmq_load_seq(&q->first.shm->tail);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
        CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
        shmq_store_seq(&shmq_slot_at(&q->first, t)->word, shmq_word(shmq_lap_of(&q->first, t), 0, 0, 0, states[i]));
        shmq_delivery d;
        CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_CORRUPT);
        CHECK_EQUAL(state_at(q, t), SHMQ_BROKEN);
        CHECK_EQUAL(get_number(q), 2);
    }
    uint64_t t = shmq_load_seq(&q->first.shm->tail);
    CHECK_EQUAL(put_number(q, 3), SHMQ_OK);
    shmq_store_seq(&shmq_slot_at(&q->first, t)->position, t + 1);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_CORRUPT);
    CHECK_EQUAL(put_number(q, 4), SHMQ_OK);
    shmq_slot_at(&q->first, t + 1)->body = shmq_body_ref(8192, 0); /* no block there */
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_CORRUPT);
    CHECK_EQUAL(put_number(q, 5), SHMQ_OK);
    shmq_slot_at(&q->first, t + 2)->body_len = 5000; /* does not fit */
    uint64_t position = t + 2;
    CHECK_EQUAL(shmq_browse(&q->first, &position, &d), SHMQ_EMPTY); /* passed */
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_CORRUPT);
    shmq_census census = census_of(q);
    CHECK_EQUAL(census.broken, 7);
    CHECK_EQUAL(census.ready, 0);
    /* A lap of long ago under the tail: no producer passes it as it is. */
    t = shmq_load_seq(&q->first.shm->tail);
    for (uint64_t i = 0; i < 3 * shmq_slot_count(&q->first); i++) {
        CHECK_EQUAL(put_number(q, 9), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 9);
    }
    t = shmq_load_seq(&q->first.shm->tail);
    while (state_at(q, t) == SHMQ_BROKEN) {
        CHECK_EQUAL(put_number(q, 9), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 9);
        t = shmq_load_seq(&q->first.shm->tail);
    }
    shmq_store_seq(&shmq_slot_at(&q->first, t)->word, 0);
    CHECK_EQUAL(put_number(q, 6), SHMQ_CORRUPT);
    CHECK_EQUAL(put_number(q, 7), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 7);
    end();
}

/* Behind the last number comes 0, from which the way to the tail would begin again. */
TEST(test_a_tail_at_the_last_number_ends_all_walks) {
    begin(0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    uint64_t tail = shmq_load_seq(&q->first.shm->tail), position = 0;
    for (uint64_t damaged = UINT64_MAX - 2; damaged != 0; damaged++) {
        shmq_store_seq(&q->first.shm->tail, damaged);
        shmq_delivery d;
        for (position = 0; shmq_browse(&q->first, &position, &d) == SHMQ_OK; position++) {
        }
        CHECK(!shmq_ring_ready(q));
        shmq_census census = {0};
        shmq_ring_count(q, &census);
    }
    shmq_store_seq(&q->first.shm->tail, tail);
    CHECK_EQUAL(shown(), 1);
    end();
}

TEST(test_a_row_whose_memory_is_damaged_wakes_nobody_and_harms_nobody) {
    begin(0);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &row), SHMQ_OK);
    uint64_t chunk = shmq_load_seq(&q->page->chunks[0]);
    const uint64_t wrong[] = {8, m->size, UINT64_MAX & ~UINT64_C(8191)};
    CHECK(shmq_row_at(q, 0) == NULL && shmq_row_at(q, SHMQ_CONSUMER_ROWS) == NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        shmq_delivery d;
        shmq_store_seq(&q->page->chunks[0], wrong[i]);
        CHECK(shmq_row_at(q, row) == NULL);
        shmq_or_seq(&q->page->sleepers[0].idle, UINT64_C(1) << row);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
        CHECK_EQUAL(get_number(q), 1);
        shmq_row_closing(q, row);
        CHECK_EQUAL(shmq_offer_wait(q, row, row, shmq_now_ns() + 20 * SECOND, &d), SHMQ_CORRUPT);
        (void)shmq_row_close(q, row); /* an error or nothing: never a crash */
    }
    shmq_store_seq(&q->page->chunks[0], chunk);
    CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK);
    end();
}

/* More threads wait at a time than one chunk has rows, and than a handle keeps. */
TEST(test_rows_run_into_the_next_chunk_and_out_of_numbers) {
    begin(0);
    uint32_t rows[SHMQ_CONSUMER_ROWS], more;
    for (uint32_t i = 0; i < SHMQ_CONSUMER_ROWS - 1; i++) {
        if (i == SHMQ_CONSUMERS) {
            CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &more), SHMQ_LIMIT);
        }
        CHECK_EQUAL(shmq_row_open(q, i < SHMQ_CONSUMERS ? SHMQ_CONSUMER : SHMQ_GETTER, &rows[i]), SHMQ_OK);
        CHECK_EQUAL(rows[i], i + 1);
    }
    CHECK_EQUAL(shmq_row_open(q, SHMQ_GETTER, &more), SHMQ_LIMIT);
    CHECK_EQUAL(shmq_row_borrow(q, &more), SHMQ_LIMIT);
    for (uint32_t i = 0; i < SHMQ_CONSUMER_ROWS - 1; i++) {
        if (i < SHMQ_SPARE_ROWS + 3) {
            shmq_row_return(q, rows[i]); /* the last three are too many to keep */
        } else {
            CHECK_EQUAL(shmq_row_close(q, rows[i]), SHMQ_OK);
        }
    }
    CHECK_EQUAL(q->spare_count, SHMQ_SPARE_ROWS);
    CHECK_EQUAL(shmq_row_borrow(q, &more), SHMQ_OK);
    shmq_row_return(q, more);
    end();
}

int main(void) { return run_tests(); }
