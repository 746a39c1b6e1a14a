/* D5: a process gives back the memory of a deleted queue when no member can touch it any more. */
#include "blocks/block.h"
#include "lifecycle/delete.h"
#include "queue/level.h"
#include "ring/ring_memory.h"
#include "segment/structure.h"

/* Each member says in its counters which incarnation it may touch; they stay until its row is FREE again. */
static bool in_use(shmq_member *m, uint32_t index, uint32_t incarnation) {
    uint32_t high = shmq_process_high(m);
    for (uint32_t row = 0; row < high; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE) {
            continue;
        }
        shmq_counters_shm *counters = shmq_counters_at(m, row, index);
        if (counters != NULL && shmq_load_seq(&counters->attached) == (uint64_t)incarnation + 1) {
            return true;
        }
    }
    return false;
}

typedef struct holdings {
    uint64_t page;
    uint64_t ring;
    uint64_t cold[SHMQ_RINGS_MAX];
    uint64_t chunks[SHMQ_CHUNKS], selectors[SHMQ_CHUNKS];
} holdings;

static void give_back(shmq_member *m, const holdings *held) {
    shmq_rings_give(m, held->ring);
    for (uint32_t depth = 0; depth < SHMQ_RINGS_MAX; depth++) {
        if (held->cold[depth] != 0) {
            shmq_run_give(m, held->cold[depth]);
        }
    }
    for (uint32_t i = 0; i < SHMQ_CHUNKS; i++) {
        if (held->chunks[i] != 0) {
            shmq_page_give(m, held->chunks[i]);
        }
        if (held->selectors[i] != 0) {
            shmq_page_give(m, held->selectors[i]);
        }
    }
    shmq_page_give(m, held->page);
}

static void discard_level(const shmq_ring *r) {
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
        uint64_t body = shmq_read_once(&slot->body);
        if ((shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) && body != 0) {
            shmq_block_drop(r->queue->m, shmq_body_offset(body), shmq_read_once(&slot->body_gen), shmq_body_bit(body));
        }
    }
}

void shmq_ring_discard(shmq_member *m, shmq_queue_shm *page) {
    shmq_queue q;
    shmq_ring level;
    uint64_t offset = (uint64_t)((unsigned char *)page - m->base);
    if (page->index >= SHMQ_QUEUES || shmq_load_seq(&m->directory[page->index].page) != offset ||
        shmq_queue_view(m, page->index, &q) != SHMQ_OK) {
        return;
    }
    for (uint32_t depth = 0; depth < q.rings && shmq_level_look(&q, depth, &level) == NULL; depth++) {
        discard_level(&level);
    }
}

static void release(shmq_member *m, shmq_directory_shm *entry, uint64_t word) {
    uint64_t offset = shmq_load_seq(&entry->page);
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 || !shmq_inside(m, offset, SHMQ_PAGE_BYTES)) {
        /* The entry stays as it is and is lost; everything else works. */
        (void)shmq_damage(m, "the offset of a deleted queue's page makes no sense", offset);
        return;
    }
    shmq_queue_shm *page = shmq_at(m, offset);
    holdings held = {.page = offset, .ring = page->ring.run};
    for (uint32_t depth = 0; depth < SHMQ_RINGS_MAX; depth++) {
        shmq_ring_shm *ring = shmq_page_ring(m, page, depth);
        held.cold[depth] = ring != NULL ? shmq_load_seq(&ring->cold) : 0;
    }
    for (uint32_t i = 0; i < SHMQ_CHUNKS; i++) {
        held.chunks[i] = shmq_load_seq(&page->chunks[i]);
        held.selectors[i] = shmq_load_seq(&page->selectors[i]);
    }
    /* Repeatable, so it is done before the one store that takes the root away. */
    shmq_ring_discard(m, page);
    shmq_store_seq(&entry->word, shmq_entry_word(shmq_entry_incarnation(word), SHMQ_ENTRY_FREE));
    shmq_fence_release(); /* SYNC directory.name: the entry before all that becomes of its page */
    give_back(m, &held);
    shmq_wake_for_memory(m);
}

void shmq_queues_release(shmq_member *m) {
    shmq_queues_end_deleted(m);
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_directory_shm *entry = &m->directory[index];
        uint64_t word = shmq_load_seq(&entry->word);
        if (shmq_entry_state(word) == SHMQ_ENTRY_DELETED && !in_use(m, index, shmq_entry_incarnation(word))) {
            release(m, entry, word);
        }
    }
}
