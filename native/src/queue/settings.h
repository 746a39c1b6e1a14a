/* The settings that users give a queue: where they are kept, and how users agree on them. setting.h lists the settings.
 *
 * A process writes a value under the structure lock. It is in force for every process at once, since each reads it from
 * the page where it uses it. A reader that still has the value of before does once more what was right before. */
#ifndef SHMQ_QUEUE_SETTINGS_H
#define SHMQ_QUEUE_SETTINGS_H

#include "base/status.h"
#include "layout/abi.h"
#include "layout/setting.h"

struct shmq_member;
struct shmq_queue_shm;

/* Say a value of a declaration by the number of its setting. Not of dead_letter, retry_delay and alerts, which are no numbers. */
void shmq_declaration_give(shmq_declaration *d, int setting, uint64_t value);
/* A declaration's value for a setting that is a number; the default if it gives none. */
uint64_t shmq_declared(const shmq_declaration *d, int setting);
/* All but dead_letter, retry_delay and alerts. */
bool shmq_setting_is_number(int setting);
/* The value in force of a setting that is a number. */
uint64_t shmq_setting_value(const struct shmq_queue_shm *page, int setting);
/* Can a setting that is a number have this value? Else it is damaged. */
bool shmq_setting_possible(int setting, uint64_t value);
/* All settings of a page that no other process sees yet. */
void shmq_settings_fill(struct shmq_queue_shm *page, const shmq_declaration *d);
/* Given and given before: equal, or refused as a whole: SHMQ_EXISTS with `differs`. Given for the first time: set, but for
 * those that are fixed at creation. Under the structure lock. */
shmq_status shmq_settings_agree(struct shmq_queue_shm *page, const shmq_declaration *d, int *differs);
/* Set whatever was given before, but for what is fixed: SHMQ_EXISTS with `differs`, and nothing was changed. Under the
 * structure lock. */
shmq_status shmq_settings_alter(struct shmq_queue_shm *page, const shmq_declaration *d, int *differs);
/* Length of the name that was given for dead letters; 0: none was. */
uint32_t shmq_dead_letter(const struct shmq_queue_shm *page, char name[SHMQ_NAME_MAX]);
/* As users write it. */
const char *shmq_setting_name(int setting);
/* Around a change of settings, under the structure lock. */
void shmq_settings_unseal(struct shmq_queue_shm *page);
void shmq_settings_seal(struct shmq_queue_shm *page);
/* All values are those that were given. True also while a process changes them. */
bool shmq_settings_sealed(const struct shmq_queue_shm *page);
/* SHMQ_CORRUPT, counted and named, if a value can be none, or is not the one that was given. */
shmq_status shmq_settings_check(struct shmq_member *m, const struct shmq_queue_shm *page);
/* NULL, or what is wrong with them. */
const char *shmq_settings_fault(const struct shmq_queue_shm *page);
/* Time until a message that has failed so often (1: the first time) is tried again. */
uint64_t shmq_retry_delay_ns(const struct shmq_queue_shm *page, uint32_t attempt);

#endif
