/* Looking at a segment, and removing one that no process uses, without becoming a member. */
#ifndef SHMQ_SEGMENT_INSPECT_H
#define SHMQ_SEGMENT_INSPECT_H

#include "segment/member.h"

typedef struct shmq_identity {
    uint64_t size;
    uint64_t created_ns; /* wall clock */
    uint64_t patience_ns;
    uint32_t uid; /* of the creator, as the header says */
    uint32_t owner; /* of the file: no other user can have made it */
    uint32_t mode;
    bool anonymous;
    bool has_members;
    uint8_t uuid[16];
    uint8_t boot_id[16];
    char path[SHMQ_PATH_MAX];
    uint64_t directory_device;
    uint64_t directory_inode;
    uint8_t directory_uuid[16];
} shmq_identity;

/* The checks of shmq_member_attach, then what the header says. */
shmq_status shmq_segment_inspect(const char *name, shmq_identity *identity);
/* Unlink the segment unless a process is a member or is about to become one; `removed` tells. */
shmq_status shmq_segment_sweep(const char *name, bool *removed);
/* Unlink the segment that this directory's record names, of whatever version, damaged or not. SHMQ_FOREIGN: its header does
 * not name the directory; SHMQ_IN_USE: it has members, and no `force`; SHMQ_GONE: there is none. */
shmq_status shmq_segment_remove(const char *name, const shmq_home *home, bool force);
/* The kernel's id of this boot. */
shmq_status shmq_boot_id(uint8_t id[16]);

#endif
