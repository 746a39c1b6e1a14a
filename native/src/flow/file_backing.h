/* The backing in plain files: see file_backing.c. */
#ifndef SHMQ_FILE_BACKING_H
#define SHMQ_FILE_BACKING_H

#include "shmq/flow.h"

/* As shmq_member.backing_of; the directory is shmq_member.spill. The mover's lock of the queue is held. */
shmq_status shmq_file_backing_of(shmq_queue *q, uint32_t depth, const shmq_backing **backing);
void shmq_file_backing_free(shmq_queue *q);
/* Bytes of its files; without any lock. */
uint64_t shmq_file_backing_bytes(const shmq_queue *q);
/* The files of a queue that was deleted. */
void shmq_file_backing_remove(shmq_queue *q);

#endif
