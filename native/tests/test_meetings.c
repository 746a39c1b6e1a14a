/* Takers, producers and others at one queue, of which one stands still at each step: nothing is taken twice, nothing is lost. */
#include "meeting_deeds.h"

static shmq_queue *plain(shmq_member *m, const char *name) {
    shmq_declaration d = {
        .given = (1u << SHMQ_SET_MAX_DEATHS) | (1u << SHMQ_SET_MAX_DELIVERIES), .checksum = true, .create = true};
    return scratch_declare(m, name, d, 0);
}

static void three(shmq_queue *q) {
    for (int i = 0; i < 3; i++) {
        add_number(q);
    }
}

static void thieves_and_purges_meet_those_who_hold(void) {
    meetings_begin(plain, three);
    MEET(receives, purges, 5);
    MEET(settles, steals, 5);
    MEET(holds, steals, 5);
    MEET(locks, steals, 5);
    meetings_end();
}

static void those_who_go_over_a_queue_meet_takers(void) {
    meetings_begin(plain, three);
    MEET(discards, gets, 5);
    MEET(claims, gets, 5);
    MEET(moves, steals, 5);
    meetings_end();
}

int main(void) {
    thieves_and_purges_meet_those_who_hold();
    those_who_go_over_a_queue_meet_takers();
    return 0;
}
