/* The seal of a queue's settings: a checksum over all values, by which a reader tells a damaged value from one that a
 * user gave. Without it the user that declares the queue, or puts with options that do not fit it, would be blamed for
 * a word that was overwritten by another possible value.
 *
 *   seal: version 32 (bits 32 to 63; odd: a process changes the settings, or died amid it) | checksum 32
 *
 * The process that changes the settings writes it under the structure lock: odd, then the values, then even. A process
 * that asks for all settings checks it; one that reads a setting for each message (maxsize, lease ...) does not. A
 * death amid a change leaves an odd version: then each value counts as it is, until the next change makes it even. */
#include "queue/handle.h"
#include "queue/settings.h"
#include <stdio.h>

#define LOOKS 8

static uint64_t mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static uint32_t checksum(const shmq_queue_shm *page) {
    const shmq_settings_shm *settings = &page->settings;
    char dead_letter[SHMQ_NAME_MAX];
    uint32_t length = shmq_read_once(&page->name_len);
    uint64_t sum = mix(page->incarnation, length <= SHMQ_NAME_MAX ? shmq_name_hash(page->name, length) : 0);
    sum = mix(sum, page->temporary_row);
    sum = mix(sum, page->temporary_generation);
    sum = mix(sum, shmq_load_relaxed((shmq_a64 *)&page->given));
    sum = mix(sum, shmq_load_relaxed((shmq_a32 *)&page->limited));
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (shmq_setting_is_number(i)) {
            sum = mix(sum, shmq_setting_value(page, i));
        }
    }
    sum = mix(sum, shmq_load_relaxed((shmq_a32 *)&settings->retry_steps));
    for (uint32_t i = 0; i < SHMQ_RETRY_STEPS; i++) {
        sum = mix(sum, shmq_load_relaxed((shmq_a64 *)&settings->retry_delay_ns[i]));
    }
    for (uint32_t i = 0; i < SHMQ_ALERT_TERMS; i++) {
        sum = mix(sum, shmq_load_relaxed((shmq_a64 *)&settings->alerts[i]));
    }
    sum = mix(sum, shmq_load_relaxed((shmq_a64 *)&settings->dead_letter));
    length = shmq_dead_letter(page, dead_letter);
    sum = mix(sum, shmq_name_hash(dead_letter, length));
    return (uint32_t)(sum ^ sum >> 32);
}

void shmq_settings_unseal(shmq_queue_shm *page) {
    uint64_t version = shmq_load_relaxed(&page->settings.seal) >> 32;
    shmq_store_seq(&page->settings.seal, (version | 1) << 32);
    shmq_fence_release(); /* SYNC settings.seal: the version is odd before any value changes */
}

void shmq_settings_seal(shmq_queue_shm *page) {
    uint64_t version = shmq_load_relaxed(&page->settings.seal) >> 32;
    uint64_t next = ((version | 1) + 1) << 32 | checksum(page);
    shmq_store_release(&page->settings.seal, next); /* SYNC settings.seal */
}

bool shmq_settings_sealed(const shmq_queue_shm *page) {
    shmq_a64 *at = (shmq_a64 *)(uintptr_t)&page->settings.seal;
    for (int look = 0; look < LOOKS; look++) {
        uint64_t seal = shmq_load_acquire(at); /* SYNC settings.seal */
        if ((seal >> 32 & 1) != 0) {
            return true;
        }
        uint32_t sum = checksum(page);
        shmq_fence_acquire(); /* SYNC settings.seal: the values are read before the second look */
        if (shmq_load_relaxed(at) == seal) {
            return (uint32_t)seal == sum;
        }
    }
    return true; /* it changed at each look: another process changes the settings now */
}

shmq_status shmq_settings_check(shmq_member *m, const shmq_queue_shm *page) {
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (shmq_setting_is_number(i) && !shmq_setting_possible(i, shmq_setting_value(page, i))) {
            char what[120];
            snprintf(what, sizeof(what), "the setting %s of a queue has a value that this version does not know",
                     shmq_setting_name(i));
            return shmq_damage(m, what, shmq_setting_value(page, i));
        }
    }
    uint64_t offset = (uint64_t)((const unsigned char *)&page->settings - m->base);
    return shmq_settings_sealed(page) ? SHMQ_OK
                                      : shmq_damage(m, "the settings of a queue do not match their checksum", offset);
}
