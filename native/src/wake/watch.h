/* The watch: how a death is noticed while all processes sleep.
 *
 * One sleeper holds the watch (header.watch[0]). While another process holds an unsettled message, or has a privilege
 * (privilege.h), it wakes every SHMQ_TICK_NS and tests the lock bytes of those processes. Else it sleeps as long as the
 * others. A second one, of another process (watch[1]), does the same for the first one's process. Further sleepers
 * stand by as volunteers. A watcher that leaves, or a process that begins to hold something while none watches it,
 * wakes one of them, which takes the vacant watch.
 *
 * A holder that has not looked for the patience, while there is something to look at (`watch_looked`), is silent. It is
 * stopped, and the next process that goes to sleep takes its watch.
 *
 * watch word: process row + 1 in bits 0 to 15 | mode in bits 16 to 17 (1 ticking, 0 asleep for long) | row generation in
 * bits 32 to 63; 0: vacant. A word of a dead process is taken over like a vacant one.
 *
 * volunteer word: offset of the wake word in bits 0 to 47 | process row + 1 in bits 48 to 63; 0: none. The two watches are of
 * two processes, so a volunteer of the process that has watch 0 is not called.
 *
 * The same sleeper does what is due (due.h) and sleeps no longer than to it; the second one a tick longer.
 *
 * Nothing depends on it for correctness. A process that meets what an unwatched dead one has left reaps it, and every
 * sleep has a time limit. */
#ifndef SHMQ_WAKE_WATCH_H
#define SHMQ_WAKE_WATCH_H

#include "segment/requests.h"

static inline uint32_t shmq_watch_row(uint64_t word) { return (uint32_t)(word & 0xffff) - 1; }
static inline uint32_t shmq_volunteer_row(uint64_t word) { return (uint32_t)(word >> 48) - 1; }
static inline uint64_t shmq_volunteer_offset(uint64_t word) { return word & ((UINT64_C(1) << 48) - 1); }

typedef struct shmq_watcher {
    shmq_member *m;
    shmq_a32 *word;   /* what its thread sleeps on */
    int index;        /* 0, 1: of watch; -1 none */
    int volunteer;    /* index of volunteers, -1 none */
    uint32_t quiet;   /* ticks in which no process held anything */
    shmq_spare_time spare; /* for what is due: a watcher that is woken, or whose time is over, leaves the rest of it */
} shmq_watcher;

void shmq_watch_enter(shmq_watcher *w, shmq_member *m, shmq_a32 *word);
/* How long the next piece of sleep may be: a tick, or `limit_ns`. */
uint64_t shmq_watch_slice(shmq_watcher *w, uint64_t limit_ns);
/* After a piece that ended by time the watcher tests the processes that hold something, or have a privilege. */
void shmq_watch_tick(shmq_watcher *w);
void shmq_watch_leave(shmq_watcher *w);

/* This process holds so many unsettled messages more, or one less. */
void shmq_add_unsettled(shmq_member *m, int32_t by);
/* So many of its consumers more, or one less, have something that others wait for: see privilege.h. */
void shmq_add_privileges(shmq_member *m, int32_t by);
/* Something is due earlier than the watcher sleeps to: wake it, or a sleeper that takes its watch. */
void shmq_watch_hurry(shmq_member *m);
/* A sleeper that was to be woken is dead. This process reaps it in its next call; which may be the one that it is in. */
void shmq_met_dead(shmq_member *m, uint32_t row);
void shmq_reap_met(shmq_member *m);
/* Reaps all dead processes. True: there was one. */
bool shmq_reap_now(shmq_member *m);

#endif
