/* Takers, producers and others at one queue, of which one stands still at each step: nothing is taken twice, nothing is lost. */
#include "meeting_deeds.h"

static shmq_queue *plain(shmq_member *m, const char *name) {
    shmq_declaration d = {.given = (1u << SHMQ_SET_MAX_DEATHS) | (1u << SHMQ_SET_MAX_DELIVERIES),
                          .checksum = true,
                          .create = true};
    return scratch_declare(m, name, d, 0);
}

static void three(shmq_queue *q) {
    for (int i = 0; i < 3; i++) {
        add_number(q);
    }
}

static void takers_meet(void) {
    meetings_begin(plain, three);
    MEET(gets, gets, 10);
    MEET(receives, receives, 10);
    MEET(receives, purges, 10);
    MEET(settles, steals, 10);
    MEET(releases, gets, 10);
    MEET(releases, steals, 10);
    MEET(locks, steals, 10);
    MEET(holds, steals, 10);
    MEET(touches, steals, 10);
    meetings_end();
}

static void those_who_go_over_a_queue_meet_takers(void) {
    meetings_begin(plain, three);
    MEET(steals, settles, 10);
    MEET(steals_ready, gets, 10);
    MEET(purges, gets, 10);
    MEET(discards, gets, 10);
    MEET(claims, gets, 10);
    MEET(moves, steals, 10);
    MEET(browses, gets, 10);
    MEET(puts_one, puts_one, 10);
    meetings_end();
}

int main(void) {
    takers_meet();
    those_who_go_over_a_queue_meet_takers();
    return 0;
}
