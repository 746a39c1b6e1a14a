/* Rebuilds the granule map. Directory entries, process rows and class words of slabs are the roots: memory that none of
 * them names is free. The rebuild believes nothing of the shared map but its bits of reservation. */
#include <string.h>
#include <sys/mman.h>

#include "base/fault_text.h"
#include "layout/block.h"
#include "layout/run.h"
#include "segment/block_class.h"
#include "segment/granule_counts.h"
#include "segment/granule_map.h"
#include "segment/structure.h"

#define LAZY (UINT64_C(1) << 15) /* in the private map only: a granule of rings, whose memory comes later */

static void damaged(shmq_granule_map *map, const char *what, uint64_t where) {
    if (map->damaged == 0) {
        map->what = what;
        map->where = where;
    }
    map->damaged += 1;
}

static bool mark_page(const shmq_member *m, shmq_granule_map *map, uint64_t offset, const char *what) {
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 ||
        (offset - m->data) >> SHMQ_GRANULE_SHIFT >= (uint64_t)map->count) {
        damaged(map, what, offset);
        return false;
    }
    uint64_t *word = &map->words[(offset - m->data) >> SHMQ_GRANULE_SHIFT];
    uint32_t bit = 1u << ((offset - m->data) >> SHMQ_PAGE_SHIFT) % SHMQ_PAGES_A_GRANULE;
    uint32_t kind = shmq_granule_kind(*word);
    uint32_t pages = shmq_granule_pages(*word);
    if (kind != SHMQ_GRANULE_FREE && (kind != SHMQ_GRANULE_PAGES || (pages & bit) != 0)) {
        damaged(map, what, offset);
        return false;
    }
    *word = shmq_granule_word(0, SHMQ_GRANULE_PAGES, pages | bit, 1);
    return true;
}

static void mark_run(const shmq_member *m, shmq_granule_map *map, uint64_t offset, uint64_t length, uint32_t kind,
                     const char *what) {
    uint64_t first = (offset - m->data) >> SHMQ_GRANULE_SHIFT;
    if (offset < m->data || (offset - m->data) % SHMQ_GRANULE_BYTES != 0 || length == 0 || first >= map->count ||
        length > map->count - first) {
        damaged(map, what, offset);
        return;
    }
    for (uint64_t i = first; i < first + length; i++) {
        if (shmq_granule_kind(map->words[i]) != SHMQ_GRANULE_FREE) {
            damaged(map, what, offset);
            return;
        }
    }
    map->words[first] = shmq_granule_word(0, kind, 0, (uint32_t)length);
    for (uint64_t i = first + 1; i < first + length; i++) {
        map->words[i] = SHMQ_GRANULE_INSIDE;
    }
}

/* A queue's rings have memory at least up to what `laid` says; the beginning of the run has it at once. Each word of the
 * page is read once: damage may come between its check and its use. */
static void mark_rings(shmq_member *m, shmq_granule_map *map, const shmq_queue_shm *page) {
    uint64_t before = map->damaged, from = shmq_copy_once(&page->ring.run);
    uint64_t granules = shmq_copy_once(&page->ring.run_granules);
    uint32_t shift = shmq_copy_once(&page->ring.shift), slot_size = shmq_copy_once(&page->ring.slot_size);
    uint32_t levels = shmq_copy_once(&page->levels);
    mark_run(m, map, from, granules, SHMQ_GRANULE_RING,
             "the offset of a ring lies outside of the data, or in memory that is in use");
    if (map->damaged != before) {
        return;
    }
    uint32_t first = (uint32_t)((from - m->data) >> SHMQ_GRANULE_SHIFT);
    for (uint64_t i = first; i < first + granules; i++) {
        map->words[i] |= LAZY;
    }
    if (shift >= 32 || levels == 0 || levels > SHMQ_LEVELS_MAX) {
        return; /* a look at the queue reports the damage */
    }
    shmq_run run = shmq_run_of(shift, slot_size, levels);
    for (uint32_t depth = 0; depth < 2 * levels && run.granules == granules; depth++) {
        const shmq_ring_shm *ring = shmq_page_ring(m, page, depth);
        uint64_t laid = ring != NULL ? shmq_load_seq(&ring->laid) : 0, begin = shmq_run_slots(&run, depth);
        uint64_t count = shmq_run_count(&run, depth);
        uint64_t end = begin + (laid < count ? laid : count) * run.slot_size;
        for (uint64_t at = begin / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES; at < end; at += SHMQ_GRANULE_BYTES) {
            uint64_t word = shmq_load_seq(&m->granules[first + (at >> SHMQ_GRANULE_SHIFT)]);
            if (shmq_granule_reserved(word) < SHMQ_GRANULE_BYTES && shmq_granule_reserved(word) < end - at) {
                damaged(map, "a ring has slots without memory", from + at);
                return;
            }
        }
    }
}

static void mark_queue(shmq_member *m, shmq_granule_map *map, uint64_t offset) {
    if (!mark_page(m, map, offset,
                   "the offset of a queue's page lies outside of the data, or in memory that is in use")) {
        return;
    }
    const shmq_queue_shm *page = shmq_at(m, offset);
    mark_rings(m, map, page);
    for (uint32_t depth = 0; depth < SHMQ_RINGS_MAX; depth++) {
        shmq_ring_shm *ring = shmq_page_ring(m, page, depth);
        uint64_t cold = ring != NULL ? shmq_load_seq(&ring->cold) : 0;
        if (cold != 0) {
            mark_run(m, map, cold, shmq_cold_granules(ring->shift), SHMQ_GRANULE_RING,
                     "the offset of cold records lies outside of the data, or in memory that is in use");
        }
    }
    for (uint32_t i = 0; i < SHMQ_CHUNKS; i++) {
        uint64_t chunk = shmq_load_seq(&page->chunks[i]);
        if (chunk != 0) {
            mark_page(m, map, chunk,
                      "the offset of a chunk of consumer rows lies outside of the data, or in memory that is in use");
        }
        uint64_t selectors = shmq_load_seq(&page->selectors[i]);
        if (selectors != 0) {
            mark_page(m, map, selectors,
                      "the offset of a page of selectors lies outside of the data, or in memory that is in use");
        }
    }
}

/* In every state of the row: its page stays with it for the next member. */
static void mark_process(shmq_member *m, shmq_granule_map *map, uint32_t row) {
    uint64_t offset = shmq_copy_once(&m->rows[row].pins);
    if (offset == 0 ||
        !mark_page(m, map, offset,
                   "the offset of a process's page lies outside of the data, or in memory that is in use")) {
        return;
    }
    const shmq_process_page_shm *page = shmq_at(m, offset);
    for (uint32_t i = 0; i < SHMQ_COUNTER_CHUNKS; i++) {
        uint64_t chunk = shmq_load_seq(&page->chunks[i]);
        if (chunk != 0) {
            mark_page(m, map, chunk,
                      "the offset of a chunk of counters lies outside of the data, or in memory that is in use");
        }
    }
}

static void mark_slab(shmq_member *m, shmq_granule_map *map, uint32_t granule) {
    const shmq_slab_shm *slab = (const shmq_slab_shm *)(m->slabs + (uint64_t)granule * SHMQ_SLAB_BYTES);
    uint64_t class_word = shmq_load_seq(&slab->class_word);
    if (class_word == 0) {
        return;
    }
    uint64_t offset = m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT);
    if (class_word > SHMQ_CLASSES) {
        damaged(map, "a slab is of a class that does not exist", offset);
        return;
    }
    uint32_t length = shmq_class_granules((uint32_t)class_word - 1);
    mark_run(m, map, offset, length, SHMQ_GRANULE_SLAB, "a slab lies outside of the data, or in memory that is in use");
}

bool shmq_granule_map_build(shmq_member *m, shmq_granule_map *map) {
    memset(map, 0, sizeof(*map));
    map->count = m->granule_count;
    map->bytes = (uint64_t)map->count * sizeof(uint64_t);
    /* Up to 32 MiB, which go back to the system a moment later. */
    map->words = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map->words == MAP_FAILED) {
        return false;
    }
    for (uint32_t i = 0; i < SHMQ_QUEUES; i++) {
        if (shmq_entry_state(shmq_load_seq(&m->directory[i].word)) != SHMQ_ENTRY_FREE) {
            mark_queue(m, map, shmq_load_seq(&m->directory[i].page));
        }
    }
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        mark_process(m, map, row);
    }
    for (uint32_t i = 0; i < map->count; i++) {
        if ((shmq_load_seq(&m->granules[i]) & SHMQ_GRANULE_HEADERS) != 0) {
            mark_slab(m, map, i);
        }
    }
    return true;
}

void shmq_granule_map_free(shmq_granule_map *map) { munmap(map->words, map->bytes); }

/* Gives back memory that is not counted. A process leaves it when it dies between a reservation and its note in the
 * map, or between the note and the giving back. */
static void give_uncounted(shmq_member *m) {
    uint64_t from = m->data, end = from;
    for (uint32_t i = 0; i < m->granule_count; i++) {
        uint64_t at = m->data + ((uint64_t)i << SHMQ_GRANULE_SHIFT);
        uint64_t have = shmq_granule_reserved(shmq_load_relaxed(&m->granules[i]));
        if (have != 0) {
            if (end > from) {
                shmq_give_memory(m, from, end - from);
            }
            from = at + have;
        }
        end = at + SHMQ_GRANULE_BYTES;
    }
    if (end > from) {
        shmq_give_memory(m, from, end - from);
    }
}

shmq_status shmq_structure_rebuild(shmq_member *m) {
    SHMQ_ASSERT(m->structure_locked);
    shmq_granule_map map;
    if (!shmq_granule_map_build(m, &map)) {
        return shmq_fail_errno("no memory to rebuild the map of the segment %s", m->name);
    }
    uint64_t reserved = (uint64_t)(m->slabs - m->base);
    shmq_granule_counts counts = {0};
    uint32_t high = 0;
    for (uint32_t i = 0; i < map.count; i++) {
        uint64_t old = shmq_load_seq(&m->granules[i]);
        uint64_t now = (map.words[i] & ~LAZY) | (old & SHMQ_GRANULE_KEPT);
        if (shmq_granule_kind(now) == SHMQ_GRANULE_FREE) {
            now &= ~SHMQ_GRANULE_BEGUN; /* a partial reservation goes with its ring */
        }
        if (now != old) {
            shmq_store_seq(&m->granules[i], now);
        }
        reserved += shmq_granule_reserved(now) + ((now & SHMQ_GRANULE_HEADERS) != 0 ? SHMQ_SLAB_BYTES : 0);
        high = (now & SHMQ_GRANULE_HEADERS) != 0 ? i + 1 : high;
        shmq_granule_count(&counts, now);
    }
    shmq_store_seq(&m->header->reserved_bytes, reserved);
    shmq_store_seq(&m->header->slab_high, high);
    shmq_granule_counts_store(m, &counts);
    give_uncounted(m);
    if (map.damaged != 0) {
        (void)shmq_damage(m, map.what, map.where);
        shmq_add_seq(&m->header->damage, map.damaged - 1);
    }
    shmq_granule_map_free(&map);
    return SHMQ_OK;
}

static _Thread_local char fault[160];

static const char *counts_fault(const shmq_granule_counts *said, const shmq_granule_counts *found) {
    const struct {
        const char *what;
        uint64_t said, found;
    } counts[] = {
        {"granules in use", said->used, found->used},
        {"free granules with memory", said->ready, found->ready},
        {"granules of slabs and pages", said->solid, found->solid},
        {"free pages", said->free_pages, found->free_pages},
        {"bytes of granules in use", said->used_bytes, found->used_bytes},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].said != counts[i].found) {
            snprintf(fault, sizeof(fault), "the header counts %llu %s, but the map counts %llu",
                     (unsigned long long)counts[i].said, counts[i].what, (unsigned long long)counts[i].found);
            return fault;
        }
    }
    return NULL;
}

static const char *compare(shmq_member *m, const shmq_granule_map *map) {
    uint64_t reserved = (uint64_t)(m->slabs - m->base);
    shmq_granule_counts counts = {0}, kept = shmq_granule_counts_of(m);
    uint32_t high = shmq_load_seq(&m->header->slab_high);
    for (uint32_t i = 0; i < map->count; i++) {
        uint64_t word = shmq_load_seq(&m->granules[i]);
        if ((word & SHMQ_GRANULE_HEADERS) != 0 && i >= high) {
            snprintf(fault, sizeof(fault), "granule %u was a slab, but the header says that none from %u on was", i,
                     high);
            return fault;
        }
        reserved += shmq_granule_reserved(word) + ((word & SHMQ_GRANULE_HEADERS) != 0 ? SHMQ_SLAB_BYTES : 0);
        shmq_granule_count(&counts, word);
        if ((word & ~SHMQ_GRANULE_KEPT) != (map->words[i] & ~LAZY)) {
            snprintf(fault, sizeof(fault), "granule %u: the map says 0x%llx, but the roots say 0x%llx", i,
                     (unsigned long long)word, (unsigned long long)(map->words[i] & ~LAZY));
            return fault;
        }
        if (shmq_granule_kind(word) != SHMQ_GRANULE_FREE && (map->words[i] & LAZY) == 0 &&
            (word & SHMQ_GRANULE_RESERVED) == 0) {
            snprintf(fault, sizeof(fault), "granule %u is in use (0x%llx), but was never reserved", i,
                     (unsigned long long)word);
            return fault;
        }
    }
    uint64_t said = shmq_load_seq(&m->header->reserved_bytes);
    if (said != reserved) {
        snprintf(fault, sizeof(fault), "the header counts %llu reserved bytes, but the map counts %llu",
                 (unsigned long long)said, (unsigned long long)reserved);
        return fault;
    }
    return counts_fault(&kept, &counts);
}

const char *shmq_structure_fault(shmq_member *m) {
    shmq_granule_map map;
    if (!shmq_granule_map_build(m, &map)) {
        return shmq_unlooked;
    }
    const char *answer = NULL;
    if (map.damaged != 0) {
        snprintf(fault, sizeof(fault), "%s: 0x%llx (the first of %llu faults)", map.what, (unsigned long long)map.where,
                 (unsigned long long)map.damaged);
        answer = fault;
    } else {
        answer = compare(m, &map);
    }
    shmq_granule_map_free(&map);
    return answer;
}
