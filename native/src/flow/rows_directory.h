/* The directory of a queue's rows. */
#ifndef SHMQ_ROWS_DIRECTORY_H
#define SHMQ_ROWS_DIRECTORY_H

#include <stdbool.h>
#include <sys/stat.h>

#include "shmq/status.h"

/* With all above it up to the broker's, which is *as, and whose group and mode they have. `sweeps`: of what earlier queues of this
 * index have left. False: see errno. */
bool shmq_rows_directory_make(const char *path, struct stat *as, bool sweeps);
/* The same of an anonymous broker, whose directory has no other above it than one that all users share. Its folder there is for
 * this user alone, else SHMQ_DENIED. */
shmq_status shmq_rows_directory_make_private(const char *path, struct stat *as, bool sweeps);
void shmq_rows_directory_delete(const char *path);

#endif
