#include "segment/segment_attach.h"
#include "segment/descriptors.h"
#include "segment/segment_home.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool in_group(gid_t group) {
    if (group == getegid()) {
        return true;
    }
    gid_t groups[256];
    int count = getgroups(256, groups);
    for (int i = 0; i < count; i++) {
        if (groups[i] == group) {
            return true;
        }
    }
    return false;
}

static shmq_status check_owner(const struct stat *file, const char *name, int access) {
    if (!S_ISREG(file->st_mode)) {
        return shmq_fail(SHMQ_DENIED, "/dev/shm/%s is not a regular file\nfile type %04o\nremove it", name,
                         (unsigned)(file->st_mode & S_IFMT) >> 12);
    }
    unsigned mode = (unsigned)file->st_mode & 07777;
    unsigned needed = access == O_RDONLY ? 0040 : 0060;
    bool looks =
        access == O_RDONLY && geteuid() == 0; /* root may look after others' brokers, and changes nothing there */
    bool ours = looks || file->st_uid == geteuid() || ((mode & needed) == needed && in_group(file->st_gid));
    if (!ours || (mode & 0007) != 0) {
        char remedy[192] = "share a broker with a group by mode=0o770";
        if ((mode & needed) == needed && !ours) {
            snprintf(remedy, sizeof(remedy),
                     "let its owner give it to the group of its directory: chgrp GROUP /dev/shm/%s", name);
        } else if (ours) {
            snprintf(remedy, sizeof(remedy), "take that right away: chmod o= /dev/shm/%s", name);
        }
        return shmq_fail(SHMQ_DENIED, "the segment %s %s\nowner uid %u, group %u, mode %04o, and we are uid %u\n%s",
                         name, ours ? "is open to everybody" : "belongs to another user", (unsigned)file->st_uid,
                         (unsigned)file->st_gid, mode, (unsigned)geteuid(), remedy);
    }
    return SHMQ_OK;
}

shmq_status shmq_segment_open_file(const char *name, int access, int *descriptor) {
    char path[128];
    if (strlen(name) >= 64 || strchr(name, '/') != NULL) {
        return shmq_fail(SHMQ_GONE, "no segment can have the name %.80s", name);
    }
    snprintf(path, sizeof(path), "/dev/shm/%s", name);
    /* Not blocking: something else than a file may stand there. */
    int fd = open(path, access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        struct stat file;
        if (errno == ENOENT) {
            return shmq_fail(SHMQ_GONE, "the segment %s does not exist any more", name);
        }
        if (errno == ELOOP || errno == EISDIR || errno == ENXIO) {
            return shmq_fail(SHMQ_DENIED, "%s is not a regular file\n\nremove it", path);
        }
        if (errno == EACCES || errno == EPERM) {
            /* People need to know the owner. */
            if (lstat(path, &file) == 0) {
                SHMQ_TRY(check_owner(&file, name, access));
            }
            return shmq_fail(SHMQ_DENIED, "%s may not be opened for reading%s", path,
                             access == O_RDONLY ? "" : " and writing");
        }
        return shmq_fail_errno("cannot open %s", path);
    }
    struct stat file;
    shmq_status status =
        fstat(fd, &file) == 0 ? check_owner(&file, name, access) : shmq_fail_errno("cannot look at %s", path);
    if (status != SHMQ_OK) {
        close(fd);
        return status;
    }
    *descriptor = fd;
    return SHMQ_OK;
}

static shmq_status differs(shmq_status status, const char *name, const char *field, uint64_t found, uint64_t expected) {
    const char *remedy = "";
    if (status == SHMQ_VERSION) {
        remedy = "use the version of shmq that made it, or empty it with that one first";
    } else if (status == SHMQ_CORRUPT || status == SHMQ_NO_MAGIC) {
        remedy = "nothing was touched; when it is not needed any more, remove the file below /dev/shm";
    }
    return shmq_fail(status, "the segment %s cannot be used\n%s is 0x%" PRIx64 ", expected 0x%" PRIx64 "\n%s", name,
                     field, found, expected, remedy);
}

#define EXPECT(status, field, found, expected)                                      \
    do {                                                                            \
        if ((uint64_t)(found) != (uint64_t)(expected)) {                            \
            return differs((status), name, (field), (uint64_t)(found), (expected)); \
        }                                                                           \
    } while (0)

static shmq_status check_identity(const shmq_segment_shm *header, const char *name) {
    EXPECT(SHMQ_NO_MAGIC, "magic", header->magic, SHMQ_MAGIC);
    EXPECT(SHMQ_VERSION, "version", header->version, SHMQ_LAYOUT_VERSION);
    EXPECT(SHMQ_VERSION, "byte_order", header->byte_order, SHMQ_BYTE_ORDER_MARK);
    EXPECT(SHMQ_VERSION, "fingerprint", header->fingerprint, shmq_fingerprint());
    EXPECT(SHMQ_VERSION, "features_required", header->features_required & ~(uint64_t)SHMQ_FEATURES_KNOWN, 0);
    EXPECT(SHMQ_CORRUPT, "header_crc", header->header_crc, shmq_header_crc(header));
    return SHMQ_OK;
}

static shmq_status check_layout(const shmq_segment_shm *header, uint64_t file_size, const char *name,
                                shmq_layout *layout) {
    EXPECT(SHMQ_CORRUPT, "size of the file", file_size, header->size);
    if (!shmq_layout_of(header->size, layout)) {
        return differs(SHMQ_CORRUPT, name, "size (no segment can have it)", header->size,
                       header->size / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES);
    }
    /* All else follows from the size. So one comparison for each field says that the regions lie inside, in order,
     * apart, and aligned. */
    EXPECT(SHMQ_CORRUPT, "granule_count", header->granule_count, layout->granule_count);
    EXPECT(SHMQ_CORRUPT, "process_rows", header->process_rows, SHMQ_PROCESS_ROWS);
    EXPECT(SHMQ_CORRUPT, "queue_count", header->queue_count, SHMQ_QUEUES);
    EXPECT(SHMQ_CORRUPT, "processes", header->processes, layout->processes);
    EXPECT(SHMQ_CORRUPT, "directory", header->directory, layout->directory);
    EXPECT(SHMQ_CORRUPT, "granules", header->granules, layout->granules);
    EXPECT(SHMQ_CORRUPT, "class_bitmaps", header->class_bitmaps, layout->class_bitmaps);
    EXPECT(SHMQ_CORRUPT, "slabs", header->slabs, layout->slabs);
    EXPECT(SHMQ_CORRUPT, "data", header->data, layout->data);
    EXPECT(SHMQ_CORRUPT, "memory", header->memory < SHMQ_MEMORY_MIN || header->memory > header->size, 0);
    EXPECT(SHMQ_CORRUPT, "anonymous", header->anonymous & ~1u, 0);
    if (memchr(header->path, 0, sizeof(header->path)) == NULL) {
        return differs(SHMQ_CORRUPT, name, "end of path", (unsigned char)header->path[SHMQ_PATH_MAX - 1], 0);
    }
    return SHMQ_OK;
}

shmq_status shmq_segment_check(int fd, const char *name, shmq_segment_shm *header, shmq_layout *layout) {
    struct stat file;
    if (fstat(fd, &file) != 0) {
        return shmq_fail_errno("cannot look at the segment %s", name);
    }
    uint64_t size = (uint64_t)file.st_size;
    if (size < sizeof(*header) || size > SHMQ_MEMORY_MAX) {
        return differs(SHMQ_CORRUPT, name,
                       size > SHMQ_MEMORY_MAX ? "size of the file, above the limit" : "size of the file, too small",
                       size, size > SHMQ_MEMORY_MAX ? SHMQ_MEMORY_MAX : sizeof(*header));
    }
    /* Read, not mapped: a hole reads as zeros, and no other process can change the copy during the checks. */
    ssize_t length = pread(fd, header, sizeof(*header), 0);
    if (length < 0) {
        return shmq_fail_errno("cannot read the segment %s", name);
    }
    EXPECT(SHMQ_CORRUPT, "length of the header", length, sizeof(*header));
    SHMQ_TRY(check_identity(header, name));
    return check_layout(header, size, name, layout);
}

/* The creator reserved the tables. A copy made by cp --sparse lacks that, and an access would end in SIGBUS. */
static shmq_status reserve_tables(int fd, uint64_t bytes) {
    struct stat file;
    if (fstat(fd, &file) == 0 && (uint64_t)file.st_blocks * 512 >= bytes) {
        return SHMQ_OK;
    }
    int number;
    do {
        number = posix_fallocate(fd, 0, (off_t)bytes);
    } while (number == EINTR);
    if (number == ENOSPC) {
        return shmq_fail(SHMQ_NO_SPACE, "/dev/shm is full\n%" PRIu64 " bytes needed\nenlarge it (in Docker --shm-size)",
                         bytes);
    }
    errno = number;
    return number == 0 ? SHMQ_OK : shmq_fail_errno("cannot reserve the tables of the segment");
}

shmq_status shmq_segment_map(shmq_member *m, const char *name, const shmq_home *home, int access) {
    shmq_segment_shm header;
    shmq_layout layout;
    SHMQ_TRY(shmq_segment_open_file(name, access, &m->map_fd));
    SHMQ_TRY(shmq_segment_check(m->map_fd, name, &header, &layout));
    SHMQ_TRY(shmq_home_check(home, &header, m->map_fd, name));
    int rights = PROT_READ;
    if (access != O_RDONLY) {
        rights |= PROT_WRITE;
        SHMQ_TRY(reserve_tables(m->map_fd, layout.slabs));
    }
    void *base = mmap(NULL, layout.size, rights, MAP_SHARED | MAP_NORESERVE, m->map_fd, 0);
    if (base == MAP_FAILED) {
        return shmq_fail_errno("cannot map %" PRIu64 " bytes of the segment %s", layout.size, name);
    }
    /* Keeps messages out of core files. Where the system does not offer that (old kernels), all else works the same. */
    (void)madvise(base, layout.size, MADV_DONTDUMP);
    m->base = base;
    m->mapped = true;
    m->segment = shmq_file_of(m->map_fd);
    m->size = layout.size;
    snprintf(m->name, sizeof(m->name), "%s", name);
    m->header = (shmq_segment_shm *)m->base;
    m->rows = (shmq_process_shm *)(m->base + layout.processes);
    m->directory = (shmq_directory_shm *)(m->base + layout.directory);
    m->granules = (shmq_a64 *)(m->base + layout.granules);
    m->class_bitmaps = m->base + layout.class_bitmaps;
    m->class_bitmap_bytes = layout.class_bitmap_bytes;
    m->slabs = m->base + layout.slabs;
    m->data = layout.data;
    m->memory = header.memory;
    m->granule_count = layout.granule_count;
    m->patience_ns = header.patience_ns;
    m->disk = header.disk;
    static const uint8_t none[sizeof(header.key_check)];
    m->encrypts = memcmp(header.key_check, none, sizeof(none)) != 0;
    m->clock_offset_made_ns = header.clock_offset_ns;
    m->clock_asleep_made_ns = header.clock_asleep_ns;
    shmq_store_seq(&m->clock_offset_ns, header.clock_offset_ns); /* until a put finds that it has changed */
    m->anonymous = header.anonymous != 0;
    return SHMQ_OK;
}
