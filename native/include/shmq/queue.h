/* A queue's page: who it is, its settings, its ring's words, who sleeps on it.
 *
 *   offset  part                  written by                          read by, and a stale read costs
 *   0       identity, name        creator, before the entry is LIVE   all; constant
 *   384     settings              holder of the structure lock        all; the old value applies once more
 *   768     state                 shutdown, reopen, delete            every call; one more call succeeds
 *   896     ring constants        creator                             copied into each handle
 *   1024    tail                  anyone, CAS t -> t+1                producers; one extra help
 *   1152    head, floor           plain consumers, releasers; scans   walkers; a longer walk
 *   1280    epoch                 releasers, add                      walkers, twice a get
 *   1408    cells                 the releaser of that epoch          walkers that slept through a release
 *   1920    full, waiters         section "blocked producers"         every transition to FREE
 *   2048    flow words            0 in this stage
 *   2176    sleepers              bit operations                      notify
 *   2688    consumer chunks       holder of the structure lock        row look-up
 *   2816    count                 CAS, queues with a maxsize only     put
 *
 * head: epoch 20 bits (44 to 63), position 44 bits (0 to 43), extended against the handle's last position.
 * cell: epoch's low 20 bits (44 to 63), released position (0 to 43). */
#ifndef SHMQ_QUEUE_H
#define SHMQ_QUEUE_H

#include "shmq/abi.h"
#include "shmq/atomic.h"

#define SHMQ_POSITION_BITS 44u
#define SHMQ_POSITION_MASK ((UINT64_C(1) << SHMQ_POSITION_BITS) - 1)
#define SHMQ_EPOCH_MASK ((UINT64_C(1) << 20) - 1)

enum shmq_queue_state { SHMQ_QUEUE_LIVE = 1, SHMQ_QUEUE_DELETED = 2 };
enum shmq_shut_down { SHMQ_OPEN = 0, SHMQ_DRAINING = 1, SHMQ_STOPPED = 2 };
enum shmq_ring_kind { SHMQ_RING_FRONT = 0, SHMQ_RING_BACK = 1, SHMQ_RING_ASIDE = 2 };

/* Which settings somebody has given: bit in settings.given, index in settings.given_by. */
enum shmq_setting {
    SHMQ_SET_MAXSIZE = 0,
    SHMQ_SET_SLOT_SIZE,
    SHMQ_SET_TEMPORARY,
    SHMQ_SET_MAX_DELIVERIES,
    SHMQ_SET_MAX_DEATHS,
    SHMQ_SET_CHECKSUM,
    SHMQ_SET_DEAD_LETTER,
    SHMQ_SETTINGS
};

typedef struct shmq_ring_shm {
    /* constants */
    uint32_t kind;
    uint32_t shift; /* of the number of slots */
    uint32_t slot_size;
    uint32_t features;
    uint64_t slots;   /* offset */
    uint64_t cold;    /* 0 */
    uint64_t carried; /* offset of a bitmap, one bit a slot: superset of the slots that carry an entry */
    uint64_t run_granules;
    shmq_a64 back;        /* 0 */
    shmq_a64 aside;       /* 0 */
    shmq_a64 level_shift; /* 0 */
    uint64_t constants_pad[7];

    shmq_a64 tail;
    uint8_t tail_pad[120];

    shmq_a64 head;
    shmq_a64 floor; /* everything below is settled or carried; raised by scans */
    uint8_t head_pad[112];

    shmq_a64 epoch;
    uint8_t epoch_pad[120];

    shmq_a64 cells[SHMQ_CELLS];

    shmq_a32 full;    /* futex of blocked producers */
    shmq_a32 waiters; /* of them */
    shmq_a32 drained; /* futex of join() */
    shmq_a32 joiners;
    uint8_t full_pad[112];

    shmq_a64 level_delta, level_inhaled, level_backed, level_moved, level_aside;
    uint8_t flow_pad[88];
} shmq_ring_shm;

SHMQ_SIZE(shmq_ring_shm, 1280);
SHMQ_OFFSET(shmq_ring_shm, kind, 0);
SHMQ_OFFSET(shmq_ring_shm, shift, 4);
SHMQ_OFFSET(shmq_ring_shm, slot_size, 8);
SHMQ_OFFSET(shmq_ring_shm, features, 12);
SHMQ_OFFSET(shmq_ring_shm, slots, 16);
SHMQ_OFFSET(shmq_ring_shm, cold, 24);
SHMQ_OFFSET(shmq_ring_shm, carried, 32);
SHMQ_OFFSET(shmq_ring_shm, run_granules, 40);
SHMQ_OFFSET(shmq_ring_shm, back, 48);
SHMQ_OFFSET(shmq_ring_shm, aside, 56);
SHMQ_OFFSET(shmq_ring_shm, level_shift, 64);
SHMQ_OFFSET(shmq_ring_shm, tail, 128);
SHMQ_OFFSET(shmq_ring_shm, head, 256);
SHMQ_OFFSET(shmq_ring_shm, floor, 264);
SHMQ_OFFSET(shmq_ring_shm, epoch, 384);
SHMQ_OFFSET(shmq_ring_shm, cells, 512);
SHMQ_OFFSET(shmq_ring_shm, full, 1024);
SHMQ_OFFSET(shmq_ring_shm, waiters, 1028);
SHMQ_OFFSET(shmq_ring_shm, drained, 1032);
SHMQ_OFFSET(shmq_ring_shm, joiners, 1036);
SHMQ_OFFSET(shmq_ring_shm, level_delta, 1152);

/* 64 consumer rows.
 *
 *   0   idle     sleepers set, whoever notifies clears, by bit operations   notify, before each wake
 *   8   browse   likewise, all at once                                      notify
 *   16  want     0 in this stage
 *   24  used     holder of the structure lock                               reaper, notify after a death
 *
 * idle: sleeps or is about to, and nobody has claimed it - the one truth of who is to be woken.
 * browse: the same for browsers, who are all woken. want: consumer priorities, a later stage. */
typedef struct shmq_sleepers_shm {
    shmq_a64 idle;
    shmq_a64 browse;
    shmq_a64 want;
    shmq_a64 used; /* rows in use; set and cleared under the structure lock */
} shmq_sleepers_shm;
SHMQ_SIZE(shmq_sleepers_shm, 32);
SHMQ_OFFSET(shmq_sleepers_shm, idle, 0);
SHMQ_OFFSET(shmq_sleepers_shm, browse, 8);
SHMQ_OFFSET(shmq_sleepers_shm, want, 16);
SHMQ_OFFSET(shmq_sleepers_shm, used, 24);

#define SHMQ_CHUNKS (SHMQ_CONSUMER_ROWS / SHMQ_ROWS_A_CHUNK)

typedef struct shmq_queue_shm {
    uint32_t index;
    uint32_t incarnation;
    uint32_t name_len;
    uint32_t created_by; /* pid */
    uint64_t created_ns; /* wall clock */
    uint8_t identity_pad[104];
    char name[SHMQ_NAME_MAX];
    uint8_t name_pad[56];

    shmq_a64 given; /* bit per enum shmq_setting */
    shmq_a64 maxsize;
    shmq_a32 max_deliveries;
    shmq_a32 max_deaths;
    shmq_a32 checksum;
    shmq_a32 temporary;
    uint32_t temporary_row; /* goes with this process row ... */
    uint32_t temporary_generation;
    uint32_t given_by[8]; /* pid of who gave it first */
    uint32_t dead_letter_len;
    uint32_t settings_reserved;
    char dead_letter[SHMQ_NAME_MAX];
    uint8_t settings_pad[104];

    shmq_a32 state;
    shmq_a32 shut_down;
    shmq_a32 groups; /* chunks of consumer rows that were ever used: how far a notifier looks */
    uint8_t state_pad[116];

    shmq_ring_shm ring;

    shmq_sleepers_shm sleepers[SHMQ_CHUNKS];
    shmq_a64 chunks[SHMQ_CHUNKS]; /* offset of a page with 64 consumer rows; 0: none yet */

    shmq_a64 count; /* version 32 | entries 32: what maxsize limits; see count.c */
    shmq_a32 recount_due; /* 0: the count is right; 1: somebody asked for a recount; 2: somebody counts */
    uint32_t count_reserved;
    uint8_t count_pad[112];

    uint8_t reserved[SHMQ_PAGE_BYTES - 2944];
} shmq_queue_shm;

SHMQ_SIZE(shmq_queue_shm, 8192);
SHMQ_OFFSET(shmq_queue_shm, index, 0);
SHMQ_OFFSET(shmq_queue_shm, incarnation, 4);
SHMQ_OFFSET(shmq_queue_shm, name_len, 8);
SHMQ_OFFSET(shmq_queue_shm, created_by, 12);
SHMQ_OFFSET(shmq_queue_shm, created_ns, 16);
SHMQ_OFFSET(shmq_queue_shm, name, 128);
SHMQ_OFFSET(shmq_queue_shm, given, 384);
SHMQ_OFFSET(shmq_queue_shm, maxsize, 392);
SHMQ_OFFSET(shmq_queue_shm, max_deliveries, 400);
SHMQ_OFFSET(shmq_queue_shm, max_deaths, 404);
SHMQ_OFFSET(shmq_queue_shm, checksum, 408);
SHMQ_OFFSET(shmq_queue_shm, temporary, 412);
SHMQ_OFFSET(shmq_queue_shm, temporary_row, 416);
SHMQ_OFFSET(shmq_queue_shm, temporary_generation, 420);
SHMQ_OFFSET(shmq_queue_shm, given_by, 424);
SHMQ_OFFSET(shmq_queue_shm, dead_letter_len, 456);
SHMQ_OFFSET(shmq_queue_shm, dead_letter, 464);
SHMQ_OFFSET(shmq_queue_shm, state, 768);
SHMQ_OFFSET(shmq_queue_shm, shut_down, 772);
SHMQ_OFFSET(shmq_queue_shm, groups, 776);
SHMQ_OFFSET(shmq_queue_shm, ring, 896);
SHMQ_OFFSET(shmq_queue_shm, sleepers, 2176);
SHMQ_OFFSET(shmq_queue_shm, chunks, 2688);
SHMQ_OFFSET(shmq_queue_shm, count, 2816);
SHMQ_OFFSET(shmq_queue_shm, recount_due, 2824);

/* A consumer row: a subscription that may own entries, or just a thread that waits (getter, browser).
 *
 *   0   word    state 8 | process row 24 | generation 32; CAS, under the structure lock but for closing
 *   8   target  0: sleeps on its own wake word; else offset of the target that it shares (a later stage)
 *   16  wake    futex word, +1 by whoever claims the idle bit
 *   20  sleeps  1 while its thread is in, or about to enter, the kernel
 *   24  kind    getter, consumer, browser
 *   28  unsettled  people
 *   32  progress  0 in this stage */
enum shmq_consumer_kind { SHMQ_GETTER = 0, SHMQ_CONSUMER = 1, SHMQ_BROWSER = 2 };
typedef struct shmq_consumer_shm {
    shmq_a64 word;
    uint64_t target;
    shmq_a32 wake;
    shmq_a32 sleeps;
    shmq_a32 kind;
    shmq_a32 unsettled;
    uint64_t progress;
    uint64_t reserved[11];
} shmq_consumer_shm;
SHMQ_SIZE(shmq_consumer_shm, 128);
SHMQ_OFFSET(shmq_consumer_shm, word, 0);
SHMQ_OFFSET(shmq_consumer_shm, target, 8);
SHMQ_OFFSET(shmq_consumer_shm, wake, 16);
SHMQ_OFFSET(shmq_consumer_shm, sleeps, 20);
SHMQ_OFFSET(shmq_consumer_shm, kind, 24);
SHMQ_OFFSET(shmq_consumer_shm, unsettled, 28);
SHMQ_OFFSET(shmq_consumer_shm, progress, 32);

#endif
