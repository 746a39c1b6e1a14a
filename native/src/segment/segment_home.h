/* Whose segment it is: looked at in a private copy of the header, on the descriptor that is mapped afterwards. */
#ifndef SHMQ_SEGMENT_HOME_H
#define SHMQ_SEGMENT_HOME_H

#include "shmq/member.h"
#include "shmq/segment.h"
#include "shmq/status.h"

/* Of a header that was checked. SHMQ_FOREIGN: it names another directory, or none; SHMQ_DENIED: owner or mode of segment
 * and directory differ. NULL: nobody asks. */
shmq_status shmq_home_check(const shmq_home *home, const shmq_segment_shm *header, int fd, const char *name);
/* Of a header of whatever version, damaged or not: is the segment this directory's to remove? */
shmq_status shmq_home_proves(const shmq_home *home, const shmq_segment_shm *header, const char *name);

#endif
