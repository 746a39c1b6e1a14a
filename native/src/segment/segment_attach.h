/* Opens a segment that another process made: checks a private copy of its header before it maps anything. */
#ifndef SHMQ_SEGMENT_ATTACH_H
#define SHMQ_SEGMENT_ATTACH_H

#include "segment/member.h"
#include "segment/segment_layout.h"

/* Opens the file below /dev/shm, to look or to work (O_RDONLY, O_RDWR). SHMQ_GONE: there is none. SHMQ_DENIED: it is
 * another user's. */
shmq_status shmq_segment_open_file(const char *name, int access, int *fd);
/* Makes all checks in the order that member.h states, on a private copy of the header. */
shmq_status shmq_segment_check(int fd, const char *name, shmq_segment_shm *header, shmq_layout *layout);
/* Opens, checks and maps the segment, and fills the member's private copies of constants. O_RDONLY: nothing is
 * reserved, and a write would be a SIGSEGV. */
shmq_status shmq_segment_map(shmq_member *m, const char *name, const shmq_home *home, int access);

#endif
