/* The settings of a queue: the process that creates it fills them; each later declaration has to agree with them. */
#include "queue/settings.h"
#include "base/clock.h"
#include "base/fault_text.h"
#include "base/wait_time.h"
#include "layout/queue.h"

#include <string.h>
#include <unistd.h>

/* Of a setting that is a number: the field of the declaration (8 bytes) and the field of the page (4 or 8 bytes), whose
 * name may differ from the setting's. */
typedef struct number {
    uint32_t declared, kept, bytes;
    bool fixed; /* once the queue exists */
    uint64_t fallback;
    uint64_t least, most; /* possible values */
} number;

#define NUMBER(field, page_field, is_fixed, if_not_said, from, to) \
    {.declared = offsetof(shmq_declaration, field),                \
     .kept = offsetof(shmq_queue_shm, page_field),                 \
     .bytes = sizeof(((shmq_queue_shm *)NULL)->page_field),        \
     .fixed = (is_fixed),                                          \
     .fallback = (if_not_said),                                    \
     .least = (from),                                              \
     .most = (to)}

#include "setting_table.h"

static_assert(sizeof(((shmq_declaration *)NULL)->alerts) == SHMQ_ALERT_TERMS * sizeof(uint64_t) &&
                  SHMQ_ALERT_TERMS == SHMQ_ALERT_KINDS + 1u,
              "a threshold of each kind, and the time between two alerts");
static_assert(sizeof(((shmq_declaration *)NULL)->retry_delay_ns) == SHMQ_RETRY_STEPS * sizeof(uint64_t),
              "a page has room for as many delays as tools/options.toml says");

const char *shmq_setting_name(int setting) { return names[setting]; }

bool shmq_setting_is_number(int setting) {
    return setting != SHMQ_SET_DEAD_LETTER && setting != SHMQ_SET_RETRY_DELAY && setting != SHMQ_SET_ALERTS;
}

static bool said(const shmq_declaration *d, int setting) { return d->given >> setting & 1; }

void shmq_declaration_give(shmq_declaration *d, int setting, uint64_t value) {
    SHMQ_ASSERT(shmq_setting_is_number(setting));
    memcpy((unsigned char *)d + numbers[setting].declared, &value, sizeof value);
    d->given |= 1u << setting;
}

uint64_t shmq_declared(const shmq_declaration *d, int setting) {
    uint64_t value;
    SHMQ_ASSERT(shmq_setting_is_number(setting));
    if (!said(d, setting)) {
        return numbers[setting].fallback;
    }
    memcpy(&value, (const unsigned char *)d + numbers[setting].declared, sizeof value);
    return value;
}

static void *kept_at(const shmq_queue_shm *page, int setting) {
    return (unsigned char *)(uintptr_t)page + numbers[setting].kept;
}

uint64_t shmq_setting_value(const shmq_queue_shm *page, int setting) {
    SHMQ_ASSERT(shmq_setting_is_number(setting));
    return numbers[setting].bytes == sizeof(uint64_t) ? shmq_load_relaxed((shmq_a64 *)kept_at(page, setting))
                                                      : shmq_load_relaxed((shmq_a32 *)kept_at(page, setting));
}

bool shmq_setting_possible(int setting, uint64_t value) {
    SHMQ_ASSERT(shmq_setting_is_number(setting));
    return value >= numbers[setting].least && value <= numbers[setting].most;
}

static void keep_number(shmq_queue_shm *page, const shmq_declaration *d, int setting) {
    uint64_t value = shmq_declared(d, setting);
    if (numbers[setting].bytes == sizeof value) {
        shmq_store_seq((shmq_a64 *)kept_at(page, setting), value);
    } else {
        shmq_store_seq((shmq_a32 *)kept_at(page, setting), (uint32_t)value);
    }
}

static shmq_a64 *dead_letter_at(const shmq_queue_shm *page, uint64_t word) {
    return (shmq_a64 *)(uintptr_t)&page->settings.dead_letter_names[(word >> 32 & 1) * SHMQ_NAME_WORDS];
}

/* Writes the name into the half that is not in use; then the word that says which half is. */
static void keep_dead_letter(shmq_queue_shm *page, const shmq_declaration *d) {
    uint64_t words[SHMQ_NAME_WORDS] = {0};
    uint64_t next = ((shmq_load_relaxed(&page->settings.dead_letter) >> 32) + 1) << 32 | d->dead_letter_len;
    memcpy(words, d->dead_letter, d->dead_letter_len);
    shmq_fence_release(); /* SYNC settings.dead_letter: the name before has its word before this one is begun */
    for (uint32_t i = 0; i < SHMQ_NAME_WORDS; i++) {
        shmq_store_relaxed(&dead_letter_at(page, next)[i], words[i]);
    }
    shmq_store_release(&page->settings.dead_letter, next); /* SYNC settings.dead_letter */
}

uint32_t shmq_dead_letter(const shmq_queue_shm *page, char name[SHMQ_NAME_MAX]) {
    shmq_a64 *at = (shmq_a64 *)(uintptr_t)&page->settings.dead_letter;
    for (uint64_t word = shmq_load_acquire(at);;) { /* SYNC settings.dead_letter */
        uint64_t words[SHMQ_NAME_WORDS];
        for (uint32_t i = 0; i < SHMQ_NAME_WORDS; i++) {
            words[i] = shmq_load_relaxed(&dead_letter_at(page, word)[i]);
        }
        shmq_fence_acquire(); /* SYNC settings.dead_letter: a reader of parts of the next name but one sees its word */
        uint64_t again = shmq_load_relaxed(at);
        if (again == word) {
            memcpy(name, words, sizeof words);
            return (uint32_t)word <= SHMQ_NAME_MAX ? (uint32_t)word : 0;
        }
        word = again;
    }
}

/* Not in one step: a process that reads in between takes an old delay for a new one. */
static void keep_delays(shmq_queue_shm *page, const shmq_declaration *d) {
    for (uint32_t i = 0; i < d->retry_steps && i < SHMQ_RETRY_STEPS; i++) {
        shmq_store_relaxed(&page->settings.retry_delay_ns[i], d->retry_delay_ns[i]);
    }
    shmq_store_seq(&page->settings.retry_steps, d->retry_steps);
}

static bool same_delays(const shmq_queue_shm *page, const shmq_declaration *d) {
    if (shmq_load_relaxed(&page->settings.retry_steps) != d->retry_steps) {
        return false;
    }
    for (uint32_t i = 0; i < d->retry_steps && i < SHMQ_RETRY_STEPS; i++) {
        if (shmq_load_relaxed(&page->settings.retry_delay_ns[i]) != d->retry_delay_ns[i]) {
            return false;
        }
    }
    return true;
}

static void keep_alerts(shmq_queue_shm *page, const shmq_declaration *d) {
    for (uint32_t i = 0; i < SHMQ_ALERT_TERMS; i++) {
        shmq_store_seq(&page->settings.alerts[i], d->alerts[i]);
    }
}

static bool same_alerts(const shmq_queue_shm *page, const shmq_declaration *d) {
    for (uint32_t i = 0; i < SHMQ_ALERT_TERMS; i++) {
        if (shmq_load_relaxed(&page->settings.alerts[i]) != d->alerts[i]) {
            return false;
        }
    }
    return true;
}

static bool same(const shmq_queue_shm *page, const shmq_declaration *d, int setting) {
    if (shmq_setting_is_number(setting)) {
        return shmq_setting_value(page, setting) == shmq_declared(d, setting);
    }
    if (setting == SHMQ_SET_RETRY_DELAY) {
        return same_delays(page, d);
    }
    if (setting == SHMQ_SET_ALERTS) {
        return same_alerts(page, d);
    }
    char name[SHMQ_NAME_MAX];
    return shmq_dead_letter(page, name) == d->dead_letter_len && memcmp(name, d->dead_letter, d->dead_letter_len) == 0;
}

static void set(shmq_queue_shm *page, const shmq_declaration *d, int setting) {
    uint32_t limit = setting == SHMQ_SET_MAXSIZE      ? SHMQ_LIMITED_COUNT
                     : setting == SHMQ_SET_MAX_BYTES  ? SHMQ_LIMITED_BYTES
                     : setting == SHMQ_SET_MAX_MEMORY ? SHMQ_LIMITED_RESIDENT
                                                      : 0;
    if (limit != 0 && shmq_setting_value(page, setting) == 0) {
        /* The messages in the queue were not counted so far: the first producer counts the slots, and no put succeeds
         * before. */
        if (limit == SHMQ_LIMITED_COUNT) {
            shmq_or_seq(&page->count, SHMQ_COUNT_MASK);
        } else {
            shmq_or_seq(limit == SHMQ_LIMITED_BYTES ? &page->weight : &page->resident, SHMQ_WEIGHT_MASK);
        }
        shmq_store_seq(&page->recount_due, 1);
        shmq_store_seq(&page->limited, shmq_load_relaxed(&page->limited) | limit);
    }
    if (setting == SHMQ_SET_DEAD_LETTER) {
        keep_dead_letter(page, d);
    } else if (setting == SHMQ_SET_RETRY_DELAY) {
        keep_delays(page, d);
    } else if (setting == SHMQ_SET_ALERTS) {
        keep_alerts(page, d);
    } else if (!numbers[setting].fixed) {
        keep_number(page, d, setting);
    }
    if (limit != 0 && shmq_setting_value(page, setting) == 0) {
        shmq_store_seq(&page->limited, shmq_load_relaxed(&page->limited) & ~limit);
    }
    page->settings.given_by[setting] = (uint32_t)getpid();
    shmq_or_seq(&page->given, UINT64_C(1) << setting);
}

void shmq_settings_fill(shmq_queue_shm *page, const shmq_declaration *d) {
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (shmq_setting_is_number(i) && i != SHMQ_SET_SLOT_SIZE) { /* the ring is made before, with this size */
            keep_number(page, d, i);
        }
        page->settings.given_by[i] = said(d, i) ? (uint32_t)getpid() : 0;
    }
    uint64_t expires = shmq_declared(d, SHMQ_SET_EXPIRES);
    shmq_store_relaxed(&page->settings.unused_since, expires != SHMQ_NEVER && expires != 0 ? shmq_now_ns() : 0);
    shmq_store_relaxed(&page->limited, (shmq_declared(d, SHMQ_SET_MAXSIZE) != 0 ? SHMQ_LIMITED_COUNT : 0) |
                                           (shmq_declared(d, SHMQ_SET_MAX_BYTES) != 0 ? SHMQ_LIMITED_BYTES : 0) |
                                           (shmq_declared(d, SHMQ_SET_MAX_MEMORY) != 0 ? SHMQ_LIMITED_RESIDENT : 0));
    if (said(d, SHMQ_SET_DEAD_LETTER)) {
        keep_dead_letter(page, d);
    }
    shmq_store_relaxed(&page->settings.retry_steps, 1);
    if (said(d, SHMQ_SET_RETRY_DELAY)) {
        keep_delays(page, d);
    }
    shmq_store_relaxed(&page->settings.alerts[SHMQ_ALERT_KINDS], SHMQ_ALERT_GAP_NS);
    if (said(d, SHMQ_SET_ALERTS)) {
        keep_alerts(page, d);
    }
    shmq_store_relaxed(&page->given, d->given);
    shmq_settings_seal(page);
}

/* Sets those settings of the declaration that are in `which`. */
static void set_all(shmq_queue_shm *page, const shmq_declaration *d, uint64_t which) {
    if (which == 0) {
        return;
    }
    shmq_settings_unseal(page);
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (which >> i & 1) {
            set(page, d, i);
        }
    }
    shmq_settings_seal(page);
}

shmq_status shmq_settings_agree(shmq_queue_shm *page, const shmq_declaration *d, int *differs) {
    uint64_t before = shmq_load_relaxed(&page->given);
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (said(d, i) && (before >> i & 1 || numbers[i].fixed) && !same(page, d, i)) {
            *differs = i;
            return SHMQ_EXISTS;
        }
    }
    set_all(page, d, d->given & ~before);
    return SHMQ_OK;
}

shmq_status shmq_settings_alter(shmq_queue_shm *page, const shmq_declaration *d, int *differs) {
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (said(d, i) && numbers[i].fixed && !same(page, d, i)) {
            *differs = i;
            return SHMQ_EXISTS;
        }
    }
    uint64_t which = 0;
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        bool is_so = said(d, i) && same(page, d, i) && shmq_load_relaxed(&page->given) >> i & 1;
        which |= said(d, i) && !is_so ? UINT64_C(1) << i : 0;
    }
    set_all(page, d, which);
    return SHMQ_OK;
}

const char *shmq_settings_fault(const shmq_queue_shm *page) {
    if ((uint32_t)shmq_load_seq(&page->settings.dead_letter) > SHMQ_NAME_MAX) {
        return "the name of its dead-letter queue is too long";
    }
    uint32_t steps = shmq_load_seq(&page->settings.retry_steps);
    if (shmq_load_seq(&page->given) >> SHMQ_SETTINGS != 0 || steps == 0 || steps > SHMQ_RETRY_STEPS) {
        return "a setting has a value that this version does not know";
    }
    uint32_t limited = shmq_load_seq(&page->limited);
    if (limited > (SHMQ_LIMITED_COUNT | SHMQ_WEIGHED) ||
        (shmq_load_seq(&page->maxsize) != 0 && !(limited & SHMQ_LIMITED_COUNT)) ||
        (shmq_load_seq(&page->settings.max_bytes) != 0 && !(limited & SHMQ_LIMITED_BYTES)) ||
        (shmq_load_seq(&page->settings.max_memory) != 0 && !(limited & SHMQ_LIMITED_RESIDENT))) {
        return "the queue has a limit, but does not count its messages";
    }
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (shmq_setting_is_number(i) && !shmq_setting_possible(i, shmq_setting_value(page, i))) {
            return shmq_fault_text("the setting %s has a value that this version does not know", shmq_setting_name(i));
        }
    }
    return NULL;
}

uint64_t shmq_retry_delay_ns(const shmq_queue_shm *page, uint32_t attempt) {
    uint32_t steps = shmq_load_relaxed(&page->settings.retry_steps);
    steps = steps == 0 || steps > SHMQ_RETRY_STEPS ? 1 : steps;
    uint32_t step = attempt < steps ? attempt : steps;
    return shmq_load_relaxed(&page->settings.retry_delay_ns[step == 0 ? 0 : step - 1]);
}
