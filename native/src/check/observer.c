/* The segment of an observer: mapped read-only, without a process row and a lock byte. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check/check.h"
#include "segment/process_table.h"
#include "segment/segment_attach.h"

shmq_status shmq_observer_open(const char *name, const shmq_home *home, shmq_member **observer) {
    shmq_member *m = calloc(1, sizeof *m);
    if (m == NULL) {
        errno = ENOMEM;
        return shmq_fail_errno("no memory to look at a segment");
    }
    m->lock_fd = m->map_fd = m->dir_fd = m->rows_fd = -1;
    m->row = SHMQ_NO_ROW;
    m->read_only = true;
    shmq_status status = shmq_segment_map(m, name, home, O_RDONLY);
    if (status != SHMQ_OK) {
        shmq_observer_close(m);
        return status;
    }
    *observer = m;
    return SHMQ_OK;
}

void shmq_observer_close(shmq_member *observer) {
    if (observer == NULL) {
        return;
    }
    if (observer->base != NULL) {
        munmap(observer->base, observer->size);
    }
    if (observer->map_fd >= 0) {
        close(observer->map_fd);
    }
    free(observer);
}
