/* The directory of a queue's files of rows: DIR/<queue's index>.<incarnation>; see file_backing.c. */
#ifndef SHMQ_ROW_DIRECTORY_H
#define SHMQ_ROW_DIRECTORY_H

#include <stdbool.h>
#include <sys/types.h>

#include "shmq/status.h"

/* By errno; `what` as in "cannot read a file of". A full disk is SHMQ_NO_SPACE. */
shmq_status shmq_rows_failed(const char *path, const char *what);
/* With those above it, for those who may use the broker. Of an anonymous one for this user alone: SHMQ_DENIED if it is not. */
shmq_status shmq_rows_make(const char *path, bool anonymous, mode_t *mode);
/* Removes what earlier queues of this index have left. */
void shmq_rows_sweep(const char *path);
void shmq_rows_delete(const char *path);

#endif
