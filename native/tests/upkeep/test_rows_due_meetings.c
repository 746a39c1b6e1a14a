/* The queue duty "rows", and a process that sets max_ttl at each atomic write of a pass: what has expired by then is not left
 * on disk. */
#include "upkeep/duty.h"
#include "meeting_deeds.h"

#define LOOKS 3 /* a pass, one for what lies below, and one to spare */

static shmq_queue *flowing(shmq_member *m, const char *name) { return scratch_flowing(m, name, 30); }

static void some(shmq_queue *q) {
    for (int i = 0; i < 8; i++) {
        add_number(q);
    }
}

static void set_max_ttl(const actor *by, uint64_t ns) { scratch_alter(by->q, SHMQ_SET_MAX_TTL, ns); }

static void live_for_an_hour(actor *by) { set_max_ttl(by, 3600 * SECOND); }

static void live_no_longer(actor *by) { set_max_ttl(by, 1); }

static void pass(actor *by) { shmq_due_look(by->m); }

/* As round_of, with a look at the disk behind it. */
static void pass_met_at(long write) {
    memset(tally, 0, sizeof *tally);
    set_max_ttl(&ours, SHMQ_NEVER);
    some(ours.q);
    CHECK(shmq_flow_rows(ours.q) != 0);
    live_for_an_hour(&ours);
    their_part = NOT_YET;
    stop_at_write = write;
    walk(&ours, pass);
    they_are_through();
    for (int looks = 0; looks < LOOKS && shmq_flow_rows(ours.q) != 0; looks++) {
        shmq_due_look(ours.m);
    }
    CHECK_EQUAL(shmq_flow_rows(ours.q), 0);
    is_gone(shmq_load_relaxed(&tally->put));
    settle_accounts();
}

TEST(a_max_ttl_amid_a_pass_is_not_forgotten) {
    const deed sets = {.act = live_no_longer};
    meetings_begin(flowing, some);
    child_begin(&sets);
    actor_begin(&ours);
    stop_at = -1;
    pass_met_at(-1);
    long count = writes;
    for (long write = 0; write < count; write++) {
        pass_met_at(write);
    }
    printf("%ld stops\n", count);
    actor_end(&ours);
    child_end();
    meetings_end();
}

int main(void) { return run_tests(); }
