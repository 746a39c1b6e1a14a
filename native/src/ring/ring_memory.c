#include "ring/ring_memory.h"
#include "blocks/block.h"
#include "queue/level.h"
#include "segment/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static uint64_t word_of(const shmq_member *m, uint32_t granule) { return shmq_load_relaxed(&m->granules[granule]); }

static uint64_t place_of(const shmq_member *m, uint32_t granule) {
    return m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT);
}

static uint32_t granule_at(const shmq_member *m, uint64_t offset) {
    return (uint32_t)((offset - m->data) >> SHMQ_GRANULE_SHIFT);
}

/* First fit, in the granules beyond the budget if there is room: granules that have memory are left to bodies. */
static uint32_t find_room(const shmq_member *m, uint32_t length, bool bare) {
    uint32_t from = (uint32_t)(m->memory >> SHMQ_GRANULE_SHIFT), run = 0;
    for (uint32_t i = from < m->granule_count ? from : 0; i < m->granule_count; i++) {
        uint64_t word = word_of(m, i);
        bool usable = shmq_granule_kind(word) == SHMQ_GRANULE_FREE && (!bare || shmq_granule_reserved(word) == 0);
        run = usable ? run + 1 : 0;
        if (run == length) {
            return i + 1 - length;
        }
    }
    return m->granule_count;
}

uint64_t shmq_rings_most(const shmq_member *m) {
    return (m->memory - (uint64_t)(m->slabs - m->base)) >> SHMQ_GRANULE_SHIFT;
}

shmq_status shmq_rings_take(shmq_member *m, uint32_t granules, uint32_t wanted, uint64_t *offset) {
    SHMQ_ASSERT(m->structure_locked && granules != 0);
    uint64_t usable = shmq_rings_most(m);
    if (wanted > usable) {
        return shmq_fail(SHMQ_FULL_MEMORY,
                         "the broker's memory can never hold this\n%u granules of 64 KiB for the slots, it has %llu",
                         wanted, (unsigned long long)usable);
    }
    uint32_t first = find_room(m, granules, true);
    first = first < m->granule_count ? first : find_room(m, granules, false);
    if (first == m->granule_count) {
        return shmq_fail(SHMQ_FULL_MEMORY,
                         "the broker has no room for the slots of one more queue\n"
                         "%u granules of 64 KiB in one piece needed\n"
                         "delete queues, or make the broker with more memory",
                         granules);
    }
    for (uint32_t i = first; i < first + granules; i++) {
        uint64_t word = word_of(m, i);
        memset(shmq_at(m, place_of(m, i)), 0, shmq_granule_reserved(word)); /* bytes of its earlier use */
        bool head = i == first;
        shmq_granule_set(
            m, i, shmq_granule_word(word, head ? SHMQ_GRANULE_RING : SHMQ_GRANULE_INSIDE, 0, head ? granules : 0));
    }
    *offset = place_of(m, first);
    return SHMQ_OK;
}

/* Reserves memory for the first `bytes` of a granule: for all of it, or for a number of pieces, which the map notes. */
static shmq_status reserve_in(shmq_member *m, uint32_t granule, uint64_t bytes) {
    uint64_t word = word_of(m, granule), have = shmq_granule_reserved(word);
    if (bytes <= have) {
        return SHMQ_OK;
    }
    SHMQ_TRY(shmq_reserve_instead(m, place_of(m, granule) + have, bytes - have));
    word &= ~SHMQ_GRANULE_BEGUN;
    word |= bytes == SHMQ_GRANULE_BYTES ? SHMQ_GRANULE_RESERVED : bytes / SHMQ_PIECE_BYTES << SHMQ_GRANULE_BEGUN_SHIFT;
    shmq_granule_set(m, granule, word);
    return SHMQ_OK;
}

shmq_status shmq_rings_reserve(shmq_member *m, uint64_t offset, uint64_t bytes) {
    SHMQ_ASSERT(m->structure_locked);
    if ((offset - m->data) % SHMQ_GRANULE_BYTES != 0 || offset < m->data || !shmq_inside(m, offset, bytes)) {
        return shmq_damage(m, "the offset of the slots of a queue makes no sense", offset);
    }
    uint64_t kept = (uint64_t)shmq_granules_kept(m) << SHMQ_GRANULE_SHIFT;
    for (uint32_t i = granule_at(m, offset); bytes != 0; i++) {
        uint64_t here = bytes < SHMQ_GRANULE_BYTES ? bytes : SHMQ_GRANULE_BYTES;
        if (here > shmq_granule_reserved(word_of(m, i)) && shmq_memory_left(m) < here + kept &&
            shmq_granules_free(m) <= shmq_granules_kept(m)) {
            return shmq_fail(
                SHMQ_FULL_MEMORY, "the broker's memory is used up\n%llu bytes for slots needed, %llu of %llu left",
                (unsigned long long)here, (unsigned long long)shmq_memory_left(m), (unsigned long long)m->memory);
        }
        SHMQ_TRY(reserve_in(m, i, here));
        bytes -= here;
    }
    return SHMQ_OK;
}

uint64_t shmq_rings_reserved(const shmq_member *m, uint64_t offset, uint64_t granules) {
    uint64_t bytes = 0;
    uint32_t first = granule_at(m, offset);
    for (uint32_t i = first; i < m->granule_count && i - first < granules; i++) {
        bytes += shmq_granule_reserved(word_of(m, i));
    }
    return bytes;
}

/* The map says "no memory" before the memory goes, as in reservation.c, for the same reason. */
void shmq_rings_give(shmq_member *m, uint64_t offset) {
    uint64_t gone = SHMQ_GRANULE_RESERVED | SHMQ_GRANULE_BEGUN;
    bool known = offset >= m->data && (offset - m->data) % SHMQ_GRANULE_BYTES == 0 && offset < m->size;
    uint32_t first = known ? granule_at(m, offset) : m->granule_count;
    uint64_t head = first < m->granule_count ? word_of(m, first) : 0, bytes = 0;
    uint32_t length = shmq_granule_kind(head) == SHMQ_GRANULE_RING ? shmq_granule_length(head) : 0;
    shmq_run_give(m, offset); /* it reports an offset that is damaged */
    if (length == 0 || length > m->granule_count - first) {
        return;
    }
    for (uint32_t i = first; i < first + length; i++) {
        bytes += shmq_granule_reserved(word_of(m, i));
        shmq_granule_set(m, i, word_of(m, i) & ~gone);
    }
    shmq_add_seq(&m->header->reserved_bytes, -bytes);
    shmq_give_memory(m, offset, (uint64_t)length << SHMQ_GRANULE_SHIFT);
}

shmq_status shmq_ring_lay(shmq_ring *r, uint64_t last) {
    shmq_member *m = r->queue->m;
    shmq_run run = shmq_run_of(r->queue->first.shift, r->slot_size,
                               r->queue->levels); /* from the handle: the shared fields may be damaged */
    uint64_t begin = shmq_run_slots(&run, r->depth), count = shmq_run_count(&run, r->depth);
    uint64_t wanted = last + 2 < count ? last + 2 : count;
    uint64_t end = shmq_granules_of(begin + wanted * r->slot_size) << SHMQ_GRANULE_SHIFT;
    SHMQ_TRY(shmq_structure_lock(m));
    shmq_status status = SHMQ_OK;
    if (shmq_load_relaxed(&r->shm->laid) <= last + 1) {
        uint64_t from = begin / SHMQ_GRANULE_BYTES * SHMQ_GRANULE_BYTES;
        uint64_t place = (uint64_t)(r->slots - m->base) - begin;
        status = shmq_rings_reserve(m, place + from, end - from);
        if (shmq_is_short(status) && shmq_memory_regain(m)) {
            status = shmq_rings_reserve(m, place + from, end - from);
        }
        if (status == SHMQ_OK) {
            /* SYNC ring.laid: the memory is reserved before this store. */
            shmq_store_release(&r->shm->laid, shmq_laid_at(&run, r->depth, end));
        }
    }
    shmq_structure_unlock(m);
    return status;
}

uint64_t shmq_queue_reserved(const shmq_queue *q) {
    uint64_t bytes = SHMQ_PAGE_BYTES + shmq_rings_reserved(q->m, q->page->ring.run, q->page->ring.run_granules);
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        uint64_t cold = shmq_load_acquire(&shmq_level_ring(q, depth)->cold); /* SYNC ring.cold */
        uint32_t shift = depth < q->levels ? q->first.shift : shmq_front_shift(q->first.shift);
        bytes += cold != 0 ? (uint64_t)shmq_cold_granules(shift) << SHMQ_GRANULE_SHIFT : 0;
    }
    return bytes;
}
