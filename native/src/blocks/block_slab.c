/* A process makes and gives back slabs under the structure lock. The word class_word is the root of a slab. Before it
 * is stored, the granules belong to nothing, and a rebuild of the map frees them. After it the slab is complete. */
#include "blocks/slab.h"
#include "segment/requests.h"
#include "segment/structure.h"

/* A generation later than every one that a block of this table entry ever had. All blocks get the same one. For a late
 * helper remembers an offset, and in a slab of another class that offset is a block with another index. */
static uint32_t next_generation(const shmq_slab_shm *slab) {
    uint32_t highest = 0;
    for (uint32_t i = 0; i < SHMQ_SLAB_BLOCKS; i++) {
        uint32_t word = shmq_block_gen(shmq_load_relaxed(&slab->block[i].word));
        uint32_t state = shmq_state_gen(shmq_load_relaxed(&slab->block[i].state));
        highest = word > highest ? word : highest;
        highest = state > highest ? state : highest;
    }
    return highest + 1;
}

static void fill_slab(shmq_member *m, shmq_slab_shm *slab, uint32_t size_class, uint32_t generation) {
    uint32_t count = shmq_class_count(size_class);
    for (uint32_t i = 0; i < SHMQ_SLAB_BLOCKS; i++) {
        uint64_t state =
            shmq_state_word(generation, i < count ? size_class : 0, 0, i < count ? SHMQ_BLOCK_FREE : SHMQ_BLOCK_NONE);
        shmq_store_relaxed(&slab->block[i].word, shmq_block_word(generation, i == 0 ? 1 : 0));
        /* Seq: a late taker that reads this state must then read class_word 0, which was stored before it. */
        shmq_store_seq(&slab->block[i].state,
                       i == 0 ? shmq_state_word(generation, size_class, m->row, SHMQ_BLOCK_BUILDING) : state);
    }
    for (uint32_t part = 0; part < 4; part++) {
        shmq_store_seq(&slab->free[part], shmq_free_mask(size_class, part) & (part == 0 ? ~UINT64_C(1) : UINT64_MAX));
    }
}

static void set_class_bit(shmq_member *m, uint32_t size_class, uint32_t granule) {
    shmq_or_seq(shmq_class_bits(m, size_class, granule), UINT64_C(1) << (granule % 64));
}

/* The maker has the first block before any other process can see the slab. Otherwise other takers could take all of its
 * blocks, again and again. */
shmq_status shmq_slab_make(shmq_member *m, uint32_t size_class, shmq_block *block) {
    uint64_t offset = 0;
    SHMQ_TRY(shmq_run_take(m, shmq_class_granules(size_class), SHMQ_GRANULE_SLAB, &offset));
    uint32_t granule = (uint32_t)((offset - m->data) >> SHMQ_GRANULE_SHIFT);
    shmq_slab_shm *slab = shmq_slab_at(m, granule);
    if (slab == NULL) {
        unsigned char *entry = m->slabs + (uint64_t)granule * SHMQ_SLAB_BYTES;
        shmq_status status = shmq_reserve_instead(m, (uint64_t)(entry - m->base), SHMQ_SLAB_BYTES);
        if (status != SHMQ_OK) {
            shmq_run_give(m, offset);
            return status;
        }
        if (shmq_slab_high(m) <= granule) { /* before the granule's bit, and before the slab has its root */
            shmq_store_seq(&m->header->slab_high, granule + 1);
        }
        shmq_or_seq(&m->granules[granule], SHMQ_GRANULE_HEADERS);
        slab = (shmq_slab_shm *)entry;
    }
    uint32_t generation = next_generation(slab);
    fill_slab(m, slab, size_class, generation);
    /* SYNC block.slab. Seq, not release alone: SYNC block.hint needs it in one order with the hints. */
    shmq_store_seq(&slab->class_word, (uint64_t)size_class + 1);
    if (shmq_class_count(size_class) > 1) {
        set_class_bit(m, size_class, granule);
    }
    shmq_slab_found(m, size_class, granule);
    *block = (shmq_block){offset, shmq_class_bytes(size_class), generation};
    return SHMQ_OK;
}

/* A block becomes RETIRED under the structure lock only. A block that is RETIRED already was left by a holder of the
 * lock that died. */
static bool retire_blocks(shmq_slab_shm *slab, uint32_t size_class) {
    for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
        uint64_t state = shmq_load_seq(&slab->block[i].state);
        if (shmq_state_of(state) == SHMQ_BLOCK_RETIRED) {
            continue;
        }
        uint64_t retired = shmq_state_word(shmq_state_gen(state), size_class, 0, SHMQ_BLOCK_RETIRED);
        if (shmq_state_of(state) != SHMQ_BLOCK_FREE || !shmq_cas_seq(&slab->block[i].state, state, retired)) {
            return false;
        }
    }
    return true;
}

static void put_back(shmq_member *m, shmq_slab_shm *slab, uint32_t size_class, uint32_t granule) {
    for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
        uint64_t state = shmq_load_seq(&slab->block[i].state);
        if (shmq_state_of(state) == SHMQ_BLOCK_RETIRED) {
            shmq_block_location location = {slab, &slab->block[i], granule, i, size_class};
            shmq_cas_seq(&slab->block[i].state, state,
                         shmq_state_word(shmq_state_gen(state), size_class, 0, SHMQ_BLOCK_FREE));
            shmq_block_hint(m, &location); /* a taker may have cleared the hint and found the block RETIRED */
        }
    }
}

/* Looks, and changes nothing: a slab with a used block stays as it is, and no taker is disturbed. */
static bool looks_unused(shmq_slab_shm *slab, uint32_t size_class) {
    for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
        uint32_t state = shmq_state_of(shmq_load_relaxed(&slab->block[i].state));
        if (state != SHMQ_BLOCK_FREE && state != SHMQ_BLOCK_RETIRED) {
            return false;
        }
    }
    return true;
}

uint64_t shmq_blocks_reclaim(shmq_member *m) {
    uint64_t given_back = 0;
    uint32_t high = shmq_slab_high(m);
    for (uint32_t granule = 0; granule < high; granule++) {
        shmq_slab_shm *slab = shmq_slab_at(m, granule);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        if (size_class >= SHMQ_CLASSES) {
            continue;
        }
        uint32_t granules = shmq_class_granules(size_class);
        if (!looks_unused(slab, size_class)) {
            continue;
        }
        /* Asked behind the retirement: a purger names the block before it lets it become FREE. SYNC block.kept */
        if (!retire_blocks(slab, size_class) || shmq_keeps_part_of(m, granule, granules)) {
            put_back(m, slab, size_class, granule);
            continue;
        }
        shmq_and_seq(shmq_class_bits(m, size_class, granule), ~(UINT64_C(1) << (granule % 64)));
        shmq_store_seq(&slab->class_word, 0);
        for (uint32_t part = 0; part < 4; part++) {
            shmq_store_seq(&slab->free[part], 0);
        }
        shmq_run_give(m, m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT));
        given_back += granules;
    }
    return given_back;
}

void shmq_blocks_unretire(shmq_member *m) {
    uint32_t high = shmq_slab_high(m);
    for (uint32_t granule = 0; granule < high; granule++) {
        shmq_slab_shm *slab = shmq_slab_at(m, granule);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        if (size_class < SHMQ_CLASSES) {
            put_back(m, slab, size_class, granule);
        }
    }
}

bool shmq_memory_regain(shmq_member *m) {
    uint64_t before = shmq_memory_left(m);
    shmq_upkeep.release_unused(m);
    return shmq_blocks_reclaim(m) != 0 || shmq_memory_left(m) > before;
}
