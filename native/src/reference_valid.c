/* Blocks and `held` against the slots of all rings: one pass over the blocks, one over the slots, one over the blocks.
 *
 * Under the structure lock no slab and no ring comes or goes. A block that is SHARED was published before, and its slot
 * names it until its reference is dropped. So a reference that is there before the pass over the slots and after it was
 * named all the time, and the pass has met its slot: if not, nobody will ever drop it. */
#include <string.h>
#include <sys/mman.h>

#include "shmq/examine.h"
#include "shmq/sleepers.h"
#include "shmq/structure.h"
#include "shmq/verdict.h"
#include "slab.h"

typedef struct reference {
    uint64_t word;  /* of a SHARED block, before the slots; 0: none */
    uint32_t named; /* by slots */
} reference;

typedef struct recount {
    shmq_member *m;
    uint64_t bytes, blocks;
    uint64_t room;         /* for so many; damage may change a class under the look */
    reference *references; /* of all blocks of all slabs, in their order */
    uint64_t *first;       /* of the slab at a granule */
    uint32_t owned[SHMQ_PROCESS_ROWS]; /* deliveries, by process row */
    uint64_t trace; /* of all words that say who owns what */
} recount;

typedef void each_block(recount *r, const shmq_place *place, reference *one);

static void for_each_block(recount *r, each_block *visit) {
    uint32_t granule = 0;
    uint64_t index = 0;
    while (granule < r->m->granule_count) {
        shmq_slab_shm *slab = shmq_slab_at(r->m, granule);
        uint32_t size_class = slab == NULL ? SHMQ_CLASSES : shmq_slab_class(slab);
        if (size_class >= SHMQ_CLASSES) {
            granule++;
            continue;
        }
        if (r->references == NULL) {
            r->blocks += shmq_class_count(size_class);
        } else {
            r->first[granule] = index;
        }
        for (uint32_t i = 0; index < r->room && i < shmq_class_count(size_class); i++, index++) {
            shmq_place place = {slab, &slab->block[i], granule, i, size_class};
            visit(r, &place, &r->references[index]);
        }
        granule += shmq_class_granules(size_class);
    }
}

/* Private memory of the size that the slabs of this moment need. */
static bool make_room(recount *r) {
    r->blocks = 0;
    for_each_block(r, NULL);
    r->bytes = r->blocks * sizeof(reference) + r->m->granule_count * sizeof(uint64_t) + 1;
    void *room = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return false;
    }
    r->first = room;
    r->references = (reference *)(r->first + r->m->granule_count);
    r->room = r->blocks;
    return true;
}

static void note_block(recount *r, const shmq_place *place, reference *one) {
    (void)r;
    uint64_t state = shmq_load_acquire(&place->block->state); /* SYNC block.publish */
    uint64_t word = shmq_load_seq(&place->block->word);
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

/* A broken slot goes on naming its body: it is lost with it, and told as such. */
static void note_slot(recount *r, const shmq_queue *q, const shmq_slot_shm *slot, uint64_t word) {
    uint32_t state = shmq_word_state(word);
    if (state == SHMQ_ACQUIRED || state == SHMQ_LOCKED) {
        uint32_t row = process_of(q, shmq_word_owner(word));
        r->owned[row < SHMQ_PROCESS_ROWS ? row : 0] += row < SHMQ_PROCESS_ROWS;
        r->trace = (r->trace ^ word) * UINT64_C(0x100000001b3);
    }
    uint64_t body = shmq_peek(&slot->body);
    shmq_place place;
    if (body == 0 || (!shmq_state_is_entry(state) && state != SHMQ_DEQUEUED && state != SHMQ_BROKEN) ||
        !shmq_block_locate(r->m, shmq_body_offset(body), &place)) {
        return;
    }
    uint64_t index = r->first[place.granule] + place.index;
    reference *one = index < r->room ? &r->references[index] : NULL;
    if (one != NULL && shmq_block_gen(one->word) == shmq_peek(&slot->body_gen)) {
        one->named |= UINT32_C(1) << (shmq_body_bit(body) & 31);
    }
}

static void note_slots(recount *r) {
    uint32_t high = shmq_load_seq(&r->m->header->queue_high);
    memset(r->owned, 0, sizeof(r->owned));
    r->trace = 0;
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&r->m->directory[index].word)) == SHMQ_ENTRY_FREE ||
            shmq_queue_look(r->m, index, &q) != NULL) {
            continue;
        }
        for (uint64_t i = 0; i <= q.mask; i++) {
            shmq_slot_shm *slot = shmq_slot_at(&q, i);
            note_slot(r, &q, slot, shmq_load_acquire(&slot->word)); /* SYNC ring.publish */
        }
    }
}

static _Thread_local const char *found;

static void compare_block(recount *r, const shmq_place *place, reference *one) {
    uint64_t state = shmq_load_acquire(&place->block->state); /* SYNC block.owner: the row is asked after it */
    uint32_t row = shmq_state_row(state);
    if (found != NULL) {
        return;
    }
    if (shmq_state_of(state) == SHMQ_BLOCK_BUILDING && row < SHMQ_PROCESS_ROWS &&
        shmq_row_state(shmq_load_seq(&r->m->rows[row].word)) == SHMQ_ROW_FREE &&
        shmq_load_seq(&place->block->state) == state) {
        found = shmq_verdict("the block at 0x%llx is being built by nobody",
                             (unsigned long long)shmq_place_offset(r->m, place));
    }
    uint64_t word = shmq_load_seq(&place->block->word);
    uint32_t left = shmq_block_refs(one->word) & shmq_block_refs(word) & SHMQ_ENTRY_MASK & ~one->named;
    if (one->word != 0 && shmq_block_gen(one->word) == shmq_block_gen(word) && left != 0) {
        found = shmq_verdict("the block at 0x%llx has references that no message names: 0x%x",
                             (unsigned long long)shmq_place_offset(r->m, place), left);
    }
}

/* `held` is raised before a delivery is one's own, and lowered after it is not. The pass over the slots is not one moment:
 * what it says counts only if a second one sees the same words, and `held` was the same all the time. */
static const char *check_held(recount *r) {
    uint32_t before[SHMQ_PROCESS_ROWS], first[SHMQ_PROCESS_ROWS];
    bool wrong = false;
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        before[row] = shmq_load_seq(&r->m->rows[row].held);
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
            shmq_load_seq(&r->m->rows[row].held) == before[row]) {
            return shmq_verdict("process row %u holds %u messages and says %u", row, first[row], before[row]);
        }
    }
    return NULL;
}

const char *shmq_references_valid(shmq_member *m) {
    SHMQ_ASSERT(m->structure_held);
    recount *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
        return "no private memory for a recount";
    }
    r->m = m;
    found = NULL;
    if (!make_room(r)) {
        munmap(r, sizeof(*r));
        return "no private memory for a recount";
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
