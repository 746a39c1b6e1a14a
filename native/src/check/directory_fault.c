/* Faults of the directory, and of what each queue's page says of the queue. */
#include <string.h>

#include "base/fault_text.h"
#include "check/faults.h"
#include "layout/run.h"
#include "limits/line.h"
#include "queue/cold.h"
#include "queue/level.h"
#include "queue/settings.h"
#include "segment/structure.h"

static const char *check_settings(shmq_queue_shm *page) {
    if (shmq_name_len(page) == 0) {
        return "its name is empty or too long";
    }
    const char *wrong = shmq_settings_fault(page);
    if (wrong != NULL) {
        return wrong;
    }
    if (page->temporary_row >= SHMQ_PROCESS_ROWS) {
        return "its temporary setting names a process row that is out of range";
    }
    if (shmq_load_seq(&page->shut_down) > SHMQ_STOPPED) {
        return "its word for a shutdown has a value that this version does not know";
    }
    return shmq_settings_sealed(page) ? NULL : "its settings do not match their checksum";
}

static const char *check_constants(const shmq_ring *r) {
    shmq_queue *q = r->queue;
    shmq_ring_shm *ring = r->shm;
    const shmq_ring *first =
        &q->first; /* its copies: the words of the page may have been damaged since they were checked */
    shmq_run run = shmq_run_of(first->shift, first->slot_size, q->levels);
    uint64_t begin = shmq_copy_once(&q->page->ring.run), laid = shmq_load_seq(&ring->laid);
    if (ring->slots != begin + shmq_run_slots(&run, r->depth) ||
        ring->carried != begin + shmq_run_carried(&run, r->depth) || q->page->level_rings != begin + run.rings ||
        ring->shift != (shmq_is_front(r) ? shmq_front_shift(first->shift) : first->shift) ||
        ring->slot_size != first->slot_size || ring->run_granules != (r->depth > 0 ? 0 : run.granules) ||
        (r->depth > 0 && ring->run != 0)) {
        return "its ring does not fill the memory that was reserved for it";
    }
    if ((laid == 0 && !shmq_is_front(r)) || (laid >= shmq_run_count(&run, r->depth) && laid != SHMQ_LAID_ALL)) {
        return "its ring counts more slots with memory than it has, or none";
    }
    if (ring->kind != (shmq_is_front(r) ? SHMQ_RING_FRONT : SHMQ_RING_BACK)) {
        return "its ring is of another kind than its place says";
    }
    uint64_t later = ring->features | shmq_load_relaxed(&ring->back) | shmq_load_relaxed(&ring->aside) |
                     shmq_load_relaxed(&ring->level_shift);
    if (shmq_is_front(r)) {
        later |= shmq_load_relaxed(&ring->flow) | shmq_load_relaxed(&ring->flushing_at) |
                 shmq_load_relaxed(&ring->flushing_count) | shmq_load_relaxed(&ring->dropping_at) |
                 shmq_load_relaxed(&ring->rows_due) | shmq_load_relaxed(&ring->tried) |
                 shmq_load_relaxed(&ring->waiting) | shmq_load_relaxed(&ring->waiting_due);
    }
    return later != 0 ? "its ring has a value in a field that this version does not use" : shmq_cold_fault(r);
}

static const char *check_page(shmq_member *m, uint32_t index, uint64_t word) {
    shmq_queue q;
    const char *wrong = shmq_queue_look(m, index, &q);
    if (wrong != NULL) {
        return wrong;
    }
    if (q.page->index != index || q.page->incarnation != shmq_entry_incarnation(word)) {
        return "its page is that of another queue";
    }
    if ((wrong = check_settings(q.page)) != NULL) {
        return wrong;
    }
    if (m->directory[index].name_hash != shmq_name_hash(q.page->name, shmq_name_len(q.page))) {
        return "its name does not match the hash by which processes look it up";
    }
    /* Deletion changes the page first; the entry stays while consumers have messages in hand. */
    uint32_t state = shmq_load_seq(&q.page->state);
    if (state != SHMQ_QUEUE_DELETED && (state != SHMQ_QUEUE_LIVE || shmq_entry_state(word) != SHMQ_ENTRY_LIVE)) {
        return "its page is not in service";
    }
    shmq_ring level;
    for (uint32_t depth = 0; depth < q.rings; depth++) {
        wrong = shmq_level_look(&q, depth, &level);
        if (wrong != NULL || (wrong = check_constants(&level)) != NULL) {
            return wrong;
        }
    }
    if ((wrong = shmq_groups_fault(&q)) != NULL || (wrong = shmq_line_fault(&q)) != NULL) {
        return wrong;
    }
    return shmq_consumers_fault(&q);
}

static bool have_one_name(shmq_queue_shm *one, shmq_queue_shm *other) {
    bool in_service = shmq_load_seq(&one->state) == SHMQ_QUEUE_LIVE && shmq_load_seq(&other->state) == SHMQ_QUEUE_LIVE;
    uint32_t len = shmq_name_len(one);
    return in_service && len == shmq_name_len(other) && memcmp(one->name, other->name, len) == 0;
}

static const char *check_names(shmq_member *m, uint32_t high) {
    for (uint32_t i = 0; i < high; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (m->directory[i].name_hash == m->directory[k].name_hash &&
                shmq_entry_state(shmq_load_seq(&m->directory[i].word)) == SHMQ_ENTRY_LIVE &&
                shmq_entry_state(shmq_load_seq(&m->directory[k].word)) == SHMQ_ENTRY_LIVE) {
                shmq_queue one, other; /* looked at anew: their entries may have been damaged since */
                if (shmq_queue_look(m, i, &one) == NULL && shmq_queue_look(m, k, &other) == NULL &&
                    have_one_name(one.page, other.page)) {
                    return shmq_fault_text("queues %u and %u have the same name", k, i);
                }
            }
        }
    }
    return NULL;
}

const char *shmq_directory_fault(shmq_member *m) {
    uint32_t high = shmq_load_seq(&m->header->queue_high);
    if (high > SHMQ_QUEUES) {
        return shmq_fault_text("the header counts %u queues, but there can be only %u", high, SHMQ_QUEUES);
    }
    for (uint32_t index = 0; index < SHMQ_QUEUES; index++) {
        uint64_t word = shmq_load_seq(&m->directory[index].word);
        if (index >= high && word != 0) {
            return shmq_fault_text("queue %u was made, but the header counts only %u queues", index, high);
        }
        if (shmq_entry_state(word) > SHMQ_ENTRY_DELETED || (word & 0xffffff00u) != 0) {
            return shmq_fault_text("queue %u: the state word of its directory entry makes no sense: 0x%llx", index,
                                   (unsigned long long)word);
        }
        const char *wrong = shmq_entry_state(word) == SHMQ_ENTRY_FREE ? NULL : check_page(m, index, word);
        if (wrong != NULL) {
            char why[160];
            snprintf(why, sizeof(why), "%s", wrong);
            return shmq_fault_text("queue %u: %s", index, why);
        }
    }
    return check_names(m, high);
}

const char *shmq_segment_fault(shmq_member *m) {
    const char *wrong = shmq_structure_fault(m);
    wrong = wrong != NULL ? wrong : shmq_processes_fault(m);
    wrong = wrong != NULL ? wrong : shmq_directory_fault(m);
    wrong = wrong != NULL ? wrong : shmq_counters_fault(m);
    wrong = wrong != NULL ? wrong : shmq_pins_fault(m);
    wrong = wrong != NULL ? wrong : shmq_watch_fault(m);
    return wrong != NULL ? wrong : shmq_blocks_fault(m);
}
