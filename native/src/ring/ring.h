/* The ring: one struct of words (layout/queue.h), one slot word that decides (layout/slot.h). Here: its head, its places,
 * what its tail carries, and what an entry's record counts.
 *
 * Every operation on entries has one linearization point, named at its CAS. All are lock-free; those that wait say so. */
#ifndef SHMQ_RING_RING_H
#define SHMQ_RING_RING_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* The lowest position released in the epochs (from, to]; 0, "from the beginning": a cell does not say. */
uint64_t shmq_lowest_released(shmq_ring *r, uint64_t from, uint64_t to);
/* Does the checksum match what the taker received? */
bool shmq_delivery_intact(const shmq_queue *q, const shmq_delivery *d);
/* So many have ended: in the counters of this process. A reaper's view has none. */
void shmq_entries_ended(shmq_queue *q, uint64_t count, shmq_end why);
/* The place of an entry that this delivery is of, or that a scan has found: for users its position. Of a front ring's
 * slot; UINT64_MAX: its records are damaged. */
uint64_t shmq_place_of(const shmq_queue *q, const shmq_delivery *d);
uint64_t shmq_front_place(const shmq_ring *front, const shmq_slot_shm *slot);
/* The same of a slot of either ring, whose entry is at this position of it. */
uint64_t shmq_slot_place(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t position);
/* Where in the front ring the entry of this place is. */
bool shmq_front_find(const shmq_ring *front, uint64_t place, uint64_t *position);

/* Inner steps, shared by the files that make up the ring. */
/* Of the slot of p in its word of the bitmap; a ring may have less than 64 slots. */
static inline uint64_t shmq_carried_bit(const shmq_ring *r, uint64_t p) { return UINT64_C(1) << (p & r->mask & 63); }
static inline uint64_t shmq_head_position(const shmq_ring *r, uint64_t head) {
    return shmq_position_near(shmq_load_relaxed(&r->near), head);
}
/* Nothing available lies between the head that was read at the start of a scan and p: later scans may begin at p. A release
 * in between has raised the head's epoch, and then the CAS fails. */
static inline void shmq_head_advance(shmq_ring *r, uint64_t head, uint64_t p) {
    shmq_cas_seq(&r->shm->head, head, (head & ~SHMQ_POSITION_MASK) | (p & SHMQ_POSITION_MASK));
}
/* A head that lies more than a lap behind the tail comes after it. */
void shmq_head_follow(shmq_ring *r);
/* The tail has passed p: once a lap the head follows. */
static inline void shmq_tail_passed(shmq_ring *r, uint64_t p) {
    if (SHMQ_UNLIKELY((p & r->mask) == 0)) {
        shmq_head_follow(r);
    }
}
/* The entry at p while its slot says so: at its own lap, or carried with p as its true position. Positions of a slot
 * only grow, so p found behind the word is p at the time of the word. Whether the word still stands is not asked. An
 * entry whose state has just changed is here all the same, and a scan that passed it would leave it behind. The CAS
 * from the word asks. */
static inline bool shmq_is_here(const shmq_slot_shm *slot, uint64_t word, int32_t ahead, uint64_t p) {
    if (ahead == 0) {
        return !shmq_word_carried(word);
    }
    return shmq_word_carried(word) && shmq_load_acquire(&slot->position) == p; /* SYNC ring.publish */
}
/* Has it died with its takers, or failed, as often as its queue allows? */
shmq_why shmq_poison_of(const shmq_queue *q, const shmq_delivery *d);
/* Would one more failure reach that limit? */
bool shmq_is_last_attempt(const shmq_queue *q, const shmq_delivery *d);
bool shmq_carry(shmq_ring *r, uint64_t t, bool far); /* true: something moved, try again; false: no room */
void shmq_rewind(shmq_ring *r, uint64_t position); /* R2 to R4 */
void shmq_rewind_all(shmq_ring *r); /* to the ring's beginning */
bool shmq_death_count(shmq_queue *q, shmq_slot_shm *slot, uint64_t word, uint32_t pid);
void shmq_death_record_add(shmq_member *m, uint64_t id, uint32_t pid,
                           int32_t signal); /* id: or SHMQ_DEATH_RECORD_PROCESS */
uint32_t shmq_crc_of(const shmq_queue *q, const shmq_delivery *d);

/* When what is delivered here expires: 0 for never. */
uint64_t shmq_expires_of(const shmq_ring *r, const shmq_slot_shm *slot, uint32_t props, uint64_t enqueued_ns);

#endif
