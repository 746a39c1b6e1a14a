/* Facts for people about a queue. Copies, which nobody changes any more. The binding reads these, and no word of the
 * segment itself. */
#ifndef SHMQ_QUEUE_QUEUE_FACTS_H
#define SHMQ_QUEUE_QUEUE_FACTS_H

#include "queue/handle.h"

typedef struct shmq_settings_facts {
    uint64_t values[SHMQ_SETTINGS]; /* of those that are numbers */
    uint64_t retry_delay_ns[SHMQ_RETRY_STEPS];
    uint32_t retry_steps; /* 1 or more */
    uint64_t alerts[SHMQ_ALERT_TERMS];
    char dead_letter[SHMQ_NAME_MAX];
    uint32_t dead_letter_len; /* 0: none */
    uint32_t given_by[SHMQ_SETTINGS];
    uint64_t given, slots, created_ns;
    uint32_t shut_down, created_by;
} shmq_settings_facts;

/* SHMQ_CORRUPT: what was written down at the declaration does not fit any more. */
shmq_status shmq_queue_settings(const shmq_queue *q, shmq_settings_facts *facts);
/* Another number after each change of the settings. A reader that asks for it before it reads them misses none. */
uint64_t shmq_queue_settings_version(const shmq_queue *q);

/* How long a message lives in this queue, in ns from its put; SHMQ_NEVER: for ever. */
uint64_t shmq_queue_max_ttl(const shmq_queue *q);

/* Sums of the counters of all processes. */
typedef struct shmq_totals {
    uint64_t put, got, received, acked, redelivered, dead_lettered, died, expired, dropped;
} shmq_totals;

void shmq_queue_totals(const shmq_queue *q, shmq_totals *totals);

/* Entries and bytes as the limits count them, and what of the bytes is in memory; without such a limit they mean nothing. */
void shmq_queue_used(const shmq_queue *q, uint64_t *entries, uint64_t *bytes, uint64_t *resident);
/* The pid of the process that took the mover's lock last; 0: its turn has ended. */
uint32_t shmq_queue_mover(const shmq_queue *q);
/* Behind the last position of a level: where the next entry comes. */
uint64_t shmq_level_end(const shmq_queue *q, uint32_t depth);

/* Does the queue limit the life of all its messages? */
static inline bool shmq_ring_ages(const shmq_queue *q) {
    return shmq_load_relaxed(&q->page->settings.max_ttl_ns) != SHMQ_NEVER;
}

#endif
