/* The answers of calls. One code per exception of the Python face; the thread-local trail says where and with which
 * figures. A code is for what the world does; a broken invariant of our own is an assertion (SHMQ_ASSERT). */
#ifndef SHMQ_BASE_STATUS_H
#define SHMQ_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum shmq_status {
    SHMQ_OK = 0,
    SHMQ_EMPTY,        /* nothing came within the time */
    SHMQ_FULL_COUNT,   /* the queue's maxsize */
    SHMQ_FULL_RING,    /* no slot in reach */
    SHMQ_FULL_BYTES,   /* the queue's max_bytes */
    SHMQ_FULL_RESIDENT, /* the queue's max_memory, and nothing can go to disk just now */
    SHMQ_FULL_DISK,    /* what flows to disk has all that it may have there */
    SHMQ_FULL_MEMORY,  /* the broker's budget */
    SHMQ_SHUT_DOWN,    /* the queue was shut down */
    SHMQ_TIMEOUT,      /* join() not done within the time */
    SHMQ_INTERRUPTED,  /* a signal came: let its handlers run, then call again */
    SHMQ_CLOSED,       /* this membership is closed */
    SHMQ_MEMBERSHIP_LOST,         /* this process was reaped while it runs: its descriptors were closed beneath it */
    SHMQ_NOT_FOUND,    /* no such queue, or deleted while in use */
    SHMQ_SETTLED,      /* settled before, or taken away */
    SHMQ_TOO_LARGE,    /* would never fit */
    SHMQ_NO_SPACE,     /* /dev/shm is full */
    SHMQ_GONE,         /* the segment, or the broker's directory, does not exist any more */
    SHMQ_NO_MAGIC,     /* what is there is no segment */
    SHMQ_VERSION,      /* made by another version or layout */
    SHMQ_CORRUPT,      /* damage found */
    SHMQ_LIMIT,        /* a table is full: processes, queues, consumers */
    SHMQ_EXISTS,       /* the name is taken */
    SHMQ_DENIED,       /* another user's */
    SHMQ_FOREIGN,      /* the segment of another broker */
    SHMQ_IN_USE,       /* others are members */
    SHMQ_REFUSED,      /* the queue has an exclusive consumer, or would get one beside others */
    SHMQ_POISONED,     /* taken, but it has died too often: to be dead-lettered by the caller */
    SHMQ_OS,           /* a system call failed: shmq_trail_errno() */
    SHMQ_STATUS_COUNT
} shmq_status;

const char *shmq_status_name(shmq_status status);
/* The broker's memory is used up, or /dev/shm. */
static inline bool shmq_is_short(shmq_status status) { return status == SHMQ_FULL_MEMORY || status == SHMQ_NO_SPACE; }

/* The trail belongs to the thread: set where the failure is seen, read by the binding. Returns `status`. */
shmq_status shmq_fail(shmq_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
shmq_status shmq_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds what helps to a failure that has just been told, of one line. */
void shmq_advise(const char *remedy);
const char *shmq_trail(void);
int shmq_trail_errno(void);
/* After it was read: what fails next without a word of its own must not be told in these. */
void shmq_trail_clear(void);

/* Bugs end the process: what it holds goes back by its death, which every protocol survives. Kept on in release. */
#define SHMQ_ASSERT(condition)                                                                      \
    do {                                                                                            \
        if (__builtin_expect(!(condition), 0)) {                                                    \
            fprintf(stderr, "shmq: %s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                                \
        }                                                                                           \
    } while (0)

#define SHMQ_TRY(call)                    \
    do {                                  \
        shmq_status try_status_ = (call); \
        if (try_status_ != SHMQ_OK) {     \
            return try_status_;           \
        }                                 \
    } while (0)

/* A function whose constant arguments are to vanish, as a batch of one message becomes a single put. */
#ifdef SHMQ_COUNTS_BRANCHES
#define SHMQ_INLINE static /* else each branch counts once for each caller */
#else
#define SHMQ_INLINE static inline __attribute__((always_inline))
#endif

/* The slow part of a function whose fast part then saves no registers for it. */
#define SHMQ_NOINLINE __attribute__((noinline))

#define SHMQ_LIKELY(x) __builtin_expect(!!(x), 1)
#define SHMQ_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Is the queue full, in whatever way? */
static inline bool shmq_no_room(shmq_status status) {
    return status == SHMQ_FULL_COUNT || status == SHMQ_FULL_RING || status == SHMQ_FULL_BYTES ||
           status == SHMQ_FULL_RESIDENT || status == SHMQ_FULL_DISK;
}

#endif
