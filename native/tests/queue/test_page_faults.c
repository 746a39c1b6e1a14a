/* Words of a queue's page, of its rows and of processes that no process writes: each is told by its own words, or is as good as none. */
#include "consumers/privilege.h"
#include "consumers/unused.h"
#include "queue/alert.h"
#include "time/receipt.h"
#include "wake/due.h"
#include "scratch_queue.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs;

static void begin_with(shmq_declaration d) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    d.create = true;
    q = scratch_declare(m, "jobs", d, 0);
    theirs = scratch_declare(other, "jobs", d, 0);
}

static void begin(void) { begin_with((shmq_declaration){0}); }

static void end(void) {
    scratch_close(other, theirs);
    scratch_close(m, q);
    scratch_remove();
}

static void must_say(const char *words, int line) {
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    const char *wrong = shmq_segment_fault(m);
    shmq_structure_unlock(m);
    if (words[0] == 0 ? wrong != NULL : wrong == NULL || strstr(wrong, words) == NULL) {
        fprintf(stderr, "line %d: \"%s\", expected \"%s\"\n", line, wrong != NULL ? wrong : "", words);
        exit(1);
    }
}

/* While `place` holds `value` the check says `words`; before and after it is content. */
#define BREAK(place, value, words)           \
    do {                                     \
        must_say("", __LINE__);              \
        __typeof__(place) before_ = (place); \
        (place) = (value);                   \
        must_say(words, __LINE__);           \
        (place) = before_;                   \
        must_say("", __LINE__);              \
    } while (0)

#define WORD(place) (*(volatile uint64_t *)(uintptr_t)&(place))
#define HALF(place) (*(volatile uint32_t *)(uintptr_t)&(place))

TEST(fields_of_rows_that_nobody_writes_are_told) {
    begin();
    shmq_process_shm *row = &m->rows[other->row];
    BREAK(WORD(row->log_io), UINT64_C(1), "a field that this version does not use");
    BREAK(WORD(row->env_io), UINT64_C(1), "a field that this version does not use");
    WORD(m->rows[700].pins) = 8192; /* a row that was never used */
    const char *wrong = shmq_processes_fault(m);
    CHECK(wrong != NULL && strstr(wrong, "process row 700 was used, but the header counts only 2 rows") != NULL);
    WORD(m->rows[700].pins) = 0;
    uint32_t number;
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &number), SHMQ_OK);
    shmq_consumer_shm *consumer = shmq_row_at(q, number);
    BREAK(HALF(consumer->implicit), 2u, "a field that no process writes");
    BREAK(HALF(consumer->exclusive), 2u, "a field that no process writes");
    BREAK(HALF(consumer->live), SHMQ_LIVE_OFFERED + 1u, "a field that no process writes");
    uint64_t word = shmq_load_seq(&consumer->word);
    BREAK(WORD(consumer->word), shmq_row_word(shmq_row_generation(word), other->row, SHMQ_ROW_CLOSING), "");
    CHECK_EQUAL(shmq_row_close(theirs, number), SHMQ_OK);
    end();
}

TEST(settings_that_no_declaration_gives_are_told) {
    begin();
    shmq_settings_shm *settings = &q->page->settings;
    static const char *unknown = "a setting has a value that this version does not know";
    BREAK(WORD(settings->max_bytes), UINT64_C(5), "has a limit, but does not count its messages");
    BREAK(WORD(settings->max_memory), UINT64_C(5), "has a limit, but does not count its messages");
    BREAK(WORD(q->page->maxsize), UINT64_C(5), "has a limit, but does not count its messages");
    BREAK(HALF(settings->retry_steps), 0u, unknown);
    BREAK(HALF(settings->retry_steps), SHMQ_RETRY_STEPS + 1u, unknown);
    BREAK(WORD(q->page->given), UINT64_C(1) << SHMQ_SETTINGS, unknown);
    BREAK(q->page->name_len, 0u, "its name is empty or too long");
    BREAK(q->page->name_len, SHMQ_NAME_MAX + 1u, "its name is empty or too long");
    BREAK(WORD(settings->lease_ns), UINT64_C(5), "its settings do not match their checksum");
    CHECK(shmq_settings_sealed(q->page));
    q->page->name_len = SHMQ_NAME_MAX + 1;
    CHECK(!shmq_settings_sealed(q->page));
    shmq_settings_unseal(q->page); /* somebody is changing them */
    CHECK(shmq_settings_sealed(q->page));
    q->page->name_len = 4;
    shmq_settings_seal(q->page);
    must_say("", __LINE__);
    end();
}

TEST(a_number_of_retries_that_makes_no_sense_is_one) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_RETRY_DELAY, .retry_delay_ns = {7, 8, 9}, .retry_steps = 3};
    begin_with(d);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 0), 7);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 1), 7);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 3), 9);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 30), 9);
    const uint32_t wrong[] = {0, SHMQ_RETRY_STEPS + 1};
    for (int i = 0; i < 2; i++) {
        shmq_store_seq(&q->page->settings.retry_steps, wrong[i]);
        CHECK_EQUAL(shmq_retry_delay_ns(q->page, 3), 7);
    }
    shmq_store_seq(&q->page->settings.retry_steps, 3);
    end();
}

TEST(groups_that_cannot_be_are_told) {
    begin();
    shmq_group_shm *group = &q->page->group_table[4];
    static const char *none = "message group 5 is in use, but the queue has no groups";
    BREAK(WORD(group->owner), UINT64_C(1), none);
    BREAK(WORD(group->refused), UINT64_C(1), none);
    end();
    begin_with((shmq_declaration){.given = 1u << SHMQ_SET_GROUPS, .grouping = SHMQ_GROUPS_SHARED});
    group = &q->page->group_table[4];
    BREAK(WORD(group->owner), UINT64_MAX, "message group 5 has an owner whose row number is out of range");
    BREAK(WORD(group->refused), UINT64_MAX, "message group 5 waits at level");
    end();
}

TEST(rings_below_the_first_have_no_run_of_their_own) {
    begin_with((shmq_declaration){.given = 1u << SHMQ_SET_PRIORITIES, .priorities = 2});
    shmq_ring_shm *ring = shmq_level_ring(q, 1);
    static const char *elsewhere = "does not fill the memory that was reserved for it";
    BREAK(ring->run, UINT64_C(64), elsewhere);
    BREAK(ring->run_granules, q->page->ring.run_granules, elsewhere);
    BREAK(ring->kind, (__typeof__(ring->kind))SHMQ_RING_FRONT, "of another kind than its place says");
    end();
}

TEST(tickets_that_nobody_can_have_are_told) {
    begin();
    shmq_ticket ticket = {0};
    CHECK(shmq_line_enter(q, &ticket, 8));
    must_say("", __LINE__);
    uint64_t taken = shmq_load_seq(&q->tickets[ticket.number % SHMQ_TICKETS].word);
    shmq_line_leave(q, &ticket);
    uint64_t free = shmq_load_seq(&q->tickets[9].word);
    CHECK_EQUAL(shmq_ticket_state(free), SHMQ_TICKET_FREE);
    BREAK(WORD(q->tickets[9].word), taken, ""); /* ours, which lives */
    BREAK(WORD(q->tickets[9].word), UINT64_MAX, "ticket 9 of the line of blocked producers has a value");
    end();
}

/* A deleted one whose messages are in hand may stand beside the next one of its name. */
TEST(two_queues_of_one_name_are_told_unless_one_is_deleted) {
    begin();
    shmq_queue *more = scratch_queue(m, "more", 0, true);
    uint64_t hash = m->directory[more->index].name_hash;
    m->directory[more->index].name_hash = m->directory[q->index].name_hash;
    memcpy(more->page->name, "jobs", 4);
    shmq_settings_seal(more->page);
    must_say("have the same name", __LINE__);
    shmq_store_seq(&more->page->state, SHMQ_QUEUE_DELETED);
    must_say("", __LINE__);
    shmq_store_seq(&more->page->state, SHMQ_QUEUE_LIVE);
    memcpy(more->page->name, "more", 4);
    m->directory[more->index].name_hash = hash;
    shmq_settings_seal(more->page);
    must_say("", __LINE__);
    shmq_queue_unbind(more);
    end();
}

/* A bit of a chunk that was never made is no consumer: else the queue would stay for good. */
TEST(a_consumer_that_is_nowhere_keeps_no_queue) {
    begin_with((shmq_declaration){.given = 1u << SHMQ_SET_EXPIRES, .expires_ns = 1000 * SECOND});
    uint32_t row;
    CHECK(shmq_unused_due(q) != SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &row), SHMQ_OK);
    CHECK_EQUAL(shmq_unused_due(q), SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_row_close(theirs, row), SHMQ_OK);
    shmq_store_seq(&q->page->sleepers[SHMQ_CHUNKS - 1].used, 1);
    CHECK(shmq_unused_due(q) != SHMQ_DUE_NEVER);
    shmq_store_seq(&q->page->sleepers[SHMQ_CHUNKS - 1].used, 0);
    end();
}

TEST(a_privilege_is_counted_once_and_only_where_somebody_can_have_it) {
    begin();
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_privilege_take(q, shmq_self(q)); /* a process has some only where there are groups */
    shmq_privilege_take(q, SHMQ_CONSUMER_ROWS - 1);
    CHECK_EQUAL(shmq_load_seq(&m->process->privileges), 0);
    shmq_privilege_take(q, row);
    shmq_privilege_take(q, row);
    CHECK_EQUAL(shmq_load_seq(&m->process->privileges), 1);
    shmq_privilege_leave(q, SHMQ_CONSUMER_ROWS - 1);
    shmq_privilege_leave(q, shmq_self(q));
    CHECK_EQUAL(shmq_load_seq(&m->process->privileges), 1);
    shmq_privilege_leave(q, row);
    shmq_privilege_leave(q, row);
    CHECK_EQUAL(shmq_load_seq(&m->process->privileges), 0);
    CHECK_EQUAL(shmq_row_close(q, row), SHMQ_OK);
    end();
}

/* No receipt, or one of a process that cannot be: nobody is told, and nothing is changed. */
TEST(a_receipt_that_nobody_has_is_nothing) {
    begin();
    uint64_t receipt = shmq_receipt_begin(m);
    CHECK(receipt != 0);
    shmq_receipt_return(other, 0);
    shmq_receipt_return(other, receipt | UINT64_C(0xfff) << 6);
    CHECK(!shmq_receipt_says_returned(m, receipt));
    CHECK(!shmq_receipt_says_returned(m, 0));
    CHECK(!shmq_receipt_says_returned(m, receipt | UINT64_C(0xfff) << 6));
    uint64_t used = shmq_load_seq(&m->receipts);
    shmq_receipt_end(m, 0);
    CHECK_EQUAL(shmq_load_seq(&m->receipts), used);
    shmq_receipt_return(other, receipt);
    CHECK(shmq_receipt_says_returned(m, receipt));
    shmq_receipt_end(m, receipt);
    CHECK_EQUAL(shmq_load_seq(&m->receipts), 0);
    end();
}

/* The largest of all that are beyond the threshold is told, once. */
TEST(the_largest_message_is_told_once) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_ALERTS};
    d.alerts[SHMQ_ALERT_MESSAGE_BYTES] = 100;
    begin_with(d);
    shmq_alert_weigh(q, 99);
    CHECK_EQUAL(shmq_load_seq(&q->page->alerts.largest), 0);
    shmq_alert_weigh(q, 500);
    shmq_alert_weigh(theirs, 200);
    CHECK_EQUAL(shmq_load_seq(&q->page->alerts.largest), 500);
    shmq_store_seq(&q->page->alerts.told[SHMQ_ALERT_MESSAGE_BYTES], UINT64_MAX); /* damage: a time to come */
    CHECK_EQUAL(shmq_alert_largest(q), 500);
    CHECK_EQUAL(shmq_alert_largest(theirs), 0);
    end();
}

int main(void) { return run_tests(); }
