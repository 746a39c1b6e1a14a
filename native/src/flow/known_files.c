#include "flow/known_files.h"

#include <stdlib.h>
#include <string.h>

bool shmq_known_add(shmq_known_files *k, uint64_t first) {
    if (k->count == k->room) {
        uint64_t room = k->room != 0 ? 2 * k->room : 64;
        uint64_t *firsts = realloc(k->firsts, room * sizeof *firsts);
        if (firsts == NULL) {
            return false;
        }
        k->firsts = firsts;
        k->room = room;
    }
    k->firsts[k->count++] = first;
    return true;
}

static int by_number(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

void shmq_known_sort(shmq_known_files *k) {
    if (k->count > 1) {
        qsort(k->firsts, k->count, sizeof *k->firsts, by_number);
    }
}

uint64_t shmq_known_drop_first(shmq_known_files *k) {
    uint64_t first = k->firsts[0];
    memmove(k->firsts, k->firsts + 1, --k->count * sizeof *k->firsts);
    return first;
}

bool shmq_known_choose(const shmq_known_files *k, uint64_t from, uint64_t below, bool above, uint64_t *first) {
    uint64_t i = 0;
    while (i < k->count && k->firsts[i] < from) {
        i++;
    }
    bool begins_there = i < k->count && k->firsts[i] == from;
    i -= i > 0 && !above && !begins_there;
    *first = i < k->count ? k->firsts[i] : 0;
    return i < k->count && *first < below;
}
