/* Looking at a segment, and removing one that nobody uses, without becoming a member. */
#ifndef SHMQ_INSPECT_H
#define SHMQ_INSPECT_H

#include "shmq/member.h"

typedef struct shmq_identity {
    uint64_t size;
    uint64_t created_ns; /* wall clock */
    uint64_t patience_ns;
    uint32_t uid; /* of the creator */
    uint32_t mode;
    bool anonymous;
    bool has_members;
    uint8_t uuid[16];
    uint8_t boot_id[16];
    char path[SHMQ_PATH_MAX];
    uint64_t directory_device;
    uint64_t directory_inode;
} shmq_identity;

/* The checks of shmq_member_attach, then what the header says. */
shmq_status shmq_segment_inspect(const char *name, shmq_identity *identity);
/* Unlink the segment unless somebody is a member or is about to become one; `removed` tells. */
shmq_status shmq_segment_sweep(const char *name, bool *removed);
/* The kernel's id of this boot. */
shmq_status shmq_boot_id(uint8_t id[16]);

#endif
