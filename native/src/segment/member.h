/* A membership: this process in one broker. Private memory; nothing here is shared. */
#ifndef SHMQ_SEGMENT_MEMBER_H
#define SHMQ_SEGMENT_MEMBER_H

#include <pthread.h>

#include "base/status.h"
#include "layout/process.h"
#include "layout/segment.h"
#include "segment/rounds.h"

struct shmq_backing;
struct shmq_cipher;
struct shmq_queue;

/* shmq_member.closed: CLOSING refuses every call and keeps the row while views are alive. LOST: its descriptors were closed
 * beneath it, so its row is no more its own, and it writes nothing. */
enum { SHMQ_MEMBER_LEFT = 1, SHMQ_MEMBER_CLOSING = 2, SHMQ_MEMBER_LOST = 3 };

/* A file, whatever descriptor leads to it. A descriptor is a number: closed beneath its owner, it may be a stranger's file. */
typedef struct shmq_file {
    uint64_t device, inode; /* both 0: none */
} shmq_file;

/* DEAD_LETTERS: messages have expired, and are to be moved to the dead letters. ALERTS: it is time to look for what is to be told. */
enum shmq_upcall { SHMQ_UPCALL_DEAD_LETTERS = 1, SHMQ_UPCALL_ALERTS = 2, SHMQ_ANY_UPCALL = 3 };

typedef struct shmq_member {
    unsigned char *base;
    uint64_t size; /* of the mapping; the private copy that every check of an offset uses */
    bool mapped;   /* false: given back, `base` are addresses without the segment */
    int lock_fd;   /* holds our row's byte; closed, never unlocked */
    int map_fd;    /* another description of the same file: a forked child opens its own lock_fd through it */
    int dir_fd;    /* the broker's directory; -1: anonymous */
    shmq_file segment,
        home; /* what these lead to. Each use that could harm another file asks for it: see descriptors.h */
    char name[64]; /* of the segment below /dev/shm, without slash */

    /* private copies of constants of the header, checked at attach */
    shmq_segment_shm *header;
    shmq_process_shm *rows;
    shmq_directory_shm *directory;
    shmq_a64 *granules;
    unsigned char *class_bitmaps;
    uint64_t class_bitmap_bytes; /* of one class */
    unsigned char *slabs;
    uint64_t data;
    uint64_t memory; /* the budget */
    uint64_t disk; /* that of what is on disk, as in the header */
    uint32_t granule_count;
    uint64_t patience_ns;
    uint64_t clock_offset_made_ns, clock_asleep_made_ns; /* as in the header */
    shmq_a64 clock_offset_ns,
        clock_looked_ns; /* by which this process puts, and when it has made sure; see wall_clock.h */
    bool anonymous;
    bool read_only; /* an observer: no row, and a write would be a SIGSEGV */

    uint32_t row;
    uint32_t row_generation;
    uint64_t row_word; /* what our row says while we are a member: another word there says that we were reaped */
    shmq_process_shm *process;
    shmq_process_page_shm *page;
    uint64_t
        serial; /* of no other one in this process; grows with each re-attachment (fork): handles made before bind anew */

    volatile uint32_t *alive; /* a wipe-on-fork page: 1 here, 0 in a forked child */
    shmq_a32 closed;
    pthread_mutex_t lock; /* the threads' half of the structure lock */
    pthread_mutex_t handles_lock; /* row caches of the queue handles */
    shmq_a64 next_id; /* next of the block of ids that this process has; a multiple of 65536: block used up */
    shmq_a32 block_hint[64]; /* by class: 1 + granule where the last block was found; 0: none was */
    shmq_a32 met; /* 1 + row of a dead process that a wake was for */
    shmq_a32 ops; /* calls: each 1,024th is a round of upkeep */
    bool structure_locked;
    uint32_t page_hint, run_hint; /* granules where pages and runs are looked for first; structure lock */
    struct shmq_queue *handles; /* one per queue that this process uses; handles_lock */
    shmq_a64 swept_ns; /* when it last swept the blocks for want of memory */
    shmq_a64 looked_ns; /* when this process last looked for the dead */
    shmq_a64 lockless,
        lockless_ns; /* a row whose process runs, but has lost its lock, and since when: see liveness.c */
    shmq_a64 watched_ns; /* when this process last watched a process that held something; 0: never */
    shmq_a32 wake_words_taken; /* bit n: process->wake_words[n] is in use by a wait */
    shmq_a64 receipts; /* bit n: page->receipts[n] is in use by a put */
    shmq_a32 upcalls; /* bits of enum shmq_upcall: what the interpreter is to do at its next call */
    shmq_a64 alerts_ns; /* when this process looks next whether something is to be told; 0: it tells nothing */
    shmq_a64 gone_looked_ns; /* and whether the directory is still there */
    shmq_a64 touched_ns; /* when it last made the broker's files young; 0: never */
    shmq_a64 movers[SHMQ_QUEUES / 64]; /* queues of which one of our threads has the mover's lock, or tries to get it */
    /* Where this process keeps rows of a level of a queue; NULL: nowhere, so that no queue flows by it. See flow.h */
    char spill[1024]; /* directory for rows in files, as it was called; "": none */
    uint32_t spill_base; /* bytes of it that named the directory dir_fd or rows_fd; 0: neither, see rows_base.h */
    int rows_fd; /* of an anonymous broker */
    uint64_t rows_device, rows_inode; /* of that directory: a number that something else closed is another file's */
    shmq_status (*backing_of)(struct shmq_queue *q, uint32_t depth, const struct shmq_backing **backing);
    shmq_rounds rounds;
    bool encrypts; /* the broker has a key for what goes to disk, as its header says */
    struct shmq_cipher *cipher; /* NULL: this process does not have it */
    struct shmq_member *next; /* list for the fork handler */
} shmq_member;

/* The directory that asks for a segment. NULL in its place: none asks, as in tests. */
typedef struct shmq_home {
    int dir_fd; /* -1: an anonymous broker is asked for */
    uint8_t uuid[16]; /* of the directory, from its record */
} shmq_home;

/* The plan of a segment, by the arguments of open(). */
typedef struct shmq_segment_plan {
    const char *name; /* below /dev/shm */
    uint64_t memory; /* budget, bytes */
    uint64_t room; /* bytes of the file, with what is not reserved; 0: what rings may want */
    uint64_t patience_ns;
    uint64_t disk; /* as in the header */
    uint8_t key_check[16]; /* of what goes to disk; zeros: it is not encrypted */
    uint32_t mode; /* of the file: 0600, or 0660 */
    uint32_t group; /* of the file, if its mode is 0660 */
    bool anonymous;
    const char *path; /* directory, "" when anonymous */
    uint64_t directory_device; /* st_dev of the directory, 0 when anonymous */
    uint64_t directory_inode;
    uint8_t directory_uuid[16];
    uint8_t uuid[16];
    uint32_t id_epoch; /* 24 bits, one more for each segment that a broker has lost: its message ids never come again */
} shmq_segment_plan;

/* Create a segment that appears under its name complete or not at all. SHMQ_EXISTS, SHMQ_NO_SPACE, SHMQ_OS. */
shmq_status shmq_segment_create(const shmq_segment_plan *plan);
/* Become a member. Looks in this order, and says which differs: regular file of ours (SHMQ_DENIED), size, magic
 * (SHMQ_NO_MAGIC), version, byte order, fingerprint, features (SHMQ_VERSION), header CRC (SHMQ_CORRUPT), every offset
 * and product (SHMQ_CORRUPT), whether it is the segment of `home` (SHMQ_FOREIGN) and shared as that directory is
 * (SHMQ_DENIED). No boot: a tmpfs outlives none, and containers may have ids of their own. Then takes a row (SHMQ_LIMIT) - dead members are reaped first through `reap`. */
/* home->dir_fd is duplicated. */
shmq_status shmq_member_attach(const char *name, const shmq_home *home, shmq_member **member);
/* In a forked child, before the first operation: own lock descriptor, own row. Idempotent. */
shmq_status shmq_member_after_fork(shmq_member *m);
/* Leave: the row goes FREE. The caller has settled or released everything. Unmaps when `unmap`. An anonymous segment
 * without further members is unlinked. */
shmq_status shmq_member_leave(shmq_member *m, bool unmap);
/* After a leave, when nothing of this process reads or writes in place: descriptors and memory go. The addresses stay
 * taken until the free, as private zeros: a handle that is used late, and says so too late, harms nobody. Repeatable. */
void shmq_member_give_back(shmq_member *m);
void shmq_member_free(shmq_member *m);
/* Takes the segment's name away, from when on the broker is gone for every member, now or at its next look. SHMQ_IN_USE:
 * there are other members, and no `force`. SHMQ_DENIED: the segment is another user's. Their mappings stay whole. */
shmq_status shmq_member_delete(shmq_member *m, bool force);

/* In this process: no call gets in any more. */
static inline bool shmq_member_is_closed(const shmq_member *m) { return shmq_load_seq(&m->closed) != 0; }
/* Its row is kept, for views. */
static inline bool shmq_member_is_closing(const shmq_member *m) {
    return shmq_load_seq(&m->closed) == SHMQ_MEMBER_CLOSING;
}
static inline bool shmq_member_is_lost(const shmq_member *m) { return shmq_load_seq(&m->closed) == SHMQ_MEMBER_LOST; }
/* Its row and its locks are its own: nobody else has reaped it, or may. */
bool shmq_member_is_in_place(const shmq_member *m);
/* Waits for a thread that makes this child a member just now. */
void shmq_member_await_rejoin(shmq_member *m);
/* Why a call may not go on: SHMQ_CLOSED, or SHMQ_MEMBERSHIP_LOST, when this process finds out that it was reaped while it runs. */
shmq_status shmq_member_refused(shmq_member *m);
/* Its descriptors lead elsewhere: SHMQ_MEMBERSHIP_LOST from now on. */
shmq_status shmq_member_lost(shmq_member *m);
/* May this process still write? One look at its own row: a process that was reaped has no right to a word of it. */
static inline shmq_status shmq_member_usable(shmq_member *m) {
    bool here = shmq_load_relaxed(&m->closed) == 0 && shmq_load_relaxed(&m->process->word) == m->row_word;
    return SHMQ_LIKELY(here) ? SHMQ_OK : shmq_member_refused(m);
}
/* False: it is closed, or another thread is at it. */
static inline bool shmq_member_close_begin(shmq_member *m) {
    return shmq_cas32_seq(&m->closed, 0, SHMQ_MEMBER_CLOSING);
}

/* Has this process found one of these upcalls for its interpreter? */
static inline bool shmq_is_upcall_due(const shmq_member *m, uint32_t upcalls) {
    return (shmq_load_relaxed((shmq_a32 *)(uintptr_t)&m->upcalls) & upcalls) != 0;
}
/* The same, and it is the caller's now. */
static inline bool shmq_upcall_take(shmq_member *m, uint32_t upcall) {
    return shmq_is_upcall_due(m, upcall) && (shmq_and_seq(&m->upcalls, ~upcall) & upcall) != 0;
}

static inline bool shmq_member_forked(const shmq_member *m) { return *m->alive == 0; }

/* How the process of a row is. LOCKLESS: it has lost its lock, but runs, and may be in the midst of a write. */
typedef enum shmq_life { SHMQ_ALIVE, SHMQ_LOCKLESS, SHMQ_DEAD } shmq_life;
/* (1) the caller has read the word that names it (2) row and generation are read here (3) our own row: alive; else its lock
 * byte (4) a process that runs without its lock is dead when it has had the patience since this process began to wait for
 * it. Never dead where the row is FREE. */
shmq_life shmq_process_life(const shmq_member *m, uint32_t row);
bool shmq_process_dead(const shmq_member *m, uint32_t row);
/* A process that looks for the dead has found this row LOCKLESS: from now on its process has the patience to notice. */
void shmq_lockless_begin(shmq_member *m, uint32_t row);
/* Number of members whose lock is held. */
uint32_t shmq_members_live(shmq_member *m);

static inline void *shmq_at(const shmq_member *m, uint64_t offset) { return m->base + offset; }
/* Is [offset, offset + bytes) inside the segment? Offsets that were read from it are asked first. */
static inline bool shmq_inside(const shmq_member *m, uint64_t offset, uint64_t bytes) {
    return offset <= m->size && bytes <= m->size - offset;
}
uint64_t shmq_new_id(shmq_member *m);
/* How many rows and directory entries were ever in use: how far a look over all of them goes. Damaged: all there are. */
uint32_t shmq_process_high(const shmq_member *m);
/* This process' counters on a queue, made when missing (structure lock). */
shmq_status shmq_counters_of(shmq_member *m, uint32_t queue_index, shmq_counters_shm **counters);
/* The same by a caller that holds the structure lock already. */
shmq_status shmq_counters_make(shmq_member *m, uint32_t queue_index, shmq_counters_shm **counters);
/* A new queue at this entry of the directory: all counters begin at zero (structure lock). */
void shmq_counters_clear(shmq_member *m, uint32_t queue_index);
/* Counters of any row, NULL when it has none or its offset is damaged. */
shmq_counters_shm *shmq_counters_at(const shmq_member *m, uint32_t row, uint32_t queue_index);
/* Has the broker been deleted, or its directory? Looks (fstat), and tells all processes through the header when it has. */
bool shmq_member_gone(shmq_member *m);
/* The same question; it changes nothing. */
bool shmq_member_is_gone(const shmq_member *m);
/* Counts damage that was found, and answers SHMQ_CORRUPT. */
shmq_status shmq_damage(shmq_member *m, const char *what, uint64_t where);

#endif
