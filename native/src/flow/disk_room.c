/* How much room is left on disk for messages: of a budget that all queues share, or of the file system. */
#include "flow/file_backing.h"
#include "flow/rows_base.h"
#include "segment/alert_time.h"

/* Bytes of all queues, from their words. Movers may move entries between two reads: the sum may be wrong by a turn of
 * each. */
uint64_t shmq_disk_used(shmq_member *m) {
    uint64_t bytes = 0;
    uint32_t high = shmq_queue_high(m);
    for (uint32_t index = 0; index < high; index++) {
        shmq_queue view;
        if (shmq_entry_state(shmq_load_acquire(&m->directory[index].word)) !=
                SHMQ_ENTRY_FREE && /* SYNC directory.entry */
            shmq_queue_look(m, index, &view) == NULL) {
            bytes += shmq_flow_size(&view);
        }
    }
    return bytes;
}

uint64_t shmq_disk_room(shmq_member *m) {
    struct statvfs system;
    if (m->disk == SHMQ_DISK_SHARE) {
        bool found = shmq_rows_base_system(m, shmq_rows_base_path(m), &system) && system.f_blocks != 0;
        uint64_t kept = found ? system.f_blocks / 10 : 0;
        return !found ? UINT64_MAX : system.f_bavail > kept ? (system.f_bavail - kept) * system.f_frsize : 0;
    }
    uint64_t used = shmq_disk_used(m);
    return used < m->disk ? m->disk - used : 0;
}

uint64_t shmq_disk_room_of(const shmq_mover *t) {
    uint64_t room = shmq_disk_room(t->q->m), left = shmq_load_relaxed(&t->front->shm->writing_bytes);
    return room < UINT64_MAX - left ? room + left : room;
}

shmq_status shmq_disk_claim(shmq_mover *t, uint64_t bytes) {
    const shmq_member *m = t->q->m;
    shmq_store_seq(&t->front->shm->writing_bytes, bytes);
    /* Each purger says what it writes, then adds up what all say: of two the later one sees both. */
    bool exceeds = bytes != 0 && m->disk != SHMQ_DISK_SHARE && shmq_disk_used(t->q->m) > m->disk;
    return exceeds ? SHMQ_FULL_DISK : SHMQ_OK;
}

void shmq_disk_settle(shmq_mover *t) {
    shmq_ring_shm *ring = t->back->shm;
    shmq_ordinal left = {.count = 0};
    shmq_status status = t->backing->settle != NULL
                             ? t->backing->settle(t->backing->context, shmq_load_relaxed(&ring->low), &left)
                             : SHMQ_OK;
    uint64_t pulled = shmq_load_relaxed(&ring->pulled), bytes = shmq_load_relaxed(&ring->pulled_bytes);
    if (SHMQ_UNLIKELY(status != SHMQ_OK && status != SHMQ_EMPTY)) {
        shmq_trail_clear(); /* a later call does it: until then too much is counted, not too little */
    } else if (status == SHMQ_OK) {
        shmq_store_seq(&ring->freed, pulled > left.count ? pulled - left.count : 0);
        shmq_store_seq(&ring->freed_bytes, bytes > left.bytes ? bytes - left.bytes : 0);
    }
}

uint64_t shmq_disk_bytes(const shmq_queue *q) {
    bool any = shmq_flow_rows(q) != 0 || shmq_waiting_rows(q).count != 0;
    return q->m->backing_of != NULL && any ? shmq_file_backing_bytes(q) : 0;
}

shmq_status shmq_flow_refused(shmq_mover *t, shmq_status status) {
    if (status == SHMQ_FULL_DISK || status == SHMQ_NO_SPACE) {
        shmq_disk_refused(t->q->m);
    }
    return status;
}
