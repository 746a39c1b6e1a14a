/* Facts about a queue for its users: its settings, its counters, its limits. */
#include "queue/queue_facts.h"
#include "queue/level.h"
#include "queue/settings.h"

#include <string.h>

shmq_status shmq_queue_settings(const shmq_queue *q, shmq_settings_facts *facts) {
    const shmq_queue_shm *page = q->page;
    SHMQ_TRY(shmq_settings_check(q->m, page));
    uint32_t steps = shmq_load_relaxed(&page->settings.retry_steps);
    *facts = (shmq_settings_facts){.retry_steps = steps == 0 || steps > SHMQ_RETRY_STEPS ? 1 : steps,
                                   .given = shmq_load_relaxed(&page->given),
                                   .slots = shmq_slot_count(&q->first),
                                   .created_ns = page->created_ns,
                                   .shut_down = shmq_load_seq(&page->shut_down),
                                   .created_by = page->created_by};
    for (uint32_t i = 0; i < facts->retry_steps; i++) {
        facts->retry_delay_ns[i] = shmq_load_relaxed(&page->settings.retry_delay_ns[i]);
    }
    for (uint32_t i = 0; i < SHMQ_ALERT_TERMS; i++) {
        facts->alerts[i] = shmq_load_relaxed(&page->settings.alerts[i]);
    }
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        bool is_number = i != SHMQ_SET_RETRY_DELAY && i != SHMQ_SET_DEAD_LETTER && i != SHMQ_SET_ALERTS;
        facts->values[i] = is_number ? shmq_setting_value(page, i) : 0;
        facts->given_by[i] = page->settings.given_by[i];
    }
    facts->dead_letter_len = shmq_dead_letter(page, facts->dead_letter);
    return SHMQ_OK;
}

uint64_t shmq_queue_settings_version(const shmq_queue *q) {
    return shmq_load_acquire(&q->page->settings.seal); /* SYNC settings.seal */
}

uint64_t shmq_queue_max_ttl(const shmq_queue *q) { return shmq_load_relaxed(&q->page->settings.max_ttl_ns); }

void shmq_queue_totals(const shmq_queue *q, shmq_totals *totals) {
    uint32_t high = shmq_process_high(q->m);
    memset(totals, 0, sizeof *totals);
    for (uint32_t row = 0; row < high; row++) {
        shmq_counters_shm *counters = shmq_counters_at(q->m, row, q->index);
        if (counters != NULL) {
            totals->put += shmq_load_relaxed(&counters->put);
            totals->got += shmq_load_relaxed(&counters->got);
            totals->received += shmq_load_relaxed(&counters->received);
            totals->acked += shmq_load_relaxed(&counters->acked);
            totals->redelivered += shmq_load_relaxed(&counters->redelivered);
            totals->dead_lettered += shmq_load_relaxed(&counters->dead_lettered);
            totals->died += shmq_load_relaxed(&counters->died);
            totals->expired += shmq_load_relaxed(&counters->expired);
            totals->dropped += shmq_load_relaxed(&counters->dropped);
        }
    }
}

void shmq_queue_used(const shmq_queue *q, uint64_t *entries, uint64_t *bytes, uint64_t *resident) {
    *entries = shmq_load_seq(&q->page->count) & SHMQ_COUNT_MASK;
    *bytes = shmq_load_seq(&q->page->weight) & SHMQ_WEIGHT_MASK;
    *resident = shmq_load_seq(&q->page->resident) & SHMQ_WEIGHT_MASK;
}

uint32_t shmq_queue_mover(const shmq_queue *q) { return shmq_load_seq(&q->page->unfinished); }

uint64_t shmq_level_end(const shmq_queue *q, uint32_t depth) { return shmq_load_seq(&shmq_level_ring(q, depth)->tail); }
