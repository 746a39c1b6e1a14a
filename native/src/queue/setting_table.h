/* Written by tools/options, for settings.c: of each option that is a number its field in a declaration, its field in
 * the page, is it fixed, its default, its least and its most; then the names of all. */
#ifndef SHMQ_SETTING_TABLE_H
#define SHMQ_SETTING_TABLE_H

static const number numbers[SHMQ_SETTINGS] = {
    [SHMQ_SET_MAXSIZE] = NUMBER(maxsize, maxsize, false, 0, 0, 4294967294),
    [SHMQ_SET_SLOT_SIZE] = NUMBER(slot_size, ring.slot_size, true, 192, 128, 4096),
    [SHMQ_SET_TEMPORARY] = NUMBER(temporary, temporary, true, 0, 0, 1),
    [SHMQ_SET_MAX_ATTEMPTS] = NUMBER(max_attempts, max_attempts, false, 20, 0, 65535),
    [SHMQ_SET_MAX_DEATHS] = NUMBER(max_deaths, max_deaths, false, 3, 0, 65535),
    [SHMQ_SET_CHECKSUM] = NUMBER(checksum, checksum, true, 1, 0, 1),
    [SHMQ_SET_MAX_BYTES] = NUMBER(max_bytes, settings.max_bytes, false, 0, 0, 274877906944),
    [SHMQ_SET_OVERFLOW] = NUMBER(overflow, settings.overflow, false, 0, 0, 2),
    [SHMQ_SET_PRIORITIES] = NUMBER(priorities, settings.priorities, true, 1, 1, 10),
    [SHMQ_SET_GROUPS] = NUMBER(grouping, settings.grouping, true, 0, 0, 2),
    [SHMQ_SET_MAX_TTL] = NUMBER(max_ttl_ns, settings.max_ttl_ns, false, SHMQ_NEVER, 0, SHMQ_NEVER),
    [SHMQ_SET_DEAD_LETTER_EXPIRED] = NUMBER(dead_letter_expired, settings.dead_letter_expired, false, 0, 0, 1),
    [SHMQ_SET_LEASE] = NUMBER(lease_ns, settings.lease_ns, false, SHMQ_NEVER, 1, SHMQ_NEVER),
    [SHMQ_SET_LIVE_CONSUMERS] = NUMBER(live_consumers, settings.live_consumers, false, 0, 0, 1023),
    [SHMQ_SET_EXPIRES] = NUMBER(expires_ns, settings.expires_ns, false, SHMQ_NEVER, 0, SHMQ_NEVER),
    [SHMQ_SET_MAX_MEMORY] = NUMBER(max_memory, settings.max_memory, false, 0, 0, 274877906944),
};

static const char *const names[SHMQ_SETTINGS] = {
    [SHMQ_SET_MAXSIZE] = "maxsize",
    [SHMQ_SET_SLOT_SIZE] = "slot_size",
    [SHMQ_SET_TEMPORARY] = "temporary",
    [SHMQ_SET_MAX_ATTEMPTS] = "max_attempts",
    [SHMQ_SET_MAX_DEATHS] = "max_deaths",
    [SHMQ_SET_CHECKSUM] = "checksum",
    [SHMQ_SET_DEAD_LETTER] = "dead_letter",
    [SHMQ_SET_MAX_BYTES] = "max_bytes",
    [SHMQ_SET_OVERFLOW] = "overflow",
    [SHMQ_SET_PRIORITIES] = "priorities",
    [SHMQ_SET_GROUPS] = "groups",
    [SHMQ_SET_RETRY_DELAY] = "retry_delay",
    [SHMQ_SET_MAX_TTL] = "max_ttl",
    [SHMQ_SET_DEAD_LETTER_EXPIRED] = "dead_letter_expired",
    [SHMQ_SET_LEASE] = "lease",
    [SHMQ_SET_LIVE_CONSUMERS] = "live_consumers",
    [SHMQ_SET_EXPIRES] = "expires",
    [SHMQ_SET_MAX_MEMORY] = "max_memory",
    [SHMQ_SET_ALERTS] = "alerts",
};

#endif
