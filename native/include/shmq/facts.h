/* Facts about a broker for people: about it as a whole, its processes, its queues. Copies, which nobody changes any
 * more. The binding reads these, and no word of the segment itself. */
#ifndef SHMQ_FACTS_H
#define SHMQ_FACTS_H

#include "shmq/handle.h"

typedef struct shmq_broker_facts {
    uint64_t fixed_bytes; /* before the data */
    uint64_t used_bytes; /* of what is reserved, with the fixed ones */
    uint64_t reserved_bytes, granules_free;
    uint64_t damage, rescues, deaths;
} shmq_broker_facts;

void shmq_broker_look(const shmq_member *m, shmq_broker_facts *facts);
/* How many segments the broker has lost: the high bits of its message ids. */
uint64_t shmq_broker_epoch(const shmq_member *m);

typedef struct shmq_process_facts {
    uint32_t generation, state, pid, unsettled, inside;
    uint64_t start_time, pid_namespace, attached_ns, pinned_bytes;
    char name[sizeof(((shmq_process_shm *)NULL)->name)];
} shmq_process_facts;

/* False: the row is free. */
bool shmq_process_look(const shmq_member *m, uint32_t row, shmq_process_facts *facts);

/* A process that died with the message `id` in hand. */
typedef struct shmq_death_record {
    uint64_t at_ns;
    uint32_t pid;
    int32_t signal; /* 0: not known */
} shmq_death_record;

/* How many there are, oldest first. */
uint32_t shmq_death_records_of(const shmq_member *m, uint64_t id, shmq_death_record found[SHMQ_DEATH_RECORDS]);
/* The signal that ended a dead process: the caller knows it, since it has waited for the process. It goes into the
 * death records of the process's messages, and into one of the process itself, since those may come later. */
void shmq_death_record_signal(shmq_member *m, uint32_t pid, int32_t signal);

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

typedef struct shmq_waiter_counts {
    uint32_t consumers, asleep, producers_waiting;
} shmq_waiter_counts;

void shmq_queue_waiters(const shmq_queue *q, shmq_waiter_counts *waiters);
/* The consumer in the first row from *row on: its process; *row is where to go on. False: there is none. */
bool shmq_next_taker(const shmq_queue *q, uint32_t *row, uint32_t *pid);

#endif
