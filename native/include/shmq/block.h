/* Bodies that do not fit into their slot lie in blocks; blocks of one size make a slab; a slab's headers stand apart
 * from its bytes, in the slab table, at the index of the slab's first granule.
 *
 * A slab's table entry, 4096 bytes, reserved for ever once used, so that a late helper always finds headers there:
 *   0     class     0 none, else class + 1; written under the structure lock
 *   8     free      248 bits: hint, superset or subset of the FREE blocks; the state word decides
 *   128   block[i]  16 bytes:
 *         word   63     32 31    24 23        0      state  63     32 31   24 23    8 7     0
 *               +---------+--------+-----------+           +---------+-------+-------+-------+
 *               |   gen   | views  |  entries  |           |   gen   | class |  row  | state |
 *               +---------+--------+-----------+           +---------+-------+-------+-------+
 *
 * A reference is its own bit, dropped by CAS only while the generation fits: repeating a drop does nothing, and a late
 * helper cannot touch the next use. The process that clears the last bit raises the generation and frees. A counter could not
 * be repeated: a death between "counted down" and "word changed" is a leak or a use after free.
 *
 * class bitmap c, bit g: the slab at granule g is of class c and may have a FREE block. A hint as well. */
#ifndef SHMQ_BLOCK_H
#define SHMQ_BLOCK_H

#include "shmq/liveness.h"

enum shmq_block_state {
    SHMQ_BLOCK_NONE = 0,
    SHMQ_BLOCK_FREE,
    SHMQ_BLOCK_BUILDING,
    SHMQ_BLOCK_SHARED,
    SHMQ_BLOCK_RETIRED
};

#define SHMQ_CLASSES 43u
#define SHMQ_ENTRY_BITS 12u /* references by puts: bits 0 to 11; bits 12 to 23 are for a later stage */
#define SHMQ_VIEW_BITS 8u

typedef struct shmq_block_shm {
    shmq_a64 word;
    shmq_a64 state;
} shmq_block_shm;
SHMQ_SIZE(shmq_block_shm, 16);
SHMQ_OFFSET(shmq_block_shm, word, 0);
SHMQ_OFFSET(shmq_block_shm, state, 8);

typedef struct shmq_slab_shm {
    shmq_a64 class_word;
    shmq_a64 free[4];
    uint64_t reserved[11];
    shmq_block_shm block[SHMQ_SLAB_BLOCKS];
} shmq_slab_shm;
SHMQ_SIZE(shmq_slab_shm, 4096);
SHMQ_OFFSET(shmq_slab_shm, class_word, 0);
SHMQ_OFFSET(shmq_slab_shm, free, 8);
SHMQ_OFFSET(shmq_slab_shm, block, 128);

static inline uint32_t shmq_block_gen(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint32_t shmq_block_refs(uint64_t word) { return (uint32_t)word; }

/* A block in private hands. */
typedef struct shmq_block {
    uint64_t offset;   /* of its bytes, from the segment's start; multiple of 64 */
    uint64_t capacity; /* bytes */
    uint32_t generation;
} shmq_block;

/* Bytes of a block of this class; classes are 0 to SHMQ_CLASSES-1, growing by a third or a half. */
uint64_t shmq_class_bytes(uint32_t size_class);
/* Smallest class that holds so many bytes; SHMQ_CLASSES: none does. */
uint32_t shmq_class_of(uint64_t bytes);

/* A block for so many bytes: state BUILDING of this process, reference bit 0 set. Lock-free while its class has a FREE
 * block; else a new slab under the structure lock (SHMQ_FULL_MEMORY: the budget is used up; SHMQ_NO_SPACE: /dev/shm is).
 * Death: BUILDING of a dead row, found by shmq_blocks_sweep. */
shmq_status shmq_block_take(shmq_member *m, uint64_t bytes, shmq_block *block);
/* The same; SHMQ_IN_USE: it needs the structure lock, which somebody has. */
shmq_status shmq_block_try(shmq_member *m, uint64_t bytes, shmq_block *block);
/* There is more memory than before: producers that wait for some look again. */
void shmq_wake_for_memory(shmq_member *m);
/* After the entry that names it was published: BUILDING -> SHARED. */
void shmq_block_share(shmq_member *m, const shmq_block *block);
/* Drop reference bit `bit` (entries: 0 to 23) of this generation; frees the block with the last one. Repeatable by anyone. */
void shmq_block_drop(shmq_member *m, uint64_t offset, uint32_t generation, uint32_t bit);

/* One block is kept for what comes back from disk (block_kept.c). By a purger whose entry, the owner of this reference, has become
 * a row: its block is the kept one from here on, unless that one is as large. */
void shmq_block_keep(shmq_member *m, uint64_t offset, uint32_t generation, uint32_t bit);
/* As shmq_block_take, of the kept block. False: there is none, it is too small, or in use. */
bool shmq_block_take_kept(shmq_member *m, uint64_t bytes, shmq_block *block);
/* A process that wants to let it go raises a doubt; false: none is kept. Then it looks whether rows are left, and ends
 * it; false: a purger has made a row meanwhile. */
bool shmq_kept_doubt(shmq_member *m);
bool shmq_kept_end(shmq_member *m);

/* Pin a block that an entry in our hands names: a free view bit, with its cell in our pin table. False: no bit or no cell
 * is free, or the block has no entry of this generation any more (the caller copies). The pin outlives the entry. */
bool shmq_block_pin(shmq_member *m, uint64_t offset, uint32_t generation, uint64_t bytes, uint32_t *pin);
void shmq_block_unpin(shmq_member *m, uint32_t pin, uint64_t bytes);
/* So much more, or less, of bodies is pinned by this process in another way: as a loan. */
void shmq_pinned_count(shmq_member *m, int64_t bytes);

/* Address and capacity of the block at an offset that was read from shared memory: NULL when it lies in no slab, is not
 * at a block's start, or `bytes` do not fit. Never trusts the offset. */
unsigned char *shmq_block_at(const shmq_member *m, uint64_t offset, uint64_t bytes);

/* Clean up after the dead (all repeatable, by any number at once):
 *   unpin_dead    every pin of a dead process row; nothing when its process lives. pins_recover asks the caller's
 *                 predicate, unpin_dead the lock bytes
 *   sweep         BUILDING blocks of `dead` rows: drops the references that no slot names. `named(context, offset, gen)`
 *                 answers the mask of entry bits that slots name; called after the word was read. Also finishes frees
 *                 that stopped half-way, repairs hints, and drops view bits that no cell names of blocks whose
 *                 entries have all gone (before that, such a bit may be somebody's again by the time it is dropped).
 *                 Answers how many blocks it freed. */
typedef uint32_t (*shmq_named)(void *context, uint64_t offset, uint32_t generation);
void shmq_pins_recover(shmq_member *m, uint32_t process_row, const shmq_liveness *l);
void shmq_blocks_unpin_dead(shmq_member *m, uint32_t process_row);
uint64_t shmq_blocks_sweep(shmq_member *m, shmq_row_dead dead, shmq_named named, void *context);

/* Under the structure lock: give slabs without a used block back to the granule map. Answers granules given back. */
uint64_t shmq_blocks_reclaim(shmq_member *m);
/* Blocks that a process left RETIRED as it died in there are FREE again. Under the lock, for the reaper. */
void shmq_blocks_unretire(shmq_member *m);

typedef struct shmq_block_usage {
    uint64_t slabs, blocks, used, building, bytes_used, bytes_total;
    uint64_t granules_unused; /* of slabs that are kept, and a process that needs their memory gets it */
} shmq_block_usage;
void shmq_blocks_usage(const shmq_member *m, shmq_block_usage *usage);
/* Every slab's words make sense (classes, hints are allowed to differ): NULL, or the first thing that does not. For a
 * segment at rest or in use. */
const char *shmq_blocks_fault(const shmq_member *m);
/* Each cell of a row in use names a block of a slab, with its row's mark, and a view bit that is set. Under the structure
 * lock; the owners of the cells may be at work. */
const char *shmq_pins_fault(shmq_member *m);

#endif
