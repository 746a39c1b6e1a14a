/* Has an owner a message of its group in hand? The slots of the rings say so. The upkeep, a stealer and the reaper
 * ask. */
#include <stdlib.h>

#include "groups/group.h"
#include "groups/group_words.h"
#include "queue/cold.h"
#include "queue/level.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"

/* Groups whose owners are suspect: `words` of the groups from `first` on, 0: it is not; and which have something in flight. */
typedef struct suspects {
    uint32_t first, count;
    uint64_t *words;
    bool *in_flight;
} suspects;

/* Looks at one slot. Takes back an entry that a suspect owner was offered and has not been handed out, as any process may. */
static void look_at(shmq_ring *r, shmq_slot_shm *slot, suspects *s) {
    for (;;) {
        uint64_t word = shmq_load_seq(&slot->word); /* after the store of suspect: see G5 */
        uint32_t state = shmq_word_state(word);
        if (state != SHMQ_OFFERED && state != SHMQ_ACQUIRED && state != SHMQ_LOCKED) {
            return;
        }
        uint32_t group = shmq_group_of(r, slot, shmq_props(slot)), i = group - s->first;
        if (group == 0 || i >= s->count || s->words[i] == 0) {
            return;
        }
        if (state != SHMQ_OFFERED) {
            s->in_flight[i] = true;
            return;
        }
        if (shmq_word_owner(word) != shmq_group_owner(s->words[i]) ||
            shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word)))) { /* T11 */
            return;
        }
    }
}

static void look_at_slots(shmq_queue *q, suspects *s) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        if (shmq_load_seq(&level.shm->cold) == 0) {
            continue; /* groups stand in cold records, and this ring has none */
        }
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            look_at(&level, shmq_slot_at(&level, i), s);
        }
    }
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

/* Sets suspect. 0: there is nothing to recheck. */
static uint64_t suspect(shmq_queue *q, uint32_t group) {
    shmq_a64 *at = &shmq_group_at(q, group)->owner;
    uint64_t word = shmq_load_seq(at);
    if (shmq_group_is_free(q, word)) {
        shmq_group_turn_back(q, group); /* the process that freed the group may be dead or stopped */
        return 0;
    }
    uint64_t now = word | SHMQ_GROUP_SUSPECT;
    return !is_kept(q, word) && shmq_cas_seq(at, word, now) ? now : 0; /* G5; else the owner goes on */
}

/* Looks at the slots once for all of them, and frees those of which nothing is in flight. */
static void decide(shmq_queue *q, suspects *s) {
    look_at_slots(q, s);
    bool turned = false;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->words[i] != 0 && !s->in_flight[i]) {
            if (!turned) {
                turn_all_back(q);
                turned = true;
            }
            (void)shmq_group_free(q, s->first + i, s->words[i]);
        } else if (s->words[i] != 0 && q->grouping == SHMQ_GROUPS_STICKY) {
            /* The owner keeps the group, also after it has settled the rest. Otherwise it would depend on when a taker
             * is refused, since only a refused taker causes the next recheck. */
            shmq_a64 *at = &shmq_group_at(q, s->first + i)->owner;
            (void)shmq_cas_seq(at, s->words[i], shmq_group_again(s->words[i])); /* G5 */
        }
    }
}

void shmq_group_recheck(shmq_queue *q, uint32_t group) {
    bool in_flight = false;
    uint64_t word = suspect(q, group);
    suspects s = {.first = group, .count = 1, .words = &word, .in_flight = &in_flight};
    if (word != 0) {
        decide(q, &s);
    }
}

void shmq_group_suspect(shmq_queue *q, uint32_t group, uint32_t owner) {
    shmq_a64 *at = &shmq_group_at(q, group)->owner;
    uint64_t word = shmq_load_seq(at);
    if (!shmq_group_is_free(q, word) && shmq_group_owner(word) == owner) {
        (void)shmq_cas_seq(at, word, shmq_group_again(word) | SHMQ_GROUP_SUSPECT); /* G5 */
    }
}

static bool is_waited_for(const shmq_queue *q, uint32_t group) {
    return shmq_is_refused(shmq_load_seq(&shmq_group_at(q, group)->refused));
}

bool shmq_groups_recheck(shmq_queue *q) {
    uint32_t last = shmq_groups_laid(q), group = 1;
    while (group <= last && !is_waited_for(q, group)) {
        group++;
    }
    suspects s = {.first = group, .count = last + 1 - group};
    if (s.count == 0) {
        return false;
    }
    s.words = calloc(s.count, sizeof *s.words);
    s.in_flight = calloc(s.count, sizeof *s.in_flight);
    bool refused = s.words == NULL || s.in_flight == NULL; /* without memory: later */
    for (uint32_t i = 0; i < s.count && !refused; i++) {
        s.words[i] = is_waited_for(q, group + i) ? suspect(q, group + i) : 0;
    }
    if (!refused) {
        decide(q, &s);
    }
    for (; group <= last && !refused; group++) {
        refused = is_waited_for(q, group);
    }
    free(s.words);
    free(s.in_flight);
    return refused;
}
