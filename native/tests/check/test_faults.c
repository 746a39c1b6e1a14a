/* Every structure of a segment in use is sound, and each rule that is broken on purpose is told, by the rule's own words. */
#include "blocks/slab.h"
#include "ring/ring.h"
#include "segment/process_table.h"
#include "wake/watch.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;
static shmq_queue *limited;

/* Something of everything: rows, sleepers, loans, views, deliveries, carried entries, a death record, a deleted
 * queue. */
static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 0, true);
    qb = scratch_queue(b, "jobs", 0, true);
    limited = scratch_queue(a, "limited", 1024, true);
    static unsigned char large[5000];
    CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    for (uint64_t i = 1; i < 10; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        CHECK_EQUAL(put_number(limited, i), SHMQ_OK);
    }
    shmq_queue *gone = scratch_queue(a, "gone", 0, true);
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    shmq_queue_unbind(gone);
}

static void end(void) {
    scratch_close(b, qb);
    shmq_queue_unbind(limited);
    scratch_close(a, qa);
    scratch_remove();
}

typedef const char *segment_check(shmq_member *m);

static const char *verdict_of(segment_check *check) {
    static char copy[256];
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    const char *wrong = check(a);
    snprintf(copy, sizeof(copy), "%s", wrong == NULL ? "" : wrong);
    shmq_structure_unlock(a);
    return copy;
}

static void must_say(const char *found, const char *expected, const char *file, int line) {
    if (strstr(found, expected) == NULL || (expected[0] == 0 && found[0] != 0)) {
        fprintf(stderr, "%s:%d: found \"%s\", expected \"%s\"\n", file, line, found, expected);
        exit(1);
    }
}

/* While `place` holds `value` the check says `words`, and so does the check of the whole segment; before and after it is
 * content. */
#define BREAK(check, place, value, words)                                    \
    do {                                                                     \
        must_say(verdict_of(check), "", __FILE__, __LINE__);                 \
        __typeof__(place) before_ = (place);                                 \
        (place) = (value);                                                   \
        must_say(verdict_of(check), words, __FILE__, __LINE__);              \
        must_say(verdict_of(shmq_segment_fault), words, __FILE__, __LINE__); \
        (place) = before_;                                                   \
        must_say(verdict_of(check), "", __FILE__, __LINE__);                 \
    } while (0)

/* Atomic words by their value: a copy of an _Atomic object is what a test of one thread needs. */
#define WORD(place) (*(volatile uint64_t *)(uintptr_t)&(place))
#define HALF(place) (*(volatile uint32_t *)(uintptr_t)&(place))

TEST(a_process_row_that_makes_no_sense_is_told) {
    begin();
    shmq_process_shm *row = &a->rows[b->row], *unused = &a->rows[700];
    uint64_t live = shmq_load_seq(&row->word);
    BREAK(shmq_processes_fault, HALF(a->header->process_high), SHMQ_PROCESS_ROWS + 1, "1025 process rows");
    BREAK(shmq_processes_fault, WORD(row->word), live + 4, "makes no sense");
    BREAK(shmq_processes_fault, WORD(row->word), live | 0x100, "makes no sense");
    BREAK(shmq_processes_fault, WORD(unused->word), shmq_row_word(1, 0, SHMQ_ROW_FREE), "counts only 2 rows");
    BREAK(shmq_processes_fault, row->pin_cells, 0u, "but has no page");
    BREAK(shmq_processes_fault, row->counters, row->counters + 8, "but has no page");
    BREAK(shmq_processes_fault, row->pid, 0u, "but names no process");
    BREAK(shmq_processes_fault, row->name[39], (char)'x', "but names no process");
    BREAK(shmq_processes_fault, WORD(row->pinned_bytes), UINT64_C(1) << 60, "more bytes than the segment can lend");
    BREAK(shmq_processes_fault, row->magazines, UINT64_C(1), "a field that this version does not use");
    BREAK(shmq_processes_fault, WORD(row->ops[3].lsn), UINT64_C(1), "a field that this version does not use");
    BREAK(shmq_processes_fault, HALF(row->memory_waiting), 3u, "3 threads wait for memory, but only 0 are counted");
    end();
}

TEST(a_directory_entry_or_page_that_makes_no_sense_is_told) {
    begin();
    uint64_t entry = shmq_load_seq(&a->directory[0].word);
    shmq_queue_shm *page = qa->page;
    BREAK(shmq_directory_fault, HALF(a->header->queue_high), SHMQ_QUEUES + 1, "4097 queues");
    BREAK(shmq_directory_fault, WORD(a->directory[0].word), entry | 7, "its directory entry makes no sense");
    BREAK(shmq_directory_fault, WORD(a->directory[0].word), entry | 0x100, "its directory entry makes no sense");
    BREAK(shmq_directory_fault, WORD(a->directory[0].word), entry + (UINT64_C(1) << 32),
          "its page is that of another queue");
    BREAK(shmq_directory_fault, WORD(a->directory[900].word), shmq_entry_word(1, SHMQ_ENTRY_FREE),
          "was made, but the header counts only");
    BREAK(shmq_directory_fault, a->directory[0].name_hash, UINT64_C(1),
          "does not match the hash by which processes look it up");
    BREAK(shmq_directory_fault, page->index, 5u, "its page is that of another queue");
    BREAK(shmq_directory_fault, page->name_len, 0u, "its name is empty or too long");
    BREAK(shmq_directory_fault, WORD(page->settings.dead_letter), UINT64_C(201),
          "the name of its dead-letter queue is too long");
    BREAK(shmq_directory_fault, HALF(page->settings.overflow), 3u,
          "the setting overflow has a value that this version");
    BREAK(shmq_directory_fault, HALF(page->settings.priorities), 0u,
          "the setting priorities has a value that this version");
    BREAK(shmq_directory_fault, HALF(page->settings.retry_steps), 9u,
          "a setting has a value that this version does not know");
    BREAK(shmq_directory_fault, WORD(page->given), UINT64_C(1) << 40,
          "a setting has a value that this version does not know");
    BREAK(shmq_directory_fault, HALF(page->temporary), 2u, "the setting temporary has a value that this version");
    BREAK(shmq_directory_fault, HALF(page->checksum), 2u, "the setting checksum has a value that this version");
    BREAK(shmq_directory_fault, page->temporary_row, SHMQ_PROCESS_ROWS, "a process row that is out of range");
    BREAK(shmq_directory_fault, WORD(page->settings.lease_ns), UINT64_C(5000),
          "its settings do not match their checksum");
    BREAK(shmq_directory_fault, HALF(page->max_deaths), 9u, "its settings do not match their checksum");
    BREAK(shmq_directory_fault, WORD(page->settings.seal), UINT64_C(0), "its settings do not match their checksum");
    BREAK(shmq_directory_fault, HALF(page->shut_down), 3u, "its word for a shutdown");
    BREAK(shmq_directory_fault, HALF(page->state), 3u, "its page is not in service");
    BREAK(shmq_directory_fault, page->ring.shift, 31u, "the size of the queue's ring makes no sense");
    BREAK(shmq_directory_fault, page->ring.slot_size, 100u, "the size of the queue's ring makes no sense");
    BREAK(shmq_directory_fault, page->ring.slots, page->ring.slots + 64,
          "does not fill the memory that was reserved for it");
    BREAK(shmq_structure_fault, WORD(page->ring.laid), shmq_slot_count(&qa->first), "slots without memory");
    BREAK(shmq_directory_fault, WORD(page->ring.laid), UINT64_C(0), "more slots with memory than it has");
    BREAK(shmq_directory_fault, page->ring.cold, UINT64_C(64), "cold records");
    BREAK(shmq_directory_fault, page->ring.cold, page->ring.slots, "cold records");
    BREAK(shmq_directory_fault, WORD(page->ring.level_shift), UINT64_C(1), "a field that this version does not use");
    /* Two of one name. */
    must_say(verdict_of(shmq_directory_fault), "", __FILE__, __LINE__);
    shmq_queue_shm before = *limited->page;
    uint64_t hash = a->directory[limited->index].name_hash;
    memcpy(limited->page->name, qa->page->name, SHMQ_NAME_MAX);
    limited->page->name_len = qa->page->name_len;
    a->directory[limited->index].name_hash = a->directory[qa->index].name_hash;
    shmq_settings_seal(limited->page);
    must_say(verdict_of(shmq_segment_fault), "have the same name", __FILE__, __LINE__);
    memcpy(limited->page->name, before.name, SHMQ_NAME_MAX);
    limited->page->name_len = before.name_len;
    shmq_settings_seal(limited->page);
    a->directory[limited->index].name_hash = hash;
    end();
}

TEST(a_consumer_row_or_sleeper_that_makes_no_sense_is_told) {
    begin();
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_announce(qb, row, false);
    shmq_sleepers_shm *chunk = &qa->page->sleepers[0];
    shmq_consumer_shm *consumer = shmq_row_at(qa, row);
    uint64_t live = shmq_load_seq(&consumer->word), used = shmq_load_seq(&chunk->used), other = UINT64_C(1) << 40;
    BREAK(shmq_directory_fault, HALF(qa->page->chunk_count), SHMQ_CHUNKS + 1,
          "chunks of consumer rows, but there can be only");
    BREAK(shmq_directory_fault, HALF(qa->page->chunk_count), 0u, "producers do not look there");
    BREAK(shmq_directory_fault, WORD(chunk->used), used | 1, "consumer row 0 is in use");
    BREAK(shmq_directory_fault, WORD(chunk->idle), shmq_load_seq(&chunk->idle) | 1, "consumer row 0 is in use");
    BREAK(shmq_directory_fault, WORD(chunk->want), other, "on consumer row 40, which is not in use");
    BREAK(shmq_directory_fault, WORD(chunk->idle), shmq_load_seq(&chunk->idle) | other,
          "on consumer row 40, which is not in use");
    BREAK(shmq_directory_fault, WORD(chunk->browse), other, "on consumer row 40, which is not in use");
    BREAK(shmq_directory_fault, WORD(chunk->used), used | other,
          "consumer row 40 is marked as used, but its state is FREE");
    BREAK(shmq_directory_fault, WORD(consumer->word), live + 3, "is in a state that this version does not know");
    BREAK(shmq_directory_fault, WORD(consumer->word), shmq_row_word(1, 999, SHMQ_ROW_LIVE),
          "is in use, but no process owns it");
    BREAK(shmq_directory_fault, WORD(consumer->word), shmq_row_word(1, 5000, SHMQ_ROW_LIVE),
          "is in use, but no process owns it");
    BREAK(shmq_directory_fault, HALF(consumer->kind), 3u, "is of a kind that this version does not know");
    BREAK(shmq_directory_fault, HALF(consumer->sleeps), 2u, "a field that no process writes");
    uint64_t own = (uint64_t)((unsigned char *)qb->m->process->wake_words - qb->m->base);
    uint64_t others = (uint64_t)((unsigned char *)qa->m->process->wake_words - qa->m->base);
    uint64_t wrong[] = {64, others, own - 4, own + 2, own + SHMQ_WAKE_WORDS * 4, UINT64_MAX, qa->m->size};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        BREAK(shmq_directory_fault, WORD(consumer->sleeps_on), wrong[i], "sleeps on a word of another process");
    }
    shmq_store_seq(&consumer->sleeps_on, own + 4);
    must_say(verdict_of(shmq_segment_fault), "", __FILE__, __LINE__);
    shmq_store_seq(&consumer->sleeps_on, 0);
    /* Deaths in opening and closing a row leave no damage: the bit is not set, whatever the row says. */
    CHECK(shmq_withdraw(qb, row, false) == false);
    shmq_and_seq(&chunk->used, ~(UINT64_C(1) << row));
    must_say(verdict_of(shmq_segment_fault), "", __FILE__, __LINE__);
    shmq_or_seq(&chunk->used, UINT64_C(1) << row);
    CHECK_EQUAL(shmq_row_close(qb, row), SHMQ_OK);
    end();
}

TEST(counters_that_make_no_sense_are_told) {
    begin();
    shmq_counters_shm *counters = qb->counters;
    shmq_process_page_shm *page = shmq_process_page(a, b->row);
    BREAK(shmq_counters_fault, HALF(counters->moving), UINT32_MAX,
          "counts more threads in calls on queue 0 than a process can have");
    BREAK(shmq_counters_fault, HALF(counters->waiting), UINT32_MAX,
          "counts more threads in calls on queue 0 than a process can have");
    BREAK(shmq_counters_fault, HALF(counters->waiting), 2u, "2 threads wait for room, but only 0 are counted");
    BREAK(shmq_counters_fault, WORD(counters->attached), UINT64_C(77), "uses queue 0, which was never made");
    BREAK(shmq_counters_fault, WORD(counters->attached), UINT64_C(1) << 40, "uses queue 0, which was never made");
    must_say(verdict_of(shmq_counters_fault), "", __FILE__, __LINE__);
    uint64_t chunk = shmq_load_seq(&page->chunks[0]);
    shmq_store_seq(&page->chunks[0], chunk + 8);
    must_say(verdict_of(shmq_counters_fault), "has an offset of counter chunk 0 that makes no sense", __FILE__,
             __LINE__);
    must_say(verdict_of(shmq_structure_fault), "offset of a chunk of counters", __FILE__, __LINE__);
    shmq_store_seq(&page->chunks[0], chunk);
    shmq_queue_unbind(qb);
    CHECK_EQUAL(shmq_member_leave(b, true), SHMQ_OK);
    BREAK(shmq_counters_fault, HALF(shmq_counters_at(a, b->row, 0)->moving), 1u, "but no process owns the row");
    shmq_member_free(b);
    shmq_queue_unbind(limited);
    scratch_close(a, qa);
    scratch_remove();
}

TEST(a_pin_that_makes_no_sense_is_told) {
    begin();
    shmq_delivery d = receive(qb, shmq_self(qb));
    uint32_t pin = 0;
    CHECK_EQUAL(shmq_body_offset(d.body) != 0, true);
    CHECK(shmq_block_pin(b, shmq_body_offset(d.body), d.body_gen, 5000, &pin));
    shmq_pin_shm *cell = &b->page->pins[pin];
    uint64_t sound = shmq_load_seq(&cell->cell), generation = shmq_load_seq(&cell->generation);
    uint64_t view = UINT64_C(1) << 40;
    BREAK(shmq_pins_fault, WORD(cell->cell), sound ^ UINT64_C(1) << 50, "marked as that of another process");
    BREAK(shmq_pins_fault, WORD(cell->cell), sound & ~(UINT64_C(0xff) << 40), "a view that does not exist: 0");
    BREAK(shmq_pins_fault, WORD(cell->cell), sound + 9 * view, "a view that does not exist: 10");
    BREAK(shmq_pins_fault, WORD(cell->cell), sound + view, "that its block does not count");
    BREAK(shmq_pins_fault, WORD(cell->generation), generation + 1, "that its block does not count");
    BREAK(shmq_pins_fault, WORD(cell->cell), sound + 1, "names a block that does not exist");
    /* Tentative: its generation may be of the cell's last use, its bit is not there yet. */
    shmq_store_seq(&cell->generation, 0);
    shmq_store_seq(&cell->cell, shmq_pin_cell(shmq_body_offset(d.body), SHMQ_PIN_TENTATIVE, b->row_generation));
    must_say(verdict_of(shmq_pins_fault), "", __FILE__, __LINE__);
    shmq_store_seq(&cell->generation, generation);
    shmq_store_seq(&cell->cell, sound);
    CHECK_EQUAL(shmq_settle(qb, &d), SHMQ_OK);
    must_say(verdict_of(shmq_segment_fault), "", __FILE__, __LINE__); /* the view outlives the entry */
    shmq_block_unpin(b, pin, 5000);
    end();
}

TEST(a_watch_word_or_death_record_that_makes_no_sense_is_told) {
    begin();
    shmq_segment_shm *header = a->header;
    shmq_watcher watcher;
    shmq_watch_enter(&watcher, b, &b->header->memory_full);
    CHECK_EQUAL(watcher.index, 0);
    uint64_t word = shmq_load_seq(&header->watch[0]);
    BREAK(shmq_watch_fault, WORD(header->watch[0]), word | 0x100000, "watch word 0 makes no sense");
    BREAK(shmq_watch_fault, WORD(header->watch[1]), UINT64_C(1025), "watch word 1 makes no sense");
    BREAK(shmq_watch_fault, WORD(header->watch[0]), word + (UINT64_C(5) << 32), "a process that has not existed yet");
    BREAK(shmq_watch_fault, WORD(header->watch_wake[1]), UINT64_C(8190),
          "watcher 1 sleeps at an offset that makes no sense");
    BREAK(shmq_watch_fault, WORD(header->watch_wake[0]), a->size, "watcher 0 sleeps at an offset that makes no sense");
    BREAK(shmq_watch_fault, WORD(header->volunteers[6]), UINT64_C(2000) << 48 | offsetof(shmq_segment_shm, memory_full),
          "volunteer 6 is of a process row that does not exist");
    BREAK(shmq_watch_fault, WORD(header->volunteers[7]), UINT64_C(1) << 48 | 16,
          "volunteer 7 sleeps at an offset that makes no sense");
    shmq_watch_leave(&watcher);
    BREAK(shmq_watch_fault, WORD(header->death_records[3].message_id), UINT64_C(9),
          "death record 3 is in use, but the header does not count it");
    shmq_delivery d = receive(qa, shmq_self(qa));
    CHECK(shmq_death_count(qa, shmq_slot_at(&qa->first, d.position), d.word, 1234));
    CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    BREAK(shmq_watch_fault, header->death_records[0].at_ns, UINT64_C(0), "death record 0 makes no sense");
    BREAK(shmq_watch_fault, header->death_records[0].signal, 99, "death record 0 makes no sense");
    BREAK(shmq_watch_fault, header->death_records[0].signal, -1, "death record 0 makes no sense");
    BREAK(shmq_watch_fault, header->death_records[0].reserved, 1u, "death record 0 makes no sense");
    BREAK(shmq_watch_fault, WORD(header->watch_looked[0]), UINT64_MAX, "watcher 0 has looked at a time in the future");
    end();
}

static void must_find(shmq_queue *q, const char *expected, uint64_t place, const char *file, int line) {
    uint64_t where = 0;
    const char *wrong = shmq_ring_fault(&q->first, &where);
    must_say(wrong == NULL ? "" : wrong, expected, file, line);
    if (expected[0] != 0 && where != place) {
        fprintf(stderr, "%s:%d: slot %llu, expected %llu\n", file, line, (unsigned long long)where,
                (unsigned long long)place);
        exit(1);
    }
}

#define BREAK_RING(q, place, value, slot, words)       \
    do {                                               \
        must_find(q, "", 0, __FILE__, __LINE__);       \
        __typeof__(place) before_ = (place);           \
        (place) = (value);                             \
        must_find(q, words, slot, __FILE__, __LINE__); \
        (place) = before_;                             \
        must_find(q, "", 0, __FILE__, __LINE__);       \
    } while (0)

TEST(pointers_of_a_ring_that_make_no_sense_are_told) {
    begin();
    shmq_ring_shm *ring = limited->first.shm;
    shmq_delivery d = receive(limited, shmq_self(limited));
    CHECK_EQUAL(shmq_release(limited, &d, true), SHMQ_OK); /* epoch 1, cell 1 */
    uint64_t head = shmq_load_seq(&ring->head), cell = shmq_load_seq(&ring->cells[1]);
    uint64_t epoch = UINT64_C(1) << SHMQ_POSITION_BITS, none = SHMQ_NO_SLOT;
    BREAK_RING(limited, WORD(ring->head), head + 11, none, "the head is beyond the tail");
    BREAK_RING(limited, WORD(ring->head), head - epoch, none, "the head's epoch is behind");
    BREAK_RING(limited, WORD(ring->floor), UINT64_C(10), none, "the floor is beyond the tail");
    BREAK_RING(limited, WORD(ring->cells[1]), cell + epoch, none,
               "a cell of released positions has the epoch of another cell");
    BREAK_RING(limited, WORD(ring->cells[2]), cell, none, "a cell of released positions has the epoch of another cell");
    BREAK_RING(limited, WORD(ring->cells[1]), cell + 500, none, "a released position is beyond the tail");
    BREAK_RING(limited, HALF(ring->joiners), 2u, none, "the joiner flag has a value that no process writes");
    BREAK_RING(limited, WORD(limited->page->count), UINT64_C(8), none, "the count says 8 entries, the slots say 9");
    BREAK_RING(limited, HALF(limited->page->recount_due), 3u, none, "the request for a recount");
    /* A claim that nobody has helped yet is ahead of the tail; one epoch more in the head is a death in a release. */
    WORD(ring->head) = head + epoch;
    must_find(limited, "", 0, __FILE__, __LINE__);
    /* A count that is wrong, and known to be. */
    WORD(limited->page->count) = 8;
    HALF(limited->page->recount_due) = 1;
    must_find(limited, "", 0, __FILE__, __LINE__);
    CHECK(shmq_recount(limited));
    must_find(limited, "", 0, __FILE__, __LINE__);
    end();
}

TEST(a_slot_that_makes_no_sense_is_told) {
    begin();
    for (uint64_t i = 0; i < 600; i++) { /* into the second lap, with entries that are carried */
        CHECK_EQUAL(put_number(limited, i), SHMQ_OK);
    }
    shmq_delivery taken = receive(limited, shmq_self(limited));
    for (uint64_t i = 0; i < 1500; i++) {
        CHECK_EQUAL(put_number(limited, i), SHMQ_OK);
        CHECK(get_number(limited) != UINT64_MAX);
    }
    uint64_t tail = shmq_load_seq(&limited->first.shm->tail);
    CHECK(tail > 2048);
    uint64_t last = (tail - 1) & limited->first.mask, held_at = taken.position & limited->first.mask;
    shmq_slot_shm *slot = shmq_slot_at(&limited->first, last), *carried = shmq_slot_at(&limited->first, taken.position);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK_EQUAL(shmq_word_state(word), SHMQ_AVAILABLE);
    CHECK(shmq_word_carried(shmq_load_seq(&carried->word)));
    uint64_t lap = UINT64_C(1) << 32;
    BREAK_RING(limited, WORD(slot->word), (word & ~UINT64_C(15)) | 12, last, "a state that this version does not know");
    BREAK_RING(limited, WORD(slot->word), (word & ~UINT64_C(15)) | SHMQ_PENDING, last, "but the slot names none");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_PENDING, shmq_self(limited), 0), last,
               "does not name the queue that it comes from");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_PENDING, 3, 0), last,
               "the slot's state is a producer's, but its owner is a consumer");
    BREAK_RING(limited, WORD(slot->word), (word & ~UINT64_C(15)) | SHMQ_HELD, last,
               "has no time at which its delay ends");
    BREAK_RING(limited, slot->props, 1, last, "a property that this version");
    BREAK_RING(limited, slot->props, SHMQ_PROP_NOT_BEFORE, last, "needs a cold record, but has none");
    BREAK_RING(limited, WORD(limited->first.shm->due), UINT64_MAX - 1, SHMQ_NO_SLOT,
               "the time at which something is due");
    BREAK_RING(limited, WORD(slot->word), (word & ~UINT64_C(15)) | SHMQ_BROKEN, last,
               "the slot is broken, and its message is lost");
    BREAK_RING(limited, WORD(slot->word), word | SHMQ_FLAG_INTENT, last, "a flag that this version");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_ACQUIRED, 0, 1), last, "but the slot names none");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_AVAILABLE, 3, 1), last,
               "names an owner, but its state has none");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_ACQUIRED, SHMQ_CONSUMER_ROWS, 1), last,
               "out of range");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_CLAIMED, 3, 0), last,
               "the slot's state is a producer's, but its owner is a consumer");
    BREAK_RING(limited, WORD(slot->word), word + lap, last, "the slot's lap is ahead of the tail");
    BREAK_RING(limited, WORD(slot->word), word - lap, last, "but no producer has used it");
    BREAK_RING(limited, WORD(slot->word), shmq_word_to(word, SHMQ_FREE, 0, 0), last, "but no producer has used it");
    BREAK_RING(limited, WORD(slot->position), tail - 2, last, "that of another slot");
    BREAK_RING(limited, WORD(slot->position), tail - 1 - 1024, last, "that of another lap");
    BREAK_RING(limited, WORD(carried->position), taken.position + 4096, held_at, "that of another lap");
    BREAK_RING(limited, WORD(limited->first.carried[held_at / 64]), UINT64_C(0), held_at,
               "but the message's bit is not set");
    must_find(qa, "", 0, __FILE__, __LINE__);
    BREAK_RING(qa, WORD(shmq_slot_at(&qa->first, 50)->word), UINT64_C(1) << 32, 50,
               "is in use, but the tail has not reached it");
    CHECK_EQUAL(shmq_settle(limited, &taken), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
