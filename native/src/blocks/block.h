/* Blocks for bodies that do not fit into their slot: to take, share, drop, keep and pin them. layout/block.h has their words. */
#ifndef SHMQ_BLOCKS_BLOCK_H
#define SHMQ_BLOCKS_BLOCK_H

#include "segment/liveness.h"

/* A block in private hands. */
typedef struct shmq_block {
    uint64_t offset; /* of its bytes, from the segment's start; multiple of 64 */
    uint64_t capacity; /* bytes */
    uint32_t generation;
} shmq_block;

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

/* As shmq_queues_release, and slabs without a used block go, for a process that finds no memory. True: there is more than before.
 * Under the structure lock. */
bool shmq_memory_regain(shmq_member *m);

#endif
