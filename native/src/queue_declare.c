/* The queue directory: find, make, settle options, shut down, delete.
 *
 * Making a queue, each step before the next, under the structure lock: page and run taken (garbage until the last step),
 * page filled, entry.page and name_hash written, entry.word FREE -> LIVE. That last store is the root: before it a death
 * leaves memory that the rebuild of the map finds unused; after it the queue is there. */
#include <string.h>
#include <unistd.h>

#include "shmq/block.h"
#include "shmq/ring.h"
#include "shmq/sleepers.h"
#include "shmq/structure.h"

uint64_t shmq_name_hash(const char *name, uint32_t len) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static shmq_queue_shm *page_of(shmq_member *m, uint32_t index) {
    uint64_t page = shmq_load_acquire(&m->directory[index].page); /* SYNC directory.entry */
    if ((page & (SHMQ_PAGE_BYTES - 1)) != 0 || page < m->data || !shmq_inside(m, page, SHMQ_PAGE_BYTES)) {
        (void)shmq_damage(m, "queue page", page);
        return NULL;
    }
    return shmq_at(m, page);
}

bool shmq_queue_named(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation) {
    uint64_t word = shmq_load_acquire(&m->directory[index].word); /* SYNC directory.entry */
    if (shmq_entry_state(word) != SHMQ_ENTRY_LIVE) {
        return false;
    }
    shmq_queue_shm *page = page_of(m, index);
    uint32_t len = page != NULL ? page->name_len : 0;
    if (len == 0 || len > SHMQ_NAME_MAX) {
        return false;
    }
    memcpy(name, page->name, len);
    name[len] = '\0';
    *incarnation = shmq_entry_incarnation(word);
    return shmq_load_seq(&m->directory[index].word) == word;
}

static int find(shmq_member *m, const char *name, uint32_t len, uint64_t hash) {
    uint32_t high = shmq_load_acquire(&m->header->queue_high); /* SYNC directory.entry */
    for (uint32_t i = 0; i < high && i < SHMQ_QUEUES; i++) {
        shmq_directory_shm *entry = &m->directory[i];
        uint64_t word = shmq_load_acquire(&entry->word); /* SYNC directory.entry */
        if (shmq_entry_state(word) == SHMQ_ENTRY_LIVE && entry->name_hash == hash) {
            shmq_queue_shm *page = page_of(m, i);
            if (page != NULL && page->name_len == len && memcmp(page->name, name, len) == 0) {
                return (int)i;
            }
        }
    }
    return -1;
}

static uint32_t shift_of(uint64_t slots) {
    uint32_t shift = 0;
    while ((UINT64_C(1) << shift) < slots) {
        shift++;
    }
    return shift;
}

/* Slots of a new ring: maxsize rounded up; without one, what takes an eighth of the memory that is still free. */
static uint32_t plan_shift(const shmq_member *m, const shmq_declaration *d, uint32_t slot_size) {
    if (d->maxsize != 0) {
        return shift_of(d->maxsize < SHMQ_RING_MIN ? SHMQ_RING_MIN : d->maxsize);
    }
    uint64_t bytes = shmq_granules_free(m) * SHMQ_GRANULE_BYTES / 8;
    uint64_t slots = 65536;
    while (slots > SHMQ_RING_MIN && slots * slot_size > bytes) {
        slots /= 2;
    }
    return shift_of(slots);
}

static shmq_status take_ring(shmq_member *m, const shmq_declaration *d, shmq_ring_shm *ring) {
    uint32_t slot_size = d->given & (1u << SHMQ_SET_SLOT_SIZE) ? d->slot_size : SHMQ_DEFAULT_SLOT_SIZE;
    uint32_t shift = plan_shift(m, d, slot_size);
    for (;;) {
        uint64_t count = UINT64_C(1) << shift;
        uint64_t bytes = count * slot_size + count / 8;
        uint32_t granules = (uint32_t)((bytes + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT);
        shmq_status status = shmq_run_take(m, granules, SHMQ_GRANULE_RING, &ring->slots);
        if (status == SHMQ_FULL_MEMORY && shmq_blocks_reclaim(m) != 0) {
            status = shmq_run_take(m, granules, SHMQ_GRANULE_RING, &ring->slots);
        }
        if (status == SHMQ_OK) {
            ring->kind = SHMQ_RING_FRONT;
            ring->shift = shift;
            ring->slot_size = slot_size;
            ring->carried = ring->slots + count * slot_size;
            ring->run_granules = granules;
            return SHMQ_OK;
        }
        if (status != SHMQ_FULL_MEMORY || d->maxsize != 0 || count <= SHMQ_RING_MIN) {
            return status;
        }
        shift--;
    }
}

static void fill_page(shmq_member *m, shmq_queue_shm *page, const char *name, uint32_t name_len,
                      const shmq_declaration *d) {
    page->name_len = name_len;
    memcpy(page->name, name, name_len);
    page->created_by = (uint32_t)getpid();
    page->created_ns = shmq_wall_ns();
    shmq_store_relaxed(&page->given, d->given);
    shmq_store_relaxed(&page->maxsize, d->given & (1u << SHMQ_SET_MAXSIZE) ? d->maxsize : 0);
    shmq_store_relaxed(&page->max_deliveries,
                       d->given & (1u << SHMQ_SET_MAX_DELIVERIES) ? d->max_deliveries : SHMQ_DEFAULT_MAX_DELIVERIES);
    shmq_store_relaxed(&page->max_deaths,
                       d->given & (1u << SHMQ_SET_MAX_DEATHS) ? d->max_deaths : SHMQ_DEFAULT_MAX_DEATHS);
    shmq_store_relaxed(&page->checksum, d->given & (1u << SHMQ_SET_CHECKSUM) ? d->checksum : 1);
    shmq_store_relaxed(&page->temporary, d->given & (1u << SHMQ_SET_TEMPORARY) ? d->temporary : 0);
    page->temporary_row = m->row;
    page->temporary_generation = m->row_generation;
    if (d->given & (1u << SHMQ_SET_DEAD_LETTER)) {
        page->dead_letter_len = d->dead_letter_len;
        memcpy(page->dead_letter, d->dead_letter, d->dead_letter_len);
    }
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        page->given_by[i] = d->given >> i & 1 ? (uint32_t)getpid() : 0;
    }
    shmq_store_relaxed(&page->state, SHMQ_QUEUE_LIVE);
}

/* Under the structure lock. */
static shmq_status make(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d, uint64_t hash,
                        uint32_t *index) {
    shmq_queues_release(m);
    uint32_t i = 0;
    while (i < SHMQ_QUEUES && shmq_entry_state(shmq_load_relaxed(&m->directory[i].word)) != SHMQ_ENTRY_FREE) {
        i++;
    }
    if (i == SHMQ_QUEUES) {
        return shmq_fail(SHMQ_LIMIT, "%u queues in this broker", SHMQ_QUEUES);
    }
    uint64_t offset;
    shmq_status status = shmq_page_take(m, &offset);
    if (status == SHMQ_FULL_MEMORY && shmq_blocks_reclaim(m) != 0) {
        status = shmq_page_take(m, &offset);
    }
    SHMQ_TRY(status);
    shmq_queue_shm *page = shmq_at(m, offset);
    status = take_ring(m, d, &page->ring);
    if (status != SHMQ_OK) {
        shmq_page_give(m, offset);
        return status;
    }
    shmq_directory_shm *entry = &m->directory[i];
    uint32_t incarnation = shmq_entry_incarnation(shmq_load_relaxed(&entry->word)) + 1;
    page->index = i;
    page->incarnation = incarnation;
    fill_page(m, page, name, name_len, d);
    entry->name_hash = hash;
    if (shmq_load_relaxed(&m->header->queue_high) <= i) {
        shmq_store_release(&m->header->queue_high,
                           i + 1); /* SYNC directory.entry: before the root, else nobody finds it */
    }
    shmq_store_release(&entry->page, offset);                                          /* SYNC directory.entry */
    shmq_store_release(&entry->word,
                       shmq_entry_word(incarnation, SHMQ_ENTRY_LIVE)); /* SYNC directory.entry: the root */
    *index = i;
    return SHMQ_OK;
}

static bool value_of(const shmq_queue_shm *page, const shmq_declaration *d, int setting, uint64_t *there,
                     uint64_t *wanted) {
    switch (setting) {
    case SHMQ_SET_MAXSIZE:
        *there = shmq_load_relaxed(&page->maxsize), *wanted = d->maxsize;
        return true;
    case SHMQ_SET_SLOT_SIZE:
        *there = page->ring.slot_size, *wanted = d->slot_size;
        return true;
    case SHMQ_SET_TEMPORARY:
        *there = shmq_load_relaxed(&page->temporary), *wanted = d->temporary;
        return true;
    case SHMQ_SET_MAX_DELIVERIES:
        *there = shmq_load_relaxed(&page->max_deliveries), *wanted = d->max_deliveries;
        return true;
    case SHMQ_SET_MAX_DEATHS:
        *there = shmq_load_relaxed(&page->max_deaths), *wanted = d->max_deaths;
        return true;
    case SHMQ_SET_CHECKSUM:
        *there = shmq_load_relaxed(&page->checksum), *wanted = d->checksum;
        return true;
    default:
        return false;
    }
}

static bool same(const shmq_queue_shm *page, const shmq_declaration *d, int setting) {
    uint64_t there, wanted;
    if (value_of(page, d, setting, &there, &wanted)) {
        return there == wanted;
    }
    return page->dead_letter_len == d->dead_letter_len && d->dead_letter_len <= SHMQ_NAME_MAX &&
           memcmp(page->dead_letter, d->dead_letter, d->dead_letter_len) == 0;
}

static void set(shmq_member *m, shmq_queue_shm *page, const shmq_declaration *d, int setting) {
    (void)m;
    switch (setting) {
    case SHMQ_SET_MAXSIZE:
        /* What is in the queue was not counted so far: the first put counts the slots, and none gets by before. */
        shmq_or_seq(&page->count, UINT32_MAX);
        shmq_store_seq(&page->recount_due, 1);
        shmq_store_seq(&page->maxsize, d->maxsize);
        break;
    case SHMQ_SET_MAX_DELIVERIES:
        shmq_store_seq(&page->max_deliveries, d->max_deliveries);
        break;
    case SHMQ_SET_MAX_DEATHS:
        shmq_store_seq(&page->max_deaths, d->max_deaths);
        break;
    case SHMQ_SET_DEAD_LETTER:
        memcpy(page->dead_letter, d->dead_letter, d->dead_letter_len);
        page->dead_letter_len = d->dead_letter_len;
        break;
    default:
        break;
    }
    page->given_by[setting] = (uint32_t)getpid();
    shmq_or_seq(&page->given, UINT64_C(1) << setting);
}

#define FIXED (1u << SHMQ_SET_SLOT_SIZE | 1u << SHMQ_SET_TEMPORARY | 1u << SHMQ_SET_CHECKSUM)

/* Given and given before: equal, or refused as a whole. Given for the first time: set, but for the fixed ones. */
static shmq_status settle_options(shmq_member *m, shmq_queue_shm *page, const shmq_declaration *d, int *differs) {
    uint64_t before = shmq_load_relaxed(&page->given);
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (d->given >> i & 1 && (before >> i & 1 || FIXED >> i & 1) && !same(page, d, i)) {
            *differs = i;
            return SHMQ_EXISTS;
        }
    }
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (d->given >> i & 1 && !(before >> i & 1)) {
            set(m, page, d, i);
        }
    }
    return SHMQ_OK;
}

#define DECLARE_TRIES 64 /* a queue is not deleted and made anew that often in one call: the directory is damaged */

shmq_status shmq_queue_declare(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d,
                               shmq_queue **queue, int *differs) {
    uint64_t hash = shmq_name_hash(name, name_len);
    uint32_t index = 0;
    for (int tries = 0; tries < DECLARE_TRIES; tries++) {
        int found = find(m, name, name_len, hash);
        if (found < 0 && !d->create) {
            return SHMQ_NOT_FOUND;
        }
        if (found < 0 || d->given != 0) {
            SHMQ_TRY(shmq_structure_lock(m));
            found = find(m, name, name_len, hash);
            shmq_status status = SHMQ_OK;
            shmq_queue_shm *queue_page = found >= 0 ? page_of(m, (uint32_t)found) : NULL;
            if (found >= 0) {
                status = queue_page != NULL ? settle_options(m, queue_page, d, differs) : SHMQ_CORRUPT;
            } else if (d->create) {
                status = make(m, name, name_len, d, hash, &index);
                found = (int)index;
            } else {
                status = SHMQ_NOT_FOUND;
            }
            shmq_structure_unlock(m);
            SHMQ_TRY(status);
        }
        index = (uint32_t)found;
        shmq_status status = shmq_queue_bind(m, index, 0, queue);
        if (status == SHMQ_OK &&
            ((*queue)->page->name_len != name_len || memcmp((*queue)->page->name, name, name_len))) {
            shmq_queue_unbind(*queue); /* deleted and the entry used again in between */
            continue;
        }
        if (status != SHMQ_NOT_FOUND) {
            return status; /* else it was deleted in between: again */
        }
    }
    return shmq_damage(m, "directory entry of a queue", index);
}

shmq_status shmq_queue_shut_down(shmq_queue *q, uint32_t how) {
    shmq_store_seq(&q->page->shut_down, how);
    shmq_notify_all(q);
    return SHMQ_OK;
}

static void settle_everything(shmq_queue *q) {
    for (uint64_t i = 0; i <= q->mask; i++) {
        shmq_slot_shm *slot = shmq_slot_at(q, i);
        shmq_delivery d;
        if (shmq_state_is_entry(shmq_word_state(shmq_load_seq(&slot->word))) &&
            shmq_steal(q, shmq_load_acquire(&slot->position), false, &d) == SHMQ_OK) { /* SYNC ring.publish */
            (void)shmq_settle(q, &d);
        }
    }
}

/* Under the structure lock. */
static bool mark_deleted(shmq_queue *q) {
    uint64_t live = shmq_entry_word(q->incarnation, SHMQ_ENTRY_LIVE);
    uint64_t deleted = shmq_entry_word(q->incarnation, SHMQ_ENTRY_DELETED);
    if (!shmq_cas_seq(&q->m->directory[q->index].word, live, deleted)) {
        return false;
    }
    shmq_store_seq(&q->page->state, SHMQ_QUEUE_DELETED);
    return true;
}

shmq_status shmq_queue_delete(shmq_queue *q) {
    SHMQ_TRY(shmq_structure_lock(q->m));
    bool deleted = mark_deleted(q);
    shmq_structure_unlock(q->m);
    if (!deleted) {
        return SHMQ_NOT_FOUND;
    }
    shmq_notify_all(q);
    settle_everything(q);
    return SHMQ_OK;
}

static void empty_out(shmq_queue *q) {
    shmq_notify_all(q);
    if (q->m->process != NULL) { /* without a row nobody can own an entry; its blocks go with the ring then */
        settle_everything(q);
    }
}

void shmq_queue_take_out(shmq_queue *q) {
    if (mark_deleted(q)) {
        empty_out(q);
    }
}

/* Who deleted it may have died before its sleepers were woken, or with messages left that others have in hand. */
void shmq_queues_empty_deleted(shmq_member *m) {
    SHMQ_ASSERT(m->structure_held);
    uint32_t high = shmq_load_seq(&m->header->queue_high);
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        uint64_t word = shmq_load_seq(&m->directory[index].word);
        shmq_queue q;
        if (shmq_entry_state(word) == SHMQ_ENTRY_DELETED && shmq_queue_view(m, index, &q) == SHMQ_OK &&
            q.incarnation == shmq_entry_incarnation(word)) {
            empty_out(&q);
        }
    }
}
