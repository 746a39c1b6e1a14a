/* The line: blocked producers of a queue with a limit, in the order of their arrival.
 *
 * A producer that has to wait takes a ticket, and only the first one in line tries to get in. One that comes meanwhile
 * goes to its end. Tickets are claimed like slots of a ring: by one CAS that names the claimant, then the end of the
 * line is moved on. So each taken ticket names its producer, and a reaper finds those of the dead. */
#ifndef SHMQ_LIMITS_LINE_H
#define SHMQ_LIMITS_LINE_H

#include "queue/handle.h"
#include "segment/liveness.h"

static inline uint32_t shmq_line_length(const shmq_queue *q) {
    uint64_t line = shmq_load_seq(&q->page->line);
    return (uint32_t)line - (uint32_t)(line >> 32);
}

/* Does a producer stand in line? Every put to a queue with a limit asks this, of a word beside the count. */
static inline bool shmq_line_stands(const shmq_queue *q) { return shmq_line_length(q) != 0; }

/* Every producer that waits for room is in line: none waits beside it since it found the line full. */
static inline bool shmq_line_serves_all(const shmq_queue *q) {
    uint32_t length = shmq_line_length(q);
    return length != 0 && length < SHMQ_TICKETS / 2;
}

/* Entries and bytes. */
typedef struct shmq_room {
    uint64_t entries, bytes;
} shmq_room;

/* Lets the holder of this ticket, or one that has none, try to get in, or not. In line only the first one that is to be
 * served. One that has no ticket may, if there is room beyond what all those in line want: *theirs. It takes
 * a dead producer at the front out of line, and passes one that does not answer a call for the patience. */
bool shmq_line_admit(shmq_queue *q, shmq_ticket *t, shmq_room *theirs);
/* To the end of the line. False: it is full. */
bool shmq_line_enter(shmq_queue *q, shmq_ticket *t, uint32_t bytes);
/* Before each look the producer answers the call. *seen: what it sleeps on with shmq_line_sleep. False: it lost its ticket. */
bool shmq_line_answer(shmq_queue *q, shmq_ticket *t, uint32_t *seen);
shmq_status shmq_line_sleep(shmq_queue *q, const shmq_ticket *t, uint32_t seen, uint64_t until_ns);
/* Out of the line, if it is in; the next one is called if there is room. */
void shmq_line_leave(shmq_queue *q, shmq_ticket *t);
/* A place that several messages share. */
static inline void shmq_line_hand_on(shmq_ticket *from, shmq_ticket *to) {
    shmq_ticket ticket = *from;
    *from = (shmq_ticket){0};
    *to = ticket;
}
/* There may be room: wake the first. */
void shmq_line_call(shmq_queue *q);
/* Every producer in line looks again. */
void shmq_line_call_all(shmq_queue *q);
/* The reaper frees tickets of the dead. */
void shmq_line_recover(shmq_queue *q, const shmq_liveness *l);
/* NULL, or what is wrong. Under the structure lock, while others come and go. */
const char *shmq_line_fault(const shmq_queue *q);

#endif
