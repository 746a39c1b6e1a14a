#include "segment/inspect.h"
#include "segment/segment_attach.h"
#include "segment/segment_home.h"
#include "segment/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Does any process hold a row's byte? An error counts as held: only bytes that are surely free prove that no process is
 * there. */
static bool rows_held(int fd) {
    /* Another version may have more rows. Processes lock no other byte below the structure byte. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = SHMQ_STRUCTURE_BYTE};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static shmq_status look(int fd, const char *name, shmq_identity *identity) {
    shmq_segment_shm header;
    shmq_layout layout;
    SHMQ_TRY(shmq_segment_check(fd, name, &header, &layout));
    identity->size = header.memory;
    identity->created_ns = header.created_ns;
    identity->patience_ns = header.patience_ns;
    struct stat file;
    if (fstat(fd, &file) != 0) {
        return shmq_fail_errno("cannot look at the segment %s", name);
    }
    identity->uid = header.uid;
    identity->owner = file.st_uid;
    identity->mode = header.mode;
    identity->anonymous = header.anonymous != 0;
    identity->has_members = rows_held(fd);
    memcpy(identity->uuid, header.uuid, sizeof(identity->uuid));
    memcpy(identity->boot_id, header.boot_id, sizeof(identity->boot_id));
    memcpy(identity->path, header.path, sizeof(identity->path));
    identity->directory_device = header.directory_device;
    identity->directory_inode = header.directory_inode;
    memcpy(identity->directory_uuid, header.directory_uuid, sizeof(identity->directory_uuid));
    return SHMQ_OK;
}

shmq_status shmq_segment_inspect(const char *name, shmq_identity *identity) {
    int fd = -1;
    SHMQ_TRY(shmq_segment_open_file(name, O_RDONLY, &fd));
    shmq_status status = look(fd, name, identity);
    close(fd);
    return status;
}

/* Does the name still lead to the file that was looked at? */
static bool still_named(int fd, const char *path) {
    struct stat held, named;
    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_ino == named.st_ino &&
           held.st_dev == named.st_dev;
}

static shmq_status unlink_named(int fd, const char *name, bool *removed) {
    char path[128];
    snprintf(path, sizeof(path), "/dev/shm/%s", name);
    if (still_named(fd, path)) {
        if (unlink(path) == 0) {
            *removed = true;
        } else if (errno != ENOENT) {
            return shmq_fail_errno("cannot remove %s", path);
        }
    }
    return SHMQ_OK;
}

static shmq_status unlink_unused(int fd, const char *name, bool *removed) {
    /* A process that attaches takes its row under the structure lock, and then looks whether the file has a name. So
     * either it has its row before this look at the rows, or it finds that it came too late. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHMQ_STRUCTURE_BYTE, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 && !rows_held(fd) ? unlink_named(fd, name, removed) : SHMQ_OK;
}

shmq_status shmq_segment_sweep(const char *name, bool *removed) {
    *removed = false;
    int fd = -1;
    SHMQ_TRY(shmq_segment_open_file(name, O_RDWR, &fd));
    shmq_status status = unlink_unused(fd, name, removed);
    close(fd);
    return status;
}

static shmq_status remove_proven(int fd, const char *name, const shmq_home *home, bool force) {
    shmq_segment_shm header;
    memset(&header, 0, sizeof(header));
    if (pread(fd, &header, sizeof(header), 0) < 0) {
        return shmq_fail_errno("cannot read the segment %s", name);
    }
    SHMQ_TRY(shmq_home_proves(home, &header, name));
    bool removed = false;
    SHMQ_TRY(force ? unlink_named(fd, name, &removed) : unlink_unused(fd, name, &removed));
    return removed ? SHMQ_OK : shmq_fail(SHMQ_IN_USE, "the segment %s is in use", name);
}

shmq_status shmq_segment_remove(const char *name, const shmq_home *home, bool force) {
    int fd = -1;
    SHMQ_TRY(shmq_segment_open_file(name, O_RDWR, &fd));
    shmq_status status = remove_proven(fd, name, home, force);
    close(fd);
    return status;
}
