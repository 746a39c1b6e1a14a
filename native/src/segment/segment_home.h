/* Which directory a segment belongs to: checks a private copy of its header, on the descriptor that is mapped
 * afterwards. */
#ifndef SHMQ_SEGMENT_HOME_H
#define SHMQ_SEGMENT_HOME_H

#include "segment/member.h"

/* Checks a header that shmq_segment_check has accepted. SHMQ_FOREIGN: it names another directory, or none. SHMQ_DENIED:
 * owner or mode of segment and directory differ. `home` NULL: no directory asks. */
shmq_status shmq_home_check(const shmq_home *home, const shmq_segment_shm *header, int fd, const char *name);
/* May this directory remove the segment? The header may be of any version, and damaged. */
shmq_status shmq_home_proves(const shmq_home *home, const shmq_segment_shm *header, const char *name);

#endif
