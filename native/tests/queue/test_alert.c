/* Alerts: who tells, how often, and what is left to tell. Shows G5. */
#include "flow/flow_alert.h"
#include "put/move.h"
#include "segment/alert_time.h"
#include "flow_pair.h"

#define LONG UINT64_C(3600000000000)

static void say_terms(shmq_queue *of, uint64_t message_bytes, uint64_t gap_ns) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_ALERTS, .alerts = {1, 2, message_bytes, 4, gap_ns}};
    int differs;
    CHECK_EQUAL(shmq_queue_alter(of, &d, &differs), SHMQ_OK);
}

TEST(of_two_one_tells_each_kind_once_in_a_gap) {
    begin();
    CHECK(!shmq_alert_has_terms(q));
    CHECK_EQUAL(shmq_alert_gap(q), SHMQ_ALERT_GAP_NS);
    say_terms(q, 0, LONG);
    CHECK(shmq_alert_has_terms(theirs) && shmq_alerts_wanted(theirs));
    CHECK(shmq_alert_claim(q, SHMQ_ALERT_MESSAGES));
    CHECK(!shmq_alert_claim(theirs, SHMQ_ALERT_MESSAGES) && !shmq_alert_claim(q, SHMQ_ALERT_MESSAGES));
    CHECK(shmq_alert_claim(theirs, SHMQ_ALERT_BYTES)); /* each kind has its own word */
    say_terms(q, 0, 1);
    CHECK(shmq_alert_claim(theirs, SHMQ_ALERT_MESSAGES));
    say_terms(q, 0, LONG);
    CHECK(!shmq_alert_claim(q, SHMQ_ALERT_MESSAGES));
    shmq_store_seq(&q->page->alerts.told[SHMQ_ALERT_MESSAGES], shmq_now_ns() + LONG); /* damage */
    CHECK(shmq_alert_claim(q, SHMQ_ALERT_MESSAGES));
    CHECK(shmq_alert_look(theirs));
    CHECK(!shmq_alert_look(q) && !shmq_alert_look(theirs));
    shmq_store_seq(&q->page->alerts.looked, shmq_now_ns() - SHMQ_ALERT_LOOK_NS);
    CHECK(shmq_alert_look(q));
    end();
}

TEST(the_largest_message_is_told_of_once) {
    begin();
    unsigned char body[400] = {0};
    say_terms(q, 300, LONG);
    CHECK_EQUAL(put_bytes(q, body, 299, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_alert_largest(q), 0);
    CHECK_EQUAL(put_bytes(q, body, 300, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, body, 400, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, body, 350, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_alert_largest(theirs), 400);
    CHECK_EQUAL(put_bytes(q, body, 320, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_alert_largest(theirs), 0); /* kept until the gap is over */
    say_terms(q, 300, 1);
    CHECK_EQUAL(shmq_alert_largest(q), 320);
    CHECK_EQUAL(shmq_alert_largest(q), 0);
    end();
}

/* It was prepared, and its block taken; there was no place for it. */
TEST(a_message_that_is_refused_is_not_told_of) {
    begin();
    unsigned char body[400] = {0};
    shmq_queue *few = scratch_queue(m, "few", 1, false);
    say_terms(few, 300, 1);
    CHECK_EQUAL(put_bytes(few, body, 10, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(few, body, 400, 0), SHMQ_FULL_COUNT);
    CHECK_EQUAL(shmq_alert_largest(few), 0);
    shmq_delivery d = receive(few, shmq_self(few)), moved;
    CHECK_EQUAL(put_bytes(q, body, 350, 0), SHMQ_OK);
    shmq_delivery large = receive(q, shmq_self(q));
    shmq_outgoing o = {.headers_len = 0, .body_len = 350, .piece_count = 1, .pieces = &(struct iovec){body, 350}};
    CHECK_EQUAL(shmq_move(q, &large, few, &o), SHMQ_FULL_COUNT);
    CHECK_EQUAL(shmq_alert_largest(few), 0);
    CHECK_EQUAL(shmq_settle(few, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_move(q, &large, few, &o), SHMQ_OK); /* as it is prepared already */
    CHECK_EQUAL(shmq_alert_largest(few), 350);
    moved = receive(few, shmq_self(few));
    CHECK_EQUAL(shmq_settle(few, &moved), SHMQ_OK);
    CHECK_EQUAL(put_bytes(few, body, 400, 0), SHMQ_OK);
    CHECK_EQUAL(shmq_alert_largest(few), 400);
    shmq_queue_unbind(few);
    end();
}

static void flush(void) { CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OK); }

static void empty(void) {
    uint64_t number;
    while (try_number(q, &number) == SHMQ_OK) {
    }
}

TEST(a_flow_is_told_of_in_pairs) {
    begin();
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_SILENT);
    put_numbers(q, 0, 100);
    flush();
    CHECK(shmq_alerts_wanted(theirs) && !shmq_alert_has_terms(theirs));
    CHECK_EQUAL(shmq_alert_flow(theirs), SHMQ_FLOW_BEGAN);
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_SILENT);
    get_numbers(q, 0, 100);
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_RECOVERED);
    CHECK_EQUAL(shmq_alert_flow(theirs), SHMQ_FLOW_SILENT);
    CHECK(!shmq_alerts_wanted(q));
    put_numbers(q, 100, 100);
    flush();
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_SILENT); /* so soon */
    get_numbers(q, 100, 100);
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_SILENT);
    CHECK(shmq_alerts_wanted(q)); /* it is to be told later */
    say_terms(q, 0, 1);
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_BOTH);
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_SILENT);
    say_terms(q, 0, LONG);
    put_numbers(q, 200, 100);
    flush();
    shmq_store_seq(&q->page->alerts.flow, (shmq_now_ns() + LONG) << 1); /* damage */
    CHECK_EQUAL(shmq_alert_flow(q), SHMQ_FLOW_BEGAN);
    get_numbers(q, 200, 100);
    end();
}

TEST(the_disk_is_told_of_once_in_a_gap) {
    begin();
    uint64_t used = 1;
    CHECK_EQUAL(shmq_disk_alerts(m, &used), 0);
    CHECK_EQUAL(used, 0);
    put_numbers(q, 0, 1000);
    flush();
    m->disk = shmq_disk_used(m) * 10 / 9 + 100;
    CHECK_EQUAL(shmq_disk_alerts(m, &used), 0);
    m->disk = shmq_disk_used(m);
    CHECK_EQUAL(shmq_disk_alerts(m, &used), SHMQ_DISK_MARK);
    CHECK_EQUAL(used, m->disk);
    CHECK_EQUAL(shmq_disk_alerts(m, &used), 0);
    put_numbers(q, 1000, 1000);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_FULL_DISK);
    CHECK_EQUAL(shmq_disk_alerts(other, &used), SHMQ_DISK_FULL);
    CHECK_EQUAL(shmq_disk_alerts(other, &used), 0);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_FULL_DISK);
    CHECK_EQUAL(shmq_disk_alerts(other, &used), 0); /* so soon */
    shmq_store_seq(&m->header->disk_told[1], 1);
    CHECK_EQUAL(shmq_disk_alerts(other, &used), SHMQ_DISK_FULL);
    m->disk = SHMQ_DISK_SHARE;
    shmq_store_seq(&m->header->disk_told[0], 0);
    CHECK_EQUAL(shmq_disk_alerts(m, &used), 0); /* a share of the file system has no mark */
    empty();
    end();
}

static uint32_t upcalls(void) { return shmq_load_seq(&m->upcalls) & SHMQ_UPCALL_ALERTS; }

static void look_later(uint64_t ns) {
    shmq_store_seq(&m->upcalls, 0);
    shmq_store_seq(&m->alerts_ns, shmq_now_ns() + ns);
}

TEST(a_process_that_tells_looks_now_and_then) {
    begin();
    shmq_alerts_tick(m);
    shmq_alerts_hurry(m);
    CHECK_EQUAL(upcalls(), 0); /* it tells nothing */
    shmq_alerts_begin(m);
    CHECK(shmq_load_seq(&m->alerts_ns) > shmq_now_ns());
    look_later(LONG);
    shmq_alerts_tick(m);
    CHECK_EQUAL(upcalls(), 0);
    shmq_alerts_hurry(m);
    CHECK(upcalls() != 0);
    look_later(0);
    (void)shmq_sleep(m, &m->header->memory_full, shmq_load_seq(&m->header->memory_full), shmq_now_ns() + 1000);
    CHECK(upcalls() != 0 && shmq_load_seq(&m->alerts_ns) > shmq_now_ns());
    look_later(0);
    shmq_store_seq(&m->gone_looked_ns, shmq_now_ns() - SHMQ_SLICE_NS - 1);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK(upcalls() != 0);
    look_later(0);
    for (uint32_t i = 0; i < 1024; i++) {
        CHECK_EQUAL(shmq_queue_enter(q), SHMQ_OK);
    }
    CHECK(upcalls() != 0);
    look_later(LONG);
    put_numbers(q, 2, 100);
    flush(); /* begins to flow, which is told at once */
    CHECK(upcalls() != 0);
    look_later(LONG);
    get_numbers(q, 1, 101);
    empty(); /* it leaves */
    CHECK(upcalls() != 0);
    end();
}

int main(void) { return run_tests(); }
