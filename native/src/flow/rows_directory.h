/* The directory of a queue's rows. */
#ifndef SHMQ_ROWS_DIRECTORY_H
#define SHMQ_ROWS_DIRECTORY_H

#include <stdbool.h>
#include <sys/stat.h>

/* With all above it up to the broker's, which is *as, and whose group and mode they have. `sweeps`: of what earlier queues of this
 * index have left. False: see errno. */
bool shmq_rows_directory_make(const char *path, struct stat *as, bool sweeps);
void shmq_rows_directory_delete(const char *path);

#endif
