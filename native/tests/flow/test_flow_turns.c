/* Other movers are in the way: a call that does not wait gives up beside one whose turn does not end, and beside no others,
 * however long they keep it from its own turn. Shows G5. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

#include "put/overflow.h"
#include "flow_pair.h"

#define MANY 9000
#define PATIENCE (3 * SECOND / 10) /* more than a busy machine keeps the thread of these tests waiting */

/* The mover's lock of this queue, held by another process. */
static void lock_by_another(short how) {
    hold_mover_lock(other, q, how);
    if (how == F_WRLCK) {
        shmq_store_seq(&q->page->turns_begun, shmq_load_seq(&q->page->turns_begun) + 1);
    }
}

static void missed_for_a_turn(void) {
    while (shmq_load_seq(&q->page->missed) == 0) {
        sched_yield();
    }
    shmq_store_seq(&q->page->missed, 0);
    shmq_store_seq(&q->page->turns_begun, shmq_load_seq(&q->page->turns_begun) + 1);
    shmq_add_seq(&m->header->flushes, 1);
}

/* Others move, turn after turn, whenever the caller looks, for longer than the patience. Still others take up the room
 * that they make. */
static void *move_often(void *unused) {
    for (uint64_t end = shmq_now_ns() + PATIENCE + PATIENCE / 2; shmq_now_ns() < end;) {
        missed_for_a_turn();
    }
    lock_by_another(F_UNLCK);
    return unused;
}

static pthread_t movers;
static uint64_t began;

static void others_get_on(void) {
    lock_by_another(F_WRLCK);
    shmq_store_seq(&q->page->missed, 0);
    began = shmq_now_ns();
    CHECK(pthread_create(&movers, NULL, move_often, NULL) == 0);
}

static void they_have_ended(void) {
    CHECK(pthread_join(movers, NULL) == 0);
    CHECK(shmq_now_ns() - began > PATIENCE);
}

static void another_is_stopped(void) {
    lock_by_another(F_WRLCK);
    began = shmq_now_ns();
}

static void it_goes_on(void) {
    CHECK(shmq_now_ns() - began >= PATIENCE);
    lock_by_another(F_UNLCK);
}

/* Answers the first number of those that are all on disk, or behind the rows. */
static uint64_t begin_on_disk(void) {
    begin();
    m->patience_ns = other->patience_ns = PATIENCE;
    put_numbers(q, 0, MANY);
    uint64_t next = 0, number;
    another_is_stopped();
    while ((number = get_number(q)) != UINT64_MAX) {
        CHECK_EQUAL(number, next++);
    }
    it_goes_on();
    CHECK(next < MANY);
    return next;
}

static shmq_status take(uint64_t *number, uint64_t until_ns) {
    shmq_delivery d;
    const shmq_getting g = {.contents = 256, .copy = copy_number, .to = number, .until_ns = until_ns};
    return shmq_get(q, &g, &d);
}

TEST(a_taker_finds_what_is_on_disk_when_it_does_not_wait_or_no_longer) {
    uint64_t next = begin_on_disk(), number;
    others_get_on();
    CHECK_EQUAL(get_number(q), next++);
    they_have_ended();
    get_numbers(q, next, MANY - next);
    end();
    next = begin_on_disk();
    others_get_on();
    CHECK_EQUAL(take(&number, shmq_now_ns() + PATIENCE / 10), SHMQ_OK); /* it sleeps before that */
    they_have_ended();
    CHECK_EQUAL(number, next++);
    get_numbers(q, next, MANY - next);
    another_is_stopped();
    CHECK_EQUAL(get_number(q), UINT64_MAX); /* empty: no mover is asked */
    lock_by_another(F_UNLCK);
    end();
}

TEST(each_turn_is_counted) {
    begin();
    put_numbers(q, 0, MANY);
    uint32_t turns = shmq_load_seq(&q->page->turns_begun), flushes = shmq_load_seq(&m->header->flushes);
    CHECK(turns != 0);
    CHECK(flushes != 0);
    for (int i = 0; i < 3; i++) {
        shmq_mover t;
        CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
        CHECK_EQUAL(shmq_load_seq(&q->page->turns_begun), ++turns);
        shmq_turn_end(&t);
        CHECK_EQUAL(shmq_load_seq(&q->page->turns_begun), turns);
    }
    CHECK_EQUAL(shmq_load_seq(&m->header->flushes), flushes); /* these have moved nothing */
    get_numbers(q, 0, MANY);
    CHECK(shmq_load_seq(&q->page->turns_begun) > turns);
    end();
}

TEST(a_taker_gives_up_beside_one_that_is_stopped) {
    uint64_t next = begin_on_disk(), number;
    another_is_stopped();
    CHECK_EQUAL(take(&number, shmq_now_ns() + PATIENCE / 10), SHMQ_EMPTY);
    it_goes_on();
    get_numbers(q, next, MANY - next);
    end();
}

TEST(a_taker_of_several_queues_does_so_too) {
    uint64_t next = begin_on_disk();
    shmq_queue *second = scratch_flowing(m, "others", MEMORY);
    shmq_queue_wait of[2] = {{.q = second, .owner = shmq_self(second)}, {.q = q, .owner = shmq_self(q)}};
    shmq_delivery d;
    uint32_t from = 0;
    shmq_status status;
    another_is_stopped();
    while ((status = shmq_offer_wait_any(of, 2, 0, 0, &from, &d)) == SHMQ_INTERRUPTED) {
    }
    CHECK_EQUAL(status, SHMQ_EMPTY);
    it_goes_on();
    others_get_on();
    while ((status = shmq_offer_wait_any(of, 2, 0, 0, &from, &d)) == SHMQ_INTERRUPTED) {
    }
    they_have_ended();
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK_EQUAL(from, 1);
    CHECK_EQUAL(number_of(&d), next++);
    CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    get_numbers(q, next, MANY - next);
    shmq_queue_unbind(second);
    end();
}

static shmq_status put_at_once(uint64_t number, uint64_t until_ns) {
    shmq_status status;
    do {
        status = put_bytes(q, &number, sizeof number, until_ns);
    } while (status == SHMQ_INTERRUPTED);
    return status;
}

TEST(a_producer_finds_room_in_a_full_ring) {
    begin();
    m->patience_ns = other->patience_ns = PATIENCE;
    uint64_t put = shmq_slot_count(&q->first);
    put_numbers(q, 0, put);
    another_is_stopped();
    CHECK_EQUAL(put_at_once(put, 0), SHMQ_FULL_RING);
    it_goes_on();
    others_get_on();
    CHECK_EQUAL(put_at_once(put, 0), SHMQ_OK);
    they_have_ended();
    put++;
    put_numbers(q, put, 3000); /* as many as are free since */
    put += 3000;
    get_numbers(q, 0, put);
    end();
}

static void nothing(int signal) { (void)signal; }

/* Its caller comes again after each signal. */
TEST(a_producer_gives_up_also_when_signals_interrupt_it) {
    begin();
    m->patience_ns = other->patience_ns = PATIENCE;
    uint64_t put = shmq_slot_count(&q->first), interrupted = 0;
    put_numbers(q, 0, put);
    struct sigaction often = {.sa_handler = nothing}, before;
    struct itimerval each = {.it_interval = {.tv_usec = 2000}, .it_value = {.tv_usec = 2000}}, none = {0};
    CHECK(sigaction(SIGALRM, &often, &before) == 0 && setitimer(ITIMER_REAL, &each, NULL) == 0);
    another_is_stopped();
    struct iovec piece = {.iov_base = &put, .iov_len = sizeof put};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof put};
    shmq_status status;
    while ((status = shmq_put(q, &o, 0)) == SHMQ_INTERRUPTED) {
        interrupted++;
    }
    it_goes_on();
    CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0 && sigaction(SIGALRM, &before, NULL) == 0);
    CHECK_EQUAL(status, SHMQ_FULL_RING);
    CHECK(interrupted != 0);
    get_numbers(q, 0, put);
    end();
}

static unsigned char big[20000];

static shmq_status put_big(uint64_t until_ns) {
    struct iovec piece = {.iov_base = big, .iov_len = sizeof big};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof big};
    shmq_status status;
    while ((status = shmq_put(q, &o, until_ns)) == SHMQ_INTERRUPTED) {
    }
    if (status != SHMQ_OK) {
        shmq_unprepare(q, &o);
    }
    return status;
}

TEST(a_producer_finds_memory_that_others_free) {
    begin();
    m->patience_ns = other->patience_ns = PATIENCE;
    uint64_t put = 0, purged = 0;
    shmq_status status;
    another_is_stopped();
    while ((status = put_big(0)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    it_goes_on();
    others_get_on();
    CHECK_EQUAL(put_big(0), SHMQ_OK);
    they_have_ended();
    put++;
    another_is_stopped();
    while ((status = put_big(shmq_now_ns() + PATIENCE / 10)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    lock_by_another(F_UNLCK);
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, put);
    end();
}

static void limit_it(uint64_t count) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_MAXSIZE, count);
    shmq_declaration_give(&d, SHMQ_SET_OVERFLOW, SHMQ_OVERFLOW_DROP_OLDEST);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_OK);
}

TEST(a_producer_drops_the_oldest_though_it_is_on_disk) {
    uint64_t next = begin_on_disk();
    limit_it(MANY - next);
    others_get_on();
    CHECK_EQUAL(put_at_once(MANY, shmq_overflow_until(q, 0)), SHMQ_OK);
    they_have_ended();
    get_numbers(q, next + 1, MANY - next);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

TEST(a_full_ring_costs_no_message_while_others_get_on) {
    begin();
    m->patience_ns = other->patience_ns = PATIENCE;
    uint64_t put = shmq_slot_count(&q->first);
    limit_it(10 * put);
    put_numbers(q, 0, put);
    others_get_on();
    CHECK_EQUAL(put_at_once(put, shmq_overflow_until(q, 0)), SHMQ_OK);
    they_have_ended();
    get_numbers(q, 0, put + 1);
    put_numbers(q, 0, put);
    another_is_stopped();
    CHECK_EQUAL(put_at_once(put, shmq_overflow_until(q, 0)), SHMQ_OK); /* its own oldest goes, as without a disk */
    it_goes_on();
    get_numbers(q, 1, put);
    end();
}

/* Beside a mover that is stopped it is the oldest that can be had. */
TEST(beside_one_that_is_stopped_a_newer_one_is_dropped) {
    uint64_t next = begin_on_disk(), number, last, others = MANY - next;
    limit_it(others);
    another_is_stopped();
    CHECK_EQUAL(put_at_once(MANY, shmq_overflow_until(q, 0)), SHMQ_OK);
    it_goes_on();
    CHECK_EQUAL(last = get_number(q), next);
    for (; (number = get_number(q)) != UINT64_MAX; last = number, others--) {
        CHECK(number > last);
    }
    CHECK_EQUAL(last, MANY);
    CHECK_EQUAL(others, 1);
    end();
}

TEST(what_is_taken_by_its_place_comes) {
    uint64_t next = begin_on_disk();
    shmq_delivery d;
    uint64_t place = shmq_load_seq(&q->first.shm->low) + 100;
    others_get_on();
    CHECK_EQUAL(shmq_steal_at(&q->first, place, true, &d), SHMQ_OK);
    they_have_ended();
    CHECK_EQUAL(number_of(&d), next + 100);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    another_is_stopped();
    CHECK_EQUAL(shmq_steal_at(&q->first, place + 1, true, &d), SHMQ_IN_USE);
    it_goes_on();
    get_numbers(q, next, 100);
    get_numbers(q, next + 101, MANY - next - 101);
    end();
}

int main(void) { return run_tests(); }
