/* Opening a segment that others made: looked at in a private copy of its header before anything is mapped. */
#ifndef SHMQ_SEGMENT_ATTACH_H
#define SHMQ_SEGMENT_ATTACH_H

#include "segment/segment_layout.h"
#include "shmq/inspect.h"
#include "shmq/member.h"

/* The file below /dev/shm, to look or to work (O_RDONLY, O_RDWR); SHMQ_GONE: there is none, SHMQ_DENIED: not ours. */
shmq_status shmq_segment_open_file(const char *name, int access, int *fd);
/* All checks in their stated order, on a private copy of the header. */
shmq_status shmq_segment_check(int fd, const char *name, shmq_segment_shm *header, shmq_layout *layout);
/* Open, check, map, and fill the member's private copies of what is constant. O_RDONLY: nothing is reserved, and a write
 * would be a SIGSEGV. */
shmq_status shmq_segment_map(shmq_member *m, const char *name, const shmq_home *home, int access);

#endif
