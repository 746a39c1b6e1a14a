#include "keys.h"

#include "stage.h"

#define FIRST_ROOM 1024u

/* Where the key is, or belongs. 0 stands for an empty place, and is as good as 1. */
static uint64_t *place_of(const keys *k, uint64_t key) {
    uint32_t at = (uint32_t)key & (k->room - 1);
    while (k->slots[at] != 0 && k->slots[at] != key) {
        at = (at + 1) & (k->room - 1);
    }
    return &k->slots[at];
}

void keys_clear(keys *k) {
    if (k->room != 0) {
        own_memory_end(k->slots, k->room * sizeof(*k->slots));
    }
    *k = (keys){0};
}

static void grow(keys *k) {
    keys old = *k;
    k->room = old.room != 0 ? old.room * 2 : FIRST_ROOM;
    k->slots = own_memory(k->room * sizeof(*k->slots));
    for (uint32_t i = 0; i < old.room; i++) {
        if (old.slots[i] != 0) {
            *place_of(k, old.slots[i]) = old.slots[i];
        }
    }
    keys_clear(&old);
}

bool keys_add(keys *k, uint64_t key) {
    if (k->count * 2 >= k->room) {
        grow(k);
    }
    key += key == 0;
    uint64_t *place = place_of(k, key);
    if (*place == key) {
        return false;
    }
    *place = key;
    k->count += 1;
    return true;
}

bool keys_have(const keys *k, uint64_t key) {
    key += key == 0;
    return k->room != 0 && *place_of(k, key) == key;
}
