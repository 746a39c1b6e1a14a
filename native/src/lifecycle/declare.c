/* The queue directory: a process finds a queue, makes it, changes its options, shuts it down.
 *
 * Making a queue, under the structure lock, step by step: take page and run (garbage until the last step), fill the
 * page, write entry.page and name_hash, change entry.word FREE -> LIVE. That last store is the root: a death before it
 * leaves memory that the rebuild of the map finds unused; after it the queue exists. */
#include <string.h>
#include <unistd.h>

#include "lifecycle/declare.h"
#include "base/clock.h"
#include "consumers/ranks.h"
#include "consumers/unused.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"
#include "limits/room_wake.h"
#include "queue/settings.h"
#include "ring/ring_memory.h"
#include "segment/structure.h"
#include "time/times.h"

/* NULL: the offset makes no sense. */
static shmq_queue_shm *page_at(const shmq_member *m, uint64_t page) {
    bool inside = (page & (SHMQ_PAGE_BYTES - 1)) == 0 && page >= m->data && shmq_inside(m, page, SHMQ_PAGE_BYTES);
    return inside ? shmq_at(m, page) : NULL;
}

static shmq_queue_shm *page_of(shmq_member *m, uint32_t index) {
    uint64_t offset = shmq_load_acquire(&m->directory[index].page); /* SYNC directory.entry */
    shmq_queue_shm *page = page_at(m, offset);
    if (page == NULL) {
        (void)shmq_damage(m, "the offset of a queue's page makes no sense", offset);
    }
    return page;
}

bool shmq_queue_named(const shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation) {
    uint64_t word = shmq_load_acquire(&m->directory[index].word); /* SYNC directory.entry */
    if (shmq_entry_state(word) != SHMQ_ENTRY_LIVE) {
        return false;
    }
    const shmq_queue_shm *page = page_at(m, shmq_load_acquire(&m->directory[index].page)); /* SYNC directory.entry */
    uint32_t len = page != NULL ? shmq_name_len(page) : 0;
    if (len == 0) {
        return false;
    }
    bool in_service = shmq_load_seq(&page->state) == SHMQ_QUEUE_LIVE;
    memcpy(name, page->name, len);
    name[len] = '\0';
    *incarnation = shmq_entry_incarnation(word);
    shmq_fence_acquire(); /* SYNC directory.name: the copy before the second look */
    return in_service && shmq_load_seq(&m->directory[index].word) == word;
}

bool shmq_queue_name(shmq_member *m, uint32_t index, char name[SHMQ_NAME_MAX + 1], uint32_t *incarnation) {
    if (!shmq_queue_named(m, index, name, incarnation)) {
        return false;
    }
    if (!m->read_only &&
        shmq_name_hash(name, (uint32_t)strlen(name)) != shmq_read_once(&m->directory[index].name_hash)) {
        (void)shmq_damage(m, "the name of a queue does not match its hash, at queue", index);
        name[0] = 0;
    }
    return true;
}

/* Without the lock the queue may be deleted meanwhile, and its page used for another one. The caller binds what was
 * found and compares the name then, since the page of a bound queue stays. */
static int find(shmq_member *m, const char *name, uint32_t len, uint64_t hash) {
    uint32_t high = shmq_queue_high(m);
    for (uint32_t i = 0; i < high; i++) {
        shmq_directory_shm *entry = &m->directory[i];
        uint64_t word = shmq_load_acquire(&entry->word); /* SYNC directory.entry */
        if (shmq_entry_state(word) == SHMQ_ENTRY_LIVE && shmq_read_once(&entry->name_hash) == hash) {
            shmq_queue_shm *page = page_of(m, i);
            if (page != NULL && shmq_read_once(&page->name_len) == len && memcmp(page->name, name, len) == 0 &&
                shmq_load_seq(&page->state) == SHMQ_QUEUE_LIVE) {
                return (int)i; /* a deleted queue of this name may still stand beside it */
            }
        }
    }
    return -1;
}

/* A queue of this name exists, but damage hides it: in its page, whose name does not fit the entry's hash, or in its
 * entry. A new queue beside it would put its messages out of reach. The caller holds the structure lock: it reads names
 * that others may write. */
static bool is_hidden(const shmq_member *m, const char *name, uint32_t len, uint64_t hash) {
    uint32_t high = shmq_queue_high(m);
    for (uint32_t i = 0; i < high; i++) {
        const shmq_directory_shm *entry = &m->directory[i];
        uint64_t word = shmq_load_acquire((shmq_a64 *)&entry->word); /* SYNC directory.entry */
        const shmq_queue_shm *page =
            shmq_entry_state(word) == SHMQ_ENTRY_LIVE
                ? page_at(m, shmq_load_acquire((shmq_a64 *)&entry->page)) /* SYNC directory.entry */
                : NULL;
        if (page == NULL || shmq_load_seq((shmq_a32 *)&page->state) != SHMQ_QUEUE_LIVE) {
            continue;
        }
        uint32_t has = shmq_read_once(&page->name_len);
        bool fits = has <= SHMQ_NAME_MAX && shmq_name_hash(page->name, has) == shmq_read_once(&entry->name_hash);
        if (!fits &&
            (shmq_read_once(&entry->name_hash) == hash || (has == len && memcmp(page->name, name, len) == 0))) {
            return true;
        }
    }
    return false;
}

static uint32_t shift_of(uint64_t slots) {
    uint32_t shift = 0;
    while ((UINT64_C(1) << shift) < slots) {
        shift++;
    }
    return shift;
}

/* Slots for a sixteenth of the broker's memory. So all queues of these options are alike, whichever queues were made
 * before. */
static uint32_t shift_by_memory(const shmq_member *m, uint32_t slot_size, uint32_t levels) {
    uint64_t bytes = m->memory / SHMQ_RING_SHARE / levels;
    uint64_t slots = 65536;
    while (slots > SHMQ_RING_MIN && slots * slot_size > bytes) {
        slots /= 2;
    }
    return shift_of(slots);
}

static void lay_out(shmq_member *m, shmq_queue_shm *page, uint64_t at, const shmq_run *run, uint32_t shift,
                    uint32_t levels) {
    page->levels = levels;
    page->level_rings = at + run->rings;
    page->ring.run = at;
    page->ring.run_granules = run->granules;
    for (uint32_t depth = 0; depth < 2 * levels; depth++) {
        shmq_ring_shm *rings = shmq_at(m, page->level_rings);
        shmq_ring_shm *ring = depth == 0 ? &page->ring : &rings[depth - 1];
        ring->kind = depth < levels ? SHMQ_RING_BACK : SHMQ_RING_FRONT;
        ring->shift = depth < levels ? shift : shmq_front_shift(shift);
        shmq_write_once(&ring->slot_size, (uint32_t)run->slot_size); /* processes that search the directory read it */
        ring->slots = at + shmq_run_slots(run, depth);
        ring->carried = at + shmq_run_carried(run, depth);
        /* A front ring gets memory when its level flows. */
        shmq_store_relaxed(&ring->laid, depth < levels ? shmq_laid_first(run, depth) : 0);
    }
}

/* Front rings have address space from the beginning, and memory when they flow. */
static uint64_t front_granules(const shmq_run *run, uint32_t levels) {
    return levels * run->front_apart >> SHMQ_GRANULE_SHIFT;
}

/* Takes the run, and memory that each level needs before its first message. */
static shmq_status take_run(shmq_member *m, const shmq_run *run, uint32_t levels, uint64_t *at) {
    uint64_t wanted = run->granules - front_granules(run, levels);
    SHMQ_TRY(shmq_rings_take(m, (uint32_t)run->granules, (uint32_t)wanted, at));
    shmq_status status = SHMQ_OK;
    for (uint32_t depth = 0; depth < levels && status == SHMQ_OK; depth++) {
        uint64_t begin = depth == 0 ? 0 : shmq_run_slots(run, depth);
        status = shmq_rings_reserve(m, *at + begin, shmq_run_first(run, depth) - begin);
    }
    if (status != SHMQ_OK) {
        shmq_rings_give(m, *at);
    }
    return status;
}

/* Slots of a new ring: maxsize rounded up. Without a maxsize, or when it is more than memory can hold and the queue may
 * flow to disk, the broker's memory decides. */
static shmq_status plan_shift(const shmq_member *m, const shmq_declaration *d, uint32_t slot_size, uint32_t levels,
                              uint32_t *shift) {
    bool flows = m->backing_of != NULL;
    if (d->maxsize == 0) {
        *shift = shift_by_memory(m, slot_size, levels);
        return SHMQ_OK;
    }
    bool beyond = d->maxsize > SHMQ_RING_MAX;
    if (beyond && !flows) {
        return shmq_fail(
            SHMQ_FULL_MEMORY,
            "the broker's memory can never hold this\n%llu slots, a queue that stays in memory has at most %u",
            (unsigned long long)d->maxsize, SHMQ_RING_MAX);
    }
    *shift = shift_of(beyond ? SHMQ_RING_MAX : d->maxsize < SHMQ_RING_MIN ? SHMQ_RING_MIN : d->maxsize);
    shmq_run run = shmq_run_of(*shift, slot_size, levels);
    if (flows && run.granules - front_granules(&run, levels) > shmq_rings_most(m)) {
        *shift = shift_by_memory(m, slot_size, levels);
    }
    return SHMQ_OK;
}

static shmq_status take_rings(shmq_member *m, const shmq_declaration *d, shmq_queue_shm *page) {
    uint32_t slot_size = (uint32_t)shmq_declared(d, SHMQ_SET_SLOT_SIZE);
    uint32_t levels = (uint32_t)shmq_declared(d, SHMQ_SET_PRIORITIES);
    uint32_t shift = 0;
    SHMQ_TRY(plan_shift(m, d, slot_size, levels, &shift));
    shmq_run run = shmq_run_of(shift, slot_size, levels);
    uint64_t at;
    shmq_status status = take_run(m, &run, levels, &at);
    if (shmq_is_short(status) && shmq_blocks_reclaim(m) != 0) {
        status = take_run(m, &run, levels, &at);
    }
    SHMQ_TRY(status);
    lay_out(m, page, at, &run, shift, levels);
    return SHMQ_OK;
}

static void fill_page(shmq_member *m, shmq_queue_shm *page, const char *name, uint32_t name_len,
                      const shmq_declaration *d) {
    shmq_write_once(&page->name_len, name_len);
    memcpy(page->name, name, name_len);
    page->created_by = (uint32_t)getpid();
    page->created_ns = shmq_wall_ns();
    page->temporary_row = m->row;
    page->temporary_generation = m->row_generation;
    shmq_settings_fill(page, d);
    shmq_store_relaxed(&page->state, SHMQ_QUEUE_LIVE);
}

/* The caller holds the structure lock. */
static shmq_status make(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d, uint64_t hash,
                        uint32_t *index) {
    shmq_queues_release(m);
    uint32_t i = 0;
    while (i < SHMQ_QUEUES && shmq_entry_state(shmq_load_relaxed(&m->directory[i].word)) != SHMQ_ENTRY_FREE) {
        i++;
    }
    if (i == SHMQ_QUEUES) {
        return shmq_fail(SHMQ_LIMIT,
                         "the broker cannot have another queue\n%u queues are all that it can have\n"
                         "delete queues, or use another broker",
                         SHMQ_QUEUES);
    }
    uint64_t offset;
    shmq_status status = shmq_page_take(m, &offset);
    if (shmq_is_short(status) && shmq_blocks_reclaim(m) != 0) {
        status = shmq_page_take(m, &offset);
    }
    SHMQ_TRY(status);
    shmq_queue_shm *page = shmq_at(m, offset);
    status = take_rings(m, d, page);
    if (status != SHMQ_OK) {
        shmq_page_give(m, offset);
        return status;
    }
    shmq_directory_shm *entry = &m->directory[i];
    uint32_t incarnation = shmq_entry_incarnation(shmq_load_relaxed(&entry->word)) + 1;
    page->index = i;
    page->incarnation = incarnation;
    fill_page(m, page, name, name_len, d);
    shmq_write_once(&entry->name_hash, hash);
    shmq_counters_clear(m, i); /* those of the previous queue of this entry */
    if (shmq_queue_high(m) <= i) {
        shmq_store_release(&m->header->queue_high,
                           i + 1); /* SYNC directory.entry: before the root, else no process finds the queue */
    }
    shmq_store_release(&entry->page, offset);                                          /* SYNC directory.entry */
    shmq_store_release(&entry->word,
                       shmq_entry_word(incarnation, SHMQ_ENTRY_LIVE)); /* SYNC directory.entry: the root */
    *index = i;
    return SHMQ_OK;
}

/* Finds the queue, or makes it with these options. */
static shmq_status find_or_make(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d,
                                uint64_t hash, int *differs, int *found) {
    SHMQ_TRY(shmq_structure_lock(m));
    *found = find(m, name, name_len, hash);
    shmq_status status = SHMQ_OK;
    shmq_queue_shm *page = *found >= 0 ? page_of(m, (uint32_t)*found) : NULL;
    if (*found >= 0) {
        status = page != NULL ? shmq_settings_check(m, page) : SHMQ_CORRUPT;
        status = status == SHMQ_OK ? shmq_settings_agree(page, d, differs) : status;
    } else if (is_hidden(m, name, name_len, hash)) {
        status = shmq_damage(m, "the name of a queue does not match its hash", hash);
    } else if (d->create) {
        uint32_t index = 0;
        status = make(m, name, name_len, d, hash, &index);
        *found = (int)index;
    } else {
        status = SHMQ_NOT_FOUND;
    }
    shmq_structure_unlock(m);
    return status;
}

#define RELIEFS 64 /* for one new queue: other processes may take all memory that comes free */

/* Without memory for a new queue, or an entry, the dead are asked first: those that they had open may be deleted since.
 * Then messages of other queues go to disk. */
static shmq_status find_or_make_room(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d,
                                     uint64_t hash, int *differs, int *found) {
    shmq_status status = find_or_make(m, name, name_len, d, hash, differs, found), moved = SHMQ_OK;
    uint32_t reaped = 0;
    if (SHMQ_UNLIKELY(shmq_is_short(status) || status == SHMQ_LIMIT) && shmq_upkeep.reap_dead(m, &reaped) == SHMQ_OK &&
        reaped != 0) {
        status = find_or_make(m, name, name_len, d, hash, differs, found);
    }
    for (int i = 0; shmq_is_short(status) && moved == SHMQ_OK && i < RELIEFS; i++) {
        moved = shmq_upkeep.relieve(m, NULL, false);
        status = find_or_make(m, name, name_len, d, hash, differs, found); /* says what is lacking */
    }
    return status;
}

#define DECLARE_TRIES 64 /* no queue is deleted and made anew so often in one call: the directory is damaged */

shmq_status shmq_queue_declare(shmq_member *m, const char *name, uint32_t name_len, const shmq_declaration *d,
                               shmq_queue **queue, int *differs) {
    uint64_t hash = shmq_name_hash(name, name_len);
    uint32_t index = 0;
    for (int tries = 0; tries < DECLARE_TRIES; tries++) {
        int found = find(m, name, name_len, hash);
        if (found < 0 || d->given != 0) {
            SHMQ_TRY(find_or_make_room(m, name, name_len, d, hash, differs, &found));
        }
        index = (uint32_t)found;
        shmq_status status = shmq_queue_bind(m, index, 0, queue);
        if (status == SHMQ_OK &&
            ((*queue)->page->name_len != name_len || memcmp((*queue)->page->name, name, name_len) ||
             shmq_load_seq(&(*queue)->page->state) != SHMQ_QUEUE_LIVE)) {
            shmq_queue_unbind(*queue); /* deleted in between, perhaps with its entry in use again */
            continue;
        }
        if (status == SHMQ_OK && (status = shmq_time_declared(*queue, d->given)) != SHMQ_OK) {
            shmq_queue_unbind(*queue);
        }
        if (status == SHMQ_OK) {
            shmq_unused_declared(*queue, d->given);
        }
        if (status != SHMQ_NOT_FOUND) {
            return status; /* else the queue was deleted in between: try again */
        }
    }
    return shmq_damage(m, "the directory entry of a queue makes no sense, at queue", index);
}

shmq_status shmq_queue_alter(shmq_queue *q, const shmq_declaration *d, int *differs) {
    SHMQ_TRY(shmq_queue_enter(q)); /* before the lock: the upkeep in it may need the lock */
    SHMQ_TRY(shmq_structure_lock(q->m));
    shmq_status status = SHMQ_NOT_FOUND;
    if (shmq_load_relaxed(&q->page->state) == SHMQ_QUEUE_LIVE) {
        status = shmq_settings_check(q->m, q->page);
        status = status == SHMQ_OK ? shmq_settings_alter(q->page, d, differs) : status;
        if (status == SHMQ_OK && (d->given & (1u << SHMQ_SET_LIVE_CONSUMERS)) != 0) {
            shmq_ranks_settle(q);
        }
    }
    shmq_structure_unlock(q->m);
    if (status == SHMQ_OK) {
        status = shmq_time_declared(q, d->given);
        shmq_unused_declared(q, d->given);
        shmq_notify_all(q);
    }
    return status;
}

shmq_status shmq_queue_shut_down(shmq_queue *q, uint32_t how) {
    shmq_store_seq(&q->page->shut_down, how);
    shmq_notify_all(q);
    return SHMQ_OK;
}
