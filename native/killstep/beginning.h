/* Where in the numbers a queue stands when a scenario's state is built: what has gone through it before. */
#ifndef SHMQ_KILLSTEP_BEGINNING_H
#define SHMQ_KILLSTEP_BEGINNING_H

#include "queue/handle.h"

typedef enum beginning {
    BEGIN_NEW,     /* nothing has */
    BEGIN_LAP_END, /* the second of its next messages is the last of its lap */
    BEGIN_WRAP     /* so much that the second of its next messages is the last before positions of 44 bits and laps of
                      32 begin with 0 again, and so do epochs of 20 bits behind the second rewind */
} beginning;

/* False: there is none of that name. */
bool beginning_named(const char *name, beginning *found);
const char *beginning_name(beginning b);
/* The position of a queue's first message. */
uint64_t beginning_position(beginning b);
/* The rings of all levels of a queue that was made just now. */
void beginning_apply(beginning b, shmq_queue *q);
/* And the front ring, of one that may flow. */
void beginning_apply_front(beginning b, shmq_queue *q);

#endif
