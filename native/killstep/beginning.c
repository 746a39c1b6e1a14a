#include "queue/level.h"
#include "beginning.h"

#include <string.h>

#include "ring_place.h"

#define SLOTS UINT64_C(1024) /* of every ring here */

static const struct {
    const char *name;
    uint64_t position, epoch;
} beginnings[] = {
    [BEGIN_NEW] = {"new", 0, 0},
    [BEGIN_LAP_END] = {"lap-end", SLOTS - 2, 0},
    [BEGIN_WRAP] = {"wrap", SHMQ_POSITION_MASK - 1, SHMQ_EPOCH_MASK - 1},
};

bool beginning_named(const char *name, beginning *found) {
    for (unsigned b = 0; b < sizeof(beginnings) / sizeof(beginnings[0]); b++) {
        if (strcmp(beginnings[b].name, name) == 0) {
            *found = (beginning)b;
            return true;
        }
    }
    return false;
}

const char *beginning_name(beginning b) { return beginnings[b].name; }

uint64_t beginning_position(beginning b) { return beginnings[b].position; }

void beginning_apply(beginning b, shmq_queue *q) {
    for (uint32_t depth = 0; depth < q->levels && b != BEGIN_NEW; depth++) {
        ring_place(shmq_level(q, depth), beginnings[b].position, beginnings[b].epoch);
    }
}

void beginning_apply_front(beginning b, shmq_queue *q) {
    if (b != BEGIN_NEW) {
        ring_place(shmq_level(q, q->levels), beginnings[b].position, beginnings[b].epoch);
    }
}
