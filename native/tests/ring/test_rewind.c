/* Releases of entries that the ring has turned over: what others are told, and the order in which they come again. */
#include <sys/uio.h>

#include "check/faults.h"
#include "lifecycle/declare.h"
#include "lifecycle/handle_bind.h"
#include "put/put.h"
#include "ring/ring.h"
#include "settle/settle.h"
#include "take/offer.h"
#include "scratch_segment.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    int differs = -1;
    shmq_declaration d = {.create = true};
    CHECK_EQUAL(shmq_queue_declare(m, "jobs", 4, &d, &q, &differs), SHMQ_OK);
}

static void end(void) {
    uint64_t where = 0;
    CHECK(shmq_ring_fault(&q->first, &where) == NULL);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_queue_unbind(q);
    shmq_member_leave(m, true);
    scratch_remove();
}

static uint64_t put(void) {
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    return o.made.position;
}

static shmq_delivery receive(void) {
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
    return d;
}

/* The ring turns until everything that was put before lies below the ring's reach. */
static void turn_over(void) {
    for (uint64_t i = 0; i < 2 * shmq_slot_count(&q->first); i++) {
        put();
        shmq_delivery d = receive();
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
}

static uint64_t told_at(uint64_t epoch) {
    uint64_t cell = shmq_load_seq(&q->first.shm->cells[epoch % SHMQ_CELLS]);
    CHECK_EQUAL(cell >> SHMQ_POSITION_BITS, epoch & SHMQ_EPOCH_MASK);
    return cell & SHMQ_POSITION_MASK;
}

/* A taker that is about to take one old entry must see that an older one was released: so the cell has the position
 * itself, and not the end of the ring's reach, which is the same for both. Shows S37, S38, R2, G1. */
TEST(test_a_release_tells_the_position_of_an_old_entry_itself) {
    begin();
    put();
    put();
    put();
    shmq_delivery first = receive(), second = receive(), third = receive();
    turn_over();
    CHECK(shmq_load_seq(&q->first.shm->tail) - third.position > shmq_slot_count(&q->first));
    CHECK_EQUAL(shmq_release(q, &third, false), SHMQ_OK);
    CHECK_EQUAL(told_at(shmq_load_seq(&q->first.shm->epoch)), third.position);
    CHECK_EQUAL(shmq_release(q, &first, false), SHMQ_OK);
    CHECK_EQUAL(told_at(shmq_load_seq(&q->first.shm->epoch)), first.position);
    CHECK_EQUAL(shmq_release(q, &second, false), SHMQ_OK);
    CHECK_EQUAL(told_at(shmq_load_seq(&q->first.shm->epoch)), second.position);
    for (uint64_t position = first.position; position <= third.position; position++) {
        shmq_delivery d = receive();
        CHECK_EQUAL(d.position, position);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    end();
}

/* A reaper that releases for the dead does not know what was released before: everybody looks from the beginning. Shows S38. */
TEST(test_a_rewind_without_a_position_names_none) {
    begin();
    put();
    shmq_delivery d = receive();
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    shmq_rewind_all(&q->first);
    uint64_t epoch = shmq_load_seq(&q->first.shm->epoch);
    uint64_t cell = shmq_load_seq(&q->first.shm->cells[epoch % SHMQ_CELLS]);
    CHECK((cell >> SHMQ_POSITION_BITS) != (epoch & SHMQ_EPOCH_MASK));
    d = receive();
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

/* The head's epoch rises with each release, even if its position stays: a taker that passed the entry before it was
 * released cannot advance the head over it any more. Shows S24, S38, R1. */
TEST(test_a_release_always_changes_the_head) {
    begin();
    put();
    shmq_delivery d = receive();
    uint64_t before = shmq_load_seq(&q->first.shm->head);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    uint64_t once = shmq_load_seq(&q->first.shm->head);
    CHECK(once >> SHMQ_POSITION_BITS != before >> SHMQ_POSITION_BITS);
    d = receive();
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK(shmq_load_seq(&q->first.shm->head) >> SHMQ_POSITION_BITS != once >> SHMQ_POSITION_BITS);
    d = receive();
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
