#include "selectors/subscription.h"
#include "queue/level.h"
#include "ring/ring.h"

#include <stdlib.h>
#include <string.h>

void shmq_subscription_begin(shmq_subscription *s, shmq_wants wants, void *context) {
    memset(s, 0, sizeof *s);
    s->wants = wants;
    s->context = context;
    shmq_store_seq(&s->choosy, wants != NULL);
    pthread_mutex_init(&s->lock, NULL);
}

void shmq_subscription_end(shmq_subscription *s) {
    for (uint32_t depth = 0; depth < SHMQ_LEVELS_MAX; depth++) {
        free(s->searches[depth].passed);
        s->searches[depth].passed = NULL;
    }
    free(s->refused);
    s->refused = NULL;
    pthread_mutex_destroy(&s->lock);
}

shmq_cursor shmq_cursor_of(shmq_subscription *s, const shmq_ring *r) {
    pthread_mutex_lock(&s->lock);
    shmq_cursor cursor = s->cursors[r->depth];
    pthread_mutex_unlock(&s->lock);
    return cursor;
}

void shmq_cursor_set(shmq_subscription *s, const shmq_ring *r, shmq_cursor from, uint64_t position, uint64_t epoch) {
    pthread_mutex_lock(&s->lock);
    if (s->cursors[r->depth].turns == from.turns) {
        s->cursors[r->depth] = (shmq_cursor){.position = position, .epoch = epoch, .turns = from.turns + 1};
    }
    pthread_mutex_unlock(&s->lock);
}

/* Index of the first refused place that is not below `place`. The caller holds the mutex. */
static uint32_t index_of(const shmq_subscription *s, uint64_t place) {
    uint32_t low = 0, high = s->refused_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->refused[middle] < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_entry_at(const shmq_queue *q, uint64_t place) {
    uint64_t position, flow, elsewhere;
    const shmq_ring *ring = shmq_level_of_place(q, place, &position);
    shmq_slot_shm *slot = ring != NULL ? shmq_slot_at(ring, position) : NULL;
    if (slot == NULL || (shmq_state_is_entry(shmq_word_state(shmq_load_acquire(&slot->word))) && /* SYNC ring.publish */
                         shmq_load_acquire(&slot->position) == position)) { /* SYNC ring.publish */
        return slot != NULL;
    }
    if (SHMQ_LIKELY((flow = shmq_flow_at(ring)) == 0)) {
        return false;
    }
    bool on_disk =
        shmq_flow_is_on(flow) && position >= shmq_load_seq(&ring->shm->low) && position < shmq_flow_place(flow);
    return on_disk || shmq_front_find(shmq_front_of(ring), position, &elsewhere);
}

/* Forgets entries that have left the queue: places are never used again. */
static void forget_settled(shmq_subscription *s, const shmq_queue *q) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->refused_count; i++) {
        if (is_entry_at(q, s->refused[i])) {
            s->refused[kept++] = s->refused[i];
        }
    }
    s->refused_count = kept;
}

/* Afterwards half of the list is free, or the list has doubled: not each call searches for settled entries. */
static void make_room(shmq_subscription *s, const shmq_queue *q) {
    forget_settled(s, q);
    if (s->refused_count * 2 < s->refused_room) {
        return;
    }
    uint32_t room = s->refused_room != 0 ? s->refused_room * 2 : 16;
    uint64_t *more = realloc(s->refused, room * sizeof *more);
    if (more != NULL) {
        s->refused = more;
        s->refused_room = room;
    }
}

/* Called before the entry is given back: a taker that finds it then sees `choosy` and the refused place. */
bool shmq_refuse(shmq_subscription *s, const shmq_queue *q, uint64_t place) {
    shmq_store_seq(&s->choosy, 1);
    pthread_mutex_lock(&s->lock);
    if (s->refused_count == s->refused_room) {
        make_room(s, q);
    }
    uint32_t at = index_of(s, place);
    bool there = at < s->refused_count && s->refused[at] == place;
    bool done = there || s->refused_count < s->refused_room;
    if (done && !there) {
        memmove(&s->refused[at + 1], &s->refused[at], (s->refused_count - at) * sizeof *s->refused);
        s->refused[at] = place;
        s->refused_count++;
    }
    pthread_mutex_unlock(&s->lock);
    return done;
}

bool shmq_is_wanted(shmq_subscription *s, const shmq_ring *r, const shmq_delivery *d) {
    if (s->refused_count != 0) {
        uint64_t place = shmq_place_of(r->queue, d);
        pthread_mutex_lock(&s->lock);
        uint32_t at = index_of(s, place);
        bool refused = at < s->refused_count && s->refused[at] == place;
        pthread_mutex_unlock(&s->lock);
        if (refused) {
            return false;
        }
    }
    return s->wants == NULL || s->wants(s->context, r, d);
}
