/* Files about blocks share the geometry of classes, the way from an offset to a block's words, and the two steps that
 * free a block. Other rooms use blocks through block.h. */
#ifndef SHMQ_SLAB_H
#define SHMQ_SLAB_H

#include "blocks/block.h"
#include "layout/block.h"
#include "segment/block_class.h"

#define SHMQ_ENTRY_MASK UINT32_C(0x00ffffff)
#define SHMQ_VIEW_SHIFT 24u
#define SHMQ_VIEW_MASK UINT32_C(0xff000000)

static inline uint64_t shmq_block_word(uint32_t generation, uint32_t refs) {
    return ((uint64_t)generation << 32) | refs;
}

static inline uint64_t shmq_state_word(uint32_t generation, uint32_t size_class, uint32_t row, uint32_t state) {
    return ((uint64_t)generation << 32) | ((uint64_t)size_class << 24) | ((uint64_t)row << 8) | state;
}
static inline uint32_t shmq_state_gen(uint64_t state) { return (uint32_t)(state >> 32); }
static inline uint32_t shmq_state_class(uint64_t state) { return (uint32_t)(state >> 24) & 0xffu; }
static inline uint32_t shmq_state_row(uint64_t state) { return (uint32_t)(state >> 8) & 0xffffu; }
static inline uint32_t shmq_state_of(uint64_t state) { return (uint32_t)state & 0xffu; }
static inline bool shmq_state_used(uint64_t state) {
    return shmq_state_of(state) == SHMQ_BLOCK_BUILDING || shmq_state_of(state) == SHMQ_BLOCK_SHARED;
}

/* One block: the headers of its slab, and its index in them. */
typedef struct shmq_block_location {
    shmq_slab_shm *slab;
    shmq_block_shm *block;
    uint32_t granule;
    uint32_t index;
    uint32_t size_class;
} shmq_block_location;

/* The headers of the slab at this granule. NULL: the granule never was a slab. Its entry in the slab table may have no
 * memory, and a look at it could end in SIGBUS. The granule's bit SHMQ_GRANULE_HEADERS, once set, stays for ever. */
static inline shmq_slab_shm *shmq_slab_at(const shmq_member *m, uint32_t granule) {
    if (granule >= m->granule_count || (shmq_load_relaxed(&m->granules[granule]) & SHMQ_GRANULE_HEADERS) == 0) {
        return NULL;
    }
    return (shmq_slab_shm *)(m->slabs + (uint64_t)granule * SHMQ_SLAB_BYTES);
}

/* No slab begins at this granule or behind it. Damaged: at the end of all. */
static inline uint32_t shmq_slab_high(const shmq_member *m) {
    uint32_t high = shmq_load_seq(&m->header->slab_high);
    return high < m->granule_count ? high : m->granule_count;
}

/* The class of a slab; SHMQ_CLASSES: there is no slab, or its word is damaged.
 *
 * SYNC block.slab: pairs with the store of class_word in shmq_slab_make; a reader of the class sees the blocks as the
 * maker wrote them. */
static inline uint32_t shmq_slab_class(shmq_slab_shm *slab) {
    uint64_t word = shmq_load_acquire(&slab->class_word);
    return word >= 1 && word <= SHMQ_CLASSES ? (uint32_t)word - 1 : SHMQ_CLASSES;
}

/* The bits of free word `part` that stand for blocks of this class: other bits may be left of an earlier slab. */
static inline uint64_t shmq_free_mask(uint32_t size_class, uint32_t part) {
    uint32_t count = shmq_class_count(size_class), first = part * 64;
    if (count <= first) {
        return 0;
    }
    return count - first >= 64 ? UINT64_MAX : (UINT64_C(1) << (count - first)) - 1;
}

static inline shmq_a64 *shmq_class_bits(const shmq_member *m, uint32_t size_class, uint32_t granule) {
    shmq_a64 *words = (shmq_a64 *)(m->class_bitmaps + (uint64_t)size_class * m->class_bitmap_bytes);
    return &words[granule / 64];
}

static inline uint64_t shmq_location_offset(const shmq_member *m, const shmq_block_location *location) {
    return m->data + ((uint64_t)location->granule << SHMQ_GRANULE_SHIFT) +
           location->index * shmq_class_bytes(location->size_class);
}

/* The block that starts at this offset; false: none does. Relies on private constants only. */
bool shmq_block_locate(const shmq_member *m, uint64_t offset, shmq_block_location *location);

/* Makes a FREE block findable: sets its bit in the slab, and the slab's bit in its class. */
void shmq_block_hint(shmq_member *m, const shmq_block_location *location);
/* Drops these reference bits of this generation; true: that freed the block. */
bool shmq_block_release(shmq_member *m, const shmq_block_location *location, uint32_t generation, uint32_t mask);
/* The second half of a free: the word has left this generation, the state follows. True: this call changed the
 * state. */
bool shmq_block_finish(shmq_member *m, const shmq_block_location *location, uint32_t generation);

/* Takes this block, if it is FREE, for this process. */
bool shmq_block_take_at(shmq_member *m, const shmq_block_location *location, shmq_block *block);
/* The block that is kept for rows (block_kept.c). Does this offset name it? Does it lie in these granules? */
bool shmq_is_kept(const shmq_member *m, uint64_t offset);
bool shmq_keeps_part_of(const shmq_member *m, uint32_t granule, uint32_t granules);
void shmq_kept_change(shmq_member *m, const shmq_block_location *freed);

/* Pin cell: block offset / 64 in bits 0 to 39, view bit + 1 in bits 40 to 47, the low half of the row's generation
 * above. The generation is for a late reaper. Without it the reaper could find the same view of the row's next owner in
 * the same cell, and would end it. */
static inline uint64_t shmq_pin_cell(uint64_t offset, uint32_t view, uint32_t row_generation) {
    return (offset >> 6) | ((uint64_t)view << 40) | ((uint64_t)(row_generation & 0xffffu) << 48);
}
static inline uint64_t shmq_pin_offset(uint64_t cell) { return (cell & ((UINT64_C(1) << 40) - 1)) << 6; }
static inline uint32_t shmq_pin_view(uint64_t cell) { return (uint32_t)(cell >> 40) & 0xffu; }
static inline uint32_t shmq_pin_mark(uint64_t cell) { return (uint32_t)(cell >> 48); }
/* A row's pins; NULL: it has none, or its offset is damaged. */
shmq_pin_shm *shmq_pins_of(const shmq_member *m, uint32_t process_row);

/* This process begins its next search for a block of this class here. */
static inline void shmq_slab_found(shmq_member *m, uint32_t size_class, uint32_t granule) {
    if (shmq_class_count(size_class) > 1) {
        shmq_store_relaxed(&m->block_hint[size_class], granule + 1);
    }
}

/* Makes a slab of this class, and takes its first block for this process. Under the structure lock. */
shmq_status shmq_slab_make(shmq_member *m, uint32_t size_class, shmq_block *block);

#endif
