/* Where waiting rows have their places: for whoever looks at a queue in the order of places, or wants one by its place.
 * Rows lie in the order in which they went to disk. So a thread keeps an index of them, which it extends by those that
 * have come since. Those that are gone leave it when they are met. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/wait_time.h"
#include "flow/waiting.h"

typedef struct waiting_place {
    uint64_t place, key;
} waiting_place;

typedef struct places {
    const shmq_ring *level; /* of which they are */
    uint64_t serial, end; /* keys below were looked at */
    uint32_t incarnation, index;
    uint64_t count, room;
    waiting_place *of; /* in the order of places */
    unsigned char *bytes; /* of the row that was read last */
} places;

static pthread_once_t places_once = PTHREAD_ONCE_INIT;
static pthread_key_t key_of_places; /* one for each thread, freed when it ends */
static int places_failed;

static void end_places(void *kept) {
    free(((places *)kept)->of);
    free(((places *)kept)->bytes);
    free(kept);
}

static void begin_places(void) { places_failed = pthread_key_create(&key_of_places, end_places); }

static shmq_status no_memory(void) { return shmq_fail_errno("no memory to look at delayed messages on disk"); }

static shmq_status own_places(places **own) {
    pthread_once(&places_once, begin_places);
    if (places_failed != 0) {
        return shmq_fail(SHMQ_OS, "no pthread key is left in this process, and a look at delayed messages needs one");
    }
    *own = pthread_getspecific(key_of_places);
    if (*own == NULL && ((*own = calloc(1, sizeof **own)) == NULL || pthread_setspecific(key_of_places, *own) != 0)) {
        free(*own);
        return no_memory();
    }
    return SHMQ_OK;
}

static void begin(places *p, const shmq_ring *back) {
    const shmq_queue *q = back->queue;
    if (p->level == back && p->serial == q->serial && p->index == q->index && p->incarnation == q->incarnation) {
        return;
    }
    p->level = back;
    p->serial = q->serial;
    p->index = q->index;
    p->incarnation = q->incarnation;
    p->count = 0;
    p->end = 0;
}

static bool add(places *p, uint64_t place, uint64_t key) {
    if (p->count == p->room) {
        uint64_t room = p->room != 0 ? 2 * p->room : 1024;
        waiting_place *of = realloc(p->of, room * sizeof *of);
        if (of == NULL) {
            return false;
        }
        p->of = of;
        p->room = room;
    }
    p->of[p->count++] = (waiting_place){place, key};
    return true;
}

static int by_place(const void *a, const void *b) {
    uint64_t left = ((const waiting_place *)a)->place, right = ((const waiting_place *)b)->place;
    return left < right ? -1 : left > right;
}

/* The new ones, from `before` on, are out of order, and mostly behind all others. */
static shmq_status sort_in(places *p, uint64_t before) {
    uint64_t count = p->count - before, i = before, k = p->count;
    qsort(&p->of[before], count, sizeof *p->of, by_place);
    if (before == 0 || count == 0 || p->of[before - 1].place <= p->of[before].place) {
        return SHMQ_OK;
    }
    waiting_place *new = malloc(count * sizeof *new);
    if (new == NULL) {
        p->count = p->end = 0; /* it begins anew */
        return no_memory();
    }
    memcpy(new, &p->of[before], count * sizeof *new);
    while (count != 0) {
        bool old = i != 0 && p->of[i - 1].place > new[count - 1].place;
        p->of[--k] = old ? p->of[--i] : new[--count];
    }
    free(new);
    return SHMQ_OK;
}

/* Adds those that have come since the last look, in so many reads. A changed row is passed: it is told when it is due.
 * SHMQ_TIMEOUT: there are more. */
static shmq_status extend(shmq_mover *t, places *p, uint32_t reads) {
    static _Thread_local shmq_row rows[SHMQ_TURN_ENTRIES];
    shmq_ring_shm *ring = t->back->shm;
    uint64_t low = shmq_load_relaxed(&ring->waiting_low), end = shmq_load_relaxed(&ring->waiting), before = p->count;
    SHMQ_TRY(shmq_waiting_store(t));
    shmq_status status = SHMQ_OK;
    for (p->end = p->end > low ? p->end : low; p->end < end && reads != 0 && status == SHMQ_OK; reads--) {
        uint32_t count = SHMQ_TURN_ENTRIES;
        status = t->waiting->read(t->waiting->context, shmq_load_relaxed(&ring->came), p->end, end, SHMQ_TURN_BYTES,
                                  rows, &count);
        for (uint32_t i = 0; status == SHMQ_OK && i < count; i++) {
            shmq_ordinal its;
            if (rows[i].bytes != NULL && shmq_row_ordinal(&rows[i], &its) && !add(p, its.count, rows[i].place)) {
                p->count = p->end = 0;
                return no_memory();
            }
        }
        p->end = status != SHMQ_OK ? p->end : count != 0 ? rows[count - 1].place + 1 : end;
    }
    SHMQ_TRY(sort_in(p, before)); /* also those before a read that failed: the next look does not read them again */
    return status == SHMQ_OK && p->end < end ? SHMQ_TIMEOUT : status;
}

#define READS 4u /* of a piece: a millisecond or two */

/* A turn on a level of which all are known. Movers and takers of the level wait for one piece at most. */
static shmq_status begin_turn(shmq_mover *t, shmq_ring *back, places *p,
                              shmq_status (*turn)(shmq_mover *, shmq_ring *)) {
    for (;;) {
        SHMQ_TRY(turn(t, back));
        begin(p, back);
        shmq_status status = extend(t, p, READS);
        if (status == SHMQ_OK) {
            return SHMQ_OK;
        }
        shmq_turn_end(t);
        if (status != SHMQ_TIMEOUT) {
            return status;
        }
        nanosleep(&(struct timespec){.tv_nsec = SHMQ_SHORT_SLEEP_NS}, NULL); /* others look for the lock so often */
    }
}

/* Finds the first index whose place is not below `place`. */
static uint64_t find(const places *p, uint64_t place) {
    uint64_t low = 0, high = p->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->of[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void forget(places *p, uint64_t i) { memmove(&p->of[i], &p->of[i + 1], (--p->count - i) * sizeof *p->of); }

/* The row's bytes stay until the next call of this thread. */
static shmq_status read_one(shmq_mover *t, places *p, uint64_t key, shmq_row *row) {
    uint32_t count = 1;
    SHMQ_TRY(
        t->waiting->read(t->waiting->context, shmq_load_relaxed(&t->back->shm->came), key, key + 1, 0, row, &count));
    if (count == 0 || row->bytes == NULL) {
        return SHMQ_EMPTY;
    }
    unsigned char *bytes = realloc(p->bytes, row->length);
    if (bytes == NULL) {
        return no_memory();
    }
    p->bytes = bytes;
    memcpy(bytes, row->bytes, row->length);
    row->bytes = bytes;
    return SHMQ_OK;
}

static shmq_status peek(shmq_mover *t, places *p, uint64_t *place, shmq_delivery *d) {
    uint64_t i = find(p, *place);
    while (i < p->count) {
        shmq_row row;
        shmq_status status = read_one(t, p, p->of[i].key, &row);
        if (status == SHMQ_OK && shmq_row_parse(&row, d)) {
            *place = d->position = p->of[i].place;
            return SHMQ_OK;
        }
        if (status != SHMQ_OK && status != SHMQ_EMPTY) {
            return status;
        }
        forget(p, i);
    }
    return SHMQ_EMPTY;
}

shmq_status shmq_waiting_peek(shmq_ring *back, shmq_mover *t, uint64_t *place, shmq_delivery *d) {
    shmq_mover own;
    places *p;
    if (shmq_waiting_of(back->shm).count == 0) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(own_places(&p));
    if (t == NULL) {
        SHMQ_TRY(begin_turn(&own, back, p, shmq_turn_await));
        shmq_status status = peek(&own, p, place, d);
        shmq_turn_end(&own);
        return status;
    }
    begin(p, back);
    SHMQ_TRY(extend(t, p, UINT32_MAX));
    return peek(t, p, place, d);
}

uint64_t shmq_waiting_first(shmq_queue *q) {
    uint64_t first = UINT64_MAX;
    for (uint32_t depth = 0; depth < q->levels && q->m->backing_of != NULL; depth++) {
        uint64_t place = 0;
        shmq_delivery d;
        if (shmq_waiting_peek(shmq_level(q, depth), NULL, &place, &d) == SHMQ_OK) {
            place = shmq_place_at(depth, place);
            first = place < first ? place : first;
        }
    }
    shmq_trail_clear(); /* whoever takes it is told what is wrong */
    return first;
}

static shmq_status fetch_at(shmq_mover *t, places *p, uint64_t place) {
    uint64_t i = find(p, place);
    shmq_row_life life;
    uint32_t count = 1, passed;
    if (i == p->count || p->of[i].place != place) {
        return SHMQ_NOT_FOUND;
    }
    uint64_t key = p->of[i].key;
    forget(p, i);
    SHMQ_TRY(t->waiting->list(t->waiting->context, key, key + 1, &life, &count));
    return count == 0 || life.gone ? SHMQ_NOT_FOUND : shmq_waiting_fetch(t, &life, 1, &passed);
}

shmq_status shmq_waiting_fetch_at(shmq_ring *back, uint64_t place) {
    shmq_mover t;
    places *p;
    if (shmq_waiting_of(back->shm).count == 0) {
        return SHMQ_NOT_FOUND;
    }
    SHMQ_TRY(own_places(&p));
    SHMQ_TRY(begin_turn(&t, back, p, shmq_turn_begin));
    shmq_status status = fetch_at(&t, p, place);
    shmq_turn_end(&t);
    return status;
}
