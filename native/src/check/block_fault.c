/* The checker looks at all blocks: figures for users, and faults of their words. */
#include "base/fault_text.h"
#include "blocks/slab.h"
#include "check/faults.h"

void shmq_blocks_usage(const shmq_member *m, shmq_block_usage *usage) {
    *usage = (shmq_block_usage){0};
    uint32_t granule = 0, high = shmq_slab_high(m);
    while (granule < high) {
        shmq_slab_shm *slab = shmq_slab_at(m, granule);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        uint32_t count = shmq_class_count(size_class), used = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t state = shmq_load_relaxed(&slab->block[i].state);
            used += shmq_state_used(state);
            usage->building += shmq_state_of(state) == SHMQ_BLOCK_BUILDING;
        }
        usage->slabs += count != 0;
        usage->granules_unused += count != 0 && used == 0 ? shmq_class_granules(size_class) : 0;
        usage->blocks += count;
        usage->used += used;
        usage->bytes_used += used * shmq_class_bytes(size_class);
        usage->bytes_total += (uint64_t)shmq_class_granules(size_class) << SHMQ_GRANULE_SHIFT;
        granule += count != 0 ? shmq_class_granules(size_class) : 1;
    }
}

/* The caller read `state` before and after `word`, and it was the same: both hold at one instant. */
static const char *check_block(uint64_t state, uint64_t word, uint32_t size_class) {
    uint32_t generation = shmq_state_gen(state), refs = shmq_block_refs(word);
    if (shmq_state_class(state) != size_class) {
        return "it is of another class than its slab";
    }
    switch (shmq_state_of(state)) {
    case SHMQ_BLOCK_FREE:
    case SHMQ_BLOCK_RETIRED:
        if (shmq_state_row(state) != 0) {
            return "it is free, but has an owner";
        }
        return word == shmq_block_word(generation, 0) ? NULL : "it is free, but has references, or another generation";
    case SHMQ_BLOCK_BUILDING:
    case SHMQ_BLOCK_SHARED:
        if (shmq_state_row(state) >= SHMQ_PROCESS_ROWS) {
            return "its owner is a process row that does not exist";
        }
        if (word == shmq_block_word(generation + 1, 0)) {
            return NULL; /* being freed, or its process died: the next sweep ends it */
        }
        if (shmq_block_gen(word) != generation) {
            return "its two words are of different generations";
        }
        return refs != 0 || shmq_state_of(state) == SHMQ_BLOCK_BUILDING ? NULL
                                                                        : "it holds a message, but has no reference";
    default:
        return "it is in a state that does not exist";
    }
}

static const char *check_slab(const shmq_member *m, uint32_t granule, shmq_slab_shm *slab, uint32_t size_class) {
    for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
        shmq_block_shm *block = &slab->block[i];
        for (int tries = 0; tries < 8; tries++) { /* words that change at each try are in use, so they are sound */
            uint64_t state = shmq_load_seq(&block->state);
            uint64_t word = shmq_load_seq(&block->word);
            if (shmq_load_seq(&block->state) != state) {
                continue;
            }
            const char *wrong = check_block(state, word, size_class);
            if (wrong != NULL && shmq_slab_class(slab) == size_class && shmq_load_seq(&block->state) == state) {
                shmq_block_location location = {slab, block, granule, i, size_class};
                return shmq_fault_text("the block at 0x%llx makes no sense: %s",
                                       (unsigned long long)shmq_location_offset(m, &location), wrong);
            }
            break;
        }
    }
    return NULL;
}

const char *shmq_blocks_fault(const shmq_member *m) {
    uint32_t granule = 0;
    while (granule < m->granule_count) {
        shmq_slab_shm *slab = shmq_slab_at(m, granule);
        uint64_t class_word = slab == NULL ? 0 : shmq_load_acquire(&slab->class_word); /* SYNC block.slab */
        if (class_word > SHMQ_CLASSES) {
            return shmq_fault_text("the slab at granule %u is of a class that does not exist: %llu", granule,
                                   (unsigned long long)class_word);
        }
        if (class_word == 0) {
            granule += 1;
            continue;
        }
        uint32_t size_class = (uint32_t)class_word - 1;
        if (shmq_class_granules(size_class) > m->granule_count - granule) {
            return shmq_fault_text("the slab at granule %u reaches beyond the segment", granule);
        }
        const char *wrong = check_slab(m, granule, slab, size_class);
        if (wrong != NULL) {
            return wrong;
        }
        granule += shmq_class_granules(size_class);
    }
    return NULL;
}
