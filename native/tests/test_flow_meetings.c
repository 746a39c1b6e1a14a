/* A queue that flows to disk, and two processes of which one stands still at each step: also amid its turn as the mover. */
#include "meeting_deeds.h"

static shmq_queue *flowing(shmq_member *m, const char *name) { return scratch_flowing(m, name, 30); }

/* More than fits into memory. */
static void some(shmq_queue *q) {
    for (int i = 0; i < 8; i++) {
        add_number(q);
    }
    CHECK(shmq_flow_rows(q) != 0);
}

/* What is in memory is gone: the next one comes from disk. */
static void take_from_memory(actor *by) {
    for (int i = 0; i < 3; i++) {
        get_one(by);
    }
    see_first(by);
}

static const deed brings = {.before = take_from_memory, .act = get_one},
                  steals_from_disk = {.before = take_from_memory, .act = steal_first};

static void takers_meet_movers(void) {
    meetings_begin(flowing, some);
    MEET(brings, gets, 2);
    MEET(brings, browses, 2);
    MEET(steals_from_disk, gets, 2);
    meetings_end();
}

int main(void) {
    takers_meet_movers();
    return 0;
}
