#include "ring/ring_scattered.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"

#include <stdlib.h>
#include <string.h>

struct shmq_scattered {
    shmq_a32 busy; /* one thread at a time */
    bool whole; /* false: the next look is at all slots */
    uint32_t count;
    uint64_t epoch; /* what came back up to it is in the list */
    uint64_t tail; /* ... and what came in below this position */
    shmq_scattered_entry of[]; /* as many as the ring has slots */
};

static shmq_scattered *known(shmq_ring *front) { return (shmq_scattered *)(uintptr_t)shmq_load_seq(&front->scattered); }

static shmq_scattered *list_of(shmq_ring *front) {
    shmq_scattered *s = known(front);
    const shmq_queue *q = front->queue;
    if (s != NULL || q->lower == NULL || front != &q->lower[front->depth - 1]) { /* a view goes with its call */
        return s;
    }
    s = malloc(sizeof *s + shmq_slot_count(front) * sizeof s->of[0]);
    if (s == NULL) {
        return NULL;
    }
    *s = (shmq_scattered){.whole = false};
    if (!shmq_cas_seq(&front->scattered, 0, (uint64_t)(uintptr_t)s)) {
        free(s); /* another thread was first */
    }
    return known(front);
}

void shmq_scattered_end(shmq_scattered *s) { shmq_store_seq(&s->busy, 0); }

void shmq_scattered_reset(shmq_ring *front) {
    shmq_scattered *s = known(front);
    if (s != NULL) {
        s->whole = false;
        shmq_scattered_end(s);
    }
}

void shmq_scattered_free(shmq_ring *front) { free(known(front)); }

static bool can_be_taken(uint64_t word) {
    return shmq_word_state(word) == SHMQ_AVAILABLE || shmq_word_state(word) == SHMQ_OFFERED;
}

static int by_place(const void *a, const void *b) {
    uint64_t left = ((const shmq_scattered_entry *)a)->place, right = ((const shmq_scattered_entry *)b)->place;
    return left < right ? -1 : left > right;
}

/* Of all slots. */
static void gather(shmq_ring *front, shmq_scattered *s) {
    s->count = 0;
    s->tail = shmq_load_seq(&front->shm->tail);
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
        if (can_be_taken(word) && shmq_slot_at(front, p) == slot) {
            s->of[s->count++] = (shmq_scattered_entry){.place = shmq_front_place(front, slot), .position = p};
        }
    }
    qsort(s->of, s->count, sizeof s->of[0], by_place);
    s->whole = true;
}

static void insert(shmq_ring *front, shmq_scattered *s, uint64_t p) {
    const shmq_slot_shm *slot = shmq_slot_at(front, p);
    uint64_t place = shmq_front_place(front, slot);
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->of[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < s->count && s->of[low].place == place && s->of[low].position == p) {
        return;
    }
    if (s->count == shmq_slot_count(front)) { /* some have gone since they were found */
        s->whole = false;
        return;
    }
    memmove(&s->of[low + 1], &s->of[low], (s->count - low) * sizeof s->of[0]);
    s->of[low] = (shmq_scattered_entry){.place = place, .position = p};
    s->count += 1;
}

static void insert_if_here(shmq_ring *front, shmq_scattered *s, uint64_t p) {
    shmq_slot_shm *slot = shmq_slot_at(front, p);
    uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
    if (can_be_taken(word) && shmq_load_acquire(&slot->position) == p) { /* SYNC ring.publish */
        insert(front, s, p);
    }
}

/* Entries that have come in since: slots from the position on up to which the process has looked. */
static void follow_tail(shmq_ring *front, shmq_scattered *s) {
    for (uint64_t steps = 0; s->whole && (s->tail & front->mask) < shmq_slots_laid(front); steps++) {
        uint64_t word = shmq_load_seq(&shmq_slot_at(front, s->tail)->word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(front, s->tail));
        if (ahead < 0 || (ahead == 0 && shmq_word_state(word) == SHMQ_FREE)) {
            return;
        }
        s->whole = steps <= front->mask; /* else a lap has passed */
        insert_if_here(front, s, s->tail++);
    }
}

/* Entries that have come back since. */
static void follow_epoch(shmq_ring *front, shmq_scattered *s, uint64_t epoch) {
    uint64_t since = epoch - s->epoch;
    s->whole = s->whole && (int64_t)since >= 0 && since <= SHMQ_CELLS;
    for (; s->whole && s->epoch != epoch; s->epoch++) {
        uint64_t p = shmq_lowest_released(front, s->epoch, s->epoch + 1);
        if (p == 0) { /* it may be any */
            s->whole = false;
        } else {
            insert_if_here(front, s, p);
        }
    }
}

shmq_scattered *shmq_scattered_begin(shmq_ring *front, uint64_t epoch) {
    shmq_scattered *s = list_of(front);
    if (s == NULL || !shmq_cas32_seq(&s->busy, 0, 1)) {
        return NULL;
    }
    follow_epoch(front, s, epoch);
    follow_tail(front, s);
    if (!s->whole) {
        gather(front, s);
        s->epoch = epoch;
    }
    return s;
}

bool shmq_scattered_next(shmq_ring *front, shmq_scattered *s, uint32_t *at, shmq_scattered_entry *e, uint64_t *word) {
    while (*at < s->count) {
        *e = s->of[*at];
        shmq_slot_shm *slot = shmq_slot_at(front, e->position);
        *word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        if (can_be_taken(*word) && shmq_load_acquire(&slot->position) == e->position) { /* SYNC ring.publish */
            return true;
        }
        memmove(&s->of[*at], &s->of[*at + 1], (--s->count - *at) * sizeof s->of[0]);
    }
    return false;
}
