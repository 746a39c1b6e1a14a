/* The process table: one row per member, the only list of per-process words.
 *
 *   offset  field                       writer                     reader, and what a stale read costs
 *   0       row word                    CAS                        all: owner look-up; one failed CAS
 *   8       pid, flags                  owner at attach            people
 *   16      start time, 24 pid namespace, 32 attached_ns, 40 name  owner at attach; people
 *   80      pin table offset, cells     owner at attach            reaper, block sweep
 *   96      counter directory offset    owner at attach            statistics, release of deleted queues
 *   104     magazines                   0 in this stage
 *   128     progress                    owner                      0 in this stage
 *   136     inside                      owner: calls under way     watcher: a late value costs one tick
 *   140     unsettled                   owner: unsettled messages  watcher, people
 *   144     pinned_bytes                owner: loans and views     people
 *   152     memory_waiting              owner: in memory_waiters   who counts the waiters again
 *   156     memory_changing             owner; 0 by a reaper       who counts the waiters again
 *   160     wake_words                  who wakes: +1           its threads that wait for several queues at once
 *   224     privileges                  owner: its consumers that others wait behind (privilege.h)  watcher
 *   256     ops, 480 log_io, 488 env_io 0 in this stage
 *
 * row word: state 8 | reserved 24 | generation 32 (bits 32 to 63)
 *
 * A member proves that it lives by an open-file-description lock on the byte of the segment file that has its row's
 * index: the kernel drops it after the memory of the process is gone, so "lock free" proves that no thread of it can
 * write again. Order at attach: lock byte, then row LIVE, then first use. A row becomes FREE by a CAS that raises the
 * generation, only at a clean close with nothing left, or after a complete sweep of all rings by one reaper. */
#ifndef SHMQ_LAYOUT_PROCESS_H
#define SHMQ_LAYOUT_PROCESS_H

#include "base/atomic.h"
#include "layout/abi.h"

enum shmq_row_state { SHMQ_ROW_FREE = 0, SHMQ_ROW_ATTACHING, SHMQ_ROW_LIVE, SHMQ_ROW_CLOSING, SHMQ_ROW_REAPING };

static inline uint32_t shmq_row_state(uint64_t word) { return (uint32_t)word & 0xffu; }
static inline uint32_t shmq_row_inner(uint64_t word) { return (uint32_t)(word >> 8) & 0xffffffu; }
static inline uint32_t shmq_row_generation(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint64_t shmq_row_word(uint32_t generation, uint32_t inner, uint32_t state) {
    return ((uint64_t)generation << 32) | ((uint64_t)inner << 8) | state;
}

#define SHMQ_WAKE_WORDS 16u

typedef struct shmq_process_shm {
    shmq_a64 word;
    uint32_t pid;
    uint32_t flags;
    uint64_t start_time; /* clock ticks since boot, field 22 of /proc/PID/stat */
    uint64_t pid_namespace;
    uint64_t attached_ns; /* wall clock */
    char name[40];
    uint64_t pins; /* offset of the process page's cells */
    uint32_t pin_cells;
    uint32_t reserved_92;
    uint64_t counters; /* offset of the process page's counter directory */
    uint64_t magazines;
    uint64_t reserved_112[2];

    shmq_a64 progress;
    shmq_a32 inside;
    shmq_a32 unsettled;
    shmq_a64 pinned_bytes;
    shmq_a32 memory_waiting;
    shmq_a32 memory_changing; /* threads between header.memory_waiters and memory_waiting; 0: none is in between */
    shmq_a32 wake_words[SHMQ_WAKE_WORDS]; /* wake words that rows of several queues share */
    shmq_a32 privileges;
    uint32_t reserved_228;
    uint64_t reserved_232[3];

    struct {
        shmq_a64 word;
        shmq_a64 lsn;
    } ops[14];
    shmq_a64 log_io;
    shmq_a64 env_io;
    uint64_t reserved_496[18];
} shmq_process_shm;

SHMQ_SIZE(shmq_process_shm, 640);
SHMQ_OFFSET(shmq_process_shm, word, 0);
SHMQ_OFFSET(shmq_process_shm, pid, 8);
SHMQ_OFFSET(shmq_process_shm, flags, 12);
SHMQ_OFFSET(shmq_process_shm, start_time, 16);
SHMQ_OFFSET(shmq_process_shm, pid_namespace, 24);
SHMQ_OFFSET(shmq_process_shm, attached_ns, 32);
SHMQ_OFFSET(shmq_process_shm, name, 40);
SHMQ_OFFSET(shmq_process_shm, pins, 80);
SHMQ_OFFSET(shmq_process_shm, pin_cells, 88);
SHMQ_OFFSET(shmq_process_shm, counters, 96);
SHMQ_OFFSET(shmq_process_shm, magazines, 104);
SHMQ_OFFSET(shmq_process_shm, progress, 128);
SHMQ_OFFSET(shmq_process_shm, inside, 136);
SHMQ_OFFSET(shmq_process_shm, unsettled, 140);
SHMQ_OFFSET(shmq_process_shm, pinned_bytes, 144);
SHMQ_OFFSET(shmq_process_shm, memory_waiting, 152);
SHMQ_OFFSET(shmq_process_shm, memory_changing, 156);
SHMQ_OFFSET(shmq_process_shm, wake_words, 160);
SHMQ_OFFSET(shmq_process_shm, privileges, 224);
SHMQ_OFFSET(shmq_process_shm, ops, 256);
SHMQ_OFFSET(shmq_process_shm, log_io, 480);
SHMQ_OFFSET(shmq_process_shm, env_io, 488);

/* A pin: one view of one block.
 *
 *   0   cell         its process: CAS from 0, store, swap; a reaper: CAS to 0     block sweep, reaper
 *   8   generation   its process, between the claim of the cell and the view bit  block sweep, reaper
 *
 * cell: block offset / 64 in bits 0 to 39, view bit + 1 in bits 40 to 47 (255: being taken
 * or given back, protects every view bit of that generation from the sweep), low half of the row's generation in bits 48 to
 * 63, so that a late reaper cannot take an equal pin of the row's next owner for the dead one's; 0: free. generation is
 * written after the cell is claimed and before the view bit is taken. */
typedef struct shmq_pin_shm {
    shmq_a64 cell;
    shmq_a64 generation;
} shmq_pin_shm;
SHMQ_SIZE(shmq_pin_shm, 16);
SHMQ_OFFSET(shmq_pin_shm, cell, 0);
SHMQ_OFFSET(shmq_pin_shm, generation, 8);
#define SHMQ_PIN_TENTATIVE 255u

/* Counters of one process on one queue.
 *
 *   0   attached       its process; 0 by a reaper      release of deleted queues, reaper
 *   8   put to redelivered, 48 dead_lettered, 56 purged  its process; statistics
 *   64  died           reapers                         statistics
 *   72  moving         its process; 0 by a reaper      who counts the slots again
 *   76  waiting        its process; 0 by a reaper      who counts the waiters again
 *   80  changing       its process; 0 by a reaper      who counts the waiters again
 *   84  reserved       0
 *   88  expired        its process                     statistics
 *   96  dropped        its process                     statistics
 *   104 reserved       0
 *
 * Each count only grows, for ever: a row that is used again goes on counting, so sums
 * over all rows are the queue's since it exists. Written by the process (relaxed add), read by statistics. */
typedef struct shmq_counters_shm {
    shmq_a64
        attached; /* incarnation of the queue + 1 while this process may touch its memory; else 0. A deleted queue's
                          memory is used again when no live row says its incarnation here */
    shmq_a64 put;
    shmq_a64 got;      /* delivered and settled at once */
    shmq_a64 received; /* delivered, to be settled */
    shmq_a64 acked;
    shmq_a64 redelivered; /* deliveries that were not the first */
    shmq_a64 dead_lettered;
    shmq_a64 purged;
    shmq_a64 died; /* deliveries of this process' row that ended with it; written by reapers */
    shmq_a32 moving; /* puts and settlements between a slot and queue.count; 0: none is in between */
    shmq_a32 waiting;  /* threads of this process in ring.waiters: taken off by the reaper */
    shmq_a32 changing; /* of them, those between ring.waiters and `waiting`; 0: none is in between */
    uint32_t reserved_84;
    shmq_a64 expired;  /* found to be past their time to live */
    shmq_a64 dropped;  /* for want of room, by the queue's overflow */
    uint64_t reserved[3];
} shmq_counters_shm;
SHMQ_SIZE(shmq_counters_shm, 128);
SHMQ_OFFSET(shmq_counters_shm, attached, 0);
SHMQ_OFFSET(shmq_counters_shm, put, 8);
SHMQ_OFFSET(shmq_counters_shm, got, 16);
SHMQ_OFFSET(shmq_counters_shm, received, 24);
SHMQ_OFFSET(shmq_counters_shm, acked, 32);
SHMQ_OFFSET(shmq_counters_shm, redelivered, 40);
SHMQ_OFFSET(shmq_counters_shm, expired, 88);
SHMQ_OFFSET(shmq_counters_shm, dropped, 96);
SHMQ_OFFSET(shmq_counters_shm, dead_lettered, 48);
SHMQ_OFFSET(shmq_counters_shm, purged, 56);
SHMQ_OFFSET(shmq_counters_shm, died, 64);
SHMQ_OFFSET(shmq_counters_shm, moving, 72);
SHMQ_OFFSET(shmq_counters_shm, waiting, 76);
SHMQ_OFFSET(shmq_counters_shm, changing, 80);

/* One page per row, made at its first attach and kept with the row.
 *
 *   0      pins     its process; reaper                         block sweep, reaper
 *   4096   chunks   holder of the structure lock, once each     statistics, release of deleted queues
 *   4608   receipts its process; who takes out what its put waits for   its process, see receipt.h
 *   5120   reserved 0 */
typedef struct shmq_process_page_shm {
    shmq_pin_shm pins[SHMQ_PINS];
    shmq_a64 chunks[SHMQ_COUNTER_CHUNKS]; /* offset of the page with the counters of 64 queues; 0: none yet */
    shmq_a64 receipts[SHMQ_RECEIPTS];
    uint8_t reserved[SHMQ_PAGE_BYTES - SHMQ_PINS * 16 - SHMQ_COUNTER_CHUNKS * 8 - SHMQ_RECEIPTS * 8];
} shmq_process_page_shm;
SHMQ_SIZE(shmq_process_page_shm, 8192);
SHMQ_OFFSET(shmq_process_page_shm, pins, 0);
SHMQ_OFFSET(shmq_process_page_shm, chunks, 4096);
SHMQ_OFFSET(shmq_process_page_shm, receipts, 4608);

#endif
