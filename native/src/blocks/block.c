/* Take, share and drop a block. The state word says which process has the block, the reference word for how long. The
 * bitmaps are hints. docs/protocol-blocks.md has the steps, and what a death after each of them leaves. */
#include <limits.h>

#include "blocks/block.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/wait_time.h"
#include "blocks/slab.h"
#include "layout/waiters.h"
#include "segment/requests.h"
#include "segment/structure.h"

bool shmq_block_locate(const shmq_member *m, uint64_t offset, shmq_block_location *location) {
    if (offset < m->data || offset >= m->size) {
        return false;
    }
    uint64_t granule = (offset - m->data) >> SHMQ_GRANULE_SHIFT;
    if (granule >= m->granule_count) {
        return false;
    }
    shmq_slab_shm *slab = shmq_slab_at(m, (uint32_t)granule);
    if (slab == NULL) {
        return false;
    }
    uint32_t size_class = shmq_slab_class(slab); /* read once: all that follows uses this value */
    if (size_class >= SHMQ_CLASSES || shmq_class_granules(size_class) > m->granule_count - granule) {
        return false;
    }
    uint64_t inside = (offset - m->data) & (SHMQ_GRANULE_BYTES - 1), bytes = shmq_class_bytes(size_class);
    uint64_t index = inside / bytes;
    if (inside % bytes != 0 || index >= shmq_class_count(size_class)) {
        return false;
    }
    *location = (shmq_block_location){slab, &slab->block[index], (uint32_t)granule, (uint32_t)index, size_class};
    return true;
}

void shmq_block_hint(shmq_member *m, const shmq_block_location *location) {
    if (shmq_is_kept(m, shmq_location_offset(m, location))) {
        return; /* a mover finds it without one */
    }
    shmq_or_seq(&location->slab->free[location->index / 64], UINT64_C(1) << (location->index % 64));
    /* The dropper reads the word of the class bitmap, and writes it only if the bit is missing: 64 slabs and more share
     * its cache line. A taker that clears the class bit after this look reads the free words afterwards, and finds the
     * dropper's bit there. SYNC block.hint */
    shmq_a64 *class_bits = shmq_class_bits(m, location->size_class, location->granule);
    uint64_t bit = UINT64_C(1) << (location->granule % 64);
    if ((shmq_load_seq(class_bits) & bit) == 0) {
        shmq_or_seq(class_bits, bit);
    }
}

/* Wakes all waiters, not one: they wait for blocks of different sizes, and a single woken one may have no use for this
 * block. */
void shmq_wake_for_memory(shmq_member *m) {
    /* SYNC block.memory: the hints are set. A waiter counts itself first, then looks at the hints once more */
    if (shmq_waiters_in(shmq_load_seq(&m->header->memory_waiters)) != 0) {
        shmq_add_seq(&m->header->memory_full, 1);
        shmq_futex_wake(&m->header->memory_full, INT_MAX);
    }
}

bool shmq_block_finish(shmq_member *m, const shmq_block_location *location, uint32_t generation) {
    uint64_t state = shmq_load_seq(&location->block->state);
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&m->header->kept_block) != 0)) {
        shmq_kept_change(m, location);
    }
    for (;;) {
        if (shmq_state_gen(state) != generation || !shmq_state_used(state)) {
            return false; /* another process has finished it */
        }
        uint64_t freed = shmq_state_word(generation + 1, shmq_state_class(state), 0, SHMQ_BLOCK_FREE);
        if (shmq_cas_seq(&location->block->state, state, freed)) { /* SYNC block.free */
            break;
        }
        state = shmq_load_seq(&location->block->state); /* its owner has shared it just now */
    }
    shmq_block_hint(m, location);
    shmq_wake_for_memory(m);
    return true;
}

bool shmq_block_release(shmq_member *m, const shmq_block_location *location, uint32_t generation, uint32_t mask) {
    uint64_t word, wanted;
    do {
        word = shmq_load_seq(&location->block->word);
        uint32_t refs = shmq_block_refs(word), left = refs & ~mask;
        if (shmq_block_gen(word) != generation || left == refs) {
            return false;
        }
        wanted = left != 0 ? shmq_block_word(generation, left) : shmq_block_word(generation + 1, 0);
    } while (!shmq_cas_seq(&location->block->word, word, wanted)); /* SYNC block.last */
    return shmq_block_gen(wanted) != generation && shmq_block_finish(m, location, generation);
}

void shmq_block_drop(shmq_member *m, uint64_t offset, uint32_t generation, uint32_t bit) {
    shmq_block_location location;
    if (bit < SHMQ_VIEW_SHIFT && shmq_block_locate(m, offset, &location)) {
        shmq_block_release(m, &location, generation, UINT32_C(1) << bit);
    }
}

enum taking { TAKEN, NOT_FREE, NOT_THIS_CLASS };

/* The taker has cleared the hint bit of this block. The state word says whether the block is FREE. */
static enum taking take_block(shmq_member *m, const shmq_block_location *location, bool kept, shmq_block *block) {
    uint64_t state = shmq_load_seq(&location->block->state);
    if (shmq_state_used(state)) {
        uint64_t word = shmq_load_seq(&location->block->word); /* SYNC block.last */
        if (word != shmq_block_word(shmq_state_gen(state) + 1, 0)) {
            return NOT_FREE; /* a stale hint */
        }
        shmq_block_finish(m, location, shmq_state_gen(state)); /* the process that freed it died before this step */
        state = shmq_load_seq(&location->block->state);
    }
    /* The taker reads the state first, the class after it. A CAS from this very state then proves that the slab was not
     * retired in between (its next use has other generations), so the class read here is the class at the time of the
     * CAS. In the other order the taker could take a block of a slab of the same class that is still being made and has
     * no root yet. */
    if (shmq_slab_class(location->slab) != location->size_class) {
        return NOT_THIS_CLASS;
    }
    uint32_t generation = shmq_state_gen(state);
    if (state != shmq_state_word(generation, location->size_class, 0, SHMQ_BLOCK_FREE) ||
        (!kept && shmq_is_kept(m, shmq_location_offset(m, location)))) {
        return NOT_FREE; /* SYNC block.kept: a block that is FREE was named before it became so */
    }
    uint64_t building = shmq_state_word(generation, location->size_class, m->row, SHMQ_BLOCK_BUILDING);
    if (!shmq_cas_seq(&location->block->state, state, building)) { /* SYNC block.free, SYNC block.owner */
        return NOT_FREE;
    }
    if (!shmq_cas_seq(&location->block->word, shmq_block_word(generation, 0), shmq_block_word(generation, 1))) {
        /* No reference of this generation can be there yet. The block stays out of use, since its word is damaged. */
        shmq_damage(m, "the reference word of a free block makes no sense, at offset",
                    shmq_location_offset(m, location));
        return NOT_FREE;
    }
    *block = (shmq_block){shmq_location_offset(m, location), shmq_class_bytes(location->size_class), generation};
    return TAKEN;
}

bool shmq_block_take_at(shmq_member *m, const shmq_block_location *location, shmq_block *block) {
    return take_block(m, location, true, block) == TAKEN;
}

/* The slab has changed its class, and the hint bit that the taker cleared may be the only hint at a FREE block of the
 * new class. The taker sets the bit first and reads the class after it. If the class is still "none", the slab is being
 * made, and its maker sets the class bit later. In the other order another taker could clear the new class' bit in
 * between, and no process would set it again. SYNC block.hint */
static void put_hint_back(shmq_member *m, const shmq_block_location *location) {
    shmq_or_seq(&location->slab->free[location->index / 64], UINT64_C(1) << (location->index % 64));
    uint64_t class_word = shmq_load_seq(&location->slab->class_word);
    if (class_word >= 1 && class_word <= SHMQ_CLASSES) {
        shmq_block_location now = *location;
        now.size_class = (uint32_t)class_word - 1;
        shmq_block_hint(m, &now);
    }
}

static bool take_from_slab(shmq_member *m, uint32_t size_class, uint32_t granule, shmq_block *block) {
    shmq_slab_shm *slab = shmq_slab_at(m, granule);
    if (slab == NULL || shmq_slab_class(slab) != size_class) {
        return false;
    }
    for (uint32_t part = 0; part < 4; part++) {
        uint64_t mask = shmq_free_mask(size_class, part), bits;
        while ((bits = shmq_load_seq(&slab->free[part]) & mask) != 0) {
            uint32_t index = (uint32_t)__builtin_ctzll(bits);
            uint64_t bit = UINT64_C(1) << index;
            if ((shmq_and_seq(&slab->free[part], ~bit) & bit) == 0) {
                continue; /* another taker was first */
            }
            index += part * 64;
            shmq_block_location location = {slab, &slab->block[index], granule, index, size_class};
            enum taking taking = take_block(m, &location, false, block);
            if (taking == TAKEN) {
                return true;
            }
            if (taking == NOT_THIS_CLASS) {
                put_hint_back(m, &location);
                return false;
            }
        }
    }
    return false;
}

/* The slab has no FREE block for this taker. A dropper sets the free bit, then looks whether the class bit is set. The
 * taker clears the class bit, then looks at the free bits: one of the two sees the other. Without the second look the
 * taker could clear a class bit that the dropper has seen set, and therefore did not set. The block would be lost until
 * a sweep. SYNC block.hint */
static void clear_class_bit(shmq_member *m, uint32_t size_class, uint32_t granule) {
    shmq_a64 *class_bits = shmq_class_bits(m, size_class, granule);
    uint64_t bit = UINT64_C(1) << (granule % 64);
    shmq_and_seq(class_bits, ~bit);
    shmq_slab_shm *slab = shmq_slab_at(m, granule);
    if (slab == NULL || shmq_slab_class(slab) != size_class) {
        return;
    }
    for (uint32_t part = 0; part < 4; part++) {
        if ((shmq_load_seq(&slab->free[part]) & shmq_free_mask(size_class, part)) != 0) {
            shmq_or_seq(class_bits, bit);
            return;
        }
    }
}

/* Of a class with many blocks a slab the search begins where it ended. Of the others it begins at the lowest slab. So
 * it finds the same few blocks each time, which are still in the caches. A search that moves on would touch all of them
 * in turn. */
static uint32_t first_granule(const shmq_member *m, uint32_t size_class, uint32_t high) {
    uint32_t hint = shmq_load_relaxed(&m->block_hint[size_class]);
    return hint != 0 && hint <= high ? hint - 1 : 0;
}

static bool find_block(shmq_member *m, uint32_t size_class, shmq_block *block) {
    uint32_t high = shmq_slab_high(m), words = (high + 63) / 64, start = first_granule(m, size_class, high);
    uint64_t ahead = UINT64_MAX << (start % 64);
    for (uint32_t n = 0; words != 0 && n <= words; n++) {
        uint32_t at = (start / 64 + n) % words;
        uint64_t bits = shmq_load_seq(shmq_class_bits(m, size_class, at * 64));
        bits &= n == 0 ? ahead : n == words ? ~ahead : UINT64_MAX;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t granule = at * 64 + (uint32_t)__builtin_ctzll(bits);
            if (take_from_slab(m, size_class, granule, block)) {
                shmq_slab_found(m, size_class, granule);
                return true;
            }
            clear_class_bit(m, size_class, granule);
        }
    }
    return false;
}

static bool nobody(void *context, uint32_t row) {
    (void)context, (void)row;
    return false;
}

/* A sweep finds blocks that a death left without a hint, or with a view bit that no cell names. A process sweeps before
 * it answers "no memory", but at most once in SHMQ_SWEEP_NS: a sweep looks at every block. */
static bool sweep_is_due(shmq_member *m) {
    uint64_t now = shmq_now_ns(), swept = shmq_load_relaxed(&m->swept_ns);
    return now - swept >= SHMQ_SWEEP_NS && shmq_cas_seq(&m->swept_ns, swept, now);
}

/* How many granules deleted queues and unused slabs gave back. */
static uint64_t give_back_unused(shmq_member *m) {
    uint64_t before = shmq_granules_free(m);
    shmq_upkeep.release_unused(m);
    (void)shmq_blocks_reclaim(m);
    return shmq_granules_free(m) - before;
}

/* This class has no FREE block, so the process makes a slab: from the map's free granules, or else from memory that is
 * unused. */
static shmq_status take_under_lock(shmq_member *m, uint32_t size_class, shmq_block *block) {
    if (find_block(m, size_class, block)) { /* another process made a slab while this one waited for the lock */
        return SHMQ_OK;
    }
    shmq_status status = shmq_slab_make(m, size_class, block);
    if (!shmq_is_short(status)) {
        return status;
    }
    /* This helps also when /dev/shm is full: granules that come back have their memory already. */
    uint64_t given_back = give_back_unused(m);
    if (find_block(m, size_class, block)) {
        return SHMQ_OK;
    }
    if (given_back == 0 && sweep_is_due(m) && shmq_blocks_sweep(m, nobody, NULL, NULL) != 0) {
        given_back = shmq_blocks_reclaim(m);
        if (find_block(m, size_class, block)) {
            return SHMQ_OK;
        }
    }
    return given_back != 0 ? shmq_slab_make(m, size_class, block) : status;
}

static shmq_status take(shmq_member *m, uint64_t bytes, bool wait, shmq_block *block) {
    uint32_t size_class = shmq_class_of(bytes);
    if (size_class >= SHMQ_CLASSES || bytes > m->memory / 4) {
        uint64_t largest = shmq_class_bytes(SHMQ_CLASSES - 1);
        return shmq_fail(SHMQ_TOO_LARGE,
                         "the message does not fit into the broker's memory\n%llu bytes, at most %llu\n"
                         "split the body, or make the broker with more memory",
                         (unsigned long long)bytes,
                         (unsigned long long)(largest < m->memory / 4 ? largest : m->memory / 4));
    }
    if (find_block(m, size_class, block)) {
        return SHMQ_OK;
    }
    shmq_status status = wait ? shmq_structure_lock(m) : shmq_structure_try(m);
    if (status != SHMQ_OK) {
        return status == SHMQ_INTERRUPTED && !wait ? SHMQ_IN_USE : status;
    }
    status = take_under_lock(m, size_class, block);
    shmq_structure_unlock(m);
    return status;
}

shmq_status shmq_block_take(shmq_member *m, uint64_t bytes, shmq_block *block) { return take(m, bytes, true, block); }

shmq_status shmq_block_try(shmq_member *m, uint64_t bytes, shmq_block *block) { return take(m, bytes, false, block); }

void shmq_block_share(shmq_member *m, const shmq_block *block) {
    shmq_block_location location;
    if (!shmq_block_locate(m, block->offset, &location)) {
        return;
    }
    /* From exactly this process's BUILDING: a consumer may have taken the message and freed the block already. */
    uint64_t building = shmq_state_word(block->generation, location.size_class, m->row, SHMQ_BLOCK_BUILDING);
    uint64_t shared = shmq_state_word(block->generation, location.size_class, 0, SHMQ_BLOCK_SHARED);
    shmq_cas_seq(&location.block->state, building, shared);
}

unsigned char *shmq_block_at(const shmq_member *m, uint64_t offset, uint64_t bytes) {
    shmq_block_location location;
    if (!shmq_block_locate(m, offset, &location) || bytes > shmq_class_bytes(location.size_class)) {
        return NULL;
    }
    return shmq_at(m, offset);
}
