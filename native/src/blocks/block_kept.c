/* One block is kept for what comes back from disk: the largest that any entry had which went there. Producers take all
 * else; without it a broker whose memory and disk are full would give out nothing any more.
 *
 * It is an ordinary block in all but this: while the header names it, no hint leads to it, so only an inhaler takes it. It
 * becomes the kept one while it is still in use, before its last reference is dropped: so it never is free for others.
 *
 *   header.kept_block    offset of the block; 0: none. KEPT_IN_DOUBT: a process looks whether rows are left, and lets it
 *                        go if none are. A purger that has just made a row takes the doubt away.  SYNC block.kept */
#include "blocks/slab.h"

#define KEPT_IN_DOUBT UINT64_C(1)

static uint64_t kept_word(const shmq_member *m) { return shmq_load_seq((shmq_a64 *)&m->header->kept_block); }

bool shmq_is_kept(const shmq_member *m, uint64_t offset) {
    return SHMQ_UNLIKELY((shmq_load_relaxed((shmq_a64 *)&m->header->kept_block) & ~KEPT_IN_DOUBT) == offset);
}

bool shmq_keeps_part_of(const shmq_member *m, uint32_t granule, uint32_t granules) {
    uint64_t offset = kept_word(m) & ~KEPT_IN_DOUBT, begin = m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT);
    return offset >= begin && offset < begin + ((uint64_t)granules << SHMQ_GRANULE_SHIFT);
}

static void let_go(shmq_member *m, uint64_t offset) {
    shmq_block_location location;
    if (shmq_block_locate(m, offset, &location)) {
        shmq_block_hint(m, &location); /* it may be in use: a hint is no promise */
        shmq_wake_for_memory(m);
    }
}

/* Is this block the entry's alone? Then it is free once the entry has dropped it. */
static bool is_alone(const shmq_block_location *location, uint32_t generation, uint32_t bit) {
    return shmq_load_seq(&location->block->word) == shmq_block_word(generation, UINT32_C(1) << bit);
}

void shmq_block_keep(shmq_member *m, uint64_t offset, uint32_t generation, uint32_t bit) {
    shmq_block_location mine, kept;
    if (bit >= SHMQ_VIEW_SHIFT || !shmq_block_locate(m, offset, &mine)) {
        return;
    }
    for (;;) {
        uint64_t word = kept_word(m), before = word & ~KEPT_IN_DOUBT, wanted = before;
        bool any = before != 0 && shmq_block_locate(m, before, &kept);
        if ((!any || kept.size_class < mine.size_class) && is_alone(&mine, generation, bit)) {
            wanted = offset;
        }
        if (wanted == word) {
            return;
        }
        if (shmq_cas_seq(&m->header->kept_block, word, wanted)) { /* SYNC block.kept: before its reference is dropped */
            if (any && wanted != before) {
                let_go(m, before);
            }
            return;
        }
    }
}

/* The kept block is in use, and another one of its size becomes free: that is the kept one from here on. Called before
 * the other one is FREE. */
void shmq_kept_change(shmq_member *m, const shmq_block_location *freed) {
    shmq_block_location kept;
    uint64_t word = kept_word(m), offset = shmq_location_offset(m, freed);
    if ((word & ~KEPT_IN_DOUBT) == offset || !shmq_block_locate(m, word & ~KEPT_IN_DOUBT, &kept) ||
        kept.size_class != freed->size_class || !shmq_state_used(shmq_load_seq(&kept.block->state))) {
        return;
    }
    if (shmq_cas_seq(&m->header->kept_block, word, offset | (word & KEPT_IN_DOUBT))) {
        let_go(m, word & ~KEPT_IN_DOUBT);
    }
}

bool shmq_block_take_kept(shmq_member *m, uint64_t bytes, shmq_block *block) {
    shmq_block_location location;
    uint64_t offset = kept_word(m) & ~KEPT_IN_DOUBT;
    return offset != 0 && shmq_block_locate(m, offset, &location) && shmq_class_bytes(location.size_class) >= bytes &&
           shmq_block_take_at(m, &location, block);
}

bool shmq_kept_doubt(shmq_member *m) {
    uint64_t word = kept_word(m);
    return word != 0 && shmq_cas_seq(&m->header->kept_block, word, word | KEPT_IN_DOUBT);
}

bool shmq_kept_end(shmq_member *m) {
    uint64_t word = kept_word(m), offset = word & ~KEPT_IN_DOUBT;
    if ((word & KEPT_IN_DOUBT) == 0 || !shmq_cas_seq(&m->header->kept_block, word, 0)) {
        return false;
    }
    let_go(m, offset);
    return true;
}
