/* The two words of a group's place: see group.h. */
#ifndef SHMQ_GROUP_WORDS_H
#define SHMQ_GROUP_WORDS_H

#include "queue/consumer_row.h"

#define SHMQ_GROUP_OWNER UINT64_C(0x1fff)
#define SHMQ_GROUP_GENERATION_SHIFT 13u
#define SHMQ_GROUP_GENERATION UINT64_C(0x3ffffff)
#define SHMQ_GROUP_SUSPECT (UINT64_C(1) << 39)
#define SHMQ_GROUP_VERSION_SHIFT 40u

static inline uint32_t shmq_group_owner(uint64_t word) { return (uint32_t)(word & SHMQ_GROUP_OWNER); }
static inline bool shmq_group_is_suspect(uint64_t word) { return (word & SHMQ_GROUP_SUSPECT) != 0; }

static inline uint64_t shmq_group_freed(uint64_t before) {
    return ((before >> SHMQ_GROUP_VERSION_SHIFT) + 1) << SHMQ_GROUP_VERSION_SHIFT;
}
/* The word of a new owner: not suspect, and a new version. */
static inline uint64_t shmq_group_word(uint64_t before, uint32_t owner, uint32_t generation) {
    return shmq_group_freed(before) | (generation & SHMQ_GROUP_GENERATION) << SHMQ_GROUP_GENERATION_SHIFT | owner;
}
/* The same owner, not suspect, in a new version: a recheck that began before can no longer decide. */
static inline uint64_t shmq_group_again(uint64_t word) {
    return shmq_group_word(word, shmq_group_owner(word),
                           (uint32_t)(word >> SHMQ_GROUP_GENERATION_SHIFT & SHMQ_GROUP_GENERATION));
}
static inline bool shmq_group_names(uint64_t word, uint32_t owner, uint32_t generation) {
    return shmq_group_owner(word) == owner &&
           (word >> SHMQ_GROUP_GENERATION_SHIFT & SHMQ_GROUP_GENERATION) == (generation & SHMQ_GROUP_GENERATION);
}

/* Generation of the owner's row at present. False: there is no such row. */
static inline bool shmq_owner_generation(const shmq_queue *q, uint32_t owner, uint32_t *generation) {
    uint32_t row = owner & 0xfffu;
    if ((owner & SHMQ_OWNER_PROCESS) != 0) {
        *generation = row < SHMQ_PROCESS_ROWS ? shmq_row_generation(shmq_load_seq(&q->m->rows[row].word)) : 0;
        return row < SHMQ_PROCESS_ROWS;
    }
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    *generation = consumer != NULL ? shmq_row_generation(shmq_load_seq(&consumer->word)) : 0;
    return consumer != NULL;
}

/* The group has no owner, or its owner has given its row back. */
static inline bool shmq_group_is_free(const shmq_queue *q, uint64_t word) {
    uint32_t owner = shmq_group_owner(word), generation;
    return owner == 0 || !shmq_owner_generation(q, owner, &generation) || !shmq_group_names(word, owner, generation);
}
static inline bool shmq_group_is_of(const shmq_queue *q, uint64_t word, uint32_t owner) {
    uint32_t generation;
    return shmq_group_owner(word) == owner && shmq_owner_generation(q, owner, &generation) &&
           shmq_group_names(word, owner, generation);
}

#define SHMQ_REFUSED_DEPTH_SHIFT SHMQ_POSITION_BITS
#define SHMQ_REFUSED_VERSION_SHIFT 48u

static inline bool shmq_is_refused(uint64_t word) { return (word >> SHMQ_REFUSED_DEPTH_SHIFT & 15u) != 0; }
static inline uint32_t shmq_refused_depth(uint64_t word) {
    return (uint32_t)(word >> SHMQ_REFUSED_DEPTH_SHIFT & 15u) - 1;
}
static inline uint64_t shmq_refused_none(uint64_t before) {
    return before >> SHMQ_REFUSED_VERSION_SHIFT << SHMQ_REFUSED_VERSION_SHIFT;
}
static inline uint64_t shmq_refused_again(uint64_t before) {
    return before + (UINT64_C(1) << SHMQ_REFUSED_VERSION_SHIFT);
}
static inline uint64_t shmq_refused_word(uint64_t before, uint32_t depth, uint64_t position) {
    return shmq_refused_again(shmq_refused_none(before)) | (uint64_t)(depth + 1) << SHMQ_REFUSED_DEPTH_SHIFT |
           (position & SHMQ_POSITION_MASK);
}
/* How far the refused place is ahead of this position in the same level. Both have 44 bits, and compare as serial
 * numbers. */
static inline int64_t shmq_position_ahead(uint64_t refused, uint64_t position) {
    return (int64_t)((refused - position) << (64 - SHMQ_POSITION_BITS));
}

/* G4 */
void shmq_group_turn_back(shmq_queue *q, uint32_t group);
/* G3, then G4; false: the word has changed. */
bool shmq_group_free(shmq_queue *q, uint32_t group, uint64_t word);

#endif
