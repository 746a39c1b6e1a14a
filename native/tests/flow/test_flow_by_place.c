/* Entries of a queue that has flowed, by their places: taken away and settled, wherever they are. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "put/overflow.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "faulty_backing.h"
#include "flow_pair.h"

#define MANY 20000

static uint64_t flow(void) { return shmq_load_seq(&q->first.shm->flow); }
static uint64_t low(void) { return shmq_load_seq(&q->first.shm->low); }

/* As an operator does it: nobody has it. */
static shmq_status take_at(shmq_queue *of, uint64_t place, uint64_t *number) {
    shmq_delivery d;
    shmq_status status = shmq_steal_at(&of->first, place, true, &d);
    if (status == SHMQ_OK) {
        *number = number_of(&d);
        CHECK_EQUAL(shmq_place_of(of, &d), place);
        CHECK_EQUAL(shmq_settle(of, &d), SHMQ_OK);
    }
    return status;
}

/* Some places have no entry. */
static uint64_t next_place(uint64_t place) {
    shmq_delivery d;
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    return place;
}

static uint64_t place_of_number(uint64_t wanted) {
    uint64_t place = 0;
    shmq_delivery d;
    for (; shmq_browse_place(&q->first, &place, &d) == SHMQ_OK; place++) {
        if (number_of(&d) == wanted) {
            return place;
        }
    }
    CHECK(!"no such number");
    return 0;
}

/* Until some have come back from disk. Answers how many were taken. */
static uint64_t get_until_some_are_back(void) {
    uint64_t taken = 0;
    while (shmq_load_seq(&q->first.shm->pulled) == 0) {
        get_numbers(q, taken++, 1);
    }
    return taken;
}

/* Shows S103. */
TEST(one_is_taken_from_each_home) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t gone = get_until_some_are_back();
    CHECK(shmq_flow_is_on(flow()));
    uint64_t front = low(), position = 0, number;
    while (!shmq_front_find(shmq_front_of(&q->first), front, &position)) {
        CHECK(front-- != 0);
    }
    uint64_t disk = next_place(low() + 3), back = next_place(shmq_flow_place(flow()) + 5);
    CHECK(disk < shmq_flow_place(flow()));
    uint64_t homes[] = {front, disk, back}, taken[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(take_at(theirs, homes[i], &taken[i]), SHMQ_OK);
        CHECK_EQUAL(take_at(q, homes[i], &number), SHMQ_EMPTY);
    }
    CHECK_EQUAL(take_at(q, shmq_load_seq(&q->first.shm->tail) + 9, &number), SHMQ_EMPTY);
    for (uint64_t i = gone; i < MANY; i++) {
        if (i != taken[0] && i != taken[1] && i != taken[2]) {
            CHECK_EQUAL(get_number(q), i);
        }
    }
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

TEST(what_somebody_has_is_taken_only_by_force) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t gone = get_until_some_are_back();
    shmq_delivery held = receive(theirs, shmq_self(theirs)), d;
    CHECK(held.depth == 1); /* it has come back from disk */
    uint64_t place = shmq_place_of(theirs, &held);
    CHECK_EQUAL(shmq_steal_at(&q->first, place, true, &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_steal_at(&q->first, place, false, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &held), SHMQ_SETTLED);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    get_numbers(q, gone + 1, MANY - gone - 1);
    end();
}

/* Nothing that lies before it comes with it. */
TEST(one_deep_on_disk_comes_by_itself) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t number, deep = place_of_number(MANY - 5000), rows = shmq_flow_rows(q);
    CHECK(deep < shmq_flow_place(flow()));
    CHECK_EQUAL(take_at(q, deep, &number), SHMQ_OK);
    CHECK_EQUAL(number, MANY - 5000);
    CHECK_EQUAL(shmq_flow_rows(q), rows - 1);
    CHECK_EQUAL(take_at(q, deep, &number), SHMQ_EMPTY);
    get_numbers(theirs, 0, MANY - 5000);
    get_numbers(q, MANY - 4999, 4999);
    end();
}

TEST(what_is_below_a_place_is_discarded_in_all_homes) {
    begin();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, 100);
    shmq_delivery held = receive(theirs, shmq_self(theirs)); /* stays: somebody has it */
    CHECK_EQUAL(number_of(&held), 100);
    uint64_t left = MANY - 101, numbers[] = {150, 700, 3000, 3001, MANY - 50};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t discarded = 0, place = place_of_number(numbers[i]);
        shmq_status status;
        while ((status = shmq_discard_below(&theirs->first, place, &discarded)) == SHMQ_INTERRUPTED) {
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK_EQUAL(discarded, left - (MANY - numbers[i]));
        left = MANY - numbers[i];
        shmq_census c = census_of(q);
        CHECK_EQUAL(c.ready, left);
        CHECK_EQUAL(c.unsettled, 1);
        CHECK_EQUAL(c.bytes, 8 * (left + 1));
        scratch_examine_queue(q->index, true);
    }
    CHECK_EQUAL(shmq_release(theirs, &held, false), SHMQ_OK);
    CHECK_EQUAL(get_number(q), 100);
    get_numbers(q, MANY - 50, 50);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    end();
}

TEST(all_of_it_may_be_discarded) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t discarded = 0;
    CHECK_EQUAL(shmq_discard_below(&q->first, UINT64_MAX >> 20, &discarded), SHMQ_OK);
    CHECK_EQUAL(discarded, MANY);
    CHECK_EQUAL(scratch_spill_files(false), 0);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, MANY);
    end();
}

/* ---- the oldest goes for the newest --------------------------------------------------------------------------------- */

TEST(the_oldest_is_dropped_wherever_it_is) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t next = 0;
    while (next < MANY - 2000) {
        for (uint64_t i = 0; i < 700; i++, next++) {
            CHECK(shmq_drop_oldest(next % 2 != 0 ? q : theirs, 0, SHMQ_FULL_COUNT, NULL));
        }
        get_numbers(q, next++, 1);
        shmq_delivery held = receive(theirs, shmq_self(theirs)); /* also one that somebody has */
        CHECK_EQUAL(number_of(&held), next++);
        CHECK(shmq_drop_oldest(q, 0, SHMQ_FULL_BYTES, NULL));
        CHECK_EQUAL(shmq_settle(theirs, &held), SHMQ_SETTLED);
    }
    while (shmq_drop_oldest(q, 0, SHMQ_FULL_COUNT, NULL)) {
        next++;
    }
    CHECK_EQUAL(next, MANY);
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    put_numbers(q, 0, 2000); /* of a full ring it is one of the back ring */
    CHECK(shmq_drop_oldest(q, 0, SHMQ_FULL_RING, NULL));
    get_numbers(theirs, 1, 1999);
    end();
}

/* A fetched entry lies in the front ring between entries that are older. */
TEST(what_was_fetched_is_dropped_in_its_turn) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t next = get_until_some_are_back();
    shmq_delivery far, held;
    CHECK_EQUAL(shmq_steal_at(&q->first, place_of_number(next + 9000), true, &far), SHMQ_OK);
    CHECK_EQUAL(shmq_put_back(q, &far), SHMQ_OK);
    CHECK(shmq_load_seq(&shmq_front_of(&q->first)->shm->fetched_end) != 0);
    for (uint64_t end = next + 12000; next < end; next++) {
        if (next % 1000 != 0) {
            CHECK(shmq_drop_oldest(next % 2 != 0 ? q : theirs, 0, SHMQ_FULL_COUNT, NULL));
            continue;
        }
        held = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(number_of(&held), next);
        CHECK(shmq_drop_oldest(q, 0, SHMQ_FULL_COUNT, NULL));
        CHECK_EQUAL(shmq_settle(theirs, &held), SHMQ_SETTLED);
    }
    CHECK_EQUAL(shmq_load_seq(&shmq_front_of(&q->first)->shm->fetched_end), 0);
    get_numbers(q, next, MANY - next);
    end();
}

/* ---- what a consumer has refused ------------------------------------------------------------------------------------ */

TEST(what_was_refused_is_refused_in_each_home) {
    begin();
    put_numbers(q, 0, MANY);
    shmq_subscription s;
    shmq_subscription_begin(&s, NULL, NULL);
    uint64_t refused[] = {2, 700, 5000, MANY - 100, MANY - 3};
    for (int i = 0; i < 5; i++) {
        CHECK(shmq_refuse(&s, q, place_of_number(refused[i])));
    }
    for (uint64_t i = 0; i < 60; i++) { /* more than it has room for: those of no entry are forgotten */
        CHECK(shmq_refuse(&s, q, (UINT64_C(1) << 40) + i));
    }
    shmq_delivery d;
    for (uint64_t expected = 0; expected < MANY; expected++) {
        bool is_refused = false;
        for (int i = 0; i < 5; i++) {
            is_refused = is_refused || expected == refused[i];
        }
        if (is_refused) {
            continue;
        }
        CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), expected);
        CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_offer_to(q, shmq_self(q), &s, &d), SHMQ_EMPTY);
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(get_number(q), refused[i]);
    }
    shmq_subscription_end(&s);
    end();
}

/* ---- another process moves entries just now ------------------------------------------------------------------------- */

static void lock_mover(short how) {
    struct flock lock = {
        .l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)((UINT64_C(1) << 41) + q->index), .l_len = 1};
    CHECK(fcntl(other->lock_fd, F_OFD_SETLK, &lock) == 0);
}

TEST(whoever_moves_is_waited_for_no_longer_than_the_patience) {
    begin();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, 1); /* others come in with it */
    uint64_t place = next_place(low() + 3), discarded = 0, number;
    lock_mover(F_WRLCK);
    CHECK_EQUAL(take_at(q, place, &number), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_discard_below(&q->first, place, &discarded), SHMQ_INTERRUPTED);
    shmq_delivery d;
    uint64_t seen = 0;
    CHECK_EQUAL(shmq_browse_place(&q->first, &seen, &d), SHMQ_OK); /* below all that is on disk */
    CHECK_EQUAL(seen, 1);
    seen = place + 1000; /* this thread has not read that one before */
    CHECK_EQUAL(shmq_browse_place(&q->first, &seen, &d), SHMQ_INTERRUPTED); /* what is on disk is not passed */
    CHECK_EQUAL(seen, place + 1000);
    lock_mover(F_UNLCK);
    CHECK_EQUAL(take_at(q, place, &number), SHMQ_OK);
    CHECK_EQUAL(shmq_discard_below(&q->first, place, &discarded), SHMQ_OK);
    CHECK_EQUAL(get_number(q), number + 1);
    end();
}

/* A mover has it, and will not give it back. */
TEST(what_is_on_its_way_is_waited_for) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = next_place(shmq_flow_place(flow()) + 1), number;
    shmq_slot_shm *slot = shmq_slot_at(&q->first, place);
    uint64_t word = shmq_load_seq(&slot->word);
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word)));
    uint64_t before = shmq_now_ns();
    CHECK_EQUAL(take_at(q, place, &number), SHMQ_EMPTY);
    CHECK(shmq_now_ns() - before >= m->patience_ns);
    shmq_store_seq(&slot->word, word);
    CHECK_EQUAL(take_at(q, place, &number), SHMQ_OK);
    end();
}

/* ---- a flush that ends while somebody looks -------------------------------------------------------------------------- */

static shmq_a32 looks, is_over; /* at the front ring; the flush */
static pthread_t looker;
static uint64_t looked_for;
static shmq_status found;
static shmq_delivery stolen;

/* Pages of the front ring as q has it. */
static void protect_front(int how) {
    const shmq_ring *front = shmq_front_of(&q->first);
    uintptr_t page = 4096, from = (uintptr_t)front->slots, to = from + shmq_slots_laid(front) * front->slot_size;
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    CHECK(to > from);
    CHECK(mprotect((void *)from, to - from, how) == 0);
}

/* The one that looks at the front ring stands still until the flush is over. */
static void stand_still(int signal) {
    (void)signal;
    shmq_store_seq(&looks, 1);
    while (shmq_load_seq(&is_over) == 0) {
        shmq_pause();
    }
    protect_front(PROT_READ | PROT_WRITE);
}

static void *look_for_it(void *argument) {
    (void)argument;
    found = shmq_steal_at(&q->first, looked_for, true, &stolen);
    return NULL;
}

static bool moves(uint64_t place) {
    shmq_slot_shm *slot = shmq_slot_at(&q->first, place);
    return shmq_word_state(shmq_load_seq(&slot->word)) == SHMQ_MOVING && shmq_load_seq(&slot->position) == place;
}

/* A turn may find no entry that it moves. */
static void look_meanwhile(void) {
    uint64_t tail = shmq_load_seq(&q->first.shm->tail);
    for (looked_for = shmq_flow_place(flow()); looked_for < tail && !moves(looked_for); looked_for++) {
    }
    if (looked_for == tail) {
        return;
    }
    faulty.behind_write = NULL;
    protect_front(PROT_NONE);
    CHECK(pthread_create(&looker, NULL, look_for_it, NULL) == 0);
    while (shmq_load_seq(&looks) == 0) {
        shmq_pause();
    }
}

/* Shows G5. */
TEST(what_goes_to_disk_during_the_look_is_found_there) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t gone = get_until_some_are_back(), number = 0;
    CHECK(signal(SIGSEGV, stand_still) != SIG_ERR);
    faulty_begin(other);
    faulty.behind_write = look_meanwhile;
    while (faulty.behind_write != NULL) {
        CHECK_EQUAL(shmq_purger_make_room(theirs, &theirs->first), SHMQ_OK);
    }
    faulty_end(other);
    CHECK(shmq_flow_place(flow()) > looked_for);
    shmq_store_seq(&is_over, 1);
    CHECK(pthread_join(looker, NULL) == 0);
    CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
    CHECK_EQUAL(found, SHMQ_OK);
    CHECK_EQUAL(shmq_place_of(q, &stolen), looked_for);
    number = number_of(&stolen);
    CHECK_EQUAL(shmq_settle(q, &stolen), SHMQ_OK);
    get_numbers(q, gone, number - gone);
    get_numbers(q, number + 1, MANY - number - 1);
    end();
}

int main(void) { return run_tests(); }
