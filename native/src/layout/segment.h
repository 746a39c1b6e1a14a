/* The segment: one POSIX shared-memory object per broker, mapped whole by every member.
 *
 *   region           offset              bytes                      reserved (fallocate)
 *   header           0                   8192                       at creation
 *   process table    processes           640 x SHMQ_PROCESS_ROWS    at creation
 *   queue directory  directory           64 x SHMQ_QUEUES           at creation
 *   granule map      granules            8 x granule_count          at creation
 *   class bitmaps    class_bitmaps       43 x granule_count / 8     at creation (each bitmap a multiple of 128 bytes)
 *   slab table       slabs               4096 x granule_count       a slab's 4096 when its granule first becomes a slab
 *   data             data                65536 x granule_count      granule by granule, when first used
 *
 * The file has room for far more than `memory`, its budget: a queue has the room for all its slots, and memory for those that
 * it has used. Reserved memory stays so, but for that of a ring when its queue has gone and no process can look at it.
 *
 *   offset  field                 written by, when                       read by, and a stale read costs
 *   0-127   identity              creator, before the segment has a name attach; constant
 *   128     offsets of regions    creator                                all; copied into private memory at attach
 *   184     directory             creator                                attach, gc, destroy: whose segment it is
 *   256     path                  creator                                gc, people
 *   1280    state                 who deletes the broker or its directory,
 *                                 or finds it deleted                    every call; one more call succeeds
 *   1288    due                   who makes something due, by CAS        every call; a tick too late
 *   1408    message_ids           any member, add                        a block of ids is handed out at a time
 *   1536    dirty to turns        holder of the structure lock           statistics; scans (a row too few is found next time)
 *   1568    slab_high             maker of a slab, under that lock       who takes a block; looks for one under the lock, too
 *   1572    run_high              who takes a run, under that lock       the same
 *   1576    granules_used to used_bytes  holder of that lock            who takes memory, under it; statistics
 *   1664    memory_full, waiters  who frees a block; who waits for one   section "blocked producers"
 *   1668    flushes               purgers, add                           who finds no memory; a try more
 *   1680    kept_block            purgers, by CAS; who finds no rows left     who takes or frees a block, who makes slabs free
 *   1792    watch to volunteers   sleepers (CAS); the time of a look      who holds something, who goes to sleep; see watch.h
 *   1920    damage, rescues       any member, add                        doctor, statistics
 *   1944    disk_told, disk_refused  who tells, by CAS; a purger without room  who looks; told late, or twice (alert.h)
 *   2048    death_records_next    reapers, add                           -
 *   4096    death_records         reapers                                who dead-letters; lossy, for people
 */
#ifndef SHMQ_LAYOUT_SEGMENT_H
#define SHMQ_LAYOUT_SEGMENT_H

#include "base/atomic.h"
#include "layout/abi.h"

#define SHMQ_FEATURE_COLD 1u
#define SHMQ_FEATURE_FLOW 2u
#define SHMQ_FEATURE_LOG 4u
#define SHMQ_FEATURE_GROUPS 8u
#define SHMQ_FEATURES_KNOWN 0u /* what this library can do; a segment that requires more is refused */

#define SHMQ_DEATH_RECORDS 128u
#define SHMQ_DEATH_RECORD_MOVER (UINT64_C(1) << 63) /* with a message's id: it came back from a mover, uncounted */
#define SHMQ_DEATH_RECORD_PROCESS UINT64_MAX /* in place of a message's id: how a process ended, whatever it held */
#define SHMQ_VOLUNTEERS 10u

enum shmq_segment_state { SHMQ_SEGMENT_LIVE = 0, SHMQ_SEGMENT_GONE = 1 };

/* A delivery that ended with its process: kept for people, who ask later why a message is dead.
 *
 *   0   message_id   reaper: 0 first, the id last    who dead-letters; 0: nothing here, or being written
 *   8   at_ns, 16 pid                                reaper, in between; people
 *   20  signal       the process that waited for the dead one; people
 *   24  reserved     0 */
typedef struct shmq_death_record_shm {
    shmq_a64 message_id;
    uint64_t at_ns;
    uint32_t pid;
    int32_t signal; /* 0: not known; the process that waited for the dead one fills it in */
    uint64_t reserved;
} shmq_death_record_shm;
SHMQ_SIZE(shmq_death_record_shm, 32);
SHMQ_OFFSET(shmq_death_record_shm, message_id, 0);
SHMQ_OFFSET(shmq_death_record_shm, at_ns, 8);
SHMQ_OFFSET(shmq_death_record_shm, pid, 16);
SHMQ_OFFSET(shmq_death_record_shm, signal, 20);

#define SHMQ_DISK_SHARE UINT64_C(0) /* as much as leaves a tenth of the file system free */
#define SHMQ_DISK_NONE UINT64_MAX /* messages stay in memory */

/* See wall_clock.h */
#define SHMQ_CLOCK_STEPS 32u
typedef struct shmq_clock_step_shm {
    shmq_a64 from_ns;
    shmq_a64 offset_ns;
    shmq_a64 asleep_ns;
    uint64_t reserved;
} shmq_clock_step_shm;
SHMQ_SIZE(shmq_clock_step_shm, 32);
SHMQ_OFFSET(shmq_clock_step_shm, from_ns, 0);
SHMQ_OFFSET(shmq_clock_step_shm, offset_ns, 8);
SHMQ_OFFSET(shmq_clock_step_shm, asleep_ns, 16);

typedef struct shmq_segment_shm {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    uint64_t fingerprint;
    uint64_t size;
    uint8_t boot_id[16];
    uint8_t uuid[16];
    uint64_t features_required;
    uint64_t features;
    uint64_t created_ns; /* wall clock */
    uint64_t patience_ns;
    uint32_t granule_count;
    uint32_t process_rows;
    uint32_t queue_count;
    uint32_t uid;
    uint32_t anonymous;
    uint32_t mode;
    uint32_t header_crc; /* of bytes 0 to 119 and 128 to 1279 */
    uint32_t identity_pad;

    uint64_t processes;
    uint64_t directory;
    uint64_t granules;
    uint64_t class_bitmaps;
    uint64_t slabs;
    uint64_t data;
    uint64_t clock_offset_ns; /* wall clock minus monotonic clock at creation, before the first of clock_steps */
    /* Whose segment it is. Version and these three lie at the same offsets in every version: a segment is joined,
     * or removed, only for the directory that they name. Nobody can choose the first two, and the third is known only to
     * those who may read the files in the directory. */
    uint64_t directory_device; /* st_dev and st_ino of the broker's directory; 0: anonymous */
    uint64_t directory_inode;
    uint8_t directory_uuid[16]; /* random; not the segment's, which is part of a name that everybody may read */
    uint64_t
        memory; /* the budget: reserved_bytes never goes above it; `size` is only the room for what may be reserved */
    uint64_t disk; /* bytes that rows of all queues may have on disk, or one of SHMQ_DISK_* */
    uint8_t key_check[16]; /* by which the key of what goes to disk is known; zeros: that is not encrypted */
    uint64_t clock_asleep_ns; /* time asleep since the boot, at creation */

    char path[SHMQ_PATH_MAX]; /* of the broker's directory, NUL-terminated; empty: anonymous */

    shmq_a32 state;
    uint32_t state_reserved;
    shmq_a64 due; /* when something is due in some ring, see due.h; beside what every call reads */
    uint8_t state_pad[112];

    shmq_a64 message_ids; /* the next id that no process has yet; epoch in bits 40 to 63 */
    uint8_t message_ids_pad[120];

    shmq_a64 dirty; /* not 0: the holder of the structure lock was at work; the next one rebuilds the map */
    shmq_a64 reserved_bytes;
    shmq_a32 process_high; /* rows below were used at some time */
    shmq_a32 queue_high; /* directory entries below were used at some time */
    shmq_a64 turns; /* how often the structure lock was taken: a checker sees whether anything was changed meanwhile */
    shmq_a32 slab_high; /* granules below were a slab's first at some time: so far a look over all slabs goes */
    shmq_a32
        run_high; /* the same of runs, but for those of rings beyond the budget: a look for free memory begins below */
    /* Counts of the granule map, kept as its words change, and counted anew by the rebuild. */
    shmq_a32 granules_used; /* not free */
    shmq_a32 granules_ready; /* free, with memory */
    shmq_a32 granules_solid; /* of slabs and pages: all have memory, what else is in use belongs to rings */
    shmq_a32 pages_free; /* in granules of pages */
    shmq_a64 used_bytes; /* memory of granules that are not free */
    uint8_t structure_pad[64];

    shmq_a32 memory_full;
    shmq_a32
        flushes; /* turns that moved something to disk, of all queues: whoever finds no memory sees whether others free some */
    shmq_a64 memory_waiters; /* version 32 | threads 32; see waiters.h */
    shmq_a64 kept_block; /* offset of the block that is kept for rows, beside what whoever frees a block reads anyway */
    uint8_t memory_pad[104];

    shmq_a64 watch[2]; /* see watch.h */
    shmq_a64 watch_wake[2]; /* offset of the wake word on which the holder sleeps */
    shmq_a64 watch_looked[2]; /* when a watcher looked last at what it is to look at; monotonic, ns */
    shmq_a64 volunteers[SHMQ_VOLUNTEERS]; /* see watch.h */

    shmq_a64 damage; /* broken words found since creation */
    shmq_a64 rescues; /* sleeps that ended by their time limit and found something: 0 unless a process was stopped */
    shmq_a64 deaths; /* processes reaped */
    shmq_a64 disk_told[2]; /* when it was told last that little room is left on disk, and that there was none */
    shmq_a64 disk_refused; /* when a purger found none; 0: that was told, or never was */
    uint8_t damage_pad[80];

    shmq_a64 death_records_next;
    uint8_t death_records_pad[120];
    shmq_a64 clock_steps_count;
    uint8_t clock_steps_pad[120];
    shmq_clock_step_shm clock_steps[SHMQ_CLOCK_STEPS];
    uint8_t clock_pad[768];
    shmq_death_record_shm death_records[SHMQ_DEATH_RECORDS];
} shmq_segment_shm;

SHMQ_SIZE(shmq_segment_shm, 8192);
SHMQ_OFFSET(shmq_segment_shm, magic, 0);
SHMQ_OFFSET(shmq_segment_shm, version, 8);
SHMQ_OFFSET(shmq_segment_shm, byte_order, 12);
SHMQ_OFFSET(shmq_segment_shm, fingerprint, 16);
SHMQ_OFFSET(shmq_segment_shm, size, 24);
SHMQ_OFFSET(shmq_segment_shm, boot_id, 32);
SHMQ_OFFSET(shmq_segment_shm, uuid, 48);
SHMQ_OFFSET(shmq_segment_shm, features_required, 64);
SHMQ_OFFSET(shmq_segment_shm, features, 72);
SHMQ_OFFSET(shmq_segment_shm, created_ns, 80);
SHMQ_OFFSET(shmq_segment_shm, patience_ns, 88);
SHMQ_OFFSET(shmq_segment_shm, granule_count, 96);
SHMQ_OFFSET(shmq_segment_shm, process_rows, 100);
SHMQ_OFFSET(shmq_segment_shm, queue_count, 104);
SHMQ_OFFSET(shmq_segment_shm, uid, 108);
SHMQ_OFFSET(shmq_segment_shm, anonymous, 112);
SHMQ_OFFSET(shmq_segment_shm, mode, 116);
SHMQ_OFFSET(shmq_segment_shm, header_crc, 120);
SHMQ_OFFSET(shmq_segment_shm, processes, 128);
SHMQ_OFFSET(shmq_segment_shm, directory, 136);
SHMQ_OFFSET(shmq_segment_shm, granules, 144);
SHMQ_OFFSET(shmq_segment_shm, class_bitmaps, 152);
SHMQ_OFFSET(shmq_segment_shm, slabs, 160);
SHMQ_OFFSET(shmq_segment_shm, data, 168);
SHMQ_OFFSET(shmq_segment_shm, clock_offset_ns, 176);
SHMQ_OFFSET(shmq_segment_shm, directory_device, 184);
SHMQ_OFFSET(shmq_segment_shm, directory_inode, 192);
SHMQ_OFFSET(shmq_segment_shm, directory_uuid, 200);
SHMQ_OFFSET(shmq_segment_shm, memory, 216);
SHMQ_OFFSET(shmq_segment_shm, disk, 224);
SHMQ_OFFSET(shmq_segment_shm, key_check, 232);
SHMQ_OFFSET(shmq_segment_shm, clock_asleep_ns, 248);
SHMQ_OFFSET(shmq_segment_shm, path, 256);
SHMQ_OFFSET(shmq_segment_shm, state, 1280);
SHMQ_OFFSET(shmq_segment_shm, due, 1288);
SHMQ_OFFSET(shmq_segment_shm, message_ids, 1408);
SHMQ_OFFSET(shmq_segment_shm, dirty, 1536);
SHMQ_OFFSET(shmq_segment_shm, reserved_bytes, 1544);
SHMQ_OFFSET(shmq_segment_shm, process_high, 1552);
SHMQ_OFFSET(shmq_segment_shm, queue_high, 1556);
SHMQ_OFFSET(shmq_segment_shm, turns, 1560);
SHMQ_OFFSET(shmq_segment_shm, slab_high, 1568);
SHMQ_OFFSET(shmq_segment_shm, run_high, 1572);
SHMQ_OFFSET(shmq_segment_shm, granules_used, 1576);
SHMQ_OFFSET(shmq_segment_shm, granules_ready, 1580);
SHMQ_OFFSET(shmq_segment_shm, granules_solid, 1584);
SHMQ_OFFSET(shmq_segment_shm, pages_free, 1588);
SHMQ_OFFSET(shmq_segment_shm, used_bytes, 1592);
SHMQ_OFFSET(shmq_segment_shm, memory_full, 1664);
SHMQ_OFFSET(shmq_segment_shm, flushes, 1668);
SHMQ_OFFSET(shmq_segment_shm, memory_waiters, 1672);
SHMQ_OFFSET(shmq_segment_shm, kept_block, 1680);
SHMQ_OFFSET(shmq_segment_shm, watch, 1792);
SHMQ_OFFSET(shmq_segment_shm, watch_wake, 1808);
SHMQ_OFFSET(shmq_segment_shm, watch_looked, 1824);
SHMQ_OFFSET(shmq_segment_shm, volunteers, 1840);
SHMQ_OFFSET(shmq_segment_shm, damage, 1920);
SHMQ_OFFSET(shmq_segment_shm, rescues, 1928);
SHMQ_OFFSET(shmq_segment_shm, deaths, 1936);
SHMQ_OFFSET(shmq_segment_shm, disk_told, 1944);
SHMQ_OFFSET(shmq_segment_shm, disk_refused, 1960);
SHMQ_OFFSET(shmq_segment_shm, death_records_next, 2048);
SHMQ_OFFSET(shmq_segment_shm, clock_steps_count, 2176);
SHMQ_OFFSET(shmq_segment_shm, clock_steps, 2304);
SHMQ_OFFSET(shmq_segment_shm, death_records, 4096);
#define SHMQ_CLOCK_AT offsetof(shmq_segment_shm, clock_steps_count) /* the count and the steps */
#define SHMQ_CLOCK_BYTES (offsetof(shmq_segment_shm, clock_pad) - SHMQ_CLOCK_AT)

/* Granule map entry: kind 8 | reserved 1 (bit 8) | headers 1 (bit 9) | begun 4 (bits 10 to 13) | pages in use 8 (bits 16 to
 * 23) | length in granules 32 (bits 32 to 63). Written under the structure lock only; kind, pages and length can be rebuilt
 * from the roots. `reserved`: its 64 KiB of data have memory; if not, `begun` of its first pieces of 4 KiB have, of a ring.
 * Both go with the ring, and stay with all else. `headers` (its 4096 bytes of the slab table) is for ever: without it
 * a rebuild would have to touch slab table pages that nobody has reserved. */
enum shmq_granule_kind {
    SHMQ_GRANULE_FREE = 0,
    SHMQ_GRANULE_PAGES = 1, /* eight pages, one bit each */
    SHMQ_GRANULE_RING = 2, /* head of a run that is a queue's rings, or the cold records of one */
    SHMQ_GRANULE_SLAB = 3, /* head of a run that is a slab */
    SHMQ_GRANULE_INSIDE = 4 /* belongs to the run whose head is before it */
};
#define SHMQ_GRANULE_RESERVED (UINT64_C(1) << 8)
#define SHMQ_GRANULE_HEADERS (UINT64_C(1) << 9)
#define SHMQ_GRANULE_BEGUN_SHIFT 10
#define SHMQ_GRANULE_BEGUN (UINT64_C(15) << SHMQ_GRANULE_BEGUN_SHIFT)
#define SHMQ_GRANULE_KEPT (SHMQ_GRANULE_RESERVED | SHMQ_GRANULE_HEADERS | SHMQ_GRANULE_BEGUN)
#define SHMQ_PIECE_BYTES UINT64_C(4096) /* a page of the kernel's: the least that is reserved */

static inline uint32_t shmq_granule_kind(uint64_t word) { return (uint32_t)word & 0xffu; }
static inline uint32_t shmq_granule_pages(uint64_t word) { return (uint32_t)(word >> 16) & 0xffu; }
static inline uint32_t shmq_granule_length(uint64_t word) { return (uint32_t)(word >> 32); }
/* Bytes of its data that have memory. */
static inline uint64_t shmq_granule_reserved(uint64_t word) {
    uint64_t begun = (word & SHMQ_GRANULE_BEGUN) >> SHMQ_GRANULE_BEGUN_SHIFT;
    return (word & SHMQ_GRANULE_RESERVED) != 0 ? SHMQ_GRANULE_BYTES : begun * SHMQ_PIECE_BYTES;
}
/* Another use of a granule: what was reserved stays reserved. */
static inline uint64_t shmq_granule_word(uint64_t old, uint32_t kind, uint32_t pages, uint32_t length) {
    return ((uint64_t)length << 32) | ((uint64_t)(pages & 0xffu) << 16) | (old & SHMQ_GRANULE_KEPT) | kind;
}

/* Queue directory entry.
 *
 *   0   word        holder of the structure lock, CAS     all: bind, release; one failed look-up
 *   8   page        maker, before LIVE                    all who found LIVE or DELETED
 *   16  name_hash   maker, before LIVE                    who looks for a name
 *   24  news        who takes the news bit of its queue, + 1   consumers of several queues, see news.h
 *   32  group_news  the same, behind that: of the first entry of 64, for all of these
 *   40  reserved    0
 *
 * word: state 8 | incarnation 32 (bits 32 to 63); CAS FREE -> LIVE makes a queue, LIVE -> DELETED
 * when it was taken out of service (queue.state) and has no message any more; DELETED -> FREE when no member uses it any more (its memory may be used again then). */
enum shmq_directory_state { SHMQ_ENTRY_FREE = 0, SHMQ_ENTRY_LIVE = 1, SHMQ_ENTRY_DELETED = 2 };
typedef struct shmq_directory_shm {
    shmq_a64 word;
    shmq_a64 page; /* offset of the queue page; written before word says LIVE */
    uint64_t name_hash; /* FNV-1a of the name: a look at the page is needed only when it fits */
    shmq_a64 news; /* never set back: who has seen it may have been away for long */
    shmq_a64 group_news; /* likewise */
    uint64_t reserved[3];
} shmq_directory_shm;
SHMQ_SIZE(shmq_directory_shm, 64);
SHMQ_OFFSET(shmq_directory_shm, word, 0);
SHMQ_OFFSET(shmq_directory_shm, page, 8);
SHMQ_OFFSET(shmq_directory_shm, name_hash, 16);
SHMQ_OFFSET(shmq_directory_shm, news, 24);
SHMQ_OFFSET(shmq_directory_shm, group_news, 32);

static inline uint32_t shmq_entry_state(uint64_t word) { return (uint32_t)word & 0xffu; }
static inline uint32_t shmq_entry_incarnation(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint64_t shmq_entry_word(uint32_t incarnation, uint32_t state) {
    return ((uint64_t)incarnation << 32) | state;
}

#endif
