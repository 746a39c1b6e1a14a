/* Messages that have failed too often are found wherever they lie, for the dead letters, without a taker that comes to them. */
#include <sys/wait.h>

#include "faulty_backing.h"
#include "flow_select.h"

#define EVERY 100u

static uint64_t slots;

/* Takes the first `count` messages; gives them back, those whose number is a multiple of `every` as failed. */
static void fail_some(uint64_t count, uint64_t every) {
    static shmq_delivery held[MANY];
    CHECK(count <= MANY);
    for (uint64_t i = 0; i < count; i++) {
        held[i] = receive(q, shmq_self(q));
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_release(q, &held[i], number_of(&held[i]) % every == 0), SHMQ_OK);
    }
}

/* A ring full of messages, of which every hundredth has failed, and as many behind them: then the upper half of the first
 * is on disk. */
static void begin_failed(void) {
    begin();
    slots = shmq_slot_count(&q->first);
    CHECK(slots <= MANY && slots % 4 == 0);
    put_numbers(q, 0, slots);
    fail_some(slots, EVERY);
    put_numbers(q, slots, slots);
    CHECK(shmq_flow_rows(q) > slots / 2 && shmq_load_seq(&q->first.shm->low) < slots * 3 / 4);
    CHECK(shmq_load_seq(&q->first.shm->tried) <= slots && shmq_load_seq(&q->first.shm->tried) + EVERY > slots);
}

static void steal_each(uint64_t first, uint64_t below, uint64_t step) {
    shmq_delivery d;
    for (uint64_t i = first; i < below; i += step) {
        CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
}

/* Steals those of [from, below), and these alone. */
static void steal_failed(uint64_t from, uint64_t below, uint64_t every) {
    steal_each((from + every - 1) / every * every, below, every);
}

static void get_rest(uint64_t from, uint64_t failed_below, uint64_t every, uint64_t end_at) {
    for (uint64_t i = from; i < end_at; i++) {
        if (i % every != 0 || i >= failed_below) {
            CHECK_EQUAL(get_number(q), i);
        }
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
}

TEST(they_are_found_on_disk_in_their_order_and_others_stay_there) {
    begin_failed();
    shmq_delivery d;
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY); /* no limit */
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    uint64_t rows = shmq_flow_rows(q), low = shmq_load_seq(&q->first.shm->low);
    steal_failed(0, slots, EVERY);
    CHECK_EQUAL(rows - shmq_flow_rows(q), (slots + EVERY - 1) / EVERY - (low + EVERY - 1) / EVERY);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->low), low); /* what is not dead stays on disk */
    get_rest(0, slots, EVERY, 2 * slots);
    end();
}

/* One is in the front ring, since it was delivered once more; one in the back ring among rows, since a consumer had it when
 * they went. Shows G5. */
TEST(they_are_found_in_the_order_of_places_wherever_they_lie) {
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    fail_some(slots, EVERY);
    uint64_t among = slots * 7 / 8 / EVERY * EVERY, first = (slots / 2 + 2 * EVERY) / EVERY * EVERY;
    shmq_delivery held, front;
    CHECK_EQUAL(shmq_steal(&q->first, among, true, &held), SHMQ_OK);
    put_numbers(q, slots, slots);
    CHECK_EQUAL(shmq_put_back(q, &held), SHMQ_OK);
    get_numbers(q, 0, first);
    front = receive(q, shmq_self(q));
    CHECK(number_of(&front) == first && front.depth == q->levels);
    CHECK_EQUAL(shmq_release(q, &front, true), SHMQ_OK);
    CHECK(shmq_load_seq(&q->first.shm->low) < among);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    steal_failed(first, slots, EVERY);
    get_rest(first, slots, EVERY, 2 * slots);
    end();
}

/* Its lock is in another's hands: whoever looks for rows would say that it has missed it. */
static void looks_at_no_row(void) {
    shmq_mover t;
    shmq_delivery d;
    CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_load_seq(&q->page->missed), 0);
    shmq_turn_end(&t);
}

TEST(each_row_is_looked_at_once_until_the_settings_change) {
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    fail_some(slots, EVERY);
    fail_some(slots, 2 * EVERY);
    put_numbers(q, slots, slots);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 2);
    steal_failed(0, slots, 2 * EVERY);
    looks_at_no_row();
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 3);
    steal_failed(0, 0, EVERY);
    looks_at_no_row();
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    steal_each(EVERY, slots, 2 * EVERY);
    looks_at_no_row();
    get_rest(0, slots, EVERY, 2 * slots);
    end();
}

TEST(where_none_has_failed_nobody_looks_at_rows) {
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    fail_some(slots / 4, slots * 4 + 1); /* 0 */
    shmq_delivery held;
    CHECK_EQUAL(shmq_steal(&q->first, 0, true, &held), SHMQ_OK); /* so it stays in memory */
    put_numbers(q, slots, slots);
    CHECK_EQUAL(shmq_put_back(q, &held), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->tried), 0);
    steal_failed(0, 1, slots);
    looks_at_no_row();
    get_rest(1, 0, 1, 2 * slots);
    end();
}

/* Of a process that stands amid a turn, and of consumers with all slots of the front ring. */
TEST(what_cannot_come_in_now_is_found_later) {
    begin_failed();
    static shmq_delivery held[MANY];
    uint64_t count = 0, low = shmq_load_seq(&q->first.shm->low);
    uint64_t patience = m->patience_ns;
    m->patience_ns = 1000000;
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &theirs->first), SHMQ_OK);
    steal_failed(0, low, EVERY); /* no row comes before these */
    shmq_turn_end(&t);
    m->patience_ns = patience;
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 0);
    shmq_status status;
    while ((status = shmq_receive(theirs, &(shmq_taking){.owner = shmq_self(theirs)}, &held[count])) == SHMQ_OK) {
        count++;
    }
    CHECK(count == shmq_slot_count(shmq_front_of(&q->first)) && shmq_flow_rows(q) != 0);
    uint64_t first = (number_of(&held[count - 1]) / EVERY + 1) * EVERY, near = 0;
    const shmq_ring *front = shmq_front_of(&q->first);
    while ((held[near].position & front->mask) != (shmq_load_seq(&front->shm->tail) & front->mask)) {
        near++; /* the one in the way of the next one that comes in */
    }
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    steal_failed(0, 0, EVERY);
    CHECK_EQUAL(shmq_settle(theirs, &held[near]), SHMQ_OK);
    steal_failed(first, first + 1, EVERY);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(i == near || shmq_settle(theirs, &held[i]) == SHMQ_OK);
    }
    steal_failed(first + 1, slots, EVERY);
    get_rest(number_of(&held[count - 1]) + 1, slots, EVERY, 2 * slots);
    end();
}

/* Its caller keeps what it has, since the queue of dead letters is full. */
TEST(they_have_a_quarter_of_the_slots_at_most) {
    static shmq_delivery kept[MANY];
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    fail_some(slots, 1);
    put_numbers(q, slots, slots);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    uint64_t low = shmq_load_seq(&q->first.shm->low), count = 0;
    while (shmq_steal_poisoned(q, &kept[count]) == SHMQ_OK) {
        CHECK_EQUAL(number_of(&kept[count]), count);
        count++;
    }
    CHECK_EQUAL(count, low + shmq_slot_count(shmq_front_of(&q->first)) / 4);
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_settle(q, &kept[i]), SHMQ_OK);
    }
    steal_failed(count, slots, 1);
    get_rest(slots, 0, 1, 2 * slots);
    end();
}

/* So many failed in the hands of a consumer that chose them: they came in by themselves, and lie above rows that failed. */
TEST(those_that_a_consumer_chose_do_not_go_first) {
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    fail_some(slots, EVERY);
    put_numbers(q, slots, slots);
    uint64_t rest = EVERY - 1, chosen = shmq_slot_count(shmq_front_of(&q->first)) / 4 - 1;
    static shmq_delivery held[MANY];
    shmq_subscription by;
    shmq_subscription_begin(&by, is_of, &rest);
    uint64_t count = 0;
    while (count < chosen && select_now(theirs, &by, &held[count]) == SHMQ_OK) {
        count++;
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_release(theirs, &held[i], true), SHMQ_OK);
    }
    shmq_subscription_end(&by);
    CHECK(count > shmq_slot_count(shmq_front_of(&q->first)) / 32);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    shmq_delivery d;
    for (uint64_t i = 0; i < 2 * slots; i++) {
        bool failed = (i % EVERY == 0 && i < slots) || (i % EVERY == rest && i / EVERY < count);
        if (failed) {
            CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
            CHECK_EQUAL(number_of(&d), i);
            CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        }
    }
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    for (uint64_t i = 0; i < 2 * slots; i++) {
        bool failed = (i % EVERY == 0 && i < slots) || (i % EVERY == rest && i / EVERY < count);
        CHECK(failed || get_number(q) == i);
    }
    end();
}

/* Dead letters may go to disk, too: what has come in leaves room there, a file at a time. */
TEST(their_space_on_disk_is_free_as_they_go) {
    begin();
    slots = shmq_slot_count(&q->first);
    put_numbers(q, 0, slots);
    fail_some(slots, 1);
    put_numbers(q, slots, slots);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    uint64_t low = shmq_load_seq(&q->first.shm->low), size = shmq_flow_size(q);
    shmq_delivery d;
    for (uint64_t i = 0; i < low + 500; i++) {
        CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->low), low + 500);
    steal_failed(low + 500, slots, 1);
    CHECK(shmq_flow_size(q) < size);
    get_rest(slots, 0, 1, 2 * slots);
    end();
}

TEST(what_a_dead_mover_has_left_on_its_way_is_found) {
    begin();
    put_numbers(q, 0, 8);
    fail_some(8, 1);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        shmq_member *dying = scratch_attach_flowing();
        shmq_queue *its = scratch_flowing(dying, "jobs", MEMORY);
        faulty_begin(dying);
        faulty.at_write = FAULTY_DIES_BEFORE;
        (void)shmq_purger_make_room(its, NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(shmq_load_seq(&q->page->unfinished) != 0);
    steal_failed(0, 8, 1);
    reap_all(m, 1);
    end();
}

/* A process that died amid a change of the settings has left their seal open. */
TEST(under_an_open_seal_each_row_is_looked_at_once_too) {
    begin_failed();
    shmq_a64 *seal = &q->page->settings.seal;
    uint64_t sealed = shmq_load_seq(seal);
    shmq_store_seq(seal, sealed | UINT64_C(1) << 32);
    shmq_store_seq(&q->page->max_attempts, 2);
    steal_failed(0, 0, EVERY);
    looks_at_no_row();
    shmq_store_seq(&q->page->max_attempts, 1);
    steal_failed(0, slots, EVERY);
    looks_at_no_row();
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 3);
    get_rest(0, slots, EVERY, 2 * slots);
    end();
}

/* Housekeeping finds those, on disk as well, and counts them as expired. */
TEST(what_has_expired_too_is_left_to_that) {
    begin();
    slots = shmq_slot_count(&q->first);
    uint64_t ends = shmq_now_ns() + SECOND / 4, number = 0;
    put_numbers(q, 0, slots - EVERY);
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    for (uint32_t i = 0; i < EVERY; i++) {
        shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof number, .expires_ns = ends};
        CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    }
    fail_some(slots, 1);
    put_numbers(q, slots, slots);
    while (shmq_now_ns() < ends) {
        shmq_pause();
    }
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    uint64_t rows = shmq_flow_rows(q), low = shmq_load_seq(&q->first.shm->low);
    shmq_delivery d;
    for (uint64_t i = 0; i < slots - EVERY; i++) {
        CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_EMPTY);
    CHECK_EQUAL(rows - shmq_flow_rows(q), slots - EVERY - low);
    get_rest(slots, 0, 1, 2 * slots);
    CHECK_EQUAL(q->counters->expired, EVERY);
    end();
}

TEST(rows_that_cannot_be_read_are_told_of) {
    begin_failed();
    faulty_begin(m);
    scratch_alter(q, SHMQ_SET_MAX_ATTEMPTS, 1);
    uint64_t low = shmq_load_seq(&q->first.shm->low);
    shmq_delivery d;
    for (uint64_t i = 0; i < low; i += EVERY) {
        CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    faulty.reads = 1;
    CHECK_EQUAL(shmq_steal_poisoned(q, &d), SHMQ_OS);
    steal_failed(low, slots, EVERY);
    faulty_end(m);
    get_rest(0, slots, EVERY, 2 * slots);
    end();
}

int main(void) { return run_tests(); }
