/* The options of a queue: their numbers, and what a declaration says of them. Written by tools/options. */
#ifndef SHMQ_LAYOUT_SETTING_H
#define SHMQ_LAYOUT_SETTING_H

#include <stdbool.h>
#include <stdint.h>

/* Bit in queue.given, index in settings.given_by. */
enum shmq_setting {
    SHMQ_SET_MAXSIZE = 0,
    SHMQ_SET_SLOT_SIZE = 1,
    SHMQ_SET_TEMPORARY = 2,
    SHMQ_SET_MAX_ATTEMPTS = 3,
    SHMQ_SET_MAX_DEATHS = 4,
    SHMQ_SET_CHECKSUM = 5,
    SHMQ_SET_DEAD_LETTER = 6,
    SHMQ_SET_MAX_BYTES = 7,
    SHMQ_SET_OVERFLOW = 8,
    SHMQ_SET_PRIORITIES = 9,
    SHMQ_SET_GROUPS = 10,
    SHMQ_SET_RETRY_DELAY = 11,
    SHMQ_SET_MAX_TTL = 12,
    SHMQ_SET_DEAD_LETTER_EXPIRED = 13,
    SHMQ_SET_LEASE = 14,
    SHMQ_SET_LIVE_CONSUMERS = 15,
    SHMQ_SET_EXPIRES = 16,
    SHMQ_SET_MAX_MEMORY = 17,
    SHMQ_SET_ALERTS = 18,
    SHMQ_SETTINGS
};

enum shmq_overflow { SHMQ_OVERFLOW_WAIT = 0, SHMQ_OVERFLOW_REJECT = 1, SHMQ_OVERFLOW_DROP_OLDEST = 2 };
enum shmq_grouping { SHMQ_GROUPS_NONE = 0, SHMQ_GROUPS_SHARED = 1, SHMQ_GROUPS_STICKY = 2 };

/* The settings that a declaration gives: those in `given`, no others. */
typedef struct shmq_declaration {
    uint32_t given; /* bit per enum shmq_setting */
    bool create;
    uint64_t maxsize;
    uint64_t slot_size;
    uint64_t temporary;
    uint64_t max_attempts;
    uint64_t max_deaths;
    uint64_t checksum;
    const char *dead_letter;
    uint32_t dead_letter_len;
    uint64_t max_bytes;
    uint64_t overflow;
    uint64_t priorities;
    uint64_t grouping;
    uint64_t retry_delay_ns[8];
    uint32_t retry_steps;
    uint64_t max_ttl_ns;
    uint64_t dead_letter_expired;
    uint64_t lease_ns;
    uint64_t live_consumers;
    uint64_t expires_ns;
    uint64_t max_memory;
    uint64_t alerts[5];
} shmq_declaration;

#endif
