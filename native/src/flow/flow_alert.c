/* Alerts of queues that flow, and of the disk. */
#include "flow/flow_alert.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "flow/flow.h"

#define TOLD UINT64_C(1) /* set: an alert has said that the queue flows, none yet that it has recovered */
#define MARK 10 /* an alert is due when a tenth of the budget is left */

/* Rows of all levels since the queue was made, those of delayed messages, too. A queue that cannot flow has none, whatever its
 * words say. */
static uint64_t flushed_by(const shmq_queue *q) {
    uint64_t flushed = 0;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring_shm *ring = shmq_level_ring(q, depth);
        flushed += shmq_load_seq(&ring->flushed) + shmq_load_seq(&ring->waiting);
    }
    return flushed;
}

static enum shmq_flow_alert state_of(const shmq_queue *q, uint64_t seen, uint64_t flushed) {
    bool flows = shmq_flow_rows(q) != 0 || shmq_waiting_rows(q).count != 0;
    if ((seen & TOLD) != 0) {
        return flows ? SHMQ_FLOW_SILENT : SHMQ_FLOW_RECOVERED;
    }
    bool has_flowed = flushed != shmq_load_seq((shmq_a64 *)(uintptr_t)&q->page->alerts.flushed);
    return flows ? SHMQ_FLOW_BEGAN : has_flowed ? SHMQ_FLOW_BOTH : SHMQ_FLOW_SILENT;
}

bool shmq_alerts_wanted(const shmq_queue *q) {
    uint64_t seen = shmq_load_seq((shmq_a64 *)(uintptr_t)&q->page->alerts.flow);
    return shmq_alert_has_terms(q) || state_of(q, seen, flushed_by(q)) != SHMQ_FLOW_SILENT;
}

enum shmq_flow_alert shmq_alert_flow(shmq_queue *q) {
    shmq_alerts_shm *alerts = &q->page->alerts;
    uint64_t now = shmq_now_ns(), seen = shmq_load_seq(&alerts->flow), told = seen >> 1, flushed = flushed_by(q);
    enum shmq_flow_alert state = state_of(q, seen, flushed);
    bool early = told != 0 && told <= now && now - told < shmq_alert_gap(q);
    uint64_t next = state == SHMQ_FLOW_RECOVERED ? seen & ~TOLD : now << 1 | (state == SHMQ_FLOW_BEGAN ? TOLD : 0);
    if (state == SHMQ_FLOW_SILENT || (early && state != SHMQ_FLOW_RECOVERED) ||
        !shmq_cas_seq(&alerts->flow, seen, next)) {
        return SHMQ_FLOW_SILENT;
    }
    shmq_store_seq(&alerts->flushed, flushed);
    return state;
}

static bool claim(shmq_a64 *word) {
    uint64_t now = shmq_now_ns(), told = shmq_load_seq(word);
    bool early = told != 0 && told <= now && now - told < SHMQ_ALERT_GAP_NS;
    return !early && shmq_cas_seq(word, told, now);
}

uint32_t shmq_disk_alerts(shmq_member *m, uint64_t *used) {
    shmq_segment_shm *header = m->header;
    uint32_t bits = 0;
    bool limited = m->disk != SHMQ_DISK_SHARE && m->disk != SHMQ_DISK_NONE;
    *used = shmq_disk_used(m);
    if (limited && *used >= m->disk - m->disk / MARK && *used != 0 && claim(&header->disk_told[0])) {
        bits |= SHMQ_DISK_MARK;
    }
    if (shmq_load_seq(&header->disk_refused) != 0 && claim(&header->disk_told[1])) {
        shmq_store_seq(&header->disk_refused, 0);
        bits |= SHMQ_DISK_FULL;
    }
    return bits;
}
