/* The driver shares more than the segment with the processes that it starts: the history of calls, and a few words by
 * which they meet. Each call writes its marks as it begins and returns. A mark has its place first, its phase last, and
 * counts when it has a phase. A death amid the writing of one leaves no mark, a stop none that others write over. */
#ifndef SHMQ_KILLSTEP_BOARD_H
#define SHMQ_KILLSTEP_BOARD_H

#include <stdint.h>

#include "base/atomic.h"

#define BOARD_CALLS 6000u
#define BOARD_ACTORS 8u

enum call_kind {
    CALL_PUT = 1,
    CALL_GET, /* taken for good: value with its return */
    CALL_RECEIVE, /* taken, to be settled */
    CALL_SETTLE,
    CALL_RELEASE,
    CALL_PURGE,
    CALL_DELETE,
    CALL_OTHER, /* anything that moves no message */
    CALL_RESUMED, /* the one that was stopped goes on from here */
    CALL_MOVE /* to this queue, from where it was */
};
enum call_phase { CALL_UNWRITTEN = 0, CALL_BEGUN = 1, CALL_RETURNED, CALL_FAILED };
/* Victims are numbered from WHO_VICTIM on, in the order of their deaths. */
enum call_who { WHO_BUILDER = 0, WHO_ACTOR = 1, WHO_VICTIM = 2, WHO_SURVIVOR = 31 };

typedef struct call {
    uint8_t kind, who, phase, queue;
    uint8_t redelivered;
    uint8_t status; /* shmq_status of the return */
    uint16_t deaths;
    uint64_t value;
} call;

typedef struct board_actor {
    volatile uint32_t ready; /* its part of the state is built */
    volatile uint32_t row; /* in the table of processes */
    volatile uint32_t arm; /* raised by the driver: sleep again (futex) */
    volatile uint32_t woken; /* equals arm once it was woken */
    volatile uint64_t word; /* address of what a sleeper sleeps on */
} board_actor;

typedef struct board {
    volatile uint32_t finished; /* the traced part of an operation is over */
    shmq_a32 count; /* places given away */
    uint64_t first_position; /* of the first message in each ring */
    char segment[64]; /* for a victim that attaches by itself */
    call calls[BOARD_CALLS];
    board_actor actors[BOARD_ACTORS];
} board;

extern board *the_board;

static inline void board_mark(call c) {
    uint32_t at = shmq_add_seq(&the_board->count, 1);
    if (at < BOARD_CALLS) {
        uint8_t phase = c.phase;
        c.phase = 0;
        the_board->calls[at] = c;
        __asm__ volatile("" ::: "memory");
        the_board->calls[at].phase = phase;
    }
}

#endif
