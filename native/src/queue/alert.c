/* Which process looks at a queue for alerts, and which one tells of an alert: each claims that by one CAS. A time that
 * lies in the future is damage, and counts as none. */
#include "queue/alert.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "segment/alert_time.h"

static bool claim(shmq_a64 *word, uint64_t gap_ns) {
    uint64_t now = shmq_now_ns(), told = shmq_load_seq(word);
    bool early = told != 0 && told <= now && now - told < gap_ns;
    return !early && shmq_cas_seq(word, told, now);
}

static uint64_t term(const shmq_queue *q, uint32_t which) {
    return shmq_load_relaxed((shmq_a64 *)(uintptr_t)&q->page->settings.alerts[which]);
}

uint64_t shmq_alert_gap(const shmq_queue *q) { return term(q, SHMQ_ALERT_KINDS); }

bool shmq_alert_look(shmq_queue *q) { return claim(&q->page->alerts.looked, SHMQ_ALERT_LOOK_NS); }

bool shmq_alert_claim(shmq_queue *q, enum shmq_alert kind) {
    return claim(&q->page->alerts.told[kind], shmq_alert_gap(q));
}

bool shmq_alert_has_terms(const shmq_queue *q) {
    uint64_t any = 0;
    for (uint32_t which = 0; which < SHMQ_ALERT_KINDS; which++) {
        any |= term(q, which);
    }
    return any != 0;
}

void shmq_alert_weigh(shmq_queue *q, uint64_t bytes) {
    uint64_t most = term(q, SHMQ_ALERT_MESSAGE_BYTES);
    shmq_a64 *largest = &q->page->alerts.largest;
    if (SHMQ_UNLIKELY(most != 0 && bytes >= most) && bytes > shmq_load_relaxed(largest)) {
        shmq_store_relaxed(largest, bytes); /* of two at once, one is told */
        shmq_alerts_hurry(q->m);
    }
}

uint64_t shmq_alert_largest(shmq_queue *q) {
    shmq_a64 *largest = &q->page->alerts.largest;
    bool any = shmq_load_relaxed(largest) != 0 && shmq_alert_claim(q, SHMQ_ALERT_MESSAGE_BYTES);
    return any ? shmq_swap_seq(largest, 0) : 0;
}
