/* Which directory a segment belongs to. The record in a directory only says which segment is meant: any process that
 * may write to the directory may write any name there. The proof lies in the segment's header, which only members of
 * its own broker can write. */
#include "segment/segment_home.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static bool names(const shmq_segment_shm *header, const struct stat *directory, const uint8_t uuid[16]) {
    return header->directory_device == (uint64_t)directory->st_dev &&
           header->directory_inode == (uint64_t)directory->st_ino &&
           memcmp(header->directory_uuid, uuid, sizeof(header->directory_uuid)) == 0;
}

static shmq_status foreign(const char *name) {
    return shmq_fail(SHMQ_FOREIGN,
                     "the segment %s belongs to another broker\nits header does not name this directory\n"
                     "the directory is a copy, or its file 'segment' was changed; shmq destroy empties it and "
                     "touches no other broker",
                     name);
}

/* A private directory has a segment of its owner alone, a group's directory has a segment of that group. So a right to
 * the directory gives no right to a segment that its owner did not share. No right remains when the directory is made
 * private again. */
static shmq_status check_rights(const struct stat *file, const struct stat *directory, const char *name) {
    bool shared = (directory->st_mode & 0070) == 0070;
    unsigned rights = (unsigned)file->st_mode & 0077;
    if (shared ? rights == 0060 && file->st_gid == directory->st_gid
               : rights == 0 && file->st_uid == directory->st_uid) {
        return SHMQ_OK;
    }
    char remedy[160];
    if (shared) {
        snprintf(remedy, sizeof(remedy), "let its owner run: chgrp %u /dev/shm/%s && chmod 0660 /dev/shm/%s",
                 (unsigned)directory->st_gid, name, name);
    } else {
        snprintf(remedy, sizeof(remedy), "let its owner run: chmod 0600 /dev/shm/%s", name);
    }
    return shmq_fail(SHMQ_DENIED,
                     "the segment %s is not shared as its directory is\nsegment: uid %u, group %u, mode %04o, "
                     "directory: uid %u, group %u, mode %04o\n%s",
                     name, (unsigned)file->st_uid, (unsigned)file->st_gid, (unsigned)file->st_mode & 07777,
                     (unsigned)directory->st_uid, (unsigned)directory->st_gid, (unsigned)directory->st_mode & 07777,
                     remedy);
}

shmq_status shmq_home_check(const shmq_home *home, const shmq_segment_shm *header, int fd, const char *name) {
    if (home == NULL) {
        return SHMQ_OK;
    }
    if (home->dir_fd < 0) {
        return header->anonymous ? SHMQ_OK
                                 : shmq_fail(SHMQ_FOREIGN,
                                             "the segment %s is not an anonymous broker\n\nopen the directory of its "
                                             "broker, %.200s",
                                             name, header->path);
    }
    struct stat directory, file;
    if (fstat(home->dir_fd, &directory) != 0 || fstat(fd, &file) != 0) {
        return shmq_fail_errno("cannot look at the directory of the segment %s", name);
    }
    if (header->anonymous || !names(header, &directory, home->uuid)) {
        return foreign(name);
    }
    return check_rights(&file, &directory, name);
}

shmq_status shmq_home_proves(const shmq_home *home, const shmq_segment_shm *header, const char *name) {
    struct stat directory;
    if (fstat(home->dir_fd, &directory) != 0) {
        return shmq_fail_errno("cannot look at the directory of the segment %s", name);
    }
    return names(header, &directory, home->uuid) ? SHMQ_OK : foreign(name);
}
