/* Message groups, and two processes of which one stands still at each step: a group is one's at a time, and no message is lost. */
#include "meeting_deeds.h"

static shmq_queue *grouped(shmq_member *m, const char *name) {
    shmq_declaration d = {.given =
                              (1u << SHMQ_SET_GROUPS) | (1u << SHMQ_SET_MAX_DEATHS) | (1u << SHMQ_SET_MAX_ATTEMPTS),
                          .grouping = SHMQ_GROUPS_SHARED,
                          .create = true};
    return scratch_declare(m, name, d, 0);
}

/* In one of two groups. */
static shmq_status put_in_group(shmq_queue *q, uint64_t number) {
    unsigned char headers[] = {1, 0, 0, 3, 1, 0, (unsigned char)('a' + number / 2 % 2)};
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.headers = headers,
                       .headers_len = sizeof headers,
                       .pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number};
    return shmq_put(q, &o, 0);
}

static void four(shmq_queue *q) {
    for (int i = 0; i < 4; i++) {
        add_number(q);
    }
}

TEST(takers_of_groups_meet) {
    meeting_put = put_in_group;
    meetings_begin(grouped, four);
    MEET(gets, gets, 10);
    MEET(receives, receives, 10);
    MEET(receives, settles, 10);
    MEET(settles, gets, 10);
    MEET(releases, receives, 10);
    MEET(settles, steals, 10);
    meetings_end();
}

int main(void) { return run_tests(); }
