/* Faults of references: blocks and `unsettled` against the slots of all rings. The checker makes three passes: over the
 * blocks, over the slots, and over the blocks again.
 *
 * A SHARED block was published before, and its slot names it until the reference is dropped. So if a reference is there
 * before and after the pass over the slots, its slot named it all the time. The pass has met that slot. If not, no
 * process will ever drop the reference. Slabs and rings that come or go meanwhile do not matter. A ring drops its
 * references before it goes, and blocks of a new slab have a later generation. */
#include <string.h>
#include <sys/mman.h>

#include "base/fault_text.h"
#include "blocks/slab.h"
#include "check/check.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/ring_memory.h"

typedef struct reference {
    uint64_t word; /* of a SHARED block, before the pass over the slots; 0: none */
    uint32_t named; /* bits that slots name */
} reference;

typedef struct recount {
    shmq_member *m;
    uint64_t bytes, blocks;
    uint64_t room; /* for so many references; damage may change a slab's class meanwhile */
    reference *references; /* of all blocks of all slabs, in their order */
    uint64_t *first; /* by granule: index of its first block << 8 | class + 1, before the pass over the slots */
    uint32_t owned[SHMQ_PROCESS_ROWS]; /* deliveries, by process row */
    uint64_t trace; /* of all words that name an owner */
} recount;

typedef void each_block(recount *r, const shmq_block_location *location, reference *one);

#define FIRST(index, size_class) ((index) << 8 | ((size_class) + 1))

static uint32_t class_at(const recount *r, uint32_t granule, shmq_slab_shm **slab) {
    *slab = shmq_slab_at(r->m, granule);
    return *slab == NULL ? SHMQ_CLASSES : shmq_slab_class(*slab);
}

static void count_blocks(recount *r) {
    shmq_slab_shm *slab;
    r->blocks = 0;
    for (uint32_t granule = 0; granule < r->m->granule_count;) {
        uint32_t size_class = class_at(r, granule, &slab);
        bool is_slab = size_class < SHMQ_CLASSES;
        r->blocks += is_slab ? shmq_class_count(size_class) : 0;
        granule += is_slab ? shmq_class_granules(size_class) : 1;
    }
}

static void number_slabs(recount *r) {
    shmq_slab_shm *slab;
    uint64_t index = 0;
    for (uint32_t granule = 0; granule < r->m->granule_count;) {
        uint32_t size_class = class_at(r, granule, &slab);
        bool is_slab = size_class < SHMQ_CLASSES;
        if (is_slab && index + shmq_class_count(size_class) <= r->room) {
            r->first[granule] = FIRST(index, size_class);
            index += shmq_class_count(size_class);
        }
        granule += is_slab ? shmq_class_granules(size_class) : 1;
    }
}

/* Visits the blocks of slabs that were numbered and have not changed their class. */
static void for_each_block(recount *r, each_block *visit) {
    shmq_slab_shm *slab;
    for (uint32_t granule = 0; granule < r->m->granule_count; granule++) {
        uint64_t first = r->first[granule];
        uint32_t size_class = first == 0 ? SHMQ_CLASSES : class_at(r, granule, &slab);
        if (first == 0 || size_class + 1 != (first & 0xff)) {
            continue;
        }
        for (uint32_t i = 0; i < shmq_class_count(size_class); i++) {
            shmq_block_location location = {slab, &slab->block[i], granule, i, size_class};
            visit(r, &location, &r->references[(first >> 8) + i]);
        }
    }
}

/* Private memory for all slabs of this moment. */
static bool make_room(recount *r) {
    count_blocks(r);
    r->bytes = r->blocks * sizeof(reference) + r->m->granule_count * sizeof(uint64_t) + 1;
    void *room = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return false;
    }
    r->first = room;
    r->references = (reference *)(r->first + r->m->granule_count);
    r->room = r->blocks;
    number_slabs(r);
    return true;
}

static void note_block(recount *r, const shmq_block_location *location, reference *one) {
    (void)r;
    uint64_t state = shmq_load_acquire(&location->block->state); /* SYNC block.publish */
    uint64_t word = shmq_load_seq(&location->block->word);
    bool shared = shmq_state_of(state) == SHMQ_BLOCK_SHARED && shmq_block_gen(word) == shmq_state_gen(state);
    one->word = shared ? word : 0;
}

static uint32_t process_of(const shmq_queue *q, uint32_t owner) {
    if (owner & SHMQ_OWNER_PROCESS) {
        return owner & 0xfffu;
    }
    shmq_consumer_shm *consumer = shmq_row_at(q, owner);
    return consumer == NULL ? SHMQ_PROCESS_ROWS
                            : shmq_row_inner(shmq_load_acquire(&consumer->word)); /* SYNC row.owner */
}

/* A broken slot still names its body: both are lost, and reported as such. */
static void note_slot(recount *r, const shmq_queue *q, const shmq_slot_shm *slot, uint64_t word) {
    uint32_t state = shmq_word_state(word);
    if (shmq_state_is_in_hand(state)) {
        uint32_t row = process_of(q, shmq_word_owner(word));
        r->owned[row < SHMQ_PROCESS_ROWS ? row : 0] += row < SHMQ_PROCESS_ROWS;
        r->trace = (r->trace ^ word) * UINT64_C(0x100000001b3);
    }
    uint64_t body = shmq_read_once(&slot->body);
    shmq_block_location location;
    if (body == 0 || (!shmq_state_is_entry(state) && state != SHMQ_DEQUEUED && state != SHMQ_BROKEN) ||
        !shmq_block_locate(r->m, shmq_body_offset(body), &location)) {
        return;
    }
    uint64_t first = r->first[location.granule];
    if ((first & 0xff) != location.size_class + 1) {
        return; /* a slab that was made since */
    }
    reference *one = &r->references[(first >> 8) + location.index];
    if (shmq_block_gen(one->word) == shmq_read_once(&slot->body_gen)) {
        one->named |= UINT32_C(1) << (shmq_body_bit(body) & 31);
    }
}

static void note_levels(recount *r, const shmq_queue *q) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        if (shmq_level_look(q, depth, &level) != NULL) {
            continue;
        }
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            shmq_slot_shm *slot = shmq_slot_at(&level, i);
            note_slot(r, level.queue, slot, shmq_load_acquire(&slot->word)); /* SYNC ring.publish */
        }
    }
}

static void note_slots(recount *r) {
    uint32_t high = shmq_queue_high(r->m);
    memset(r->owned, 0, sizeof(r->owned));
    r->trace = 0;
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&r->m->directory[index].word)) == SHMQ_ENTRY_FREE ||
            shmq_queue_look(r->m, index, &q) != NULL) {
            continue;
        }
        note_levels(r, &q);
    }
}

static _Thread_local const char *found;

static void compare_block(recount *r, const shmq_block_location *location, reference *one) {
    uint64_t state = shmq_load_acquire(&location->block->state); /* SYNC block.owner: the row is read after it */
    uint32_t row = shmq_state_row(state);
    if (found != NULL) {
        return;
    }
    if (shmq_state_of(state) == SHMQ_BLOCK_BUILDING && row < SHMQ_PROCESS_ROWS &&
        shmq_row_state(shmq_load_seq(&r->m->rows[row].word)) == SHMQ_ROW_FREE &&
        shmq_load_seq(&location->block->state) == state) {
        found = shmq_fault_text("the block at 0x%llx is being filled, but no process owns it",
                                (unsigned long long)shmq_location_offset(r->m, location));
    }
    uint64_t word = shmq_load_seq(&location->block->word);
    uint32_t left = shmq_block_refs(one->word) & shmq_block_refs(word) & SHMQ_ENTRY_MASK & ~one->named;
    if (one->word != 0 && shmq_block_gen(one->word) == shmq_block_gen(word) && left != 0) {
        found = shmq_fault_text("the block at 0x%llx has references that no message names: 0x%x",
                                (unsigned long long)shmq_location_offset(r->m, location), left);
    }
}

/* A process raises `unsettled` before a delivery is its own, and lowers it after. The pass over the slots takes time.
 * Its result counts only if a second pass sees the same words, and `unsettled` was the same all the time. */
static const char *check_held(recount *r) {
    uint32_t before[SHMQ_PROCESS_ROWS], first[SHMQ_PROCESS_ROWS];
    bool wrong = false;
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        before[row] = shmq_load_seq(&r->m->rows[row].unsettled);
        wrong = wrong || before[row] < r->owned[row];
    }
    if (!wrong) {
        return NULL;
    }
    uint64_t trace = r->trace;
    memcpy(first, r->owned, sizeof(first));
    note_slots(r);
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS && r->trace == trace; row++) {
        if (before[row] < first[row] && r->owned[row] == first[row] &&
            shmq_load_seq(&r->m->rows[row].unsettled) == before[row]) {
            return shmq_fault_text("process row %u has %u messages in hand, but counts %u", row, first[row],
                                   before[row]);
        }
    }
    return NULL;
}

const char *shmq_references_fault(shmq_member *m) {
    recount *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
        return shmq_unlooked;
    }
    r->m = m;
    found = NULL;
    if (!make_room(r)) {
        munmap(r, sizeof(*r));
        return shmq_unlooked;
    }
    for_each_block(r, note_block);
    note_slots(r);
    for_each_block(r, compare_block);
    if (found == NULL) {
        found = check_held(r);
    }
    munmap(r->first, r->bytes);
    munmap(r, sizeof(*r));
    return found;
}
