/* The sweep cleans up after dead processes. It looks at every block, finishes every half-done step, and drops
 * references that no slot and no cell names. Each step is one CAS from the exact word that was read. So any number of
 * processes may sweep at once, and each may die at any step. */
#include "blocks/slab.h"

#define CANDIDATES 256u

/* A block whose entry bits are all gone and that views still hold. The sweep collects many of them, because finding the
 * cells that name a view means reading the pin tables of all processes. */
typedef struct candidate {
    shmq_block_location location;
    uint64_t offset;
    uint64_t word;
    uint32_t named; /* view bits that a cell names */
} candidate;

typedef struct sweep {
    shmq_member *m;
    shmq_row_dead dead;
    shmq_named named;
    void *context;
    uint64_t freed;
    uint32_t count;
    candidate candidates[CANDIDATES]; /* ascending offsets */
} sweep;

static candidate *find_candidate(sweep *s, uint64_t offset) {
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->candidates[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->count && s->candidates[low].offset == offset ? &s->candidates[low] : NULL;
}

static void note_cell(sweep *s, const shmq_pin_shm *pin) {
    uint64_t cell = shmq_load_seq(&pin->cell); /* SYNC block.pin */
    candidate *candidate = cell == 0 ? NULL : find_candidate(s, shmq_pin_offset(cell));
    if (candidate == NULL || (uint32_t)shmq_load_seq(&pin->generation) != shmq_block_gen(candidate->word)) {
        return;
    }
    uint32_t view = shmq_pin_view(cell);
    if (view == SHMQ_PIN_TENTATIVE) {
        candidate->named |= SHMQ_VIEW_MASK;
    } else if (view >= 1 && view <= SHMQ_VIEW_BITS) {
        candidate->named |= UINT32_C(1) << (SHMQ_VIEW_SHIFT + view - 1);
    }
}

/* The sweep has read the words, and reads the cells afterwards. No entry bit was set in the words, so no view of this
 * generation began since. Each view that began before had written its cell before it took its bit. So a bit that no
 * cell names has no owner. It can only vanish meanwhile, and then the CAS from the word that was read fails. */
static void drop_leaked_views(sweep *s) {
    shmq_member *m = s->m;
    for (uint32_t row = 0; s->count != 0 && row < SHMQ_PROCESS_ROWS; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE) {
            continue;
        }
        shmq_pin_shm *pins = shmq_pins_of(m, row);
        for (uint32_t i = 0; pins != NULL && i < SHMQ_PINS; i++) {
            note_cell(s, &pins[i]);
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        candidate *c = &s->candidates[i];
        uint32_t generation = shmq_block_gen(c->word), left = shmq_block_refs(c->word) & c->named;
        if (left == shmq_block_refs(c->word)) {
            continue;
        }
        uint64_t wanted = left != 0 ? shmq_block_word(generation, left) : shmq_block_word(generation + 1, 0);
        if (shmq_cas_seq(&c->location.block->word, c->word, wanted) && left == 0) {
            s->freed += shmq_block_finish(m, &c->location, generation);
        }
    }
    s->count = 0;
}

static void note_candidate(sweep *s, const shmq_block_location *location, uint64_t word) {
    uint32_t refs = shmq_block_refs(word);
    if ((refs & SHMQ_ENTRY_MASK) != 0 || refs == 0) {
        return;
    }
    if (s->count == CANDIDATES) {
        drop_leaked_views(s);
    }
    s->candidates[s->count++] = (candidate){*location, shmq_location_offset(s->m, location), word, 0};
}

/* A BUILDING block of a dead process. The producer's put may have published some entries and not others: references
 * that slots name stay, the others were for entries that will never be. The producer published the names before it
 * died, so none appears now. An entry that is settled after the sweep has seen it drops its reference itself. */
static void sweep_building(sweep *s, const shmq_block_location *location, uint64_t state) {
    shmq_member *m = s->m;
    uint32_t generation = shmq_state_gen(state);
    uint64_t word = shmq_load_acquire(&location->block->word); /* SYNC block.publish: the slots are read after it */
    if (shmq_block_gen(word) != generation) {
        return;
    }
    uint32_t entries = shmq_block_refs(word) & SHMQ_ENTRY_MASK;
    if (shmq_block_refs(word) == 0) { /* its owner died before it set its first reference */
        if (shmq_cas_seq(&location->block->word, word, shmq_block_word(generation + 1, 0))) {
            s->freed += shmq_block_finish(m, location, generation);
        }
        return;
    }
    uint32_t named = entries == 0 ? 0 : s->named(s->context, shmq_location_offset(m, location), generation);
    if (shmq_block_release(m, location, generation, entries & ~named)) {
        s->freed += 1;
        return;
    }
    word = shmq_load_seq(&location->block->word);
    if (shmq_block_gen(word) == generation) {
        uint64_t shared = shmq_state_word(generation, shmq_state_class(state), 0, SHMQ_BLOCK_SHARED);
        shmq_cas_seq(&location->block->state, state, shared);
        note_candidate(s, location, word);
    }
}

/* A FREE block that no taker would find: a taker died between the hint and the state, or a dropper after the state. */
static void repair_hints(sweep *s, const shmq_block_location *location) {
    uint64_t bit = UINT64_C(1) << (location->index % 64), class_bit = UINT64_C(1) << (location->granule % 64);
    if ((shmq_load_relaxed(&location->slab->free[location->index / 64]) & bit) == 0 ||
        (shmq_load_relaxed(shmq_class_bits(s->m, location->size_class, location->granule)) & class_bit) == 0) {
        shmq_block_hint(s->m, location);
    }
}

static void sweep_block(sweep *s, const shmq_block_location *location) {
    uint64_t state = shmq_load_acquire(&location->block->state); /* SYNC block.owner: the row is read after it */
    if (shmq_state_of(state) == SHMQ_BLOCK_FREE) {
        repair_hints(s, location);
        return;
    }
    if (!shmq_state_used(state)) {
        return;
    }
    uint32_t generation = shmq_state_gen(state);
    uint64_t word = shmq_load_seq(&location->block->word);
    if (word == shmq_block_word(generation + 1, 0)) { /* freed, and the state has yet to follow */
        s->freed += shmq_block_finish(s->m, location, generation);
    } else if (shmq_block_gen(word) != generation) {
        return; /* it changed between the two looks: a live process is at work here */
    } else if (shmq_state_of(state) == SHMQ_BLOCK_SHARED) {
        note_candidate(s, location, word);
    } else if (s->dead(s->context, shmq_state_row(state))) {
        sweep_building(s, location, state);
    }
}

uint64_t shmq_blocks_sweep(shmq_member *m, shmq_row_dead dead, shmq_named named, void *context) {
    sweep s = {.m = m, .dead = dead, .named = named, .context = context};
    uint32_t granule = 0, high = shmq_slab_high(m);
    while (granule < high) {
        /* The sweep goes by the slab's root, not by the granule's kind. A rebuild writes the kind anew, and a slab that
         * the sweep misses would keep a dead process's block for ever. */
        shmq_slab_shm *slab = shmq_slab_at(m, granule);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
            shmq_block_location location = {slab, &slab->block[i], granule, i, size_class};
            sweep_block(&s, &location);
        }
        granule += size_class < SHMQ_CLASSES ? shmq_class_granules(size_class) : 1;
    }
    drop_leaked_views(&s);
    return s.freed;
}
