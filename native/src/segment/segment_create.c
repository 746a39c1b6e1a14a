/* Makes a segment: the process builds it without a name, and one link publishes it complete. A death before the link
 * leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "segment/inspect.h"
#include "segment/segment_layout.h"
#include "segment/structure.h"

#define SHM_DIRECTORY "/dev/shm/"

typedef struct draft {
    int fd;
    char temporary[128]; /* "": the file has no name yet */
} draft;

static shmq_status open_draft(draft *d, const char *name) {
    d->temporary[0] = 0;
    d->fd = open(SHM_DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (d->fd >= 0) {
        return SHMQ_OK;
    }
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
        return shmq_fail_errno("cannot make a file in %s", SHM_DIRECTORY);
    }
    snprintf(d->temporary, sizeof(d->temporary), SHM_DIRECTORY "%s.new-%ld", name, (long)getpid());
    d->fd = open(d->temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
    if (d->fd < 0) {
        return shmq_fail_errno("cannot make %s", d->temporary);
    }
    /* The lock says that a process is at work on the draft. A draft that has had no lock for a minute was left by a
     * process that died. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHMQ_DRAFT_BYTE, .l_len = 1};
    (void)fcntl(d->fd, F_OFD_SETLK, &lock);
    return SHMQ_OK;
}

static shmq_status no_space(uint64_t need) {
    struct statvfs shm;
    uint64_t size = 0, left = 0;
    if (statvfs(SHM_DIRECTORY, &shm) == 0) {
        size = (uint64_t)shm.f_blocks * shm.f_frsize;
        left = (uint64_t)shm.f_bavail * shm.f_frsize;
    }
    return shmq_fail(SHMQ_NO_SPACE,
                     "/dev/shm is full\n%llu bytes needed, %llu of %llu left\n"
                     "remove unused files there, or enlarge it (in Docker --shm-size)",
                     (unsigned long long)need, (unsigned long long)left, (unsigned long long)size);
}

static shmq_status reserve_fixed(int fd, const shmq_layout *layout) {
    int number;
    do {
        number = posix_fallocate(fd, 0, (off_t)layout->slabs);
    } while (number == EINTR);
    if (number == ENOSPC) {
        return no_space(layout->slabs);
    }
    errno = number;
    return number == 0 ? SHMQ_OK : shmq_fail_errno("cannot reserve %llu bytes", (unsigned long long)layout->slabs);
}

static shmq_status write_header(int fd, const shmq_segment_plan *plan, const shmq_layout *layout) {
    /* Zeros are right for everything else: rows and directory entries are FREE, granules are free and not reserved. */
    static const shmq_segment_shm nothing;
    shmq_segment_shm header = nothing;
    header.magic = SHMQ_MAGIC;
    header.version = SHMQ_LAYOUT_VERSION;
    header.byte_order = SHMQ_BYTE_ORDER_MARK;
    header.fingerprint = shmq_fingerprint();
    header.size = layout->size;
    header.memory = plan->memory / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES;
    SHMQ_TRY(shmq_boot_id(header.boot_id));
    memcpy(header.uuid, plan->uuid, sizeof(header.uuid));
    header.created_ns = shmq_wall_ns();
    header.patience_ns = plan->patience_ns;
    header.disk = plan->disk;
    memcpy(header.key_check, plan->key_check, sizeof(header.key_check));
    header.granule_count = layout->granule_count;
    header.process_rows = SHMQ_PROCESS_ROWS;
    header.queue_count = SHMQ_QUEUES;
    header.uid = (uint32_t)geteuid();
    header.anonymous = plan->anonymous ? 1 : 0;
    header.mode = plan->mode;
    header.processes = layout->processes;
    header.directory = layout->directory;
    header.granules = layout->granules;
    header.class_bitmaps = layout->class_bitmaps;
    header.slabs = layout->slabs;
    header.data = layout->data;
    uint64_t now = shmq_now_ns();
    header.clock_offset_ns = header.created_ns - now;
    header.clock_asleep_ns = shmq_boot_ns() - now;
    memcpy(header.path, plan->path, strlen(plan->path));
    header.directory_device = plan->directory_device;
    header.directory_inode = plan->directory_inode;
    memcpy(header.directory_uuid, plan->directory_uuid, sizeof(header.directory_uuid));
    header.header_crc = shmq_header_crc(&header);
    shmq_store_relaxed(&header.message_ids, (uint64_t)(plan->id_epoch & 0xffffff) << 40);
    shmq_store_relaxed(&header.reserved_bytes, layout->slabs);
    ssize_t written = pwrite(fd, &header, sizeof(header), 0);
    return written == (ssize_t)sizeof(header) ? SHMQ_OK : shmq_fail_errno("cannot write the header of the segment");
}

static shmq_status publish(draft *d, const char *name) {
    char from[64], to[128];
    snprintf(from, sizeof(from), "/proc/self/fd/%d", d->fd);
    snprintf(to, sizeof(to), SHM_DIRECTORY "%s", name);
    int answer = d->temporary[0] ? link(d->temporary, to) : linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW);
    if (answer != 0 && errno == EEXIST) {
        return shmq_fail(SHMQ_EXISTS, "the segment %s exists", name);
    }
    return answer == 0 ? SHMQ_OK : shmq_fail_errno("cannot link the segment as %s", to);
}

static shmq_status fill(draft *d, const shmq_segment_plan *plan, const shmq_layout *layout) {
    /* Before the file has a name, so that the wrong group can never open it. */
    if ((plan->mode & 0070) != 0 && fchown(d->fd, (uid_t)-1, (gid_t)plan->group) != 0) {
        return errno == EPERM ? shmq_fail(SHMQ_DENIED,
                                          "the broker cannot be shared with the group of its directory\n"
                                          "group %u, and this process is not a member of it\n"
                                          "let a member of that group make the broker",
                                          plan->group)
                              : shmq_fail_errno("cannot give the segment to group %u", plan->group);
    }
    /* On the descriptor, since the umask takes bits away from the mode that open() is given. */
    if (fchmod(d->fd, plan->mode) != 0) {
        return shmq_fail_errno("cannot give the segment the mode %04o", plan->mode);
    }
    if (ftruncate(d->fd, (off_t)layout->size) != 0) {
        return shmq_fail_errno("cannot make a segment of %llu bytes", (unsigned long long)layout->size);
    }
    SHMQ_TRY(reserve_fixed(d->fd, layout));
    SHMQ_TRY(write_header(d->fd, plan, layout));
    return publish(d, plan->name);
}

/* How large the segment is. It has address space beyond the memory, for the rings of a thousand queues without maxsize,
 * each as large as it may grow. A small memory gets less, since it holds fewer queues, even empty ones. */
static uint64_t room_for(const shmq_segment_plan *plan) {
    uint64_t memory = plan->memory / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES;
    if (plan->room != 0 || memory < SHMQ_MEMORY_MIN || memory > SHMQ_MEMORY_MAX) {
        return plan->room != 0 ? plan->room : memory;
    }
    uint64_t factor = memory / SHMQ_ROOM_UNIT < SHMQ_ROOM_FACTOR ? memory / SHMQ_ROOM_UNIT : SHMQ_ROOM_FACTOR;
    uint64_t rings = memory * factor < SHMQ_ROOM_MOST ? memory * factor : SHMQ_ROOM_MOST;
    return memory + rings < SHMQ_MEMORY_MAX ? memory + rings : SHMQ_MEMORY_MAX;
}

shmq_status shmq_segment_create(const shmq_segment_plan *plan) {
    shmq_layout layout;
    if (!shmq_layout_of(room_for(plan), &layout)) {
        return shmq_fail(SHMQ_LIMIT, "no segment can have this size\n%llu bytes, allowed are %llu to %llu",
                         (unsigned long long)plan->memory, (unsigned long long)SHMQ_MEMORY_MIN,
                         (unsigned long long)SHMQ_MEMORY_MAX);
    }
    if (strlen(plan->name) >= 64 || strchr(plan->name, '/') != NULL || strlen(plan->path) >= SHMQ_PATH_MAX) {
        return shmq_fail(SHMQ_LIMIT, "name or path of the segment is too long\n%zu and %zu bytes, at most 63 and %u",
                         strlen(plan->name), strlen(plan->path), SHMQ_PATH_MAX - 1);
    }
    draft d;
    SHMQ_TRY(open_draft(&d, plan->name));
    shmq_status status = fill(&d, plan, &layout);
    if (d.temporary[0]) {
        unlink(d.temporary);
    }
    close(d.fd);
    return status;
}
