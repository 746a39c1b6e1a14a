/* Memory and disk are full, and producers take each block that becomes free: consumers of rows have the one that is kept for them. */
#include "flow_pair.h"

#define LARGE UINT64_C(4000)
#define MANY (2 * SCRATCH_MEMORY / LARGE)

static unsigned char large[LARGE];
static shmq_queue *plain, *greedy; /* greedy: of the other member, which has no disk */
static uint64_t grabbed;

static shmq_status put_large(shmq_queue *to, uint64_t number) {
    memcpy(large, &number, sizeof number);
    return put_bytes(to, large, LARGE, 0);
}

static void grab_all_memory(void) {
    shmq_status status;
    while ((status = put_large(greedy, grabbed)) == SHMQ_OK) {
        grabbed++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
}

static void begin_full(void) {
    begin();
    grabbed = 0;
    shmq_queue *gone = scratch_queue(m, "gone", 0, true); /* has no rows, and is asked no more */
    plain = scratch_queue(m, "plain", 0, true);
    greedy = scratch_queue(other, "greedy", 0, true);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    shmq_queue_unbind(gone);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_large(plain, i), SHMQ_OK);
    }
    CHECK(shmq_flow_rows(plain) > MANY / 4);
    other->backing_of = NULL;
    m->disk = other->disk = 1; /* nothing goes there any more */
    grab_all_memory();
}

static void end_full(void) {
    shmq_delivery d;
    const shmq_taking t = {.owner = shmq_self(greedy)};
    uint64_t got = 0;
    for (; shmq_receive(greedy, &t, &d) == SHMQ_OK; got++) {
        CHECK_EQUAL(shmq_settle(greedy, &d), SHMQ_OK);
    }
    CHECK_EQUAL(got, grabbed);
    m->disk = other->disk = SCRATCH_DISK;
    shmq_queue_unbind(plain);
    shmq_queue_unbind(greedy);
    end();
}

static uint64_t number_in(const shmq_delivery *d) {
    uint64_t number;
    CHECK_EQUAL(d->body_len, LARGE);
    memcpy(&number, d->bytes, sizeof number);
    return number;
}

static void consume(uint64_t number) {
    shmq_delivery d = receive(plain, shmq_self(plain));
    CHECK_EQUAL(number_in(&d), number);
    CHECK_EQUAL(shmq_settle(plain, &d), SHMQ_OK);
}

static uint64_t kept(void) { return shmq_load_seq(&m->header->kept_block); }

TEST(consumers_in_order_get_all_of_them) {
    begin_full();
    CHECK(kept() != 0);
    for (uint64_t i = 0; i < MANY; i++) {
        consume(i);
        grab_all_memory();
    }
    CHECK_EQUAL(get_number(plain), UINT64_MAX);
    grab_all_memory();
    CHECK_EQUAL(kept(), 0); /* no row is left: whoever needs memory has had it */
    end_full();
}

/* The place of this number, of a row. */
static uint64_t place_of_row(uint64_t number) {
    uint64_t place = 0;
    shmq_delivery d;
    for (;; place++) {
        CHECK_EQUAL(shmq_browse_place(&plain->first, &place, &d), SHMQ_OK);
        if (number_in(&d) == number) {
            CHECK_EQUAL(d.depth, SHMQ_ON_DISK);
            return place;
        }
    }
}

/* By its place, with those before it on disk. */
TEST(who_wants_one_gets_it) {
    begin_full();
    uint64_t wanted[] = {MANY / 2, MANY / 2 + 1, MANY / 2 + 500};
    for (uint32_t i = 0; i < 3; i++) {
        shmq_delivery d, none;
        uint64_t next = place_of_row(wanted[i] + 10);
        CHECK_EQUAL(shmq_steal_at(&plain->first, place_of_row(wanted[i]), true, &d), SHMQ_OK);
        CHECK_EQUAL(number_in(&d), wanted[i]);
        CHECK(shmq_steal_at(&plain->first, next, true, &none) != SHMQ_OK); /* there is but one, and it is in use */
        CHECK_EQUAL(shmq_settle(plain, &d), SHMQ_OK);
        grab_all_memory();
    }
    for (uint64_t i = 0; i < MANY; i++) {
        if (i != wanted[0] && i != wanted[1] && i != wanted[2]) {
            consume(i);
        }
    }
    CHECK_EQUAL(get_number(plain), UINT64_MAX);
    end_full();
}

/* Its holder may be stopped: a consumer does not wait for it. */
TEST(behind_the_structure_lock_a_consumer_has_it_too) {
    begin_full();
    uint64_t first = 0;
    while (shmq_flow_rows(plain) > MANY / 8) {
        consume(first++);
    }
    uint64_t rows;
    do { /* until the next one has to come from disk */
        rows = shmq_flow_rows(plain);
        grab_all_memory();
        consume(first++);
    } while (shmq_flow_rows(plain) == rows);
    grab_all_memory();
    for (int i = 0; i < 3; i++, first++) {
        CHECK_EQUAL(shmq_structure_lock(other), SHMQ_OK);
        rows = shmq_flow_rows(plain);
        shmq_delivery d = receive(plain, shmq_self(plain));
        CHECK_EQUAL(number_in(&d), first);
        CHECK_EQUAL(shmq_flow_rows(plain), rows - 1);
        CHECK_EQUAL(shmq_settle(plain, &d), SHMQ_OK);
        shmq_structure_unlock(other);
        grab_all_memory();
    }
    while (first < MANY) {
        consume(first++);
    }
    end_full();
}

int main(void) { return run_tests(); }
