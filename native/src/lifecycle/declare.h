/* Declaring, altering, naming, and shutting down queues. */
#ifndef SHMQ_LIFECYCLE_DECLARE_H
#define SHMQ_LIFECYCLE_DECLARE_H

#include "queue/handle.h"

/* Find or make. A setting that is given and was given before must be equal, else SHMQ_EXISTS with `differs` = the
 * setting. The first declaration that gives a setting sets it. SHMQ_NOT_FOUND (create false), SHMQ_LIMIT,
 * SHMQ_FULL_MEMORY, SHMQ_NO_SPACE. */
shmq_status shmq_queue_declare(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d,
                               shmq_queue **queue, int *differs);
/* Changes settings of a queue in service; wakes every sleeper, since its wait may be over now. A fixed setting:
 * SHMQ_EXISTS with `differs`, and nothing was changed. */
shmq_status shmq_queue_alter(shmq_queue *q, const shmq_declaration *d, int *differs);
/* Shut down (SHMQ_DRAINING, SHMQ_STOPPED) or reopen (SHMQ_OPEN); wakes every sleeper of the queue. */
shmq_status shmq_queue_shut_down(shmq_queue *q, uint32_t how);
/* Name and state of a directory entry: false when it is not LIVE, or its offset makes no sense. Writes nothing. */
bool shmq_queue_named(const shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation);
/* The same; a name that does not match its hash is damage: it is counted, and the name is "". */
bool shmq_queue_name(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation);

#endif
