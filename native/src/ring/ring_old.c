#include "ring/ring_old.h"
#include "ring/ring.h"
#include "ring/ring_walk.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 256u
#define MOST 65536u
#define SHARE 16u /* of the ring's slots: so many looks an entry, at most, if all the others are carried, too */

static uint32_t room_of(const shmq_ring *r) {
    uint64_t room = shmq_slot_count(r) / SHARE;
    return room < LEAST ? LEAST : room > MOST ? MOST : (uint32_t)room;
}

/* A view has no list: it goes with the call that made it. */
static bool is_of_handle(const shmq_ring *r) {
    const shmq_queue *q = r->queue;
    return r == &q->first || (q->lower != NULL && r->depth != 0 && r == &q->lower[r->depth - 1]);
}

static shmq_old_list *known(shmq_ring *r, bool takers) {
    return (shmq_old_list *)(uintptr_t)shmq_load_seq(&r->old[takers]);
}

static shmq_old_list *list_of(shmq_ring *r, bool takers) {
    shmq_old_list *list = known(r, takers);
    if (list != NULL || !is_of_handle(r)) {
        return list;
    }
    uint32_t room = room_of(r);
    list = malloc(sizeof *list + room * sizeof(uint64_t));
    if (list == NULL) {
        return NULL;
    }
    *list = (shmq_old_list){.room = room, .takers = takers, .positions = (uint64_t *)(list + 1)};
    if (!shmq_cas_seq(&r->old[takers], 0, (uint64_t)(uintptr_t)list)) {
        free(list); /* another thread was first */
    }
    return known(r, takers);
}

shmq_old_list *shmq_old_begin(shmq_ring *r, bool takers, shmq_old_small *small) {
    shmq_old_list *list = list_of(r, takers);
    if (list != NULL && shmq_cas32_seq(&list->busy, 0, 1)) {
        return list;
    }
    small->list = (shmq_old_list){.room = SHMQ_OLD_LEAST, .takers = takers, .positions = small->positions};
    return &small->list;
}

void shmq_old_end(shmq_old_list *list) { shmq_store_seq(&list->busy, 0); }

void shmq_old_reset(shmq_ring *r) {
    for (uint32_t takers = 0; takers < 2; takers++) {
        shmq_old_list *list = known(r, takers);
        if (list != NULL) {
            list->first = list->count = 0;
            list->begin = list->end = 0;
            shmq_old_end(list);
        }
    }
}

void shmq_old_free(shmq_ring *r) {
    free(known(r, false));
    free(known(r, true));
}

static bool counts(const shmq_old_list *list, uint64_t word) {
    uint32_t state = shmq_word_state(word);
    /* An entry that is offered to another taker may come back without an epoch. */
    return shmq_word_carried(word) &&
           (list->takers ? state == SHMQ_AVAILABLE || state == SHMQ_OFFERED : shmq_state_is_entry(state));
}

static void sink(uint64_t *heap, uint32_t count, uint32_t at) {
    uint64_t value = heap[at];
    for (uint32_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        below += below + 1 < count && heap[below + 1] > heap[below];
        if (heap[below] <= value) {
            break;
        }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = value;
}

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The lowest positions of what is gathered: in order, as they mostly come, or as a heap with the highest on top. */
typedef struct gathering {
    shmq_old_list *list;
    bool sorted, heaped, more;
} gathering;

static void gather_one(gathering *g, uint64_t p) {
    shmq_old_list *list = g->list;
    uint64_t *all = list->positions;
    if (list->count < list->room) {
        g->sorted = g->sorted && (list->count == 0 || all[list->count - 1] < p);
        all[list->count++] = p;
        return;
    }
    g->more = true;
    if (g->sorted && p > all[list->count - 1]) {
        return;
    }
    for (uint32_t at = list->count / 2; !g->heaped && at-- != 0;) {
        sink(all, list->count, at);
    }
    g->heaped = true;
    g->sorted = false;
    if (p < all[0]) {
        all[0] = p;
        sink(all, list->count, 0);
    }
}

/* Looks at carried slots, from that of `from` on and round: so those of the lap that begins there come in order, before all
 * others. When they fill the list nothing lower is left. */
static void gather(shmq_ring *r, shmq_old_list *list, uint64_t from, uint64_t limit) {
    bool goes_on = from == list->end && list->end > list->begin && list->first == list->count; /* none is left below */
    gathering g = {.list = list, .sorted = true};
    const uint64_t slots = shmq_slot_count(r), begin = from & r->mask;
    const struct {
        uint64_t from, end;
    } parts[] = {{begin, slots}, {0, begin}};
    uint32_t of_lap = 0;
    list->first = list->count = 0;
    for (uint32_t part = 0; part < 2; part++) {
        uint64_t index = parts[part].from;
        for (shmq_met e; of_lap < list->room && shmq_walk_old(r, &index, parts[part].end, &e);) {
            if (counts(list, e.word) && e.position >= from && e.position < limit &&
                shmq_slot_at(r, e.position) == e.slot) {
                gather_one(&g, e.position);
                of_lap += e.position - from < slots;
            }
        }
    }
    if (!g.sorted) {
        qsort(list->positions, list->count, sizeof *list->positions, compare);
    }
    list->begin = goes_on ? list->begin : from;
    list->end = g.more || of_lap == list->room ? list->positions[list->count - 1] + 1 : limit;
}

/* The first index of the list whose position is not below p. */
static uint32_t find(const shmq_old_list *list, uint64_t p) {
    uint32_t low = list->first, high = list->count;
    if (SHMQ_LIKELY(low < high && list->positions[low] >= p)) {
        return low; /* so it is for takers, which take the first one */
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->positions[middle] < p) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(shmq_old_list *list, uint64_t p) {
    uint32_t at = find(list, p);
    if (at < list->count && list->positions[at] == p) {
        return;
    }
    if (at == list->first && list->first != 0) {
        list->positions[--list->first] = p;
        return;
    }
    if (list->count == list->room) { /* the highest one leaves the list, so the list ends below it */
        if (at == list->count) {
            list->end = p;
            return;
        }
        list->end = list->positions[--list->count];
    }
    memmove(&list->positions[at + 1], &list->positions[at], (list->count - at) * sizeof *list->positions);
    list->positions[at] = p;
    list->count += 1;
}

void shmq_old_follow(shmq_ring *r, shmq_old_list *list, uint64_t epoch) {
    uint64_t since = epoch - list->epoch;
    if ((int64_t)since <= 0) {
        return; /* another thread has looked later */
    }
    for (uint64_t e = list->epoch + 1; since <= SHMQ_CELLS && e != epoch + 1; e++) {
        uint64_t p = shmq_lowest_released(r, e - 1, e);
        if (p == 0) { /* it may be that of any entry */
            list->end = list->begin;
        } else if (p >= list->begin && p < list->end) {
            insert(list, p);
        }
    }
    if (since > SHMQ_CELLS) {
        list->end = list->begin;
    }
    list->epoch = epoch;
}

/* Entries carried since the list was made lie above its end: a few positions, looked at one by one. */
static bool extend(shmq_ring *r, shmq_old_list *list, uint64_t limit) {
    if (list->end <= list->begin || limit - list->end > list->room) {
        return false;
    }
    for (; list->end < limit && list->count < list->room; list->end++) {
        shmq_slot_shm *slot = shmq_slot_at(r, list->end);
        if (counts(list, shmq_load_acquire(&slot->word)) && /* SYNC ring.publish */
            shmq_load_acquire(&slot->position) == list->end) {
            list->positions[list->count++] = list->end;
        }
    }
    return list->end == limit;
}

void shmq_old_forget(shmq_old_list *list) { list->end = list->begin; }

bool shmq_old_next(shmq_ring *r, shmq_old_list *list, uint64_t from, uint64_t limit, uint64_t *position) {
    for (bool again = false;; again = true) {
        if (from < list->begin || from >= list->end) {
            if (from >= limit || (again && list->end >= limit)) {
                return false;
            }
            if (from != list->end || !extend(r, list, limit)) {
                gather(r, list, from, limit);
            }
        }
        for (uint32_t at = find(list, from); at < list->count; at++) {
            uint64_t p = list->positions[at];
            shmq_slot_shm *slot = shmq_slot_at(r, p);
            if (p >= limit) {
                return false;
            }
            if (counts(list, shmq_load_acquire(&slot->word)) && /* SYNC ring.publish */
                shmq_load_acquire(&slot->position) == p) {
                *position = p;
                return true;
            }
            list->first += at == list->first; /* what comes back is inserted again */
        }
        if (list->end >= limit) {
            return false;
        }
        from = list->end;
    }
}
