/* A backing whose calls fail, end their process, or let another member act, when a test says so; else it does what the
 * member's own does. */
#ifndef SHMQ_TESTS_FAULTY_BACKING_H
#define SHMQ_TESTS_FAULTY_BACKING_H

#include <signal.h>

#include "scratch_flow.h"

enum faulty_death { FAULTY_LIVES, FAULTY_DIES_BEFORE, FAULTY_DIES_BEHIND };

/* How many calls of each kind fail from now on, and whether the next one that does not is the last of its process. */
static struct faulty {
    int openings, writes, reads, lists, erasures;
    enum faulty_death at_write, at_erase;
    void (*behind_write)(void); /* what another member does then; NULL: nothing */
    const shmq_backing *real;
    shmq_status (*real_of)(shmq_queue *queue, uint32_t depth, const shmq_backing **backing);
} faulty;

static inline shmq_status faulty_write(void *context, bool sweeps, uint64_t low, uint64_t from, const shmq_row *rows,
                                       uint32_t count) {
    if (faulty.writes > 0) {
        faulty.writes--;
        return shmq_fail(SHMQ_NO_SPACE, "the disk is full");
    }
    if (faulty.at_write == FAULTY_DIES_BEFORE) {
        raise(SIGKILL);
    }
    shmq_status status = faulty.real->write(context, sweeps, low, from, rows, count);
    if (faulty.at_write == FAULTY_DIES_BEHIND) {
        CHECK_EQUAL(status, SHMQ_OK);
        raise(SIGKILL);
    }
    if (faulty.behind_write != NULL) {
        faulty.behind_write();
    }
    return status;
}

static inline shmq_status faulty_read(void *context, uint64_t erased, uint64_t from, uint64_t below, uint64_t bytes,
                                      shmq_row *rows, uint32_t *count) {
    if (faulty.reads > 0) {
        faulty.reads--;
        return shmq_fail(SHMQ_OS, "the disk cannot be read");
    }
    return faulty.real->read(context, erased, from, below, bytes, rows, count);
}

static inline shmq_status faulty_list(void *context, uint64_t from, uint64_t below, shmq_row_life *lives,
                                      uint32_t *count) {
    if (faulty.lists > 0) {
        faulty.lists--;
        return shmq_fail(SHMQ_OS, "the disk cannot be read");
    }
    return faulty.real->list(context, from, below, lives, count);
}

static inline shmq_status faulty_erase(void *context, uint64_t erased, uint64_t place) {
    if (faulty.erasures > 0) {
        faulty.erasures--;
        return shmq_fail(SHMQ_OS, "the disk cannot be written");
    }
    if (faulty.at_erase == FAULTY_DIES_BEFORE) {
        raise(SIGKILL);
    }
    CHECK_EQUAL(faulty.real->erase(context, erased, place), SHMQ_OK);
    if (faulty.at_erase == FAULTY_DIES_BEHIND) {
        raise(SIGKILL);
    }
    return SHMQ_OK;
}

static inline shmq_status faulty_backing_of(shmq_queue *queue, uint32_t depth, const shmq_backing **backing) {
    static shmq_backing calls;
    if (faulty.openings > 0) {
        faulty.openings--;
        return shmq_fail(SHMQ_OS, "no memory");
    }
    CHECK_EQUAL(faulty.real_of(queue, depth, &faulty.real), SHMQ_OK);
    calls = *faulty.real;
    calls.write = faulty_write;
    calls.read = faulty_read;
    calls.list = faulty_list;
    calls.erase = faulty_erase;
    *backing = &calls;
    return SHMQ_OK;
}

static inline void faulty_begin(shmq_member *of) {
    faulty = (struct faulty){.real_of = of->backing_of};
    of->backing_of = faulty_backing_of;
}

static inline void faulty_end(shmq_member *of) { of->backing_of = faulty.real_of; }

#endif
