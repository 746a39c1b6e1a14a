#include "consumers/sleepers.h"
#include "groups/group.h"
#include "layout/block.h"
#include "layout/waiters.h"
#include "limits/line.h"
#include "queue/consumer_row.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "likeness.h"

#include <string.h>

#include "rows.h"

static uint64_t hash;

static void add(uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
}

static void add_header(const shmq_segment_shm *header) {
    add(header->state);
    add(header->dirty != 0);
    add(shmq_waiters_in(header->memory_waiters));
    add(header->damage);
    for (int i = 0; i < 2; i++) {
        add(header->watch[i] & 0x3ffff);
    }
    for (unsigned i = 0; i < SHMQ_VOLUNTEERS; i++) {
        add(header->volunteers[i] != 0);
    }
}

static void add_rows(const stage *s, uint64_t alive) {
    const shmq_member *m = s->survivor.m;
    for (uint32_t row = 0; row < m->header->process_high; row++) {
        const shmq_process_shm *process = &m->rows[row];
        add((uint64_t)shmq_row_state(process->word) << 1 | (row < 64 && (alive >> row & 1) != 0));
        add((uint64_t)process->unsettled << 32 | process->memory_changing << 16 | process->memory_waiting);
        add((uint64_t)process->privileges << 32 | process->inside);
        const shmq_process_page_shm *page = process->pins != 0 ? shmq_at(m, process->pins) : NULL;
        for (unsigned i = 0; page != NULL && i < SHMQ_PINS; i++) {
            add(page->pins[i].cell << 16);
        }
        uint64_t returned = 0;
        for (unsigned i = 0; page != NULL && i < SHMQ_RECEIPTS; i++) {
            returned |= (page->receipts[i] & 1) << i;
        }
        add(returned);
    }
}

static void add_slot(const shmq_ring *r, uint64_t index) {
    const shmq_slot_shm *slot = shmq_slot_at(r, index);
    uint64_t word = slot->word, value = 0;
    uint32_t state = shmq_word_state(word);
    add((word & 0x1fffff) | (uint64_t)shmq_word_lap(word) << 32);
    if (shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) {
        memcpy(&value, slot->inline_area, slot->body == 0 ? sizeof(value) : 0);
        add(value);
        add(slot->position);
        add(slot->body);
        add((uint64_t)slot->delivery << 16 | (slot->deaths < 3 ? slot->deaths : 3));
        add(slot->death_tag == (SHMQ_DEATH_COUNTED | shmq_word_tag(word)));
    }
}

static void add_consumers(const shmq_queue *q) {
    for (unsigned group = 0; group < SHMQ_CHUNKS; group++) {
        const shmq_sleepers_shm *sleepers = &q->page->sleepers[group];
        add(sleepers->idle);
        add(sleepers->browse);
        add(sleepers->used);
        for (uint64_t used = sleepers->used; used != 0; used &= used - 1) {
            uint32_t number = group * 64 + (uint32_t)__builtin_ctzll(used);
            const shmq_consumer_shm *row = shmq_row_at(q, number);
            add(row != NULL ? (row->word & 0xffffffff) | (uint64_t)row->sleeps << 32 | (uint64_t)row->live << 33 : 0);
            add(shmq_has_looked((shmq_queue *)(uintptr_t)q, number));
        }
    }
}

static void add_level(const shmq_ring *level) {
    add(level->shm->tail);
    add(level->shm->head & SHMQ_POSITION_MASK);
    for (uint64_t i = 0; i < shmq_slots_laid(level); i++) {
        add_slot(level, i);
    }
    for (uint64_t i = 0; i <= level->mask / 64; i++) {
        add(level->carried[i]);
    }
}

/* Of the tickets only who has them, in their order. */
static void add_line(const shmq_queue *q) {
    uint32_t front = (uint32_t)(q->page->line >> 32);
    add(shmq_line_length(q));
    for (uint32_t i = 0; i < SHMQ_TICKETS; i++) {
        add(q->tickets[(front + i) % SHMQ_TICKETS].word & UINT32_MAX);
    }
}

/* Without their versions. */
static void add_groups(const shmq_queue *q) {
    for (uint32_t i = 0; i < shmq_groups_laid(q); i++) {
        const shmq_group_shm *group = shmq_group_at(q, i + 1);
        uint64_t owner = group->owner & ((UINT64_C(1) << 40) - 1), refused = group->refused & ((UINT64_C(1) << 48) - 1);
        if ((owner | refused) != 0) {
            add(i);
            add(owner); /* with its row's generation: who has an earlier one has no group */
            add(refused);
        }
    }
}

/* Of the counts only what is between them. */
static void add_flow(const shmq_queue *q) {
    const shmq_ring_shm *ring = q->first.shm;
    add(ring->flow);
    add(ring->low);
    add(ring->flushed - ring->pulled);
    add(ring->flushing_at == shmq_flow_place(ring->flow) ? ring->flushing_count - ring->flushed + 1 : 0);
    add((uint64_t)(q->page->unfinished != 0) << 1 | (q->page->missed != 0));
    add(q->page->unswept);
    add(rows_key());
}

/* The records of a front ring about its entries beside their slots. */
static void add_records(const shmq_ring *front) {
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        if (shmq_state_is_entry(shmq_word_state(slot->word))) {
            add(shmq_front_place(front, slot));
        }
    }
}

static void add_queue(shmq_member *m, uint32_t index) {
    shmq_queue q;
    add(shmq_entry_state(m->directory[index].word));
    for (uint32_t row = 0; row < m->header->process_high; row++) {
        const shmq_counters_shm *counters = shmq_counters_at(m, row, index);
        add(counters == NULL ? 0
                             : (uint64_t)counters->moving << 32 | counters->changing << 16 | counters->waiting << 1 |
                                   (counters->attached != 0));
    }
    if (shmq_entry_state(m->directory[index].word) == SHMQ_ENTRY_FREE || shmq_queue_view(m, index, &q) != SHMQ_OK) {
        return;
    }
    add((uint64_t)q.page->state << 32 | q.page->shut_down);
    add((uint64_t)shmq_waiters_in(q.first.shm->waiters) << 32 | (q.page->count & UINT32_MAX));
    add(q.page->recount_due != 0);
    add_line(&q);
    shmq_ring level;
    for (uint32_t depth = 0; depth < q.rings && shmq_level_look(&q, depth, &level) == NULL; depth++) {
        add_level(&level);
        if (depth >= q.levels) {
            add_flow(&q);
            add_records(&level);
        }
    }
    add_consumers(&q);
    add_groups(&q);
}

static void add_memory(const shmq_member *m) {
    for (uint32_t granule = 0; granule < m->granule_count; granule++) {
        add(m->granules[granule]);
        if ((m->granules[granule] & SHMQ_GRANULE_HEADERS) == 0) {
            continue;
        }
        const shmq_slab_shm *slab = (const shmq_slab_shm *)(m->slabs + (uint64_t)granule * SHMQ_SLAB_BYTES);
        add(slab->class_word);
        for (unsigned i = 0; i < SHMQ_SLAB_BLOCKS; i++) {
            add((slab->block[i].word & UINT32_MAX) << 32 | (slab->block[i].state & UINT32_MAX));
        }
        for (unsigned i = 0; i < 4; i++) {
            add(slab->free[i]);
        }
    }
}

uint64_t likeness(stage *s, uint64_t alive, uint64_t of_history) {
    shmq_member *m = s->survivor.m;
    hash = 1;
    add_header(m->header);
    add_rows(s, alive);
    for (uint32_t index = 0; index < m->header->queue_high; index++) {
        add_queue(m, index);
    }
    add_memory(m);
    add(of_history);
    return hash;
}
