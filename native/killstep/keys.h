/* A set of keys of 64 bits: what has been met before. */
#ifndef SHMQ_KILLSTEP_KEYS_H
#define SHMQ_KILLSTEP_KEYS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct keys {
    uint64_t *slots;
    uint32_t room, count;
} keys;

/* False: it was there. */
bool keys_add(keys *k, uint64_t key);
bool keys_have(const keys *k, uint64_t key);
void keys_clear(keys *k);

#endif
