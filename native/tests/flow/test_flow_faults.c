/* Words of a queue that flows, with values that no process writes: each is told. And what may be so amid a mover's turn is not. */
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "wake/due.h"
#include "flow_pair.h"

#define MANY 12000
#define TAKEN 5000 /* more than stays in memory, so that some have come back */

static shmq_ring front;
static shmq_ring_shm *back;

/* Many are on disk, and some have come back; one was fetched by itself. */
static void begin_flowing(void) {
    begin();
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, TAKEN);
    back = q->first.shm;
    CHECK(shmq_level_look(q, q->levels, &front) == NULL);
    CHECK(shmq_flow_rows(q) > 0);
    CHECK(shmq_load_seq(&front.shm->tail) != 0);
}

static void end_flowing(void) {
    get_numbers(theirs, TAKEN, MANY - TAKEN);
    end();
}

static const char *fault(void) {
    const char *wrong = shmq_flow_fault(&q->first);
    return wrong != NULL ? wrong : "";
}

static void must_say(const char *found, const char *words, int line) {
    if (words[0] == 0 ? found[0] != 0 : strstr(found, words) == NULL) {
        fprintf(stderr, "line %d: \"%s\", expected \"%s\"\n", line, found, words);
        exit(1);
    }
}

#define SAYS(words) must_say(fault(), words, __LINE__)

/* With this value of a word it is told; with its own it is not. */
static void told_with(shmq_a64 *word, uint64_t value, const char *words, int line) {
    uint64_t own = shmq_load_seq(word);
    must_say(fault(), "", line);
    shmq_store_seq(word, value);
    must_say(fault(), words, line);
    shmq_store_seq(word, own);
    must_say(fault(), "", line);
}

#define TOLD_WITH(word, value, words) told_with(&(word), value, words, __LINE__)

TEST(counts_that_cannot_be_are_told) {
    begin_flowing();
    uint64_t flushed = shmq_load_seq(&back->flushed), bytes = shmq_load_seq(&back->flushed_bytes);
    uint64_t erased = shmq_load_seq(&front.shm->fetched), erased_bytes = shmq_load_seq(&front.shm->fetched_bytes);
    TOLD_WITH(back->pulled, flushed + 1, "more messages have come back from disk than went there");
    TOLD_WITH(back->pulled_bytes, bytes + 1, "more bytes have come back from disk than went there");
    TOLD_WITH(front.shm->passed, erased + 1, "the queue has passed more fetched messages than were fetched");
    TOLD_WITH(front.shm->passed_bytes, erased_bytes + 1,
              "the queue has passed more fetched messages than were fetched");
    TOLD_WITH(back->flushed, flushed + MANY, "but has only");
    TOLD_WITH(front.shm->fetched, erased + MANY, "that were fetched from among them");
    TOLD_WITH(back->pulled, flushed, "bytes on disk, but no message there");
    TOLD_WITH(back->low, shmq_flow_place(shmq_load_seq(&back->flow)) + 1, "begin behind their end");
    TOLD_WITH(back->flow, shmq_flow_word(shmq_load_seq(&back->tail) + 2, true), "end beyond the tail");
    TOLD_WITH(back->tried, shmq_load_seq(&back->tail) + 2, "from beyond the tail");
    TOLD_WITH(back->rows_due, UINT64_MAX - 1, "the time at which something is due");
    TOLD_WITH(front.shm->cold, 0, "its front ring has no cold records");
    shmq_store_seq(&q->page->missed, 2);
    SAYS("the word for a missed turn");
    shmq_store_seq(&q->page->missed, 0);
    SAYS("");
    end_flowing();
}

/* They are written one after the other: halves are seen then. */
TEST(counts_are_not_compared_amid_a_turn) {
    begin_flowing();
    uint64_t flushed = shmq_load_seq(&back->flushed);
    shmq_store_seq(&back->flushed, flushed + MANY);
    SAYS("but has only");
    shmq_store_seq(&q->page->unfinished, 1);
    SAYS("");
    shmq_store_seq(&back->flushed, flushed);
    shmq_store_seq(&q->page->unfinished, 0);
    end_flowing();
}

/* Its other faults are told where that ring is looked at. */
TEST(a_front_ring_that_leads_nowhere_is_left_to_others) {
    begin_flowing();
    uint64_t slots = front.shm->slots;
    front.shm->slots = slots + 8;
    shmq_store_seq(&q->page->missed, 2);
    CHECK(shmq_flow_fault(&q->first) == NULL);
    front.shm->slots = slots;
    SAYS("the word for a missed turn");
    shmq_store_seq(&q->page->missed, 0);
    end_flowing();
}

/* An entry of the front ring; UINT64_MAX: there is none. */
static shmq_slot_shm *entry_of_front(bool fetched) {
    for (uint64_t i = 0; i < shmq_slots_laid(&front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(&front, i);
        if (shmq_word_state(shmq_load_seq(&slot->word)) == SHMQ_AVAILABLE && shmq_is_fetched(slot) == fetched) {
            return slot;
        }
    }
    CHECK(false);
    return NULL;
}

static void entry_says(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, const char *words, int line) {
    const char *wrong = shmq_flow_entry_fault(r, slot, word);
    must_say(wrong != NULL ? wrong : "", words, line);
}

#define ENTRY_SAYS(r, slot, word, words) entry_says(r, slot, word, words, __LINE__)

TEST(an_entry_of_the_front_ring_that_cannot_be_is_told) {
    begin_flowing();
    shmq_slot_shm *slot = entry_of_front(false);
    uint64_t word = shmq_load_seq(&slot->word), low = shmq_load_seq(&back->low), flow = shmq_load_seq(&back->flow);
    static const uint32_t nevers[] = {SHMQ_CLAIMED, SHMQ_QUARANTINED, SHMQ_PENDING, SHMQ_MOVING};
    ENTRY_SAYS(&front, slot, word, "");
    for (size_t i = 0; i < sizeof nevers / sizeof nevers[0]; i++) {
        ENTRY_SAYS(&front, slot, shmq_word_to(word, nevers[i], shmq_self(q), 0), "a state that no message from disk");
    }
    ENTRY_SAYS(&front, slot, shmq_word_to(word, SHMQ_FREE, 0, 0), "");
    shmq_store_seq(&back->flow, shmq_flow_word(0, true));
    ENTRY_SAYS(&front, slot, word, "a place on disk that no message has had");
    shmq_store_seq(&back->flow, flow);
    shmq_store_seq(&back->low, 0);
    ENTRY_SAYS(&front, slot, word, "but older ones may still be there");
    shmq_store_seq(&q->page->unfinished, 1); /* its mover has not come to that yet */
    ENTRY_SAYS(&front, slot, word, "");
    shmq_store_seq(&q->page->unfinished, 0);
    shmq_store_seq(&back->low, low);
    end_flowing();
}

TEST(what_was_fetched_by_itself_may_come_before_older_ones) {
    begin_flowing();
    CHECK_EQUAL(shmq_flow_fetch(&q->first, shmq_load_seq(&back->low) + 500), SHMQ_OK);
    shmq_slot_shm *slot = entry_of_front(true);
    CHECK(shmq_front_place(&front, slot) >= shmq_load_seq(&back->low));
    ENTRY_SAYS(&front, slot, shmq_load_seq(&slot->word), "");
    SAYS("");
    CHECK(shmq_load_seq(&front.shm->fetched) != 0);
    end_flowing();
}

/* The last one in memory: its place is not among those of rows, unless the flow word says so. */
TEST(what_a_flush_would_not_leave_is_told) {
    begin_flowing();
    uint64_t p = shmq_load_seq(&back->tail) - 1, flow = shmq_load_seq(&back->flow);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, p);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK_EQUAL(shmq_word_state(word), SHMQ_AVAILABLE);
    ENTRY_SAYS(&q->first, slot, word, "");
    shmq_store_seq(&back->flow, shmq_flow_word(p + 1, true));
    ENTRY_SAYS(&q->first, slot, word, "left in memory among those on disk");
    ENTRY_SAYS(&q->first, slot, shmq_word_to(word, SHMQ_AVAILABLE, 0, 1), "");
    ENTRY_SAYS(&q->first, slot, word | SHMQ_FLAG_REDELIVERED, "");
    ENTRY_SAYS(&q->first, slot, shmq_word_to(word, SHMQ_ACQUIRED, shmq_self(q), 0), "");
    uint64_t tally = shmq_load_seq(&slot->tally);
    shmq_store_seq(&slot->tally, tally | (uint64_t)SHMQ_PROP_IMMEDIATE << 32);
    ENTRY_SAYS(&q->first, slot, word, "");
    shmq_store_seq(&slot->tally, tally);
    shmq_store_seq(&back->flow, shmq_flow_word(p + 1, false)); /* it does not flow */
    ENTRY_SAYS(&q->first, slot, word, "");
    shmq_store_seq(&back->flow, flow);
    end_flowing();
}

TEST(what_moves_without_a_mover_is_told) {
    begin_flowing();
    uint64_t p = shmq_load_seq(&back->tail) - 1, flow = shmq_load_seq(&back->flow);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, p);
    uint64_t word = shmq_load_seq(&slot->word), moving = shmq_word_to(word, SHMQ_MOVING, 0, 0);
    ENTRY_SAYS(&q->first, slot, moving, "no mover has it");
    CHECK(!shmq_is_row(&q->first, slot, moving));
    shmq_store_seq(&q->page->unfinished, 1);
    shmq_store_seq(&back->flow, shmq_flow_word(p, true));
    ENTRY_SAYS(&q->first, slot, moving, "");
    shmq_store_seq(&back->flow, shmq_flow_word(p + SHMQ_TURN_ENTRIES + 1, true)); /* far below its turn */
    ENTRY_SAYS(&q->first, slot, moving, "no mover has it");
    CHECK(shmq_is_row(&q->first, slot, moving));
    CHECK(!shmq_is_row(&q->first, slot, word));
    shmq_store_seq(&back->flow, shmq_flow_word(p > SHMQ_TURN_ENTRIES ? p - SHMQ_TURN_ENTRIES : 0, true));
    ENTRY_SAYS(&q->first, slot, moving, "no mover has it"); /* far above it */
    shmq_store_seq(&back->flow, flow);
    shmq_store_seq(&q->page->unfinished, 0);
    end_flowing();
}

/* A time that no message can have is none: each look would find it due. */
TEST(a_life_ends_when_its_message_or_its_queue_says) {
    begin();
    shmq_a64 *max_ttl = &q->page->settings.max_ttl_ns;
    CHECK_EQUAL(shmq_life_end(q, 1000, 0), SHMQ_NEVER);
    CHECK_EQUAL(shmq_life_end(q, 1000, 5000), 5000);
    CHECK_EQUAL(shmq_life_end(q, 1000, 500), 500); /* it was over when it came */
    CHECK_EQUAL(shmq_life_end(q, 1000, 1000 + SHMQ_DUE_LONGEST), 1000 + SHMQ_DUE_LONGEST);
    CHECK_EQUAL(shmq_life_end(q, 1000, 1001 + SHMQ_DUE_LONGEST), SHMQ_NEVER);
    shmq_store_seq(max_ttl, 300);
    CHECK_EQUAL(shmq_life_end(q, 1000, 0), 1300);
    CHECK_EQUAL(shmq_life_end(q, 1000, 5000), 1300);
    CHECK_EQUAL(shmq_life_end(q, 1000, 1200), 1200);
    CHECK_EQUAL(shmq_life_end(q, UINT64_MAX - 100, 0), SHMQ_NEVER); /* beyond all times */
    shmq_store_seq(max_ttl, SHMQ_NEVER);
    end();
}

static shmq_row kept;

static shmq_row_use keep_row(void *context, const shmq_delivery *d) {
    (void)context;
    CHECK_EQUAL(d->depth, 0);
    return SHMQ_ROW_PASSED;
}

/* Its place, its length and its sum have to be those of what was written. */
TEST(a_row_that_was_changed_is_no_message) {
    begin_flowing();
    shmq_mover t;
    shmq_delivery d;
    shmq_ordinal ordinal;
    uint32_t count = 1;
    uint64_t low = shmq_load_seq(&back->low), at = low;
    CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
    CHECK_EQUAL(shmq_fetch(&t, &at, low + 3, keep_row, NULL), SHMQ_NOT_FOUND);
    CHECK_EQUAL(at, low + 3);
    CHECK_EQUAL(shmq_read_rows(&t, low, low + 1, 0, &kept, &count), SHMQ_OK);
    CHECK_EQUAL(count, 1);
    CHECK(shmq_row_parse(&kept, &d) && shmq_row_ordinal(&kept, &ordinal));
    CHECK_EQUAL(d.position, low);
    CHECK(number_of(&d) >= TAKEN && number_of(&d) < MANY);
    shmq_row changed = kept;
    changed.place++; /* in the place of another */
    CHECK(!shmq_row_parse(&changed, &d) && !shmq_row_ordinal(&changed, &ordinal));
    changed = kept;
    changed.length = 8;
    CHECK(!shmq_row_parse(&changed, &d) && !shmq_row_ordinal(&changed, &ordinal));
    changed.length = kept.length - 1;
    CHECK(!shmq_row_parse(&changed, &d) && !shmq_row_ordinal(&changed, &ordinal));
    unsigned char *byte = (unsigned char *)(uintptr_t)kept.bytes + kept.length - 1;
    *byte ^= 1;
    CHECK(!shmq_row_parse(&kept, &d) && !shmq_row_ordinal(&kept, &ordinal));
    *byte ^= 1;
    CHECK(shmq_row_parse(&kept, &d));
    shmq_turn_end(&t);
    end_flowing();
}

int main(void) { return run_tests(); }
