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
#ifndef SHMQ_LAYOUT_BLOCK_H
#define SHMQ_LAYOUT_BLOCK_H

#include "base/atomic.h"
#include "layout/abi.h"

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

#endif
