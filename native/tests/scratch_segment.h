/* A segment of this test alone; its name goes when the test ends, however it ends. */
#ifndef SHMQ_TESTS_SCRATCH_SEGMENT_H
#define SHMQ_TESTS_SCRATCH_SEGMENT_H

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "segment/descriptors.h"
#include "check.h"

#define SCRATCH_MEMORY (UINT64_C(16) << 20)
#define SCRATCH_DISK (UINT64_C(8) << 30) /* a share, the default, is nothing where less than a tenth is free */

static char scratch_name[64];
static uint64_t scratch_room =
    SCRATCH_MEMORY; /* no more than can have memory, where granules are counted; 0: as in a product */
static pid_t scratch_owner;

static inline void scratch_path(char *path, size_t bytes) { snprintf(path, bytes, "/dev/shm/%s", scratch_name); }

static inline void scratch_remove(void) {
    char path[128];
    scratch_path(path, sizeof(path));
    if (getpid() == scratch_owner) { /* a forked child that fails must not take the segment from its parent */
        unlink(path);
    }
}

static inline shmq_segment_plan scratch_plan(bool anonymous) {
    static int made;
    if (scratch_owner == 0) {
        scratch_owner = getpid();
        atexit(scratch_remove);
    }
    snprintf(scratch_name, sizeof(scratch_name), "shmq-ctest-%ld-%d", (long)getpid(), made++);
    shmq_segment_plan plan = {.name = scratch_name,
                              .memory = SCRATCH_MEMORY,
                              .room = scratch_room,
                              .disk = SCRATCH_DISK,
                              .patience_ns = 100000000,
                              .mode = 0600,
                              .anonymous = anonymous,
                              .path = anonymous ? "" : "/nowhere",
                              .uuid = {1, 2, 3}};
    return plan;
}

static inline void scratch_create(bool anonymous) {
    shmq_segment_plan plan = scratch_plan(anonymous);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
}

/* With a patience that no busy machine uses up: where nobody may be taken for one that was stopped. */
static inline void scratch_create_patient(void) {
    shmq_segment_plan plan = scratch_plan(false);
    plan.patience_ns = UINT64_C(10000000000);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
}

static inline shmq_member *scratch_attach(void) {
    shmq_member *m = NULL;
    shmq_status status = shmq_member_attach(scratch_name, NULL, &m);
    if (status != SHMQ_OK) {
        fprintf(stderr, "attach: %s %s\n", shmq_status_name(status), shmq_trail());
    }
    CHECK_EQUAL(status, SHMQ_OK);
    return m;
}

static inline void scratch_detach(shmq_member *m) {
    CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
    shmq_member_free(m);
}

static inline bool scratch_exists(void) {
    char path[128];
    scratch_path(path, sizeof(path));
    return access(path, F_OK) == 0;
}

/* Others see this as a SIGKILL of the member's process: the kernel drops its locks, its words stay. */
static inline void scratch_kill(shmq_member *m) {
    m->process->start_time = 0; /* else others would find that this process runs, and has only lost its lock */
    shmq_before_kernel(&m->process->word);
    shmq_lock_fd_close(m);
    if (m->structure_locked) { /* private memory would be gone too; here it is freed later */
        m->structure_locked = false;
        pthread_mutex_unlock(&m->lock);
    }
}

/* Another membership of this process, moved into the mapping of the first: what threads of both do to one word is then done
 * at one address, and ThreadSanitizer, which knows addresses and not memory, sees it. */
static inline shmq_member *scratch_attach_to(shmq_member *first) {
    shmq_member *m = scratch_attach();
    ptrdiff_t row = (unsigned char *)m->process - m->base, page = (unsigned char *)m->page - m->base;
    CHECK(munmap(m->base, m->size) == 0);
    m->base = first->base;
    m->header = first->header;
    m->rows = first->rows;
    m->directory = first->directory;
    m->granules = first->granules;
    m->class_bitmaps = first->class_bitmaps;
    m->slabs = first->slabs;
    m->process = (shmq_process_shm *)(m->base + row);
    m->page = (shmq_process_page_shm *)(m->base + page);
    return m;
}

/* Its mapping is the first one's, and stays. */
static inline void scratch_leave(shmq_member *m) {
    CHECK_EQUAL(shmq_member_leave(m, false), SHMQ_OK);
    shmq_member_free(m);
}

/* The child's exit code must be 0. */
static inline void scratch_wait(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
