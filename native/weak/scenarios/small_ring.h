/* A ring of four slots in a segment that all scenarios share, one membership and one handle a thread. */
#ifndef SHMQ_WEAK_SMALL_RING_H
#define SHMQ_WEAK_SMALL_RING_H

#include "../../tests/scratch_queue.h"
#include "../weak.h"

#define RING_SLOTS 4u
#define BODY_WORDS 2u
#define RING_MESSAGES 32u

extern shmq_member *ring_members[WEAK_THREADS];
extern shmq_queue *ring_queues[WEAK_THREADS];
extern shmq_queue *ring_others[WEAK_THREADS]; /* the second one, where a scenario has two */

/* The events of a run; private to the simulator, so that a look at them orders nothing. */
typedef struct ring_board {
    uint64_t put_position[RING_MESSAGES]; /* + 1; 0: not put */
    uint32_t got[RING_MESSAGES];
    uint64_t released_at[RING_MESSAGES]; /* by message: event at which a release of it had returned */
    uint32_t released_tag[RING_MESSAGES]; /* of which delivery */
    uint32_t total;
} ring_board;
extern ring_board board;

void ring_set_up(uint64_t maxsize);
void ring_set_up_levels(uint32_t levels);
void ring_set_up_two(void);
/* The memberships alone. */
void ring_set_up_members(void);
void ring_begin(void);
/* The body of a message. */
void ring_body(uint64_t *body, uint64_t number);
/* Puts message `number`, its body said twice over; false: no room. */
bool ring_put(int t, uint64_t number, uint64_t until);
/* Bytes of a delivery that is ours alone: plain reads. */
uint64_t ring_read(const shmq_delivery *d);
/* shmq_receive by this owner, who sleeps on any row. False: nothing came until then. */
bool ring_receive(shmq_queue *q, uint32_t owner, uint64_t until, shmq_delivery *d);
/* shmq_get, and noted; UINT64_MAX: nothing came until then. `look`, or NULL, sees it while it is offered. */
typedef void ring_look(shmq_queue *q, const shmq_delivery *d);
uint64_t ring_get_until(shmq_queue *q, uint64_t until, ring_look *look);
uint64_t ring_get(int t);
/* The bytes of one message, and not of two. */
uint64_t ring_number(const uint64_t *body);
void ring_note_got(uint64_t number);
/* Each of these was got once. */
void ring_check_got(uint64_t first, uint64_t count);
void ring_check_words(void);

#endif
