/* Memory of deleted queues goes back when nobody can touch it any more. */
#include "shmq/reap.h"
#include "shmq/structure.h"

/* A member says in its counter line which incarnation it may touch; the line stays until its row is FREE again. */
static bool in_use(shmq_member *m, uint32_t index, uint32_t incarnation) {
    uint32_t high = shmq_load_seq(&m->header->process_high);
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE) {
            continue;
        }
        shmq_counters_shm *line = shmq_counters_at(m, row, index);
        if (line != NULL && shmq_load_seq(&line->attached) == (uint64_t)incarnation + 1) {
            return true;
        }
    }
    return false;
}

typedef struct holdings {
    uint64_t page;
    uint64_t ring;
    uint64_t chunks[SHMQ_CHUNKS];
} holdings;

static void give_back(shmq_member *m, const holdings *held) {
    shmq_run_give(m, held->ring);
    for (uint32_t i = 0; i < SHMQ_CHUNKS; i++) {
        if (held->chunks[i] != 0) {
            shmq_page_give(m, held->chunks[i]);
        }
    }
    shmq_page_give(m, held->page);
}

static void release(shmq_member *m, shmq_directory_shm *entry, uint64_t word) {
    uint64_t offset = shmq_load_seq(&entry->page);
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 || !shmq_inside(m, offset, SHMQ_PAGE_BYTES)) {
        /* Left as it is: the entry is lost, the rest works. */
        (void)shmq_damage(m, "offset of a deleted queue's page", offset);
        return;
    }
    shmq_queue_shm *page = shmq_at(m, offset);
    holdings held = {.page = offset, .ring = page->ring.slots};
    for (uint32_t i = 0; i < SHMQ_CHUNKS; i++) {
        held.chunks[i] = shmq_load_seq(&page->chunks[i]);
    }
    /* Repeatable, so it comes before the one store that takes the root away. */
    shmq_ring_discard(m, page);
    shmq_store_seq(&entry->word, shmq_entry_word(shmq_entry_incarnation(word), SHMQ_ENTRY_FREE));
    give_back(m, &held);
}

void shmq_queues_release(shmq_member *m) {
    SHMQ_ASSERT(m->structure_held);
    uint32_t high = shmq_load_seq(&m->header->queue_high);
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        shmq_directory_shm *entry = &m->directory[index];
        uint64_t word = shmq_load_seq(&entry->word);
        if (shmq_entry_state(word) == SHMQ_ENTRY_DELETED && !in_use(m, index, shmq_entry_incarnation(word))) {
            release(m, entry, word);
        }
    }
}
