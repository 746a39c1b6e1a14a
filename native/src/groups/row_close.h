/* A consumer leaves: its groups go to others, then its row is free. */
#ifndef SHMQ_GROUPS_ROW_CLOSE_H
#define SHMQ_GROUPS_ROW_CLOSE_H

#include "queue/handle.h"

/* Takes the structure lock. */
shmq_status shmq_row_close(shmq_queue *q, uint32_t row);
/* A row to wait on: a spare one of this process, or a new one. */
shmq_status shmq_row_borrow(shmq_queue *q, uint32_t *row);
void shmq_row_return(shmq_queue *q, uint32_t row);

#endif
