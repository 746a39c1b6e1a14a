/* Since when a queue has had no consumer, for its option expires. Rows of consumers are opened and closed under the
 * structure lock, so its holder can say that there is none. The word `unused_since` only says when the time began. */
#include "consumers/unused.h"
#include "base/clock.h"
#include "consumers/sleepers.h"
#include "queue/consumer_row.h"
#include "wake/due.h"
#include "wake/watch.h"

static bool has_consumer(const shmq_queue *q) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t used = shmq_load_seq(&q->page->sleepers[chunk].used);
        for (; used != 0; used &= used - 1) {
            shmq_consumer_shm *row =
                shmq_row_at((shmq_queue *)(uintptr_t)q, chunk * 64 + (uint32_t)__builtin_ctzll(used));
            if (row != NULL && shmq_load_relaxed(&row->kind) == SHMQ_CONSUMER) {
                return true;
            }
        }
    }
    return false;
}

/* Counts the messages that all processes have taken from the queue, by get() or otherwise. */
static uint64_t taken_from(const shmq_queue *q) {
    uint64_t sum = 0;
    uint32_t high = shmq_process_high(q->m);
    for (uint32_t row = 0; row < high; row++) {
        shmq_counters_shm *counters = shmq_counters_at(q->m, row, q->index);
        sum += counters != NULL ? shmq_load_relaxed(&counters->got) + shmq_load_relaxed(&counters->received) : 0;
    }
    return sum;
}

uint64_t shmq_unused_due(const shmq_queue *q) {
    uint64_t expires = shmq_load_relaxed(&q->page->settings.expires_ns);
    uint64_t since = expires != SHMQ_NEVER ? shmq_load_seq(&q->page->settings.unused_since) : 0;
    if (SHMQ_LIKELY(since == 0) || has_consumer(q)) {
        return SHMQ_DUE_NEVER;
    }
    return since + expires >= since ? since + expires : SHMQ_DUE_NEVER;
}

void shmq_unused_begin(shmq_queue *q) {
    uint64_t expires = shmq_load_relaxed(&q->page->settings.expires_ns), now;
    if (SHMQ_LIKELY(expires == SHMQ_NEVER)) {
        return;
    }
    now = shmq_now_ns();
    shmq_store_relaxed(&q->page->settings.unused_taken, taken_from(q));
    shmq_store_seq(&q->page->settings.unused_since, now);
    if (now + expires >= now && shmq_due_at(&q->m->header->due, now + expires)) {
        shmq_watch_hurry(q->m);
    }
}

void shmq_unused_declared(shmq_queue *q, uint32_t given) {
    uint64_t expires = shmq_load_relaxed(&q->page->settings.expires_ns);
    if (given & (1u << SHMQ_SET_EXPIRES) && expires != 0) {
        shmq_unused_begin(q);
    }
}

/* A thread that sleeps in get() counts as a use, and so does a message taken since `unused_since`: a thread that always
 * finds one never sleeps. The counters show that, so get() writes nothing for it. */
bool shmq_unused_is_used(shmq_queue *q) {
    return shmq_load_relaxed(&q->page->settings.expires_ns) != 0 &&
           (shmq_anybody_idle(q) || taken_from(q) != shmq_load_relaxed(&q->page->settings.unused_taken));
}
