/* The settings of a queue as its page keeps them. */
#ifndef SHMQ_LAYOUT_SETTINGS_H
#define SHMQ_LAYOUT_SETTINGS_H

#include "base/atomic.h"
#include "layout/abi.h"
#include "layout/setting.h"

#define SHMQ_RETRY_STEPS 8u
#define SHMQ_NEVER UINT64_MAX /* of max_ttl_ns, lease_ns, expires_ns: there is none */
#define SHMQ_ALERT_TERMS 5u
#define SHMQ_SETTERS 24u
#define SHMQ_NAME_WORDS (SHMQ_NAME_MAX / 8)

typedef struct shmq_settings_shm {
    shmq_a64 max_bytes; /* 0: no limit */
    shmq_a64 max_ttl_ns; /* UINT64_MAX: none */
    shmq_a64 lease_ns; /* UINT64_MAX: none */
    shmq_a64 expires_ns; /* UINT64_MAX: never */
    shmq_a64 retry_delay_ns[SHMQ_RETRY_STEPS]; /* by attempt; the last one that is used repeats */
    shmq_a32 retry_steps; /* how many are used, 1 at least */
    shmq_a32 overflow;
    shmq_a32 priorities; /* levels; 1: none */
    shmq_a32 grouping;
    shmq_a32 dead_letter_expired;
    shmq_a32 live_consumers; /* 0: all */
    uint32_t given_by[SHMQ_SETTERS]; /* pid of the process that gave it first */
    shmq_a64 dead_letter; /* version 32 | length of the name, 0: nobody gave one; odd versions have the second name */
    shmq_a64
        dead_letter_names[2 * SHMQ_NAME_WORDS]; /* two names: the one that is written is not the one that is read */
    shmq_a64 unused_since; /* monotonic time at which the last consumer went; 0: there was none */
    shmq_a64 unused_taken; /* messages that had been taken when unused_since was written */
    shmq_a64 seal; /* version 32, odd: they are being changed | checksum 32 of all of them; see settings_seal.c */
    shmq_a64 max_memory; /* bytes of headers and bodies in memory; 0: no limit of its own */
    shmq_a64 alerts
        [SHMQ_ALERT_TERMS]; /* thresholds by enum shmq_alert, age in ns; 0: none. Then the time between two, in ns */
    uint64_t reserved[1];
} shmq_settings_shm;
SHMQ_SIZE(shmq_settings_shm, 704);
SHMQ_OFFSET(shmq_settings_shm, max_bytes, 0);
SHMQ_OFFSET(shmq_settings_shm, max_ttl_ns, 8);
SHMQ_OFFSET(shmq_settings_shm, lease_ns, 16);
SHMQ_OFFSET(shmq_settings_shm, expires_ns, 24);
SHMQ_OFFSET(shmq_settings_shm, retry_delay_ns, 32);
SHMQ_OFFSET(shmq_settings_shm, retry_steps, 96);
SHMQ_OFFSET(shmq_settings_shm, overflow, 100);
SHMQ_OFFSET(shmq_settings_shm, priorities, 104);
SHMQ_OFFSET(shmq_settings_shm, grouping, 108);
SHMQ_OFFSET(shmq_settings_shm, dead_letter_expired, 112);
SHMQ_OFFSET(shmq_settings_shm, live_consumers, 116);
SHMQ_OFFSET(shmq_settings_shm, given_by, 120);
SHMQ_OFFSET(shmq_settings_shm, dead_letter, 216);
SHMQ_OFFSET(shmq_settings_shm, dead_letter_names, 224);
SHMQ_OFFSET(shmq_settings_shm, unused_since, 624);
SHMQ_OFFSET(shmq_settings_shm, unused_taken, 632);
SHMQ_OFFSET(shmq_settings_shm, seal, 640);
SHMQ_OFFSET(shmq_settings_shm, max_memory, 648);
SHMQ_OFFSET(shmq_settings_shm, alerts, 656);
static_assert((unsigned)SHMQ_SETTINGS <= SHMQ_SETTERS, "each setting has a place for its giver");

#endif
