/* Entries of a queue that has flowed, by their places: taken away and settled, wherever they are. */
#include "flow_pair.h"
#include "shmq/ring_memory.h"

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

static void one_is_taken_from_each_home(void) {
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

static void what_somebody_has_is_taken_only_by_force(void) {
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

/* What is passed on the way has all slots of the front ring at last. */
static void one_deep_on_disk_comes_as_long_as_there_are_slots(void) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t number, deep = place_of_number(MANY - 5000);
    CHECK(deep < shmq_flow_place(flow()));
    CHECK_EQUAL(take_at(q, deep, &number), SHMQ_NO_SPACE);
    CHECK(strstr(shmq_trail(), "no slot to come back to") != NULL);
    get_numbers(theirs, 0, MANY);
    end();
}

static void what_is_below_a_place_is_discarded_in_all_homes(void) {
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

static void all_of_it_may_be_discarded(void) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t discarded = 0;
    CHECK_EQUAL(shmq_discard_below(&q->first, UINT64_MAX >> 20, &discarded), SHMQ_OK);
    CHECK_EQUAL(discarded, MANY);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, MANY);
    end();
}

int main(void) {
    one_is_taken_from_each_home();
    what_somebody_has_is_taken_only_by_force();
    one_deep_on_disk_comes_as_long_as_there_are_slots();
    what_is_below_a_place_is_discarded_in_all_homes();
    all_of_it_may_be_discarded();
    return 0;
}
