/* Seldom events: calls that are interrupted, or whose queue goes while they wait; limits; files that are no segment. */
#include <signal.h>

#include "ring/ring.h"
#include "segment/inspect.h"
#include "segment/segment_layout.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q;

static void begin(uint64_t maxsize) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", maxsize, true);
}

static void end(void) {
    scratch_close(m, q);
    scratch_remove();
}

/* ---- waits that end otherwise --------------------------------------------------------------------------------------- */

static volatile bool over;

static void on_signal(int number) { (void)number; }

static void *put_and_wait(void *status) {
    *(shmq_status *)status = put_bytes(q, "12345678", 8, shmq_now_ns() + 60 * SECOND);
    over = true;
    return NULL;
}

static void *wait_for_memory(void *status) {
    shmq_block block;
    *(shmq_status *)status =
        shmq_take_block(q, UINT64_C(1) << 20, shmq_now_ns() + 60 * SECOND, &(shmq_relief){0}, &block);
    over = true;
    return NULL;
}

static void *wait_for_one(void *status) {
    shmq_delivery d;
    *(shmq_status *)status = shmq_offer_wait(q, shmq_self(q), 0, shmq_now_ns() + 60 * SECOND, &d);
    over = true;
    return NULL;
}

static pthread_t start(void *(*call)(void *), shmq_status *status) {
    pthread_t thread;
    over = false;
    CHECK(pthread_create(&thread, NULL, call, status) == 0);
    return thread;
}

/* A signal that comes before the sleep is not noticed there, so: until one was. */
static void interrupt(pthread_t thread) {
    while (!over) {
        (void)pthread_kill(thread, SIGUSR1);
        sched_yield();
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(a_signal_ends_each_wait) {
    struct sigaction action = {.sa_handler = on_signal};
    CHECK_EQUAL(sigaction(SIGUSR1, &action, NULL), 0);
    begin(1);
    shmq_status status;
    interrupt(start(wait_for_one, &status));
    CHECK_EQUAL(status, SHMQ_INTERRUPTED);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    interrupt(start(put_and_wait, &status));
    CHECK_EQUAL(status, SHMQ_INTERRUPTED);
    shmq_block taken[64];
    uint32_t count = 0;
    while (count < 64 && shmq_block_take(m, UINT64_C(1) << 20, &taken[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count > 3 && count < 64);
    interrupt(start(wait_for_memory, &status));
    CHECK_EQUAL(status, SHMQ_INTERRUPTED);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&m->header->memory_waiters)), 0);
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&q->first.shm->waiters)), 0);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(shmq_take_block(q, UINT64_C(1) << 20, shmq_now_ns() + SECOND, &(shmq_relief){0}, &taken[count]),
                SHMQ_NOT_FOUND);
    while (count-- != 0) {
        shmq_block_drop(m, taken[count].offset, taken[count].generation, 0);
    }
    end();
}

TEST(who_waits_for_room_is_told_that_the_queue_goes) {
    for (int way = 0; way < 2; way++) {
        shmq_status status;
        begin(1);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
        pthread_t thread = start(put_and_wait, &status);
        while (shmq_waiters_in(shmq_load_seq(&q->first.shm->waiters)) == 0) {
            sched_yield();
        }
        CHECK_EQUAL(way == 0 ? shmq_queue_shut_down(q, SHMQ_STOPPED) : shmq_queue_delete(q), SHMQ_OK);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(status == (way == 0 ? SHMQ_SHUT_DOWN : SHMQ_NOT_FOUND) || (way == 1 && status == SHMQ_OK));
        end();
    }
}

/* ---- messages ------------------------------------------------------------------------------------------------------- */

TEST(a_death_is_counted_once_and_only_for_the_delivery_that_it_ended) {
    begin(0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    shmq_slot_shm *slot = shmq_slot_at(&q->first, d.position);
    CHECK(!shmq_death_count(q, slot, d.word + 1, 1)); /* the word has changed */
    CHECK(shmq_death_count(q, slot, d.word, 1));
    CHECK(!shmq_death_count(q, slot, d.word, 1));
    CHECK_EQUAL(slot->deaths, 1);
    slot->deaths = UINT16_MAX;
    slot->death_tag = 0;
    CHECK(shmq_death_count(q, slot, d.word, 1));
    CHECK_EQUAL(slot->deaths, UINT16_MAX);
    CHECK_EQUAL(shmq_mark_broken(&q->first, slot, d.word + 1, 0), SHMQ_OK); /* not damaged: it has changed */
    CHECK_EQUAL(state_at(q, d.position), SHMQ_ACQUIRED);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

TEST(attempts_are_counted_as_far_as_the_field_goes) {
    begin(0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    shmq_slot_at(&q->first, d.position)->delivery = UINT16_MAX;
    CHECK_EQUAL(shmq_release(q, &d, true), SHMQ_OK);
    CHECK_EQUAL(shmq_slot_at(&q->first, d.position)->delivery, UINT16_MAX);
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    shmq_store_seq(&q->page->max_attempts, 3);
    CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_POISONED);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

/* A message without a checksum in a queue that has them, and a body at a reference that no body has. */
TEST(a_message_that_cannot_be_whole_is_told) {
    static unsigned char large[5000];
    begin(0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    shmq_slot_at(&q->first, 0)->crc = 0;
    shmq_slot_at(&q->first, 1)->body |= UINT64_C(200) << 40;
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
    CHECK(!shmq_delivery_intact(q, &d));
    q->checksum = false;
    CHECK(shmq_delivery_intact(q, &d));
    q->checksum = true;
    CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_CORRUPT);
    CHECK_EQUAL(state_at(q, 1), SHMQ_BROKEN);
    end();
}

/* A sound message of another queue, at the same position, as if the map of the memory gave both the same slots.
 * Shows G7. */
TEST(a_message_of_another_queue_is_told) {
    static unsigned char large[5000], kept[SHMQ_SLOT_MAX];
    begin(0);
    shmq_queue *other = scratch_queue(m, "other", 0, true);
    uint64_t position = shmq_load_seq(&q->first.shm->tail), bytes = q->first.slot_size - sizeof(shmq_a64);
    for (int i = 0; i < 2; i++, position++) {
        shmq_delivery d;
        const void *body = i == 0 ? (const void *)&position : large;
        CHECK_EQUAL(put_bytes(q, body, i == 0 ? 8 : sizeof large, 0), SHMQ_OK);
        CHECK_EQUAL(put_bytes(other, body, i == 0 ? 8 : sizeof large, 0), SHMQ_OK);
        shmq_a64 *ours = &shmq_slot_at(&q->first, position)->position;
        memcpy(kept, (void *)ours, bytes);
        memcpy((void *)ours, (void *)&shmq_slot_at(&other->first, position)->position, bytes);
        CHECK_EQUAL(shmq_offer(other, shmq_self(other), &d), SHMQ_OK);
        CHECK(shmq_delivery_intact(other, &d) && !shmq_delivery_intact(q, &d));
        CHECK_EQUAL(shmq_offer_finish(other, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
        CHECK(!shmq_delivery_intact(q, &d));
        shmq_offer_cancel(q, &d);
        memcpy((void *)ours, kept, bytes);
        CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
        CHECK(shmq_delivery_intact(q, &d));
        CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
    }
    shmq_queue_unbind(other);
    end();
}

static shmq_outgoing delayed(const uint64_t *number, struct iovec *piece) {
    *piece = (struct iovec){.iov_base = (void *)(uintptr_t)number, .iov_len = sizeof *number};
    return (shmq_outgoing){.pieces = piece,
                           .piece_count = 1,
                           .body_len = sizeof *number,
                           .enqueued_ns = shmq_now_ns(),
                           .not_before_ns = shmq_now_ns() + 3600 * SECOND};
}

/* Messages that wait for their time go, too; those in hand stay. */
TEST(a_purge_takes_what_is_held_for_later) {
    begin(0);
    static const uint64_t number = 7;
    struct iovec piece;
    uint64_t purged = 0;
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    for (int i = 0; i < 3; i++) {
        shmq_outgoing o = delayed(&number, &piece);
        CHECK_EQUAL(shmq_prepare(q, &o, 0), SHMQ_OK);
        CHECK_EQUAL(shmq_prepare(q, &o, 0), SHMQ_OK); /* as it is already */
        CHECK_EQUAL(shmq_put_now(q, &o), SHMQ_OK);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    }
    (void)shmq_purge(q, &purged);
    CHECK_EQUAL(purged, 6);
    CHECK_EQUAL(census_of(q).delayed, 0);
    CHECK_EQUAL(shmq_release_until(q, &d, false, shmq_now_ns() + 3600 * SECOND), SHMQ_OK);
    CHECK_EQUAL(shmq_release_until(q, &d, false, shmq_now_ns() + 3600 * SECOND), SHMQ_SETTLED);
    CHECK_EQUAL(census_of(q).delayed, 1);
    CHECK_EQUAL(shmq_load_seq(&m->process->unsettled), 0);
    end();
}

/* A message is not refused because there is no memory for the record of its time; a delayed one is. */
TEST(without_memory_for_records_a_release_is_at_once) {
    static shmq_block taken[4096];
    begin(0);
    static const uint64_t number = 7;
    struct iovec piece;
    uint32_t count = 0;
    uint64_t offset;
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    while (count < 4096 && shmq_block_take(m, 16384, &taken[count]) == SHMQ_OK) {
        count++;
    }
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    while (shmq_run_take(m, 1, SHMQ_GRANULE_RING, &offset) == SHMQ_OK) { /* garbage until the next rebuild */
    }
    shmq_structure_unlock(m);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_release_until(q, &d, true, shmq_now_ns() + 3600 * SECOND), SHMQ_OK);
    CHECK_EQUAL(state_at(q, 0), SHMQ_AVAILABLE);
    shmq_outgoing o = delayed(&number, &piece);
    CHECK_EQUAL(shmq_prepare(q, &o, 0), SHMQ_FULL_MEMORY);
    shmq_unprepare(q, &o);
    for (uint32_t i = 0; i < count; i++) {
        shmq_block_drop(m, taken[i].offset, taken[i].generation, 0);
    }
    o = delayed(&number, &piece);
    CHECK_EQUAL(shmq_prepare(q, &o, 0), SHMQ_OK); /* what bodies have given back does */
    CHECK_EQUAL(shmq_put_now(q, &o), SHMQ_OK);
    CHECK_EQUAL(census_of(q).delayed, 1);
    CHECK_EQUAL(get_number(q), 1);
    end();
}

/* ---- limits --------------------------------------------------------------------------------------------------------- */

static shmq_status declare(const char *name, uint64_t maxsize, shmq_queue **queue) {
    shmq_declaration d = {.given = maxsize != 0 ? 1u << SHMQ_SET_MAXSIZE : 0, .maxsize = maxsize, .create = true};
    int differs;
    return shmq_queue_declare(m, name, (uint32_t)strlen(name), &d, queue, &differs);
}

TEST(a_full_directory_is_told) {
    begin(0);
    shmq_queue *other;
    uint64_t taken = shmq_entry_word(1, SHMQ_ENTRY_LIVE);
    for (uint32_t i = 0; i < SHMQ_QUEUES; i++) {
        (void)shmq_cas_seq(&m->directory[i].word, 0, taken);
    }
    CHECK_EQUAL(declare("one more", 0, &other), SHMQ_LIMIT);
    for (uint32_t i = 0; i < SHMQ_QUEUES; i++) {
        if (i != q->index) {
            (void)shmq_cas_seq(&m->directory[i].word, taken, 0);
        }
    }
    CHECK_EQUAL(declare("one more", 0, &other), SHMQ_OK);
    shmq_queue_unbind(other);
    end();
}

/* Memory that bodies have given back, but no queue has claimed yet, makes room for a queue. */
TEST(a_queue_takes_what_bodies_have_left) {
    static shmq_block taken[4096];
    begin(0);
    shmq_queue *other;
    uint32_t count = 0;
    while (count < 4096 && shmq_block_take(m, 16384, &taken[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count > 100 && count < 4096);
    CHECK_EQUAL(declare("large", 16384, &other), SHMQ_FULL_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        shmq_block_drop(m, taken[i].offset, taken[i].generation, 0);
    }
    CHECK_EQUAL(declare("large", 16384, &other), SHMQ_OK);
    shmq_queue_unbind(other);
    end();
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

static void change_file(uint64_t size, const shmq_segment_shm *header) {
    char path[128];
    scratch_path(path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    if (header != NULL) {
        shmq_segment_shm copy = *header;
        copy.header_crc = shmq_header_crc(&copy);
        CHECK(pwrite(fd, &copy, 2048, 0) == 2048);
    }
    close(fd);
}

static void must_be_refused(shmq_status expected, const char *words) {
    shmq_identity identity;
    CHECK_EQUAL(shmq_segment_inspect(scratch_name, &identity), expected);
    if (strstr(shmq_trail(), words) == NULL) {
        fprintf(stderr, "%s, expected %s\n", shmq_trail(), words);
    }
    CHECK(strstr(shmq_trail(), words) != NULL);
}

TEST(a_file_that_is_no_segment_is_refused_with_the_reason) {
    begin(0);
    shmq_segment_shm good = *m->header, bad = good;
    uint64_t size = m->size;
    end();
    scratch_create(false);
    change_file(100, NULL);
    must_be_refused(SHMQ_CORRUPT, "too small");
    change_file(SHMQ_MEMORY_MAX + 65536, NULL);
    must_be_refused(SHMQ_CORRUPT, "above the limit");
    bad.size = size + 4096;
    change_file(size + 4096, &bad);
    must_be_refused(SHMQ_CORRUPT, "no segment can have it");
    bad = good;
    memset(bad.path, 'x', sizeof bad.path);
    change_file(size, &bad);
    must_be_refused(SHMQ_CORRUPT, "end of path");
    change_file(size, &good);
    shmq_identity identity;
    CHECK_EQUAL(shmq_segment_inspect(scratch_name, &identity), SHMQ_OK);
    scratch_remove();
}

/* The child of a broker that was closed before: there is nothing to join. */
TEST(a_child_of_a_closed_member_stays_outside) {
    begin(0);
    pid_t child = fork();
    if (child == 0) {
        shmq_store_seq(&m->closed, 1);
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
        CHECK(shmq_queue_usable(q) == SHMQ_CLOSED);
        exit(0);
    }
    scratch_wait(child);
    end();
}

int main(void) { return run_tests(); }
