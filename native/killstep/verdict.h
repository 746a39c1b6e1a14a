/* Was every message that was accepted delivered exactly once, in order, marked where it had been delivered before? Asked
 * of the history alone; nothing here knows the segment. */
#ifndef SHMQ_KILLSTEP_VERDICT_H
#define SHMQ_KILLSTEP_VERDICT_H

#include <stdbool.h>

#include "board.h"

typedef struct verdict_rules {
    bool delayed; /* what the state has put comes when its time has, behind what others have put by then */
    bool stopped_victim; /* one that was stopped puts its message later: then others may have overtaken it */
    bool in_turn; /* and it has nothing in hand that would come back: no order changes when it goes on */
    bool victims_die;
    bool actors_die;
    unsigned groups; /* bits, by queue: the same says of which group it is; each has an order of its own */
    bool levels; /* the hundreds of a value say which level it goes to; the highest is emptied first */
} verdict_rules;

/* NULL, or what is wrong. The survivor has drained every queue before. */
const char *verdict_of(board *b, const verdict_rules *rules);
/* Of what is in an image alike: which messages have been there, and which of them must never come again. Which process died
 * amid which call makes what is asked later milder, and nothing else. */
uint64_t verdict_likeness(board *b, const verdict_rules *rules);

#endif
