/* A queue as one process sees it: its page, the process' counters, the consumer rows on which its threads wait. And the
 * rings of its levels with private copies of their constants. One handle per process and queue, shared by threads.
 *
 * Calls on entries take a ring, `r`, which leads to its queue as a whole (sleepers, waiting producers, limits,
 * settings) by `r->queue`. */
#ifndef SHMQ_QUEUE_HANDLE_H
#define SHMQ_QUEUE_HANDLE_H

#include "layout/queue.h"
#include "layout/slot.h"
#include "segment/requests.h"

struct shmq_group_book;
struct shmq_heads;

#define SHMQ_SPARE_ROWS 32u

/* Patience: this process has seen this same word since then. No clock is stored in shared memory. The handle keeps it,
 * not the call: a caller with short timeouts, or one that only polls, must come to an end, too. */
typedef struct shmq_patience {
    shmq_a32 busy; /* one thread at a time; the others ask again soon */
    uint64_t since_ns, position, word, below;
} shmq_patience;

/* How long one call has found the mover's lock taken by the same turn; all 0: not yet. */
typedef struct shmq_turn_wait {
    uint64_t since_ns;
    uint32_t turn;
} shmq_turn_wait;

/* Since when one call for memory has seen no other one free some; all 0 at first. */
typedef struct shmq_relief {
    uint64_t since_ns;
    uint32_t flushes;
    bool seen; /* one did since the call began */
} shmq_relief;

/* The ring of one level as one process sees it. */
/* A mover may pass [from, to): as of this epoch nothing there can be had, and nothing was held for a time. */
typedef struct shmq_passed {
    shmq_a32 busy; /* a thread has it; others do without */
    uint64_t from, to, epoch;
} shmq_passed;

typedef struct shmq_ring {
    struct shmq_queue *queue;
    shmq_ring_shm *shm;
    unsigned char *slots;
    shmq_a64 *carried;
    shmq_a32 *stretches; /* of its slots, with versions: see stretch.h */
    uint64_t mask; /* slots - 1 */
    uint32_t shift;
    uint32_t slot_size;
    uint32_t inline_bytes; /* of a slot, headers and body */
    uint32_t depth; /* of its level; 0: the most important. Of a front ring: its level's, behind all levels' */
    const shmq_a64 *flow; /* the flow word of its level */
    shmq_a64 near; /* a position that this process has seen lately: head's 44 bits are extended against it */
    /* The version in which it had nothing to be taken; 0: none. Of a front ring whose positions are in no order; of a back ring: nothing below P. */
    shmq_a64 nothing;
    /* Of a back ring: no row below this place has failed too often, by the settings that these terms are of. */
    shmq_a64 sound_below, sound_terms;
    shmq_a64 scattered; /* of a front ring: where its list of entries is (ring_scattered.h); 0: not needed yet */
    shmq_a64 found; /* of a front ring: behind the position whose place was found last */
    shmq_a64 uncarried; /* no entry that the tail carried lies in the slots of positions below this one */
    shmq_patience taking, browsing, putting, flushing;
    shmq_passed passed;
    shmq_a64
        old[2]; /* where its lists of old entries are, for browsers and for takers (ring_old.h); 0: not needed yet */
    shmq_a64 known; /* where what this process knows of its stretches is (stretch.h); 0: not needed yet */
    struct shmq_heads
        *heads; /* of a back ring: which waiting rows are due first (waiting.h); for the holder of the mover's lock */
} shmq_ring;

typedef struct shmq_queue {
    shmq_member *m;
    shmq_queue_shm *page;
    shmq_ring first; /* of level 0 */
    uint32_t index;
    uint32_t incarnation;
    uint32_t checksum_start; /* that of the queue's own identity, with which each message's begins */
    bool checksum; /* false: its messages may have none */
    bool crc_at_put; /* by us; also where its setting says no, but the seal of the settings does not */
    uint32_t grouping; /* enum shmq_grouping */
    struct shmq_group_book *book; /* what this process has of each group; NULL in a view, and without groups */
    uint64_t serial; /* of the member when this was bound */
    shmq_counters_shm *counters;
    uint32_t
        spare_rows[SHMQ_SPARE_ROWS]; /* consumer rows of this process on which no thread waits now; m->handles_lock */
    uint32_t spare_count;
    uint32_t refs; /* m->handles_lock */
    shmq_a32 rotation; /* where the next notify starts to look: fair, not exact */
    shmq_a64
        selectors; /* where the selectors of sleepers are that this process has loaded (row_selector.h); 0: not needed yet */
    shmq_patience lining;
    shmq_ticket_shm *tickets; /* of blocked producers, at the end of the queue's run */
    void *backing; /* of this process, for the holder of the mover's lock */
    struct shmq_queue *next;
    uint32_t levels; /* of priority: how many */
    uint32_t rings; /* one of each level, and, behind them, their front rings if the queue may flow */
    shmq_ring_shm *level_rings; /* of the levels from depth 1 on, in the segment */
    shmq_ring *lower; /* the same as this process sees them; NULL in a view */
} shmq_queue;
/* Private copies of ring constants, checked: SHMQ_CORRUPT. For the reaper, which needs no counters. */
shmq_status shmq_queue_view(shmq_member *m, uint32_t index, shmq_queue *view);
/* The same for a checker: NULL, or what is wrong; it does not count damage. */
const char *shmq_queue_look(shmq_member *m, uint32_t index, shmq_queue *view);
/* The same of this incarnation: SHMQ_OK, SHMQ_NOT_FOUND (it is there no more), SHMQ_CORRUPT and *wrong. */
shmq_status shmq_queue_look_as(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_queue *view,
                               const char **wrong);

uint64_t shmq_name_hash(const char *name, uint32_t len);
/* The length of a queue's name, read once and checked; 0: it makes no sense. */
static inline uint32_t shmq_name_len(const shmq_queue_shm *page) {
    uint32_t len = shmq_read_once(&page->name_len);
    return len <= SHMQ_NAME_MAX ? len : 0;
}

/* Is it not shut down? */
static inline bool shmq_is_open(const shmq_queue *q) { return shmq_load_relaxed(&q->page->shut_down) == SHMQ_OPEN; }

/* Is it there, and its broker? SHMQ_OK, SHMQ_GONE, SHMQ_NOT_FOUND. */
static inline shmq_status shmq_queue_there(const shmq_queue *q) {
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->m->header->state) != SHMQ_SEGMENT_LIVE) && shmq_member_is_gone(q->m)) {
        return shmq_fail(SHMQ_GONE, "this broker was deleted");
    }
    return SHMQ_LIKELY(shmq_load_relaxed(&q->page->state) == SHMQ_QUEUE_LIVE) ? SHMQ_OK : SHMQ_NOT_FOUND;
}

/* May it be used? As above, and SHMQ_CLOSED, SHMQ_MEMBERSHIP_LOST. Writes nothing shared, and starts nothing. */
static inline shmq_status shmq_queue_usable(const shmq_queue *q) {
    SHMQ_TRY(shmq_member_usable(q->m));
    return shmq_queue_there(q);
}

/* How each call that does something with messages begins: with the question whether this process may, then with a share of the
 * upkeep, then with the question whether the queue is there. */
static inline shmq_status shmq_queue_enter(shmq_queue *q) {
    SHMQ_TRY(shmq_member_usable(q->m));
    shmq_upkeep_look(q->m);
    return shmq_queue_there(q);
}

static inline shmq_slot_shm *shmq_slot_at(const shmq_ring *r, uint64_t position) {
    return (shmq_slot_shm *)(r->slots + (position & r->mask) * r->slot_size);
}
static inline uint32_t shmq_lap_of(const shmq_ring *r, uint64_t position) { return (uint32_t)(position >> r->shift); }
static inline uint64_t shmq_slot_count(const shmq_ring *r) { return r->mask + 1; }
static inline uint32_t shmq_self(const shmq_queue *q) { return SHMQ_OWNER_PROCESS | q->m->row; }

/* A producer's knowledge of its ticket. All 0: it has none. */
typedef struct shmq_ticket {
    bool in_line;
    bool second; /* one at the most stood before it when it looked: it looks after that one */
    uint32_t number;
} shmq_ticket;

uint32_t shmq_queue_high(const shmq_member *m);

#endif
