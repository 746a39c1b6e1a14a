/* Operations on messages that wait for a time, expire, or are lent for a time. */
#ifndef SHMQ_KILLSTEP_ACT_TIME_H
#define SHMQ_KILLSTEP_ACT_TIME_H

#include "ring/outgoing.h"
#include "act.h"

#define LATER_NS UINT64_C(30000000000) /* of the virtual clock: when what waits is due */

/* 0: none. */
void act_put_timed(act *a, unsigned queue, uint64_t value, uint64_t delay_ns, uint64_t ttl_ns);
/* Immediate: taken by `until_ns` of the virtual clock, or withdrawn. begin: it has been put, and its put waits. */
shmq_outgoing act_immediate_begin(act *a, unsigned queue, uint64_t value);
void act_immediate(act *a, unsigned queue, uint64_t value, uint64_t until_ns);
void act_release_later(act *a, uint64_t delay_ns, bool attempt); /* the oldest in hand */
void act_touch(act *a);
void act_look(act *a);
void act_look_in_pieces(act *a); /* do what is due */
/* Nobody has used it for longer than its `expires`; whoever does what is due deletes it. */
void act_unused(act *a, unsigned queue, uint64_t ns);
void act_look_unused(act *a, unsigned queue);
void act_lease(act *a, unsigned queue, uint64_t ns);
void act_wait_till_later(act *a);

#endif
