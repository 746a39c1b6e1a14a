/* Queues that go when nobody has consumed from them for so long: what begins the time, what stops it, who ends it. */
#include "consumers/unused.h"
#include "upkeep/duty.h"
#include "wake/due.h"
#include "scratch_queue.h"

#define MS UINT64_C(1000000)
#define LONG (60 * SECOND)

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static shmq_queue *declare(shmq_member *m, uint64_t expires_ns) {
    shmq_declaration d = {.create = true};
    shmq_declaration_give(&d, SHMQ_SET_EXPIRES, expires_ns);
    return scratch_declare(m, "jobs", d, 0);
}

static void begin(uint64_t expires_ns) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = declare(a, expires_ns);
    qb = scratch_queue(b, "jobs", 0, true);
}

static void end(void) {
    scratch_close_unless_dead(b, qb);
    scratch_close_unless_dead(a, qa);
    scratch_remove();
}

static uint32_t open_row(shmq_queue *q, uint32_t kind) {
    uint32_t row = 0;
    CHECK_EQUAL(shmq_row_open(q, kind, &row), SHMQ_OK);
    return row;
}

static uint64_t since(void) { return shmq_load_seq(&qa->page->settings.unused_since); }

/* It is past its time now, and has been for long. */
static void let_it_be_old(void) {
    uint64_t now = shmq_now_ns(), long_ago = shmq_load_seq(&qa->page->settings.expires_ns) + SECOND;
    shmq_store_seq(&qa->page->settings.unused_since, now > long_ago ? now - long_ago : 1);
}

static void look(void) {
    shmq_store_seq(&a->header->due, 2);
    shmq_due_look(a);
}

static bool is_there(void) {
    shmq_status status = shmq_queue_usable(qa);
    CHECK(status == SHMQ_OK || status == SHMQ_NOT_FOUND);
    return status == SHMQ_OK;
}

TEST(it_goes_with_what_is_in_it) {
    begin(300 * MS);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    uint64_t at = shmq_unused_due(qa);
    CHECK(at == since() + 300 * MS);
    CHECK(shmq_due_time(shmq_load_seq(&a->header->due)) <= at);
    while (shmq_now_ns() < at) {
        shmq_pause();
    }
    shmq_due_look(b); /* whoever looks */
    CHECK(!is_there());
    CHECK_EQUAL(put_number(qa, 2), SHMQ_NOT_FOUND);
    end();
}

TEST(before_its_time_it_stays) {
    begin(LONG);
    look();
    CHECK(is_there());
    uint64_t due = shmq_due_time(shmq_load_seq(&a->header->due));
    CHECK(due != SHMQ_DUE_NEVER && due / 2 == (since() + LONG) / 2); /* the bit of the lookers is not of the time */
    end();
}

TEST(while_it_has_a_consumer_it_stays) {
    begin(LONG);
    uint32_t getter = open_row(qb, SHMQ_GETTER), browser = open_row(qa, SHMQ_BROWSER);
    CHECK(shmq_unused_due(qa) != SHMQ_DUE_NEVER); /* these are none */
    uint32_t row = open_row(qb, SHMQ_CONSUMER);
    let_it_be_old();
    CHECK_EQUAL(shmq_unused_due(qa), SHMQ_DUE_NEVER);
    look();
    CHECK(is_there());
    uint64_t before = shmq_now_ns();
    CHECK_EQUAL(shmq_row_close(qb, row), SHMQ_OK); /* the time begins anew */
    CHECK(since() >= before);
    CHECK_EQUAL(shmq_row_close(qb, getter), SHMQ_OK);
    CHECK_EQUAL(shmq_row_close(qa, browser), SHMQ_OK);
    let_it_be_old();
    look();
    CHECK(!is_there());
    end();
}

TEST(a_consumer_that_dies_is_one_that_has_gone) {
    begin(LONG);
    (void)open_row(qb, SHMQ_CONSUMER);
    let_it_be_old();
    CHECK_EQUAL(shmq_unused_due(qa), SHMQ_DUE_NEVER);
    uint64_t before = shmq_now_ns();
    scratch_kill(b);
    reap_all(a, 1);
    CHECK(since() >= before);
    CHECK(shmq_unused_due(qa) >= before + LONG);
    shmq_queue_unbind(qb);
    shmq_member_free(b);
    scratch_close_unless_dead(a, qa);
    scratch_remove();
}

TEST(with_zero_it_waits_for_its_first_consumer) {
    begin(0);
    CHECK_EQUAL(since(), 0);
    look();
    CHECK(is_there());
    CHECK_EQUAL(shmq_unused_due(qa), SHMQ_DUE_NEVER);
    uint32_t row = open_row(qb, SHMQ_CONSUMER);
    look();
    CHECK(is_there());
    CHECK_EQUAL(shmq_row_close(qb, row), SHMQ_OK);
    CHECK(since() != 0);
    shmq_due_look(a);
    CHECK(!is_there());
    end();
}

/* A thread that waits in a get has no row of a consumer, but the queue is used. */
TEST(who_waits_for_a_message_uses_it) {
    begin(LONG);
    uint32_t row = open_row(qb, SHMQ_GETTER);
    let_it_be_old();
    (void)shmq_announce(qb, row, false);
    uint64_t before = shmq_now_ns();
    look();
    CHECK(is_there());
    CHECK(since() >= before);
    (void)shmq_withdraw(qb, row, false);
    let_it_be_old();
    look();
    CHECK(!is_there());
    end();
}

TEST(what_goes_to_the_dead_is_left_to_the_interpreter) {
    begin(LONG);
    shmq_declaration d = {.given = 1u << SHMQ_SET_DEAD_LETTER, .dead_letter = "dead", .dead_letter_len = 4};
    int differs = -1;
    CHECK_EQUAL(shmq_queue_alter(qa, &d, &differs), SHMQ_OK);
    let_it_be_old();
    look();
    CHECK(is_there());
    CHECK_EQUAL(shmq_load_seq(&a->upcalls), 1);
    uint64_t due = shmq_due_time(shmq_load_seq(&a->header->due));
    CHECK(due != SHMQ_DUE_NEVER && due > shmq_now_ns() - SECOND); /* and it is looked at again */
    end();
}

/* A process that does what is due waits for no other: another one has the lock of the structure, perhaps for long. */
TEST(while_the_structure_is_locked_it_stays_until_later) {
    begin(LONG);
    let_it_be_old();
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    look();
    CHECK(is_there());
    CHECK(shmq_load_seq(&a->header->due) != 0);
    shmq_structure_unlock(b);
    look();
    CHECK(!is_there());
    end();
}

/* Between the look and the lock: it is asked again under the lock. */
TEST(a_consumer_that_comes_in_time_keeps_it) {
    begin(LONG);
    let_it_be_old();
    uint64_t now = shmq_now_ns();
    CHECK(shmq_unused_due(qa) <= now);
    uint32_t row = open_row(qb, SHMQ_CONSUMER);
    CHECK_EQUAL(shmq_unused_end(qa, now), SHMQ_DUE_NEVER);
    CHECK(is_there());
    CHECK_EQUAL(shmq_row_close(qb, row), SHMQ_OK);
    end();
}

TEST(altered_its_time_begins_anew) {
    begin(SHMQ_NEVER);
    CHECK_EQUAL(since(), 0);
    shmq_declaration d = {0};
    int differs = -1;
    uint64_t before = shmq_now_ns();
    shmq_declaration_give(&d, SHMQ_SET_EXPIRES, LONG);
    CHECK_EQUAL(shmq_queue_alter(qa, &d, &differs), SHMQ_OK);
    CHECK(since() >= before);
    CHECK_EQUAL(shmq_unused_due(qa), since() + LONG);
    shmq_declaration other = {0};
    shmq_declaration_give(&other, SHMQ_SET_MAX_BYTES, 1000);
    uint64_t then = since();
    CHECK_EQUAL(shmq_queue_alter(qa, &other, &differs), SHMQ_OK); /* that is another matter */
    CHECK_EQUAL(since(), then);
    end();
}

/* Damage, or the longest of times: no sum runs over. */
TEST(a_time_beyond_all_times_never_comes) {
    begin(LONG);
    shmq_store_seq(&qa->page->settings.expires_ns, SHMQ_NEVER - 1);
    shmq_store_seq(&a->header->due, 0);
    shmq_unused_begin(qa);
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    CHECK_EQUAL(shmq_unused_due(qa), SHMQ_DUE_NEVER);
    look();
    CHECK(is_there());
    CHECK_EQUAL(shmq_load_seq(&a->header->due), 0);
    shmq_store_seq(&qa->page->settings.expires_ns, LONG);
    end();
}

int main(void) { return run_tests(); }
