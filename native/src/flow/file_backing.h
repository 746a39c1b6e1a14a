/* The backing in plain files: see file_backing.c. */
#ifndef SHMQ_FILE_BACKING_H
#define SHMQ_FILE_BACKING_H

#include "flow/flow.h"

/* Implements shmq_member.backing_of; the directory is shmq_member.spill. The caller holds the mover's lock of the
 * queue. */
shmq_status shmq_file_backing_of(shmq_queue *q, uint32_t depth, const shmq_backing **backing);
void shmq_file_backing_free(shmq_queue *q);
/* Bytes of the queue's files. Needs no lock. */
uint64_t shmq_file_backing_bytes(const shmq_queue *q);
/* Deletes the files of a queue that was deleted. */
void shmq_file_backing_remove(shmq_queue *q);

#endif
