/* Cold records: a process makes them once for a ring, under the structure lock. Each user finds them by their offset,
 * and checks it each time. */
#include "queue/cold.h"
#include "blocks/block.h"
#include "layout/run.h"
#include "segment/structure.h"

static bool lies_well(const shmq_ring *r, uint64_t offset) {
    const shmq_member *m = r->queue->m;
    uint64_t bytes = (uint64_t)shmq_cold_granules(r->shift) << SHMQ_GRANULE_SHIFT;
    return offset >= m->data && (offset - m->data) % SHMQ_GRANULE_BYTES == 0 && shmq_inside(m, offset, bytes);
}

/* A run of this length begins there, and it is not the ring itself. So a damaged offset leads into no other memory than
 * another ring's of the same size. */
static bool is_run(const shmq_ring *r, uint64_t offset) {
    shmq_queue *q = r->queue;
    uint64_t word = shmq_load_relaxed(&q->m->granules[(offset - q->m->data) >> SHMQ_GRANULE_SHIFT]);
    return shmq_granule_kind(word) == SHMQ_GRANULE_RING && shmq_granule_length(word) == shmq_cold_granules(r->shift) &&
           offset != q->page->ring.run;
}

shmq_cold_shm *shmq_cold_at(const shmq_ring *r, const shmq_slot_shm *slot) {
    uint64_t offset = shmq_load_acquire(&r->shm->cold); /* SYNC ring.cold: the zeroed records before their offset */
    if (offset == 0) {
        return NULL;
    }
    if (SHMQ_UNLIKELY(!lies_well(r, offset) || !is_run(r, offset))) {
        (void)shmq_damage(r->queue->m, "the offset of cold records makes no sense", offset);
        return NULL;
    }
    uint64_t index = (uint64_t)((const unsigned char *)slot - r->slots) / r->slot_size;
    return (shmq_cold_shm *)shmq_at(r->queue->m, offset) + index;
}

shmq_status shmq_cold_need(shmq_ring *r) {
    shmq_member *m = r->queue->m;
    if (SHMQ_LIKELY(shmq_load_acquire(&r->shm->cold) != 0)) { /* SYNC ring.cold */
        return SHMQ_OK;
    }
    SHMQ_TRY(shmq_structure_lock(m));
    shmq_status status = SHMQ_OK;
    if (shmq_load_seq(&r->shm->cold) == 0) {
        uint64_t offset;
        uint32_t granules = shmq_cold_granules(r->shift);
        status = shmq_run_take(m, granules, SHMQ_GRANULE_RING, &offset);
        if (shmq_is_short(status) && shmq_blocks_reclaim(m) != 0) {
            status = shmq_run_take(m, granules, SHMQ_GRANULE_RING, &offset);
        }
        if (status == SHMQ_OK) {
            shmq_cas_seq(&r->shm->cold, 0, offset); /* SYNC ring.cold: the root; a death before it leaves a free run */
        }
    }
    shmq_structure_unlock(m);
    return status;
}

uint32_t shmq_props(const shmq_slot_shm *slot) {
    return (uint32_t)(shmq_load_relaxed((shmq_a64 *)&slot->tally) >> 32) & 0xffffu;
}

/* Bytes 56 to 63 change as one word only: a reaper may count a death in them at any time. */
void shmq_props_change(shmq_slot_shm *slot, uint32_t set, uint32_t clear) {
    uint64_t tally;
    do {
        tally = shmq_load_seq(&slot->tally);
    } while (!shmq_cas_seq(&slot->tally, tally, (tally & ~((uint64_t)clear << 32)) | (uint64_t)set << 32));
}

const char *shmq_cold_fault(const shmq_ring *r) {
    uint64_t offset = shmq_load_seq(&r->shm->cold);
    if (offset == 0) {
        return NULL;
    }
    return lies_well(r, offset) && is_run(r, offset) ? NULL : "its offset of cold records makes no sense";
}
