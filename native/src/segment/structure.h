/* Changes of the segment's structure: rows, queue directory, pages, runs of granules.
 *
 * One at a time, under a kernel lock on one byte of the segment file (SHMQ_STRUCTURE_BYTE). It dies with its holder, it
 * needs no word in shared memory that could be damaged, and it is there before a process has a row. `dirty` in the
 * header is set before the first change and cleared after the last. A process that locks and finds it set rebuilds the
 * map from the roots (directory, process rows, consumer chunks, slab table), so a death anywhere inside costs one
 * rebuild and nothing else. Each change becomes real by ONE store to a root; before that store what was allocated is
 * garbage, after it all is there.
 *
 * Never taken on the path of put, get or ack while they have what they need. */
#ifndef SHMQ_SEGMENT_STRUCTURE_H
#define SHMQ_SEGMENT_STRUCTURE_H

#include "layout/queue.h"
#include "segment/member.h"

#define SHMQ_STRUCTURE_BYTE (INT64_C(1) << 40)
/* A process that makes a segment in a file with a name (no O_TMPFILE) locks it until the segment is complete. */
#define SHMQ_DRAFT_BYTE (SHMQ_STRUCTURE_BYTE + 1)

/* SHMQ_INTERRUPTED: a signal may have come while waiting (or another thread of this process has the lock for long: let
 * signal handlers run, then call again). Not recursive. Threads of one process exclude each other too. */
shmq_status shmq_structure_lock(shmq_member *m);
/* The same without waiting: SHMQ_INTERRUPTED when another process or thread has it. */
shmq_status shmq_structure_try(shmq_member *m);
void shmq_structure_unlock(shmq_member *m);
/* A process died inside and had no row (or none any more), so no reaper came for it: the map anew. Waits for no
 * process, and answers nothing: a holder that lives does the same by itself. */
void shmq_structure_mend(shmq_member *m);

/* For a checker, without the lock: is a process changing the structure, has one changed it since? Writes nothing. */
typedef enum shmq_calm {
    SHMQ_CALM, /* no process is inside, and the map is right */
    SHMQ_LEFT, /* no process is inside; one has died there, so the map may be wrong until the next one rebuilds it */
    SHMQ_BUSY, /* a process is inside, at work or stopped */
} shmq_calm;
typedef struct shmq_moment {
    uint64_t turns;
    shmq_calm calm;
    uint32_t holder; /* pid as the holder sees it, unless CALM */
} shmq_moment;
shmq_moment shmq_moment_begin(const shmq_member *m);
/* True: not BUSY, and nothing was changed since. Words that were read in between were true all at once, but for those
 * that change without the lock. */
bool shmq_moment_lasts(const shmq_member *m, const shmq_moment *moment);

/* All below: under the lock. Memory comes zeroed unless it is a slab's. SHMQ_FULL_MEMORY, SHMQ_NO_SPACE. */
shmq_status shmq_page_take(shmq_member *m, uint64_t *offset);
void shmq_page_give(shmq_member *m, uint64_t offset);
shmq_status shmq_run_take(shmq_member *m, uint32_t granules, uint32_t kind, uint64_t *offset);
void shmq_run_give(shmq_member *m, uint64_t offset);
/* Stores a granule's word, and keeps the counts of the header. */
void shmq_granule_set(shmq_member *m, uint32_t granule, uint64_t word);
/* Granules that can still be had: free ones with memory, and as many more as the budget has memory for. Also without
 * the lock. */
uint64_t shmq_granules_free(const shmq_member *m);
/* No run was taken at this granule or behind it, but for those of rings beyond the budget. */
uint32_t shmq_run_high(const shmq_member *m);
/* Memory that rings have. */
uint64_t shmq_rings_bytes(const shmq_member *m);
/* Granules that rings and bodies leave to pages. When they fill the memory, a process that comes to take messages out
 * needs a process page, counters and a place to sleep. */
uint32_t shmq_granules_kept(const shmq_member *m);
/* The granule map anew from the roots. SHMQ_OS: no private memory to do it in; the map is as it was. */
shmq_status shmq_structure_rebuild(shmq_member *m);
/* The bytes that may still be reserved of the broker's budget. */
uint64_t shmq_memory_left(const shmq_member *m);
/* Reserve [offset, offset + bytes) before the first touch: SHMQ_NO_SPACE instead of SIGBUS later; SHMQ_FULL_MEMORY: beyond the budget. Counted in
 * reserved_bytes, so: once for each place, then its bit SHMQ_GRANULE_RESERVED or _HEADERS. */
shmq_status shmq_reserve(shmq_member *m, uint64_t offset, uint64_t bytes);
/* The same; where memory or /dev/shm is used up, as much memory of free granules goes back first. */
shmq_status shmq_reserve_instead(shmq_member *m, uint64_t offset, uint64_t bytes);

/* Gives memory that the map no longer counts back to the system. No process may be able to come there. */
void shmq_give_memory(shmq_member *m, uint64_t offset, uint64_t bytes);

/* The map agrees with the roots: NULL, or what does not. Under the lock, or in a moment that is CALM and lasts. */
const char *shmq_structure_fault(shmq_member *m);

/* The ring of one level, from a page that was not checked; NULL: there is none, or it lies nowhere. */
static inline shmq_ring_shm *shmq_page_ring(const shmq_member *m, const shmq_queue_shm *page, uint32_t depth) {
    uint64_t rings = shmq_copy_once(&page->level_rings), at = rings + (uint64_t)(depth - 1) * sizeof(shmq_ring_shm);
    if (depth == 0) {
        return (shmq_ring_shm *)(uintptr_t)&page->ring;
    }
    bool there = depth < SHMQ_RINGS_MAX && depth < 2 * shmq_copy_once(&page->levels) && rings % 64 == 0;
    return there && at >= m->data && shmq_inside(m, at, sizeof(shmq_ring_shm)) ? shmq_at(m, at) : NULL;
}

#endif
