/* How long the core waits, in nanoseconds.
 *
 * How long a stopped process may be in the way of others is one number: the broker's patience, `patience_ns` of a member.
 * All code that decides whether a process is stopped asks it, and waits that get longer and longer grow up to it. Here
 * are the times that are none of the patience, each with the reason for it. */
#ifndef SHMQ_BASE_WAIT_TIME_H
#define SHMQ_BASE_WAIT_TIME_H

#include <stdint.h>

/* The watcher asks the kernel this often whether processes that hold something live. A death is known within 50 ms
 * (G4), however long the broker's patience is. Upkeep that could not be done at once is tried again after the
 * same time. */
#define SHMQ_TICK_NS UINT64_C(20000000)
/* One wait for a step that another process, while it runs, does in some microseconds and without a wake: it fills a claim, frees
 * a slot or memory, takes a message, goes on with a look. After it the waiter asks whether that process lives. Where waits
 * grow, this is the first. */
#define SHMQ_SHORT_SLEEP_NS UINT64_C(1000000)
/* About what a sleep and a wake cost: looking on for as long costs no more than to sleep. */
#define SHMQ_SPIN_NS UINT64_C(20000)
/* A taker that spins looks many times in it: so long a producer offers an immediate message where no consumer sleeps. */
#define SHMQ_AWAKE_NS UINT64_C(200000)
/* For threads of this process that are on their way out of a call, for a change of the structure that one looks beside, and for
 * a mover's turn that a purge waits for. */
#define SHMQ_NAP_NS UINT64_C(200000)
/* A taker that searches rows on disk holds the mover's lock for so long at once. */
#define SHMQ_SEARCH_NS UINT64_C(2000000)
/* A delayed message that is due sooner stays in its slot, however short slots and memory are. It would be back before
 * others had used the slot for long. */
#define SHMQ_WAITS_LEAST_NS UINT64_C(100000000)
/* Looks at many delayed messages, in memory or on disk, begin this far apart, so that several are due at each. A look
 * at a ring is at all of its slots; one at files needs a lock and some calls of the system. */
#define SHMQ_LOOK_PAUSE_NS UINT64_C(5000000)
/* For each file of which rows were due the next look begins so much later, so that more of them are due then. */
#define SHMQ_FETCH_PAUSE_NS UINT64_C(200000)
/* Half of the patience: a delayed message is late by no more, however many files there are. */
#define SHMQ_LONGEST_PAUSE_NS UINT64_C(25000000)
/* While much is left, a process that waits until a queue is empty counts the entries this often: each count goes over
 * all slots. */
#define SHMQ_JOIN_LOOK_NS UINT64_C(2000000)
/* `awaited` of a consumer row is rounded up to it, so that no consumer is passed before the patience is over. */
#define SHMQ_ROUNDING_NS UINT64_C(2000000)
/* A wait is cut into pieces of about this. A signal that comes between two sleeps interrupts none of them, so its
 * handlers get their turn when the piece is over. Where the patience is long, twice the patience: it has to pass within
 * a piece. */
#define SHMQ_SLICE_NS UINT64_C(250000000)
/* More sleepers of a queue than this have longer pieces, so that they look as often, all together, as so many do that have the
 * usual ones. A watcher always has the usual one. */
#define SHMQ_SLICE_SLEEPERS 4u
/* So long a thread waits for another one of its process that has the structure lock; then signal handlers get their turn. */
#define SHMQ_THREAD_LOCK_NS UINT64_C(50000000)
/* Sleepers of a queue share the looks for a stopped process, one look in a patience, however many they are. But each
 * has one after this time. No piece is longer. */
#define SHMQ_LONGEST_SLEEP_NS UINT64_C(20000000000)
/* A process that has found something for its interpreter to dead-letter does so at its next call. If there is none others look
 * again after this time: an application that works for as long between two calls is not stopped. */
#define SHMQ_DEAD_LETTER_NS UINT64_C(200000000)
/* A process looks for alerts once in this time: each look counts the messages of a queue that has thresholds. */
#define SHMQ_ALERT_LOOK_NS UINT64_C(1000000000)
/* An alert that stays true is told again after this time, where a queue's users have not said how often. */
#define SHMQ_ALERT_GAP_NS UINT64_C(30000000000)
/* A broker's files are made young so often: cleaners of temporary directories remove what has not changed for days. */
#define SHMQ_TOUCH_NS UINT64_C(3600000000000)
/* A process that finds no memory goes over all blocks for those that a death left, once in this time. */
#define SHMQ_SWEEP_NS UINT64_C(1000000000)

/* Producers compare the wall clock with the coarse monotonic one, which lags by a tick of the system, 10 ms at the most. A smaller
 * step of the wall clock changes enqueued_ns by as much, and no time that people read. */
#define SHMQ_CLOCK_LATE_NS UINT64_C(16000000)
/* The other way they are hardly ever apart; and so much two looks at two clocks may differ. */
#define SHMQ_CLOCK_EARLY_NS UINT64_C(2000000)
/* They compare them again when the wall clock has moved by this. Looks at two clocks are of one moment if no more lies
 * between them. */
#define SHMQ_CLOCK_LOOK_NS UINT64_C(1000000)

/* The checker is no member of the broker and cannot trust the patience in its header, since the segment may be damaged. */
#define SHMQ_CHECK_LOOK_NS UINT64_C(5000000)   /* between two looks that have to agree: a change is over by then */
#define SHMQ_CHECK_MOST_NS UINT64_C(500000000) /* of one part: then it says that it cannot decide */

#endif
