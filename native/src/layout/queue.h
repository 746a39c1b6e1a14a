/* A queue's page: its name, its settings, its ring's words, its sleepers.
 *
 *   offset  part                  written by                          read by, and a stale read costs
 *   0       identity, name        creator, before the entry is LIVE   all; constant
 *   384     settings of the core  holder of the structure lock        all; the old value applies once more
 *   768     state                 shutdown, reopen, delete            every call; one more call succeeds
 *   780     levels, level_rings   creator                             copied into each handle
 *   792     terms, opened         holder of the structure lock        every take; once more by the old terms
 *   896     ring constants        creator                             copied into each handle
 *   1024    tail                  anyone, CAS t -> t+1                producers; one extra help
 *   1032    laid                  holder of the structure lock        producers; one look more, under the lock
 *   1152    head, floor           plain consumers, releasers; scans   takers; a longer scan
 *   1280    epoch                 releasers, add                      takers, twice a get
 *   1408    cells                 the releaser of that epoch          takers that slept through a release
 *   1920    full, waiters         section "blocked producers"         every transition to FREE
 *   1936    due                   who makes something due, by CAS     housekeeping; an entry that is due a tick late
 *   1952    waiting words         holder of the mover's lock; waiting_due, by CAS    housekeeping, counts; a tick late
 *   2048    flow words            holder of the mover's lock              takers, twice a get; they trust them as a slot's word
 *   2176    sleepers              bit operations                      notify
 *   2688    consumer chunks       holder of the structure lock        row look-up
 *   2816    count, weight, line   CAS, queues with a limit only       put
 *   2944    settings              holder of the structure lock        all; the old value applies once more
 *   3776    unfinished, missed    holder of the mover's lock; anyone       whoever gets that lock; its holder
 *   3784    unswept               holder of the mover's lock              the next flush; it deletes rows once more
 *   3788    turns_begun           holder of the mover's lock              who finds that lock taken; a try more
 *   3792    chances               anyone, add                             starved takers, whoever wakes them; a look more
 *   3840    alerts                who tells them, by CAS; see alert.h     who looks; something told late, or twice
 *   3904    selectors             holder of the structure lock        who wakes; see row_selector.h
 *   4096    group_table           CAS; see group.h                    takers of a queue with groups
 *
 * head: epoch 20 bits (44 to 63), position 44 bits (0 to 43), extended against the handle's last position, or the tail.
 * cell: epoch's low 20 bits (44 to 63), released position (0 to 43). */
#ifndef SHMQ_LAYOUT_QUEUE_H
#define SHMQ_LAYOUT_QUEUE_H

#include "layout/settings.h"

#define SHMQ_POSITION_BITS 44u
#define SHMQ_POSITION_MASK ((UINT64_C(1) << SHMQ_POSITION_BITS) - 1)
#define SHMQ_EPOCH_MASK ((UINT64_C(1) << 20) - 1)

/* Further behind the tail 44 bits of a position are kept nowhere: they would soon say another one. */
#define SHMQ_POSITION_FAR (INT64_C(1) << (SHMQ_POSITION_BITS - 2))

/* The position whose 44 bits a word has: of all such the nearest one. */
static inline uint64_t shmq_position_near(uint64_t near, uint64_t word) {
    return near + (uint64_t)((int64_t)((word - near) << (64 - SHMQ_POSITION_BITS)) >> (64 - SHMQ_POSITION_BITS));
}

enum shmq_queue_state { SHMQ_QUEUE_LIVE = 1, SHMQ_QUEUE_DELETED = 2 };
enum shmq_shut_down { SHMQ_OPEN = 0, SHMQ_DRAINING = 1, SHMQ_STOPPED = 2 };
/* RESIDENT: of max_memory, what exceeds it flows to disk. */
enum shmq_limit { SHMQ_LIMITED_COUNT = 1, SHMQ_LIMITED_BYTES = 2, SHMQ_LIMITED_RESIDENT = 4 };
#define SHMQ_WEIGHED (SHMQ_LIMITED_BYTES | SHMQ_LIMITED_RESIDENT)
#define SHMQ_COUNT_MASK UINT64_C(0xffffffff)
#define SHMQ_WEIGHT_MASK ((UINT64_C(1) << 40) - 1)
/* The ring that producers put into; the one into which entries come back from disk (flow.h). */
enum shmq_ring_kind { SHMQ_RING_BACK = 0, SHMQ_RING_FRONT = 1 };

#define SHMQ_LAID_ALL UINT64_MAX

typedef struct shmq_ring_shm {
    /* constants */
    uint32_t kind;
    uint32_t shift; /* of the number of slots */
    uint32_t slot_size;
    uint32_t features;
    uint64_t slots;   /* offset */
    shmq_a64 cold;    /* offset of the cold records; 0: no message has needed one yet */
    uint64_t carried; /* offset of a bitmap, one bit a slot: superset of the slots that carry an entry */
    uint64_t run_granules;
    shmq_a64 back;        /* 0 */
    shmq_a64 aside;       /* 0 */
    shmq_a64 level_shift; /* 0 */
    uint64_t run;         /* offset of the run that all levels lie in, of the first level only */
    uint64_t constants_pad[6];

    shmq_a64 tail;
    shmq_a64 laid; /* slots that have memory: positions from here on want more first; SHMQ_LAID_ALL: all have */
    uint8_t tail_pad[112];

    shmq_a64 head;
    shmq_a64 floor; /* everything below is settled or carried; raised by scans */
    uint8_t head_pad[112];

    shmq_a64 epoch;
    uint8_t epoch_pad[120];

    shmq_a64 cells[SHMQ_CELLS];

    shmq_a32 full;    /* futex of blocked producers */
    uint32_t reserved_1028;
    shmq_a32 drained; /* futex of join() */
    shmq_a32 joiners;
    shmq_a64 due; /* when something is due in this ring; see due.h */
    shmq_a64 waiters; /* of blocked producers: version 32 | threads 32; see waiters.h */

    /* Of a back ring: its waiting rows, see waiting.h. [0] */
    shmq_a64 waiting,
        waiting_bytes; /* how many entries became waiting rows, which are the keys below; bytes of these */
    shmq_a64 came, came_bytes; /* how many of these have come back, or are gone */
    shmq_a64 waiting_low; /* keys below it are gone */
    shmq_a64 waiting_due; /* none of them is due before it; 0: there is none. As `due`, without its bit 0 */
    shmq_a64 waiting_from; /* 1 + `waiting` at the begin of a turn that writes such rows; 0: no turn does */
    shmq_a64 waiting_to_bytes; /* `waiting_bytes` at its end */
    shmq_a64 waiting_freed, waiting_freed_bytes; /* how many take no room on disk any more: their files have gone */
    uint8_t full_pad[16];

    /* Of a back ring. The second name of a word is that of its level's front ring: there it is about rows that were fetched, that is,
     * came in by themselves. */
    shmq_a64 flow; /* P 63 | 1 FLOWED; 0: never flowed. See flow.h [0] */
    union {
        shmq_a64 low;         /* rows are exactly the keys in [low, P) */
        shmq_a64 fetched_end; /* behind the position of the last one that was fetched; 0: none is left there */
    };
    union {
        shmq_a64 flushed; /* how many entries became rows */
        shmq_a64 fetched; /* how many came in by themselves */
    };
    union {
        shmq_a64 pulled; /* how many of `flushed` left again */
        shmq_a64 passed; /* how many of `fetched` the level's `low` has passed */
    };
    shmq_a64 flushing_at, flushing_count; /* which P comes with which `flushed` ... */
    union {
        shmq_a64 flushed_bytes; /* headers and bodies of `flushed` */
        shmq_a64 fetched_bytes; /* ... of `fetched` */
    };
    union {
        shmq_a64 pulled_bytes; /* ... of `pulled` */
        shmq_a64 passed_bytes; /* ... of `passed` */
    };
    union {
        shmq_a64 flushing_bytes; /* ... which P comes with which `flushed_bytes` */
        shmq_a64 writing_bytes;  /* of a file that is being written, or that a dead purger left; 0: none */
    };
    shmq_a64 dropping_at; /* rows below this place are settled; 0: they were, and the words say so */
    shmq_a64 dropping_count, dropping_bytes; /* `pulled` and `pulled_bytes` behind them; `passed` and `passed_bytes` */
    shmq_a64 rows_due; /* the life of no row ends before it; 0: that of none ends. As `due`, without its bit 0 */
    shmq_a64 tried; /* no row at or above this place has failed or died with a consumer; 0: none has [0] */
    shmq_a64 freed; /* how many of `pulled` take no room on disk any more: their files have gone */
    shmq_a64 freed_bytes;
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
SHMQ_OFFSET(shmq_ring_shm, run, 72);
SHMQ_OFFSET(shmq_ring_shm, tail, 128);
SHMQ_OFFSET(shmq_ring_shm, laid, 136);
SHMQ_OFFSET(shmq_ring_shm, head, 256);
SHMQ_OFFSET(shmq_ring_shm, floor, 264);
SHMQ_OFFSET(shmq_ring_shm, epoch, 384);
SHMQ_OFFSET(shmq_ring_shm, cells, 512);
SHMQ_OFFSET(shmq_ring_shm, full, 1024);
SHMQ_OFFSET(shmq_ring_shm, drained, 1032);
SHMQ_OFFSET(shmq_ring_shm, joiners, 1036);
SHMQ_OFFSET(shmq_ring_shm, due, 1040);
SHMQ_OFFSET(shmq_ring_shm, waiters, 1048);
SHMQ_OFFSET(shmq_ring_shm, waiting, 1056);
SHMQ_OFFSET(shmq_ring_shm, waiting_bytes, 1064);
SHMQ_OFFSET(shmq_ring_shm, came, 1072);
SHMQ_OFFSET(shmq_ring_shm, came_bytes, 1080);
SHMQ_OFFSET(shmq_ring_shm, waiting_low, 1088);
SHMQ_OFFSET(shmq_ring_shm, waiting_due, 1096);
SHMQ_OFFSET(shmq_ring_shm, waiting_from, 1104);
SHMQ_OFFSET(shmq_ring_shm, waiting_to_bytes, 1112);
SHMQ_OFFSET(shmq_ring_shm, waiting_freed, 1120);
SHMQ_OFFSET(shmq_ring_shm, waiting_freed_bytes, 1128);
SHMQ_OFFSET(shmq_ring_shm, flow, 1152);
SHMQ_OFFSET(shmq_ring_shm, low, 1160);
SHMQ_OFFSET(shmq_ring_shm, fetched_end, 1160);
SHMQ_OFFSET(shmq_ring_shm, flushed, 1168);
SHMQ_OFFSET(shmq_ring_shm, fetched, 1168);
SHMQ_OFFSET(shmq_ring_shm, pulled, 1176);
SHMQ_OFFSET(shmq_ring_shm, passed, 1176);
SHMQ_OFFSET(shmq_ring_shm, flushing_at, 1184);
SHMQ_OFFSET(shmq_ring_shm, flushing_count, 1192);
SHMQ_OFFSET(shmq_ring_shm, flushed_bytes, 1200);
SHMQ_OFFSET(shmq_ring_shm, fetched_bytes, 1200);
SHMQ_OFFSET(shmq_ring_shm, pulled_bytes, 1208);
SHMQ_OFFSET(shmq_ring_shm, passed_bytes, 1208);
SHMQ_OFFSET(shmq_ring_shm, flushing_bytes, 1216);
SHMQ_OFFSET(shmq_ring_shm, writing_bytes, 1216);
SHMQ_OFFSET(shmq_ring_shm, dropping_at, 1224);
SHMQ_OFFSET(shmq_ring_shm, dropping_count, 1232);
SHMQ_OFFSET(shmq_ring_shm, dropping_bytes, 1240);
SHMQ_OFFSET(shmq_ring_shm, rows_due, 1248);
SHMQ_OFFSET(shmq_ring_shm, tried, 1256);
SHMQ_OFFSET(shmq_ring_shm, freed, 1264);
SHMQ_OFFSET(shmq_ring_shm, freed_bytes, 1272);

/* 64 consumer rows.
 *
 *   0   idle     sleepers set, whoever notifies clears, by bit operations   notify, before each wake
 *   8   browse   likewise, all at once                                      notify
 *   16  want     owners of rows, by bit operations, while priorities matter  whoever has found an entry
 *   24  used     holder of the structure lock                               reaper, notify after a death
 *
 * idle: sleeps or is about to, and no notifier has claimed it - the one truth of which consumers are to be woken.
 * browse: the same for browsers, which are all woken; bit 0 of the first 64, of the row that nobody has: a consumer of
 * several queues asks for news (news.h). want: inside a receive, see ranks.h. */
#define SHMQ_NEWS_BIT UINT64_C(1)
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

/* One slot of the table of message groups; the words are explained in group.h.
 *
 *   0   owner    takers, and whoever frees for the dead, by CAS   takers; a stale one costs a failed CAS
 *   8   refused  takers that pass an entry by, whoever frees, by CAS   whoever frees; a stale one costs a failed CAS */
typedef struct shmq_group_shm {
    shmq_a64 owner;
    shmq_a64 refused;
} shmq_group_shm;
SHMQ_SIZE(shmq_group_shm, 16);
SHMQ_OFFSET(shmq_group_shm, owner, 0);
SHMQ_OFFSET(shmq_group_shm, refused, 8);

/* The alerts that were told of a queue, and when; see alert.h. Times are monotonic, ns; 0: never.
 *
 *   0   looked    who looks at its counts next, by CAS        whoever might
 *   8   told      who tells, by CAS, one for each enum shmq_alert    whoever might tell
 *   40  largest   who puts a message beyond the threshold; 0 by who tells     who tells
 *   48  flow      who tells, by CAS: time 63 | 1, nobody has told yet that it recovered      whoever might tell
 *   56  flushed   who told last: `flushed` of all levels then       whoever might tell; told once more */
enum shmq_alert { SHMQ_ALERT_MESSAGES, SHMQ_ALERT_BYTES, SHMQ_ALERT_MESSAGE_BYTES, SHMQ_ALERT_AGE, SHMQ_ALERT_KINDS };
typedef struct shmq_alerts_shm {
    shmq_a64 looked;
    shmq_a64 told[SHMQ_ALERT_KINDS];
    shmq_a64 largest;
    shmq_a64 flow;
    shmq_a64 flushed;
} shmq_alerts_shm;
SHMQ_SIZE(shmq_alerts_shm, 64);
SHMQ_OFFSET(shmq_alerts_shm, looked, 0);
SHMQ_OFFSET(shmq_alerts_shm, told, 8);
SHMQ_OFFSET(shmq_alerts_shm, largest, 40);
SHMQ_OFFSET(shmq_alerts_shm, flow, 48);
SHMQ_OFFSET(shmq_alerts_shm, flushed, 56);

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
    shmq_a32 max_attempts;
    shmq_a32 max_deaths;
    shmq_a32 checksum;
    shmq_a32 temporary;
    uint32_t temporary_row; /* goes with this process row ... */
    uint32_t temporary_generation;
    shmq_a32 limited; /* bits of enum shmq_limit: what is counted; set before its limit, cleared after it */
    uint32_t setters_reserved[7];
    uint8_t settings_pad[312];

    shmq_a32 state;
    shmq_a32 shut_down;
    shmq_a32 chunk_count; /* chunks of consumer rows that were ever used: how far a notifier looks */
    uint32_t levels; /* of priority, 1 to 10; constant */
    uint64_t
        level_rings; /* offset of the other levels' rings and then the front rings; the first is `ring`. Constant */
    shmq_a32 terms; /* bits of enum shmq_term: what matters for which consumers may take, see ranks.h */
    uint32_t terms_pad;
    shmq_a64 opened; /* consumers ever opened: the order of their rows */
    uint8_t state_pad[88];

    shmq_ring_shm ring;

    shmq_sleepers_shm sleepers[SHMQ_CHUNKS];
    shmq_a64 chunks[SHMQ_CHUNKS]; /* offset of a page with 64 consumer rows; 0: none yet */
    uint8_t chunks_pad[88];

    shmq_a64 count; /* version 32 | entries 32, in memory and on disk: what maxsize limits; see count.c */
    shmq_a32 recount_due; /* 0: the count is right; 1: a process asked for a recount; 2: one counts */
    uint32_t count_reserved;
    shmq_a64 weight; /* version 24 | bytes 40, in memory and on disk: what max_bytes limits */
    shmq_a64
        line; /* of blocked producers: number of the next ticket 32 | of the first one that may be held 32; see line.h */
    shmq_a64 resident; /* version 24 | bytes 40: of those in memory, what max_memory limits */
    uint8_t count_pad[88];

    shmq_settings_shm settings;

    shmq_a32 unfinished; /* pid of the last mover; 0: its turn has ended */
    shmq_a32 missed; /* another process found the mover's lock taken */
    shmq_a32
        unswept; /* a bit a level: rows that are none may be there, of a turn that did not end, or of a purge; another: what waited came in unmarked */
    shmq_a32 turns_begun; /* by movers, ever: whoever finds the lock taken sees whether it is by the same turn */
    shmq_a64
        chances; /* how often starved takers may have got on: a slot of a front ring is free, rows are gone, the mover's lock is */
    uint8_t chances_pad[3840 - 3800];
    shmq_alerts_shm alerts;
    shmq_a64 selectors[SHMQ_CHUNKS]; /* offset of a page with the selectors of 64 consumer rows; 0: none yet */
    uint8_t reserved[4096 - 4040];
    shmq_group_shm group_table[SHMQ_GROUPS];
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
SHMQ_OFFSET(shmq_queue_shm, max_attempts, 400);
SHMQ_OFFSET(shmq_queue_shm, max_deaths, 404);
SHMQ_OFFSET(shmq_queue_shm, checksum, 408);
SHMQ_OFFSET(shmq_queue_shm, temporary, 412);
SHMQ_OFFSET(shmq_queue_shm, temporary_row, 416);
SHMQ_OFFSET(shmq_queue_shm, temporary_generation, 420);
SHMQ_OFFSET(shmq_queue_shm, state, 768);
SHMQ_OFFSET(shmq_queue_shm, shut_down, 772);
SHMQ_OFFSET(shmq_queue_shm, chunk_count, 776);
SHMQ_OFFSET(shmq_queue_shm, levels, 780);
SHMQ_OFFSET(shmq_queue_shm, level_rings, 784);
SHMQ_OFFSET(shmq_queue_shm, terms, 792);
SHMQ_OFFSET(shmq_queue_shm, opened, 800);
SHMQ_OFFSET(shmq_queue_shm, ring, 896);
SHMQ_OFFSET(shmq_queue_shm, sleepers, 2176);
SHMQ_OFFSET(shmq_queue_shm, chunks, 2720);
SHMQ_OFFSET(shmq_queue_shm, count, 2944);
SHMQ_OFFSET(shmq_queue_shm, limited, 424);
SHMQ_OFFSET(shmq_queue_shm, recount_due, 2952);
SHMQ_OFFSET(shmq_queue_shm, weight, 2960);
SHMQ_OFFSET(shmq_queue_shm, line, 2968);
SHMQ_OFFSET(shmq_queue_shm, resident, 2976);
SHMQ_OFFSET(shmq_queue_shm, settings, 3072);
SHMQ_OFFSET(shmq_queue_shm, unfinished, 3776);
SHMQ_OFFSET(shmq_queue_shm, missed, 3780);
SHMQ_OFFSET(shmq_queue_shm, unswept, 3784);
SHMQ_OFFSET(shmq_queue_shm, turns_begun, 3788);
SHMQ_OFFSET(shmq_queue_shm, chances, 3792);
SHMQ_OFFSET(shmq_queue_shm, alerts, 3840);
SHMQ_OFFSET(shmq_queue_shm, selectors, 3904);
SHMQ_OFFSET(shmq_queue_shm, group_table, 4096);

/* A ticket of a blocked producer. 256 of them lie at the beginning of the queue's run.
 *
 *   0   word    its holder, by CAS from FREE; who calls, passes or repairs it      who is served, and whom to wake
 *   8   wake    +1 by whoever has called it                                        its holder sleeps on it
 *   12  bytes  its holder, before it looks: what it wants; SHMQ_WANTS_ALL     who comes later: what is left to it
 *
 * word: state 8 | process row 16 | reserved 8 | lap 32, which use of this ticket it is. CALLED: somebody owes a wake, or has
 * given it; the holder has not looked since. PASSED: it has not looked for as long as the patience, and others go before it. */
#define SHMQ_TICKETS 256u
enum shmq_ticket_state {
    SHMQ_TICKET_FREE = 0,
    SHMQ_TICKET_WAITING = 1,
    SHMQ_TICKET_CALLED = 2,
    SHMQ_TICKET_PASSED = 3
};
typedef struct shmq_ticket_shm {
    shmq_a64 word;
    shmq_a32 wake;
    shmq_a32 bytes;
} shmq_ticket_shm;
SHMQ_SIZE(shmq_ticket_shm, 16);
SHMQ_OFFSET(shmq_ticket_shm, word, 0);
SHMQ_OFFSET(shmq_ticket_shm, wake, 8);
SHMQ_OFFSET(shmq_ticket_shm, bytes, 12);
#define SHMQ_WANTS_ALL UINT32_MAX /* of several messages: whatever there is */
#define SHMQ_LINE_BYTES (SHMQ_TICKETS * sizeof(shmq_ticket_shm))

static inline uint32_t shmq_ticket_state(uint64_t word) { return (uint32_t)word & 0xffu; }
static inline uint32_t shmq_ticket_row(uint64_t word) { return (uint32_t)(word >> 8) & 0xffffu; }
static inline uint32_t shmq_ticket_lap(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint64_t shmq_ticket_word(uint32_t lap, uint32_t row, uint32_t state) {
    return (uint64_t)lap << 32 | (uint64_t)row << 8 | state;
}

/* A consumer row: a subscription that may own entries, or just a thread that waits (getter, browser).
 *
 *   0   word    state 8 | process row 24 | generation 32; CAS, under the structure lock but for closing
 *   8   sleeps_on  0: sleeps on its own wake word; else the offset of a word of its process row, on which it waits for several
 *               queues at once. Its owner, before it announces itself; whoever wakes it: a stale one wakes nobody or one
 *               more
 *   16  wake    futex word, +1 by whoever claims the idle bit
 *   20  sleeps  1 while its thread is in, or about to enter, the kernel
 *   24  kind    getter, consumer, browser
 *   28  implicit  1: its process did not ask for it, queue.receive() did; opener, before LIVE; who would be exclusive
 *   32  progress  who takes some entries only: the version of the queue (take/scan.c) of which it has looked at everything
 *                 and found nothing; with SHMQ_STARVED: or nothing that it could have, see sleepers.h; 0: may have work whatever
 *                 the version. Its sleeper; read by whoever wakes: a stale one costs a wake
 *   40  priority, 44 exclusive, 56 order  opener, before LIVE; who works out the terms, who is outranked
 *   48  live    its place among the live ones (enum shmq_live_state): holder of the structure lock, and its owner, by CAS, from
 *               OFFERED to TAKEN; its owner: a stale one costs a look more or less
 *   52  rounds  +1 at each step of its owner, while priorities matter: a receive, a look, a sleep; and at each look of one
 *                 that stands by; who waits for it
 *   64  privileged  1: counted in `privileges` of its process; its process alone
 *   72  awaited  round 24 | time 40, in 2^20 ns: since when others have waited for it, in that round; 0: nobody has.
 *                Those that wait, by CAS; those that wait or wake: a stale one makes it waited for a little longer
 *   68  selector_bytes  of the program in the page of `selectors`; 0: none is there; opener, before LIVE; who wakes
 *   80  looked   epoch 20 | position 44, as `head`: as of that epoch nothing before that position is for it; 0: it has not said.
 *                Its sleeper, before `progress`; who looks for it, by CAS; who wakes: a stale one costs a wake */
/* NONE: it stands by. OFFERED: a place is its own as soon as it makes a step; if it makes none, others are offered it. */
enum shmq_live_state { SHMQ_LIVE_NONE = 0, SHMQ_LIVE_TAKEN = 1, SHMQ_LIVE_OFFERED = 2 };
enum shmq_consumer_kind { SHMQ_GETTER = 0, SHMQ_CONSUMER = 1, SHMQ_BROWSER = 2 };
typedef struct shmq_consumer_shm {
    shmq_a64 word;
    shmq_a64 sleeps_on;
    shmq_a32 wake;
    shmq_a32 sleeps;
    shmq_a32 kind;
    shmq_a32 implicit;
    shmq_a64 progress;
    shmq_a32 priority; /* as int32 */
    shmq_a32 exclusive;
    shmq_a32 live;
    shmq_a32 rounds;
    shmq_a64 order;
    shmq_a32 privileged;
    shmq_a32 selector_bytes;
    shmq_a64 awaited;
    shmq_a64 looked;
    uint64_t reserved[5];
} shmq_consumer_shm;
SHMQ_SIZE(shmq_consumer_shm, 128);
SHMQ_OFFSET(shmq_consumer_shm, word, 0);
SHMQ_OFFSET(shmq_consumer_shm, sleeps_on, 8);
SHMQ_OFFSET(shmq_consumer_shm, wake, 16);
SHMQ_OFFSET(shmq_consumer_shm, sleeps, 20);
SHMQ_OFFSET(shmq_consumer_shm, kind, 24);
SHMQ_OFFSET(shmq_consumer_shm, implicit, 28);
SHMQ_OFFSET(shmq_consumer_shm, progress, 32);
SHMQ_OFFSET(shmq_consumer_shm, priority, 40);
SHMQ_OFFSET(shmq_consumer_shm, exclusive, 44);
SHMQ_OFFSET(shmq_consumer_shm, live, 48);
SHMQ_OFFSET(shmq_consumer_shm, rounds, 52);
SHMQ_OFFSET(shmq_consumer_shm, order, 56);
SHMQ_OFFSET(shmq_consumer_shm, privileged, 64);
SHMQ_OFFSET(shmq_consumer_shm, selector_bytes, 68);
SHMQ_OFFSET(shmq_consumer_shm, awaited, 72);
SHMQ_OFFSET(shmq_consumer_shm, looked, 80);

#endif
