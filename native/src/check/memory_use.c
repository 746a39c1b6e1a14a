#include "check/memory_use.h"
#include "blocks/slab.h"
#include "queue/level.h"
#include "ring/ring_memory.h"

#include <string.h>

static uint64_t bodies_of(const shmq_ring *r) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
        uint64_t body = shmq_read_once(&slot->body);
        shmq_block_location location;
        if (body != 0 && (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) &&
            shmq_block_locate(r->queue->m, shmq_body_offset(body), &location)) {
            bytes += shmq_class_bytes(location.size_class);
        }
    }
    return bytes;
}

bool shmq_memory_use_of(shmq_member *m, uint32_t index, shmq_memory_use *use) {
    shmq_queue q;
    shmq_ring level;
    SHMQ_ASSERT(m->structure_locked);
    if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_FREE ||
        shmq_queue_look(m, index, &q) != NULL) {
        return false;
    }
    memset(use, 0, sizeof *use);
    bool in_service = shmq_load_seq(&q.page->state) == SHMQ_QUEUE_LIVE;
    uint32_t len = in_service ? shmq_name_len(q.page) : 0;
    memcpy(use->name, q.page->name, len);
    use->slots = shmq_queue_reserved(&q);
    for (uint32_t depth = 0; depth < q.rings && shmq_level_look(&q, depth, &level) == NULL; depth++) {
        use->bodies += bodies_of(&level);
    }
    return true;
}
