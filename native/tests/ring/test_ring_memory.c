/* Memory for slots comes as the tail comes to them: what an empty queue costs, who may be late, and what becomes of it. */
#include <pthread.h>
#include <sys/stat.h>

#include "ring/ring_memory.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(uint64_t maxsize) {
    scratch_room = 0;
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "q", maxsize, false);
}

static void end(void) {
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    CHECK(shmq_segment_fault(m) == NULL);
    shmq_structure_unlock(m);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_free(m);
    scratch_remove();
}

/* The memory of the segment, as the system counts it. */
static uint64_t memory(void) {
    struct stat file;
    CHECK(fstat(m->map_fd, &file) == 0);
    return (uint64_t)file.st_blocks * 512;
}

static uint64_t reserved(void) { return shmq_load_seq(&m->header->reserved_bytes); }

static shmq_status put(shmq_queue *queue, uint64_t *number) {
    struct iovec piece = {number, sizeof *number};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof *number};
    shmq_status status = shmq_put(queue, &o, 0);
    if (status != SHMQ_OK) {
        shmq_unprepare(queue, &o);
    }
    return status;
}

/* Shows G5. */
TEST(test_slots_get_memory_as_the_tail_comes_to_them_and_once_only) {
    begin(4096);
    CHECK_EQUAL(shmq_slot_count(&q->first), 4096);
    uint64_t empty = shmq_queue_reserved(q), before = reserved(), most = 0;
    CHECK(empty <= SHMQ_PAGE_BYTES + SHMQ_RUN_BEGUN);
    for (uint64_t i = 0; i < 3 * 4096; i++) {
        uint64_t laid = shmq_slots_laid(&q->first);
        CHECK_EQUAL(put(q, &i), SHMQ_OK);
        CHECK(shmq_load_seq(&q->first.shm->tail) < shmq_slots_laid(&q->first) || shmq_slots_laid(&q->first) == 4096);
        CHECK(shmq_slots_laid(&q->first) - laid <=
              SHMQ_GRANULE_BYTES / q->first.slot_size + 1); /* a granule at a time */
        shmq_delivery d = {0};
        CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
        CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
        CHECK(reserved() >= most);
        most = reserved();
        CHECK_EQUAL(memory(), reserved());
    }
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->laid), SHMQ_LAID_ALL);
    CHECK_EQUAL(most - before, shmq_queue_reserved(q) - empty);
    CHECK(most - before <= (4096 * q->first.slot_size / SHMQ_GRANULE_BYTES + 1) * SHMQ_GRANULE_BYTES);
    end();
}

TEST(test_a_deleted_queue_gives_its_memory_back_to_the_system) {
    begin(0);
    uint64_t number = 1;
    shmq_queue *other = scratch_queue(m, "other", 0, false);
    uint64_t run = other->page->ring.run;
    for (int i = 0; i < 3000; i++) {
        CHECK_EQUAL(put(other, &number), SHMQ_OK);
    }
    uint64_t before = memory(), slots = shmq_queue_reserved(other) - SHMQ_PAGE_BYTES;
    CHECK(slots > 3000 * q->first.slot_size);
    CHECK_EQUAL(shmq_queue_delete(other), SHMQ_OK);
    shmq_queue_unbind(other);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    shmq_queues_release(m);
    shmq_structure_unlock(m);
    CHECK_EQUAL(memory(), before - slots);
    CHECK_EQUAL(memory(), reserved());
    other = scratch_queue(m, "another", 0, false); /* in the same place, and empty */
    CHECK_EQUAL(other->page->ring.run, run);
    CHECK(shmq_slots_laid(&other->first) < 100);
    shmq_delivery d = {0};
    CHECK_EQUAL(shmq_offer(other, shmq_self(other), &d), SHMQ_EMPTY);
    shmq_queue_unbind(other);
    end();
}

/* A death between the reservation and its note leaves memory that nobody counts; the rebuild that follows gives it back.
 * Shows G5. */
TEST(test_memory_that_a_dead_process_has_reserved_and_not_noted_comes_back) {
    begin(0);
    shmq_member *victim = scratch_attach();
    CHECK_EQUAL(shmq_structure_lock(victim), SHMQ_OK);
    CHECK(posix_fallocate(victim->map_fd, (off_t)(q->page->ring.run + SHMQ_RUN_BEGUN), 3 * SHMQ_GRANULE_BYTES) == 0);
    CHECK(memory() > reserved());
    scratch_kill(victim);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    shmq_structure_unlock(m);
    CHECK_EQUAL(memory(), reserved());
    shmq_member_free(victim);
    end();
}

#define THREADS 4
#define EACH 3000u
static void *put_many(void *unused) {
    (void)unused;
    shmq_member *own = scratch_attach();
    shmq_queue *queue = scratch_queue(own, "q", 16384, false);
    for (uint64_t i = 0; i < EACH; i++) {
        shmq_status status;
        while ((status = put(queue, &i)) == SHMQ_INTERRUPTED) {
        }
        CHECK_EQUAL(status, SHMQ_OK);
    }
    shmq_queue_unbind(queue);
    shmq_member_free(own);
    return NULL;
}

TEST(test_producers_that_reserve_at_once_reserve_once) {
    begin(16384);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, put_many, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(shmq_load_seq(&q->first.shm->tail), THREADS * EACH);
    CHECK_EQUAL(memory(), reserved());
    uint64_t where;
    CHECK(shmq_ring_fault(&q->first, &where) == NULL);
    end();
}

TEST(test_slots_that_find_no_memory_are_told_and_bodies_leave_them_some) {
    begin(0);
    static shmq_block taken[4096];
    uint32_t count = 0;
    uint64_t number = 7, sent = 0;
    while (count < 4096 && shmq_block_take(m, 40000, &taken[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count > 100 && count < 4096);
    shmq_status status;
    while ((status = put(q, &number)) == SHMQ_OK) {
        sent++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_RING); /* bodies have left enough for all slots of one queue */
    CHECK_EQUAL(sent, shmq_slot_count(&q->first));
    shmq_queue *other = scratch_queue(m, "other", 0, false);
    while ((status = put(other, &number)) == SHMQ_OK) {
        sent++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    CHECK(reserved() <= SCRATCH_MEMORY && memory() == reserved());
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    shmq_queue_unbind(q);
    q = other;
    CHECK_EQUAL(put(q, &number), SHMQ_OK); /* with what the deleted one had */
    end();
}

/* Once slots have their share nothing is kept for them; what bodies had, and have no more, is theirs as well. */
TEST(test_slots_get_memory_that_bodies_had) {
    begin(0);
    static shmq_block taken[4096];
    uint32_t count = 0;
    uint64_t number = 7;
    shmq_status status;
    while ((status = put(q, &number)) == SHMQ_OK) {
    }
    CHECK_EQUAL(status, SHMQ_FULL_RING);
    while (count < 4096 && shmq_block_take(m, 40000, &taken[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count > 100 && count < 4096);
    for (uint32_t i = 0; i < count; i++) {
        shmq_block_drop(m, taken[i].offset, taken[i].generation, 0);
    }
    CHECK(shmq_memory_left(m) < UINT64_C(1) << 20);
    shmq_queue *other = scratch_queue(m, "other", 0, false);
    uint32_t sent = 0;
    while ((status = put(other, &number)) == SHMQ_OK) {
        sent++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_RING);
    CHECK_EQUAL(sent, shmq_slot_count(&other->first));
    CHECK(reserved() <= SCRATCH_MEMORY && memory() == reserved());
    shmq_queue_unbind(other);
    uint32_t again = 0;
    while (again < 4096 && shmq_block_take(m, 40000, &taken[again]) == SHMQ_OK) {
        again++;
    }
    CHECK(again > count / 2 && again < count); /* and bodies the rest */
    for (uint32_t i = 0; i < again; i++) {
        shmq_block_drop(m, taken[i].offset, taken[i].generation, 0);
    }
    end();
}

TEST(test_a_ring_that_its_broker_can_never_hold_is_refused) {
    begin(0);
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAXSIZE, .maxsize = 1u << 20, .create = true};
    shmq_queue *large;
    int differs;
    CHECK_EQUAL(shmq_queue_declare(m, "large", 5, &d, &large, &differs), SHMQ_FULL_MEMORY);
    end();
}

/* Offsets and lengths that damage may have left: told, and no memory is given away. */
TEST(test_slots_that_are_given_back_where_there_are_none_are_damage) {
    begin(4096);
    uint64_t run = q->page->ring.run, before = reserved();
    uint32_t first = (uint32_t)((run - m->data) >> SHMQ_GRANULE_SHIFT);
    uint64_t head = shmq_load_seq(&m->granules[first]);
    uint64_t wrong[] = {0, m->data + 4096, m->size, m->data + ((uint64_t)m->granule_count << SHMQ_GRANULE_SHIFT),
                        run + SHMQ_GRANULE_BYTES};
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        shmq_store_seq(&m->header->damage, 0);
        shmq_rings_give(m, wrong[i]);
        CHECK(shmq_load_seq(&m->header->damage) != 0);
    }
    uint32_t lengths[] = {0, m->granule_count - first + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        shmq_store_seq(&m->granules[first], shmq_granule_word(head, SHMQ_GRANULE_RING, 0, lengths[i]));
        shmq_store_seq(&m->header->damage, 0);
        shmq_rings_give(m, run);
        CHECK(shmq_load_seq(&m->header->damage) != 0);
    }
    shmq_store_seq(&m->granules[first], head);
    CHECK_EQUAL(shmq_rings_reserve(m, run + 64, 64), SHMQ_CORRUPT);
    CHECK_EQUAL(shmq_rings_reserve(m, m->data - SHMQ_GRANULE_BYTES, 64), SHMQ_CORRUPT);
    CHECK_EQUAL(shmq_rings_reserve(m, run, m->size), SHMQ_CORRUPT);
    shmq_store_seq(&m->header->damage, 0);
    CHECK_EQUAL(reserved(), before);
    shmq_structure_unlock(m);
    end();
}

int main(void) { return run_tests(); }
