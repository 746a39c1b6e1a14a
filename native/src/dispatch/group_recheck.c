/* Has an owner a message of its group in hand? The slots of the rings say so. The upkeep, a stealer and the reaper
 * ask. */
#include "dispatch/group_words.h"
#include "shmq/cold.h"
#include "shmq/ring_memory.h"

/* Takes back an entry that was offered and not handed out, as any process may. False: the entry is in flight. */
static bool recall(shmq_ring *r, shmq_slot_shm *slot, uint32_t group, uint32_t owner) {
    for (;;) {
        uint64_t word = shmq_load_seq(&slot->word); /* after the store of suspect: see G5 */
        uint32_t state = shmq_word_state(word);
        bool offered = state == SHMQ_OFFERED && shmq_word_owner(word) == owner;
        if ((!offered && state != SHMQ_ACQUIRED && state != SHMQ_LOCKED) ||
            shmq_group_of(r, slot, shmq_props(slot)) != group) {
            return true;
        }
        if (!offered) {
            return false;
        }
        if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word)))) { /* T11 */
            return true;
        }
    }
}

static bool any_in_flight(shmq_queue *q, uint32_t group, uint32_t owner) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        if (shmq_load_seq(&level.shm->cold) == 0) {
            continue; /* groups stand in cold records, and this ring has none */
        }
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            if (!recall(&level, shmq_slot_at(&level, i), group, owner)) {
                return true;
            }
        }
    }
    return false;
}

/* The owner may have given its last message back and be stopped between R1 and R2: the next owner's takers would pass
 * that message. */
static void turn_all_back(shmq_queue *q) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        shmq_rewind_all(&level);
    }
}

/* A sticky group stays with its owner, whatever the owner has in hand, unless a stealer took a message from it by
 * time. */
static bool is_kept(const shmq_queue *q, uint64_t word) {
    return q->grouping != SHMQ_GROUPS_SHARED && !shmq_group_is_suspect(word);
}

void shmq_group_recheck(shmq_queue *q, uint32_t group) {
    shmq_a64 *at = &shmq_group_at(q, group)->owner;
    uint64_t word = shmq_load_seq(at);
    if (shmq_group_is_free(q, word)) {
        shmq_group_turn_back(q, group); /* the process that freed the group may be dead or stopped */
        return;
    }
    uint64_t suspect = word | SHMQ_GROUP_SUSPECT;
    if (is_kept(q, word) || !shmq_cas_seq(at, word, suspect)) { /* G5 */
        return; /* the owner goes on: there is nothing to recheck */
    }
    if (!any_in_flight(q, group, shmq_group_owner(word))) {
        turn_all_back(q);
        (void)shmq_group_free(q, group, suspect);
    } else if (q->grouping == SHMQ_GROUPS_STICKY) {
        /* The owner keeps the group, also after it has settled the rest. Otherwise it would depend on when a taker
         * is refused, since only a refused taker causes the next recheck. */
        (void)shmq_cas_seq(at, suspect, shmq_group_again(suspect)); /* G5 */
    }
}

void shmq_group_suspect(shmq_queue *q, uint32_t group, uint32_t owner) {
    shmq_a64 *at = &shmq_group_at(q, group)->owner;
    uint64_t word = shmq_load_seq(at);
    if (!shmq_group_is_free(q, word) && shmq_group_owner(word) == owner) {
        (void)shmq_cas_seq(at, word, shmq_group_again(word) | SHMQ_GROUP_SUSPECT); /* G5 */
    }
}

bool shmq_groups_recheck(shmq_queue *q) {
    bool refused = false;
    for (uint32_t group = 1; group <= SHMQ_GROUPS; group++) {
        shmq_a64 *at = &shmq_group_at(q, group)->refused;
        if (shmq_is_refused(shmq_load_seq(at))) {
            shmq_group_recheck(q, group);
            refused = refused || shmq_is_refused(shmq_load_seq(at));
        }
    }
    return refused;
}
