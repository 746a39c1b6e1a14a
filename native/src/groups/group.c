/* The owner of a group. A taker makes the group its own before its offer, and gives it back when its last delivery of the
 * group has ended. */
#include "groups/group.h"
#include "base/clock.h"
#include "base/headers.h"
#include "consumers/privilege.h"
#include "consumers/sleepers.h"
#include "groups/group_words.h"
#include "queue/cold.h"
#include "queue/level.h"
#include "ring/ring.h"
#include "wake/due.h"

#include <stdlib.h>
#include <string.h>

/* ---- the book -------------------------------------------------------------------------------------------------------- */

shmq_status shmq_group_book_make(shmq_queue *q) {
    if (q->grouping == SHMQ_GROUPS_NONE) {
        return SHMQ_OK;
    }
    q->book = calloc(1, sizeof *q->book);
    if (q->book == NULL) {
        return shmq_fail_errno("no memory for the groups of a queue");
    }
    pthread_mutex_init(&q->book->lock, NULL);
    shmq_subscription_begin(&q->book->takers, NULL, NULL);
    return SHMQ_OK;
}

static void forget_tallies(shmq_group_book *book) {
    for (uint32_t line = 0; line < SHMQ_CONSUMER_ROWS; line++) {
        free(book->tallies[line]);
        book->tallies[line] = NULL;
    }
}

void shmq_group_book_free(shmq_queue *q) {
    if (q->book != NULL) {
        forget_tallies(q->book);
        shmq_subscription_end(&q->book->takers);
        pthread_mutex_destroy(&q->book->lock);
        free(q->book);
        q->book = NULL;
    }
}

/* In a forked child. A thread of the parent, which the child does not have, may have held the mutexes. */
void shmq_group_book_reset(shmq_queue *q) {
    if (q->book != NULL) {
        forget_tallies(q->book);
        shmq_store_relaxed(&q->book->privileged, 0);
        pthread_mutex_init(&q->book->lock, NULL);
        shmq_subscription_begin(&q->book->takers, NULL, NULL);
    }
}

/* NULL: there is no private memory for the counts of this owner. */
static uint32_t *count_of(shmq_queue *q, uint32_t owner, uint32_t generation, uint32_t group) {
    uint32_t line = (owner & SHMQ_OWNER_PROCESS) != 0 ? 0 : owner % SHMQ_CONSUMER_ROWS;
    shmq_tally **tally = &q->book->tallies[line];
    if (*tally != NULL && (*tally)->generation != generation) {
        free(*tally); /* an earlier owner's */
        *tally = NULL;
    }
    if (*tally == NULL) {
        *tally = calloc(1, sizeof **tally + shmq_group_places(q) * sizeof *(*tally)->counts);
        if (*tally == NULL) {
            return NULL;
        }
        (*tally)->generation = generation;
    }
    return &(*tally)->counts[group - 1];
}

/* ---- which group ----------------------------------------------------------------------------------------------------- */

/* The place in a cold record; NULL: its ring has none yet. */
static shmq_group_shm *recorded_at(const shmq_queue *q, uint32_t index) {
    shmq_cold_shm *cold = shmq_cold_at(&q->first, shmq_slot_at(&q->first, index));
    _Static_assert(offsetof(shmq_cold_shm, ordinal_bytes) - offsetof(shmq_cold_shm, ordinal) ==
                       offsetof(shmq_group_shm, refused),
                   "a place for groups has the words of a cold record that only front rings use");
    return cold != NULL ? (shmq_group_shm *)(void *)&cold->ordinal : NULL;
}

shmq_group_shm *shmq_group_at(const shmq_queue *q, uint32_t group) {
    uint32_t index = (group - 1) % shmq_group_places(q);
    shmq_group_shm *words = index >= SHMQ_GROUPS ? recorded_at(q, index - SHMQ_GROUPS) : NULL;
    return words != NULL ? words : &q->page->group_table[index % SHMQ_GROUPS];
}

uint32_t shmq_groups_laid(const shmq_queue *q) {
    return recorded_at(q, 0) != NULL ? shmq_group_places(q) : SHMQ_GROUPS;
}

uint32_t shmq_group_of_headers(const shmq_queue *q, const unsigned char *headers, uint32_t headers_len) {
    uint32_t length;
    const unsigned char *key = shmq_headers_own(headers, headers_len, SHMQ_OWN_GROUP, &length);
    if (key == NULL) {
        return 0;
    }
    uint64_t hash = shmq_name_hash((const char *)key, length) * UINT64_C(0x9e3779b97f4a7c15);
    return 1 + (uint32_t)(hash >> 32) % shmq_group_places(q);
}

uint32_t shmq_group_of(const shmq_ring *r, const shmq_slot_shm *slot, uint32_t props) {
    const shmq_cold_shm *cold = (props & SHMQ_PROP_GROUP) != 0 ? shmq_cold_at(r, slot) : NULL;
    uint64_t group = cold != NULL ? shmq_read_once(&cold->group) : 0;
    return group <= shmq_group_places(r->queue) ? (uint32_t)group : 0; /* damaged: delivered as without a group */
}

/* ---- G1: refused ----------------------------------------------------------------------------------------------------- */

/* A position too far behind the tail for 44 bits becomes the lowest that they can say. True: it was too far. */
static bool bring_near(const shmq_ring *r, uint64_t *position) {
    uint64_t tail = shmq_load_seq(&r->shm->tail);
    bool far = (int64_t)(tail - *position) > SHMQ_POSITION_FAR;
    *position = far ? tail - (uint64_t)SHMQ_POSITION_FAR : *position;
    return far;
}

/* How far the place in `refused` is ahead of this place: below 0, 0, above 0. */
static int64_t is_ahead(uint64_t refused, uint32_t depth, uint64_t position) {
    uint32_t other = shmq_refused_depth(refused);
    return other != depth ? (int64_t)other - depth : shmq_position_ahead(refused, position);
}

static void record(shmq_ring *back, uint32_t group, uint64_t place) {
    shmq_a64 *refused = &shmq_group_at(back->queue, group)->refused;
    uint64_t seen, now;
    (void)bring_near(back, &place);
    do { /* each turn makes a new version, so a process that clears the word meanwhile looks again */
        seen = shmq_load_seq(refused);
        bool lower = !shmq_is_refused(seen) || is_ahead(seen, back->depth, place) > 0;
        now = lower ? shmq_refused_word(seen, back->depth, place) : shmq_refused_again(seen);
    } while (!shmq_cas_seq(refused, seen, now)); /* G1 */
    if (!shmq_is_refused(seen)) {
        shmq_make_due(back, shmq_now_ns() + back->queue->m->patience_ns); /* the owner may be stopped */
    }
}

bool shmq_group_open(shmq_ring *back, uint32_t group, uint32_t owner, uint64_t place) {
    shmq_queue *q = back->queue;
    shmq_a64 *word = &shmq_group_at(q, group)->owner;
    uint64_t seen = shmq_load_seq(word);
    if (shmq_group_is_free(q, seen) || shmq_group_is_of(q, seen, owner)) {
        return true;
    }
    record(back, group, place);
    uint64_t again = shmq_load_seq(word); /* a process that frees the group from here on sees the recorded place */
    return shmq_group_is_free(q, again) || shmq_group_is_of(q, again, owner);
}

/* ---- G3, G4 ---------------------------------------------------------------------------------------------------------- */

/* Is a refused place near enough to turn back to? Where the level flows it may lie far below the tail: the search among
 * rows goes by it. */
static bool is_known(const shmq_ring *back, uint64_t tail, uint64_t place) {
    uint64_t far = shmq_flow_at(back) != 0 ? SHMQ_POSITION_FAR : shmq_slot_count(back);
    return tail - place <= far;
}

/* Turns the heads back to the refused place. The word names one level. It does not say what was refused in less
 * important ones, or in a front ring. So those are turned back as far as possible. */
static void turn_back_to(shmq_queue *q, uint64_t refused) {
    uint32_t first = shmq_refused_depth(refused);
    shmq_ring level, front;
    for (uint32_t depth = first; depth < q->levels && shmq_level_look(q, depth, &level) == NULL; depth++) {
        uint64_t tail = shmq_load_seq(&level.shm->tail), p = shmq_position_near(tail, refused);
        if (depth == first && is_known(&level, tail, p)) {
            shmq_rewind(&level, p);
        } else {
            shmq_rewind_all(&level); /* of a place that far back only the whole ring is known to be enough */
        }
        if (shmq_flow_at(&level) != 0 && shmq_level_look(q, q->levels + depth, &front) == NULL) {
            shmq_rewind_all(&front);
        }
    }
}

void shmq_group_turn_back(shmq_queue *q, uint32_t group) {
    shmq_group_shm *words = shmq_group_at(q, group);
    for (;;) {
        uint64_t refused = shmq_load_seq(&words->refused);
        if (!shmq_is_refused(refused) || !shmq_group_is_free(q, shmq_load_seq(&words->owner))) {
            return;
        }
        turn_back_to(q, refused);
        if (shmq_cas_seq(&words->refused, refused, shmq_refused_none(refused))) { /* G4 */
            shmq_notify(q);
        }
    }
}

bool shmq_group_free(shmq_queue *q, uint32_t group, uint64_t word) {
    if (!shmq_cas_seq(&shmq_group_at(q, group)->owner, word, shmq_group_freed(word))) { /* G3, G5 */
        return false;
    }
    shmq_group_turn_back(q, group);
    return true;
}

/* Frees the group, whatever version its word has, while this owner has it. */
static void give_back(shmq_queue *q, uint32_t group, uint32_t owner, uint32_t generation) {
    uint64_t word;
    do {
        word = shmq_load_seq(&shmq_group_at(q, group)->owner);
        if (!shmq_group_names(word, owner, generation)) {
            return;
        }
    } while (!shmq_group_free(q, group, word));
}

/* Counts the delivery out of the book. True: it was the owner's last one of the group. The caller holds the mutex. */
static bool uncount(shmq_queue *q, const shmq_delivery *d) {
    uint32_t *count = count_of(q, d->group_owner, d->group_generation, d->group);
    return count != NULL && *count != 0 && --*count == 0;
}

/* After a steal the message may be on its way back through its stealer. Then a recheck of the slots says whether the
 * group is free. */
void shmq_group_end(shmq_queue *q, shmq_delivery *d) {
    bool recheck = d->fate == SHMQ_STOLEN;
    if (!recheck && q->book != NULL) {
        /* The mutex covers the count and the word. Else another thread of this owner could own the group again in between,
         * and have an entry in flight without its group. */
        pthread_mutex_lock(&q->book->lock);
        bool last = uncount(q, d) && q->grouping == SHMQ_GROUPS_SHARED;
        if (last && d->fate == SHMQ_KEPT) {
            give_back(q, d->group, d->group_owner, d->group_generation);
        }
        pthread_mutex_unlock(&q->book->lock);
        recheck = last && d->fate == SHMQ_LOST;
    }
    if (recheck && shmq_load_relaxed(&q->page->state) == SHMQ_QUEUE_LIVE) {
        shmq_group_recheck(q, d->group);
    }
    d->group = 0;
}

void shmq_groups_leave(shmq_queue *q, uint32_t owner) {
    uint32_t generation;
    if (q->grouping == SHMQ_GROUPS_NONE || !shmq_owner_generation(q, owner, &generation)) {
        return;
    }
    for (uint32_t group = 1, last = shmq_groups_laid(q); group <= last; group++) {
        give_back(q, group, owner, generation);
    }
}

/* ---- G1, G2: owned --------------------------------------------------------------------------------------------------- */

/* *fresh: no owner had it. */
static bool own(shmq_queue *q, uint32_t group, uint32_t owner, uint32_t generation, bool *fresh) {
    shmq_a64 *at = &shmq_group_at(q, group)->owner;
    uint64_t word;
    do {
        word = shmq_load_seq(at);
        *fresh = !shmq_group_names(word, owner, generation);
        if (*fresh && !shmq_group_is_free(q, word)) {
            return false;
        }
    } while (!shmq_cas_seq(at, word, shmq_group_word(word, owner, generation))); /* G1 */
    return true;
}

enum shmq_group_own shmq_group_own(shmq_ring *back, uint32_t group, uint64_t place, shmq_delivery *d) {
    shmq_queue *q = back->queue;
    bool fresh = false, behind = false;
    uint32_t generation;
    if (!shmq_owner_generation(q, d->owner, &generation)) {
        return SHMQ_GROUP_BUSY; /* the owner's row is damaged, or was closed meanwhile */
    }
    pthread_mutex_lock(&q->book->lock);
    uint32_t *count = count_of(q, d->owner, generation, group); /* before G1: later it may not fail */
    bool ours = count != NULL && own(q, group, d->owner, generation, &fresh);
    uint64_t refused = ours && fresh ? shmq_load_seq(&shmq_group_at(q, group)->refused) : 0;
    if (shmq_is_refused(refused)) {
        behind = !bring_near(back, &place) && is_ahead(refused, back->depth, place) < 0;
        /* Another thread of this owner may have passed the refused place, and takes the group as its own from here on.
         * So the heads are turned back before that, not only by G4. `refused` stays, so that G4 wakes a sleeper. */
        turn_back_to(q, refused);
    }
    if (behind) {
        give_back(q, group, d->owner, generation); /* G2: before another thread of this owner takes it as its own */
    } else if (ours) {
        ++*count;
    }
    pthread_mutex_unlock(&q->book->lock);
    if (!ours || behind) {
        return behind ? SHMQ_GROUP_BEHIND : SHMQ_GROUP_BUSY;
    }
    if (fresh && q->grouping == SHMQ_GROUPS_STICKY) {
        shmq_privilege_take(q, d->owner);
    }
    d->group = group;
    d->group_owner = d->owner;
    d->group_generation = generation;
    d->fate = SHMQ_KEPT;
    return SHMQ_GROUP_OURS;
}

bool shmq_group_confirm(shmq_queue *q, const shmq_delivery *d) {
    shmq_a64 *at = &shmq_group_at(q, d->group)->owner;
    for (;;) {
        uint64_t word = shmq_load_seq(at);
        if (!shmq_group_names(word, d->group_owner, d->group_generation)) {
            return false;
        }
        if (!shmq_group_is_suspect(word) ||
            shmq_cas_seq(at, word, shmq_group_word(word, d->group_owner, d->group_generation))) {
            return true;
        }
    }
}
