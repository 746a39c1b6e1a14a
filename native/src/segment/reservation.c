/* A segment's share of the memory of /dev/shm: reserved before the first touch, counted, and given back. */
#include "segment/reservation.h"
#include "segment/descriptors.h"
#include "segment/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

uint64_t shmq_memory_left(const shmq_member *m) {
    uint64_t reserved = shmq_load_relaxed(&m->header->reserved_bytes);
    return reserved < m->memory ? m->memory - reserved : 0;
}

bool shmq_shm_left(const shmq_member *m, uint64_t *left, uint64_t *size) {
    struct statvfs shm;
    if (!shmq_maps_by(m, m->map_fd) || fstatvfs(m->map_fd, &shm) != 0 || shm.f_blocks == 0) {
        return false;
    }
    *size = (uint64_t)shm.f_blocks * shm.f_frsize;
    *left = (uint64_t)shm.f_bavail * shm.f_frsize;
    return true;
}

shmq_status shmq_no_space(const shmq_member *m, uint64_t bytes, uint64_t kept) {
    uint64_t left = 0, size = 0;
    (void)shmq_shm_left(m, &left, &size);
    return shmq_fail(SHMQ_NO_SPACE,
                     "/dev/shm is full\n%llu bytes needed, %llu of %llu left, %llu of them kept for slots\n"
                     "remove unused files there, or enlarge it (in Docker --shm-size)",
                     (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)size,
                     (unsigned long long)kept);
}

shmq_status shmq_reserve(shmq_member *m, uint64_t offset, uint64_t bytes) {
    SHMQ_ASSERT(shmq_inside(m, offset, bytes));
    if (bytes > shmq_memory_left(m)) {
        return shmq_fail(SHMQ_FULL_MEMORY, "the broker's memory is used up\n%llu bytes needed, %llu of %llu left",
                         (unsigned long long)bytes, (unsigned long long)shmq_memory_left(m),
                         (unsigned long long)m->memory);
    }
    int number, fd = shmq_segment_fd(m);
    if (fd < 0) {
        return shmq_member_lost(m);
    }
    do {
        number = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (number == EINTR);
    if (number == ENOSPC) {
        return shmq_no_space(m, bytes, 0);
    }
    if (number != 0) {
        errno = number;
        return shmq_fail_errno("cannot reserve %llu bytes", (unsigned long long)bytes);
    }
    shmq_add_seq(&m->header->reserved_bytes, bytes);
    return SHMQ_OK;
}

void shmq_give_memory(shmq_member *m, uint64_t offset, uint64_t bytes) {
    SHMQ_ASSERT(m->structure_locked && shmq_inside(m, offset, bytes));
    /* Where the kernel cannot punch holes the memory stays, and the next process that reserves it has it. */
    (void)fallocate(shmq_segment_fd(m), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

/* Gives a granule's memory back to the budget and to the system; returns how many bytes.
 *
 * The map says "no memory" before the memory goes. A death in between leaves memory that is not counted; the next
 * process that reserves there gets it, or the rebuild does. In the other order a process could touch memory that is not
 * there. */
static uint64_t give_granule(shmq_member *m, uint32_t granule) {
    uint64_t word = shmq_load_relaxed(&m->granules[granule]), bytes = shmq_granule_reserved(word);
    shmq_granule_set(m, granule, word & ~(SHMQ_GRANULE_RESERVED | SHMQ_GRANULE_BEGUN));
    shmq_add_seq(&m->header->reserved_bytes, -bytes);
    shmq_give_memory(m, m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT), bytes);
    return bytes;
}

/* Of free granules in [from, to), from the last one on, until it was so much. */
static uint64_t give_between(shmq_member *m, uint32_t from, uint32_t to, uint64_t bytes) {
    uint64_t given = 0;
    for (uint32_t i = to; i-- > from && given < bytes;) {
        uint64_t word = shmq_load_relaxed(&m->granules[i]);
        if (shmq_granule_kind(word) == SHMQ_GRANULE_FREE && shmq_granule_reserved(word) != 0) {
            given += give_granule(m, i);
        }
    }
    return given;
}

/* Slots and headers of slabs need memory at their own place; the process gives back as much memory of free granules,
 * which bodies had before. It begins where the last bodies were, and ends with what pages have left. False: there is
 * not so much. */
static bool make_up_for(shmq_member *m, uint64_t bytes) {
    uint32_t high = shmq_run_high(m);
    if (shmq_load_relaxed(&m->header->granules_ready) == 0) {
        return false;
    }
    uint64_t given = give_between(m, 0, high, bytes);
    return given >= bytes || given + give_between(m, high, m->granule_count, bytes - given) >= bytes;
}

shmq_status shmq_reserve_instead(shmq_member *m, uint64_t offset, uint64_t bytes) {
    shmq_status status = shmq_reserve(m, offset, bytes);
    return shmq_is_short(status) && make_up_for(m, bytes) ? shmq_reserve(m, offset, bytes) : status;
}
