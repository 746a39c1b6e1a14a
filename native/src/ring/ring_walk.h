/* Walks over what a ring has in memory: over its old entries, and to the first entry in order that a caller wants. */
#ifndef SHMQ_RING_RING_WALK_H
#define SHMQ_RING_RING_WALK_H

#include "queue/handle.h"

/* An entry, as a walk has met it. A CAS from its word fails if the slot has changed since. */
typedef struct shmq_met {
    shmq_ring *ring; /* the level's back ring, or its front ring */
    shmq_slot_shm *slot;
    uint64_t word, position;
    uint64_t place; /* in the level */
} shmq_met;

/* Where all slots side by side have one, so far ahead a slot is fetched from memory while others are looked at. */
#define SHMQ_SLOTS_AHEAD 8u

/* The next entry older than a lap in the slots from *index on, below `end`, in no order of positions; *index goes behind it.
 * Only what the tail has carried is old, and it set the bit before. */
static inline bool shmq_walk_old(const shmq_ring *r, uint64_t *index, uint64_t end, shmq_met *met) {
    while (*index < end) {
        uint64_t bits = shmq_load_seq(&r->carried[*index >> 6]) >> (*index & 63);
        if (bits == 0) {
            *index = (*index | 63) + 1;
            continue;
        }
        uint32_t next = (uint32_t)__builtin_ctzll(bits);
        *index += next;
        if (*index >= end) {
            break;
        }
        if ((bits >> next >> SHMQ_SLOTS_AHEAD & 1) != 0) {
            __builtin_prefetch(shmq_slot_at(r, *index + SHMQ_SLOTS_AHEAD));
        }
        shmq_slot_shm *slot = shmq_slot_at(r, (*index)++);
        /* SYNC ring.publish; seq: the last look of join() before it sleeps */
        uint64_t word = shmq_load_seq(&slot->word);
        if (shmq_word_carried(word)) {
            uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
            *met = (shmq_met){.ring = (shmq_ring *)(uintptr_t)r, .slot = slot, .word = word, .position = p, .place = p};
            return true;
        }
    }
    return false;
}

/* Does the caller want this entry, as its word stands? */
typedef bool shmq_wanted(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word);

/* The first old entry at a position in [from, below) that is wanted: one look at all of them. For more than one see
 * ring_old.h. */
bool shmq_first_old(shmq_ring *r, uint64_t from, uint64_t below, shmq_wanted *wanted, shmq_met *met);
/* The first entry of a ring, by position, that is wanted. Raises the floor, so that the next look begins where this one found
 * something. */
bool shmq_first_by_position(shmq_ring *r, shmq_wanted *wanted, shmq_met *met);
/* The first entry of a front ring, by place. An entry whose records are damaged comes last, and has place UINT64_MAX. */
bool shmq_first_in_front(shmq_ring *front, shmq_wanted *wanted, shmq_met *met);
/* The first entry of a level in memory. */
bool shmq_first_of(shmq_ring *level, shmq_wanted *wanted, shmq_met *met);

#endif
