/* The directory in which a process has rows: a descriptor, since its path may lead elsewhere by now (it was renamed,
 * or the process has another root). */
#ifndef SHMQ_ROWS_BASE_H
#define SHMQ_ROWS_BASE_H

#include <limits.h>
#include <sys/statvfs.h>

#include "segment/member.h"

/* Remembers where the rows of this member lie: BASE/one/two, of which BASE need not be there yet. Called once. */
void shmq_rows_base_open(shmq_member *m);
/* Returns the descriptor for openat(2) and its like, with shmq_rows_base_path() as path. -1 and EBADF: something else
 * closed the descriptor, and what has its number now is not ours. */
int shmq_rows_base(const shmq_member *m);
/* Returns the path of the segment's part: below the base, or absolute where there was none to open. */
const char *shmq_rows_base_path(const shmq_member *m);
/* Writes such a `path` in full, as users know it now. */
void shmq_rows_base_text(const shmq_member *m, const char *path, char text[PATH_MAX]);
/* The file system in which `path` lies, or will: that of its nearest parent that is there. False: nobody knows. */
bool shmq_rows_base_system(const shmq_member *m, const char *path, struct statvfs *system);

#endif
