/* The stretches of a ring, as a process knows them. */
#include "look/census.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"

#include <stdlib.h>
#include <string.h>

typedef struct stretch {
    uint32_t word; /* 0: nothing is known of it */
    shmq_census counts;
} stretch;

typedef struct known {
    shmq_a32 busy;
    shmq_census sum; /* of all of them */
    stretch of[];
} known;

static known *known_of(shmq_ring *r) {
    known *k = (known *)(uintptr_t)shmq_load_seq(&r->known);
    if (k != NULL) {
        return k;
    }
    k = calloc(1, sizeof *k + shmq_stretches_of(shmq_slot_count(r)) * sizeof k->of[0]);
    if (k != NULL && !shmq_cas_seq(&r->known, 0, (uint64_t)(uintptr_t)k)) {
        free(k); /* another thread was first */
    }
    return (known *)(uintptr_t)shmq_load_seq(&r->known);
}

void shmq_known_free(shmq_ring *r) { free((known *)(uintptr_t)shmq_load_seq(&r->known)); }

void shmq_known_reset(shmq_ring *r) {
    known *k = (known *)(uintptr_t)shmq_load_seq(&r->known);
    if (k != NULL) {
        memset(k->of, 0, shmq_stretches_of(shmq_slot_count(r)) * sizeof k->of[0]);
        shmq_store_seq(&k->busy, 0);
    }
}

static uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void add(shmq_census *c, const shmq_census *of) {
    c->ready += of->ready;
    c->unsettled += of->unsettled;
    c->delayed += of->delayed;
    c->claimed += of->claimed;
    c->holes += of->holes;
    c->broken += of->broken;
    c->bytes += of->bytes;
    c->memory_bytes += of->memory_bytes;
    c->first_position = lower(c->first_position, of->first_position);
    c->oldest_ns = lower(c->oldest_ns - 1, of->oldest_ns - 1) + 1; /* 0: none */
}

/* Sets K before it looks: what changes from then on takes it away. */
static void look(const shmq_ring *r, uint64_t i, stretch *s) {
    shmq_a32 *at = &r->stretches[i];
    uint32_t word = shmq_load_seq(at);
    while ((word & SHMQ_STRETCH_KNOWN) == 0 && !shmq_cas32_seq(at, word, word | SHMQ_STRETCH_KNOWN)) {
        word = shmq_load_seq(at);
    }
    s->word = word | SHMQ_STRETCH_KNOWN;
    s->counts = (shmq_census){.first_position = UINT64_MAX};
    shmq_stretch_count(r, i, &s->counts);
}

/* One thread at a time uses what is kept, the others look at all. */
void shmq_ring_known(shmq_ring *r, shmq_census *c) {
    known *k = known_of(r);
    uint64_t count = shmq_stretches_of(lower(shmq_slots_laid(r), shmq_slot_count(r)));
    if (count == 0 || k == NULL || !shmq_cas32_seq(&k->busy, 0, 1)) {
        for (uint64_t i = 0; i < count; i++) {
            shmq_stretch_count(r, i, c);
        }
        return;
    }
    bool same = true;
    for (uint64_t i = 0; i < count; i++) {
        if (k->of[i].word == 0 || shmq_load_seq(&r->stretches[i]) != k->of[i].word) {
            look(r, i, &k->of[i]);
            same = false;
        }
    }
    if (!same) {
        k->sum = (shmq_census){.first_position = UINT64_MAX};
        for (uint64_t i = 0; i < count; i++) {
            add(&k->sum, &k->of[i].counts);
        }
    }
    add(c, &k->sum);
    shmq_store_seq(&k->busy, 0);
}
