/* The directory of a queue's rows. */
#ifndef SHMQ_ROWS_DIRECTORY_H
#define SHMQ_ROWS_DIRECTORY_H

#include <stdbool.h>
#include <sys/stat.h>

#include "shmq/status.h"

/* Makes the directory and those above it, up to the broker's; they have its group and mode, which *as says. `sweeps`:
 * also deletes what earlier queues of this index have left, and makes anew what a process that was killed has not given
 * its mode. False: see errno. */
bool shmq_rows_directory_make(const char *path, struct stat *as, bool sweeps);
/* The same for an anonymous broker: the directory above its own is one that all users share. The broker's folder there
 * must be this user's alone, else SHMQ_DENIED. */
shmq_status shmq_rows_directory_make_private(const char *path, struct stat *as, bool sweeps);
void shmq_rows_directory_delete(const char *path);
/* Begins a file that gets its own name when it is complete, with group and mode of the broker. One that a killed process
 * of another user has left can only be deleted. -1: see errno. */
#define SHMQ_ROWS_UNFINISHED "unfinished"
int shmq_rows_file_begin(int directory, const struct stat *as);

#endif
