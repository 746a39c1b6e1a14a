/* Faults of entries: their owners, the blocks of their bodies, and whether the scan meets them. */
#include <time.h>

#include "base/wait_time.h"
#include "blocks/slab.h"
#include "check/check.h"
#include "check/faults.h"
#include "look/browse.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/ring_delivery.h"
#include "ring/ring_memory.h"

/* A row becomes FREE when its process has given everything back, and its next use has a later generation. So a row that
 * is FREE in the same generation at two looks had no owner in between. A word that names it is damaged. */
static bool is_nobodys(shmq_a64 *row, shmq_slot_shm *slot, uint64_t word) {
    uint64_t before = shmq_load_seq(row); /* SYNC row.owner */
    return shmq_row_state(before) == SHMQ_ROW_FREE && shmq_load_seq(&slot->word) == word &&
           shmq_load_seq(row) == before;
}

static const char *check_owner(const shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint32_t owner = shmq_word_owner(word), row = owner & 0xfffu;
    if (owner == 0) {
        return NULL;
    }
    if (!(owner & SHMQ_OWNER_PROCESS)) {
        shmq_consumer_shm *consumer = shmq_row_at(q, owner);
        uint64_t taken = consumer != NULL ? shmq_load_acquire(&consumer->word) : 0; /* SYNC row.owner */
        if (consumer == NULL || is_nobodys(&consumer->word, slot, word)) {
            return "the message's owner is a consumer that does not exist";
        }
        if (shmq_row_state(taken) == SHMQ_ROW_FREE) {
            return NULL; /* the owner has closed the row a moment ago, and the word has changed */
        }
        row = shmq_row_inner(taken);
    }
    bool there = row < SHMQ_PROCESS_ROWS && !is_nobodys(&q->m->rows[row].word, slot, word);
    return there ? NULL : "the message's owner is a process that does not exist";
}

/* The reference is dropped after the entry is gone: while the word stays, the bit is set. */
static const char *check_body(const shmq_queue *q, const shmq_slot_shm *slot, uint64_t word) {
    uint64_t body = shmq_read_once(&slot->body);
    if (body == 0 || !shmq_state_is_entry(shmq_word_state(word))) {
        return NULL;
    }
    uint32_t generation = shmq_read_once(&slot->body_gen), bit = shmq_body_bit(body);
    shmq_block_location location;
    if (bit >= SHMQ_ENTRY_BITS || !shmq_block_locate(q->m, shmq_body_offset(body), &location)) {
        return "the offset of the message's body is not that of a block";
    }
    uint64_t state = shmq_load_seq(&location.block->state), refs = shmq_load_seq(&location.block->word);
    if (shmq_block_gen(refs) != generation || (shmq_block_refs(refs) >> bit & 1) == 0) {
        return "the block of the message's body does not count the message";
    }
    return shmq_state_used(state) && shmq_state_gen(state) == generation ? NULL
                                                                         : "the block of the message's body is free";
}

/* A scan begins at the head, or in the old region if the head lies below tail - N. The head is read first: a head below
 * the tail of that moment less N is also below a later tail less N. */
static bool is_met(const shmq_ring *r, uint64_t position) {
    uint64_t head = shmq_load_seq(&r->shm->head);
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    uint64_t behind = (tail - head) & SHMQ_POSITION_MASK; /* the head's 44 bits, extended against the tail */
    uint64_t first = behind <= SHMQ_POSITION_MASK / 2 ? tail - behind : tail;
    return position >= first || (tail > count && position < tail - count && first < tail - count);
}

/* A mover turns the head back after it has given entries back; if it dies, the next mover does so. */
static bool is_given_back(const shmq_ring *r, uint64_t p) {
    return shmq_load_seq(&r->queue->page->unfinished) != 0 && !shmq_is_front(r) &&
           p >= shmq_flow_place(shmq_load_seq(&r->shm->flow));
}

static bool may_be_missed(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word) {
    if (shmq_word_state(word) != SHMQ_AVAILABLE) {
        return false;
    }
    uint64_t p = shmq_load_acquire(&((shmq_slot_shm *)slot)->position); /* SYNC ring.publish */
    return !is_met(r, p) && !is_given_back(r, p);
}

const char *shmq_entries_fault(const shmq_ring *r, uint64_t *where, shmq_stray *stray) {
    *stray = (shmq_stray){.found = false};
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint64_t word = shmq_load_seq(&slot->word);
        const char *wrong = check_owner(r->queue, slot, word);
        if (wrong == NULL && (wrong = check_body(r->queue, slot, word)) != NULL && shmq_is_row(r, slot, word)) {
            wrong = NULL; /* the row has its own copy; this one is being freed */
        }
        bool missed = may_be_missed(r, slot, word);
        if ((wrong == NULL && !missed) || shmq_load_seq(&slot->word) != word) {
            continue; /* a fault stays */
        }
        if (wrong != NULL) {
            *where = i;
            return wrong;
        }
        if (!stray->found) {
            *stray = (shmq_stray){.found = true, .slot = i, .word = word};
        }
    }
    return NULL;
}

#define ROUNDS 20

/* All process rows were seen with nothing in hand since the entry was found. */
static bool all_were_idle(shmq_member *m, bool *idle) {
    uint32_t high = shmq_process_high(m);
    bool all = true;
    for (uint32_t row = 0; row < high; row++) {
        if (!idle[row]) {
            idle[row] = shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE ||
                        shmq_load_seq(&m->rows[row].unsettled) == 0;
            all = all && idle[row];
        }
    }
    return all;
}

static bool anybody_is_dead(shmq_member *m) {
    uint32_t high = shmq_process_high(m);
    for (uint32_t row = 0; row < high; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) != SHMQ_ROW_FREE && row != m->row &&
            shmq_process_dead(m, row)) {
            return true;
        }
    }
    return false;
}

/* A process that releases an entry turns the head back after it, and counts the entry in `unsettled` until then. So if
 * each process was seen with nothing in hand, the word is still the same, and no dead process waits for a reaper, then
 * no process will turn the head back. A process that always has something in hand leaves the question open. */
bool shmq_stray_is_lost(shmq_ring *r, const shmq_stray *stray) {
    bool idle[SHMQ_PROCESS_ROWS] = {false};
    shmq_slot_shm *slot = shmq_slot_at(r, stray->slot);
    for (int round = 0; round < ROUNDS; round++) {
        bool all = all_were_idle(r->queue->m, idle) && !anybody_is_dead(r->queue->m);
        if (!may_be_missed(r, slot, stray->word) || shmq_load_seq(&slot->word) != stray->word) {
            return false;
        }
        if (all) {
            return true;
        }
        struct timespec moment = {.tv_nsec = (long)SHMQ_SHORT_SLEEP_NS};
        nanosleep(&moment, NULL);
    }
    return false;
}

/* ---- checksums --------------------------------------------------------------------------------------------------- */

static bool is_readable(uint32_t state) {
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED || state == SHMQ_ACQUIRED ||
           state == SHMQ_LOCKED;
}

/* False: the slot holds nothing to read. */
static bool read_slot(const shmq_ring *r, uint64_t index, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(r, index);
    *d = (shmq_delivery){.depth = r->depth, .word = shmq_load_acquire(&slot->word)}; /* SYNC ring.publish */
    if (!is_readable(shmq_word_state(d->word))) {
        return false;
    }
    d->position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    shmq_delivery_read(r, slot, d);
    return true;
}

static bool leads_to_message(const shmq_ring *r, uint64_t index, shmq_delivery *d) {
    return (d->position & r->mask) == index && shmq_delivery_resolve(r, shmq_slot_at(r, index), d);
}

bool shmq_entry_snapshot(const shmq_ring *r, uint64_t index, shmq_delivery *d) {
    return read_slot(r, index, d) && leads_to_message(r, index, d);
}

const char *shmq_bodies_fault(const shmq_ring *r, shmq_bodies *bodies) {
    shmq_queue *q = r->queue;
    const char *wrong = NULL;
    *bodies = (shmq_bodies){.slot = SHMQ_NO_SLOT};
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_delivery d;
        if (!read_slot(r, i, &d)) {
            continue;
        }
        bodies->entries++;
        bool leads = leads_to_message(r, i, &d);
        bool intact = leads && q->checksum && shmq_crc_of(q, &d) == d.crc;
        if ((d.position & r->mask) != i || !shmq_browse_valid(r, &d)) {
            bodies->moved++;
        } else if (leads && !q->checksum) {
            bodies->unsigned_ones++;
        } else if (intact) {
            bodies->verified++;
        } else {
            wrong = wrong != NULL ? wrong
                    : leads       ? "the message does not match its checksum"
                                  : "the offset or length of the message's headers or body is out of range";
            bodies->slot = bodies->damaged++ == 0 ? i : bodies->slot;
        }
    }
    return wrong;
}
