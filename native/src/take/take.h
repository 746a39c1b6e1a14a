/* get and receive: the next message, taken for good or lent. The verbs that consumers call, composed of the steps of
 * offer.h, wait_any.h and settle.h in one place: the bindings, the step killer and the tests call these.
 *
 * Both answer SHMQ_OK with `d` filled; SHMQ_EMPTY when nothing came within the time; SHMQ_SHUT_DOWN, SHMQ_NOT_FOUND,
 * SHMQ_CLOSED, SHMQ_REFUSED, SHMQ_LIMIT as a wait does. SHMQ_POISONED: the message is acquired, but it has failed or
 * died too often, or is past its time. The caller moves it to the dead (shmq_why_dead) and calls again. SHMQ_CORRUPT:
 * the message did not match its checksum; the taker marked its slot broken and dropped its block. SHMQ_INTERRUPTED: the
 * caller ended the call; it took nothing. */
#ifndef SHMQ_TAKE_TAKE_H
#define SHMQ_TAKE_TAKE_H

#include "take/wait_any.h"

/* The steps of a caller around a wait, and around long work. Without a caller the call waits until its time is over. */
typedef struct shmq_caller {
    void (*leave)(void *self); /* before it: give an interpreter's lock away */
    void (*enter)(void *self); /* behind it */
    /* With that lock: run the handlers of signals. `offered`: something is in hand, so nothing long. False: the call ends. */
    bool (*goes_on)(void *self, bool offered);
    void *self;
} shmq_caller;

/* receive copies inline messages there and checks the copy: what the consumer reads later is what was checked. */
#define SHMQ_COPY_BYTES 128u

typedef struct shmq_taking {
    uint32_t owner; /* the consumer row in whose name it takes */
    uint32_t row; /* the consumer row on which it sleeps; 0: any spare one of this process */
    shmq_subscription *by; /* NULL: the taker takes what comes first */
    uint64_t until_ns; /* 0: it does not wait */
    unsigned char *copy; /* SHMQ_COPY_BYTES of the caller's; NULL: receive checks the message where it lies */
    const shmq_caller *caller;
} shmq_taking;

/* The consumer receives a message: ACQUIRED by t->owner, and whole. */
shmq_status shmq_receive(shmq_queue *q, const shmq_taking *t, shmq_delivery *d);
/* Receives an entry that is already offered to the consumer. SHMQ_SETTLED: the consumer holds nothing. */
shmq_status shmq_receive_offered(shmq_queue *q, const shmq_taking *t, shmq_delivery *d);
/* Receives a message from one of several queues of one member, which *from tells. `t` has the time and the caller; `of`
 * has for each queue the owner that takes and the row that sleeps. No copy is made. */
shmq_status shmq_receive_any(shmq_queue_wait *of, uint32_t count, uint32_t first, const shmq_taking *t, uint32_t *from,
                             shmq_delivery *d);

/* The consumer says on those of these queues whose consumers differ in priority that it wants something; or not any more. */
void shmq_want_any(shmq_queue_wait *of, uint32_t count);
void shmq_want_any_end(shmq_queue_wait *of, uint32_t count);

typedef enum shmq_copied {
    SHMQ_COPIED,
    SHMQ_COPIED_DAMAGE, /* the copy does not match its checksum */
    SHMQ_COPIED_STRANGE, /* the copy is whole, and no value of its content type: as of a type that the call does not copy */
    SHMQ_COPIED_NOTHING /* the caller could not, and knows why: SHMQ_INTERRUPTED */
} shmq_copied;

typedef struct shmq_getting {
    uint64_t until_ns;
    /* The call copies content types below this one. It leaves others, and what `copy` finds strange, acquired: d->counted. */
    uint32_t contents;
    shmq_copied (*copy)(void *to, const shmq_queue *q, const shmq_delivery *d);
    void *
        to; /* for `copy`, which is called again for the next message when another process took over the one that it copied */
    const shmq_caller *caller;
} shmq_getting;

/* The taker takes a message for good and copies its body; or, with d->counted, acquires it: the caller decodes and settles it. */
shmq_status shmq_get(shmq_queue *q, const shmq_getting *g, shmq_delivery *d);
/* Its two parts. The first is one look, without a wait for a mover or a claim, and needs neither time nor caller. After its
 * SHMQ_EMPTY the second looks on, and says whether there is nothing. */
shmq_status shmq_get_at_once(shmq_queue *q, const shmq_getting *g, shmq_delivery *d);
shmq_status shmq_get_later(shmq_queue *q, const shmq_getting *g, shmq_delivery *d);

/* Say that the consumer wants an entry; and that it wants none any more. */
void shmq_want(shmq_queue *q, uint32_t row);
void shmq_want_end(shmq_queue *q, uint32_t row);

#endif
