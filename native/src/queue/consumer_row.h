/* Where the row of a consumer lies, by its number. */
#ifndef SHMQ_QUEUE_CONSUMER_ROW_H
#define SHMQ_QUEUE_CONSUMER_ROW_H

#include "queue/handle.h"

/* NULL: there is none, or the offset of its chunk makes no sense. */
shmq_consumer_shm *shmq_row_at(const shmq_queue *q, uint32_t row);

#endif
