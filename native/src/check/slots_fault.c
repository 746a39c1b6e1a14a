/* Rules that hold for a ring at each instant, also under load and after deaths. Each says in which order it reads. */
#include "base/clock.h"
#include "base/fault_text.h"
#include "check/faults.h"
#include "groups/group.h"
#include "limits/count.h"
#include "queue/cold.h"
#include "queue/level.h"
#include "ring/ring_memory.h"
#include "wake/due.h"

/* One look at a slot: the tail before and after its word. */
typedef struct sight {
    uint64_t index;
    uint64_t before;
    uint64_t word;
    uint64_t after;
} sight;

static sight look_at(shmq_ring *r, uint64_t index) {
    sight s = {.index = index, .before = shmq_load_seq(&r->shm->tail)};
    s.word = shmq_load_seq(&shmq_slot_at(r, index)->word);
    s.after = shmq_load_seq(&r->shm->tail);
    return s;
}

static bool is_owned(uint32_t state) {
    return state == SHMQ_CLAIMED || state == SHMQ_OFFERED || state == SHMQ_ACQUIRED || state == SHMQ_LOCKED ||
           state == SHMQ_DEQUEUED || state == SHMQ_QUARANTINED || state == SHMQ_PENDING;
}

/* The tail moves on when its slot is in use at its lap. So each slot that the tail has passed was used at that lap,
 * and no slot beyond the tail's own is in use. The producer of that one may not have moved the tail yet. */
static const char *check_lap(const shmq_ring *r, const sight *s) {
    bool is_free = shmq_word_state(s->word) == SHMQ_FREE;
    if (s->before > s->index) {
        uint64_t passed = s->index + ((s->before - 1 - s->index) >> r->shift << r->shift);
        int32_t ahead = shmq_lap_ahead(s->word, shmq_lap_of(r, passed));
        if (ahead < 0 || (ahead == 0 && is_free)) {
            return "the tail has passed the slot, but no producer has used it";
        }
    }
    if (s->after < s->index) {
        return s->word == 0 ? NULL : "the slot is in use, but the tail has not reached it";
    }
    uint64_t last = s->index + ((s->after - s->index) >> r->shift << r->shift);
    int32_t ahead = shmq_lap_ahead(s->word, shmq_lap_of(r, last));
    return ahead > (is_free ? 1 : 0) ? "the slot's lap is ahead of the tail" : NULL;
}

static const char *check_word(shmq_ring *r, const sight *s) {
    uint32_t state = shmq_word_state(s->word), owner = shmq_word_owner(s->word);
    if (state > SHMQ_MOVING) {
        return "the slot is in a state that this version does not know";
    }
    if ((s->word & SHMQ_FLAG_INTENT) != 0 || ((s->word & SHMQ_FLAG_WAITS) != 0 && state != SHMQ_MOVING)) {
        return "the slot has a flag that this version does not know";
    }
    if (state == SHMQ_BROKEN) {
        return "the slot is broken, and its message is lost";
    }
    if (is_owned(state) != (owner != 0)) {
        return is_owned(state) ? "the slot's state needs an owner, but the slot names none"
                               : "the slot names an owner, but its state has none";
    }
    if ((owner & 0xfffu) >= (owner & SHMQ_OWNER_PROCESS ? SHMQ_PROCESS_ROWS : SHMQ_CONSUMER_ROWS)) {
        return "the slot names an owner whose row number is out of range";
    }
    if (!(owner & SHMQ_OWNER_PROCESS) && owner != 0 &&
        (state == SHMQ_CLAIMED || state == SHMQ_QUARANTINED || state == SHMQ_PENDING)) {
        return "the slot's state is a producer's, but its owner is a consumer";
    }
    if (shmq_word_carried(s->word) && shmq_state_is_entry(state) &&
        !(shmq_load_seq(&r->carried[s->index >> 6]) >> (s->index & 63) & 1)) {
        return "the ring has lapped the message, but the message's bit is not set";
    }
    return check_lap(r, s);
}

/* A producer sets records and bits before the entry needs them. */
static const char *check_times(shmq_ring *r, const sight *s) {
    const shmq_slot_shm *slot = shmq_slot_at(r, s->index);
    uint32_t state = shmq_word_state(s->word), props = shmq_props(slot);
    if (!shmq_state_is_entry(state)) {
        return NULL;
    }
    if ((props & ~SHMQ_PROPS_KNOWN) != 0) {
        return "the message has a property that this version does not know";
    }
    if (state == SHMQ_HELD && (props & SHMQ_PROP_NOT_BEFORE) == 0) {
        return "the message is delayed, but has no time at which its delay ends";
    }
    if (state == SHMQ_PENDING && (props & SHMQ_PROP_INTENT) == 0) {
        return "the message is being moved here, but does not name the queue that it comes from";
    }
    if (props == 0) {
        return NULL;
    }
    shmq_cold_shm *cold = shmq_cold_at(r, slot);
    if (cold == NULL) {
        return "the message needs a cold record, but has none";
    }
    if ((props & SHMQ_PROP_GROUP) != 0 && shmq_group_of(r, slot, props) == 0) {
        return "the message is of a group that does not exist";
    }
    uint64_t until = (props & SHMQ_PROP_NOT_BEFORE) != 0 ? shmq_load_relaxed(&cold->not_before_ns) : 0;
    return until <= shmq_now_ns() + SHMQ_DUE_LONGEST ? NULL : "the message's delay ends later than any delay can";
}

/* The position is written before the entry is there, and stays as long. */
static const char *check_position(const shmq_ring *r, const sight *s) {
    if (!shmq_state_is_entry(shmq_word_state(s->word))) {
        return NULL;
    }
    shmq_slot_shm *slot = shmq_slot_at(r, s->index);
    uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    if ((p & r->mask) != s->index) {
        return "the message's position is that of another slot";
    }
    /* The lap as a position. Laps of 32 bits compare only near the tail; a carried entry may be of any age. */
    uint64_t last = s->index + ((s->after - s->index) >> r->shift << r->shift);
    uint64_t at = last + ((uint64_t)(int64_t)shmq_lap_ahead(s->word, shmq_lap_of(r, last)) << r->shift);
    if (s->after < s->index || (shmq_word_carried(s->word) ? p >= at : p != at)) {
        return "the message's position is that of another lap";
    }
    return NULL;
}

static const char *check_slot(shmq_ring *r, uint64_t index) {
    const char *wrong = NULL;
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        sight s = look_at(r, index);
        wrong = check_word(r, &s);
        if (wrong == NULL) {
            wrong = check_position(r, &s);
        }
        if (wrong == NULL) {
            wrong = check_times(r, &s);
        }
        if (wrong == NULL) {
            wrong = shmq_flow_entry_fault(r, shmq_slot_at(r, index), s.word);
        }
        if (wrong == NULL || shmq_load_seq(&shmq_slot_at(r, index)->word) != s.word) {
            return NULL; /* the ring moves on: a fault stays */
        }
    }
    return wrong;
}

/* The head is not beyond the tail, but for one claim whose producer has not moved the tail yet. The head's epoch is
 * raised before the ring's; a death in between leaves it one ahead for ever. */
static const char *check_head(const shmq_ring *r) {
    uint64_t head = shmq_load_seq(&r->shm->head), tail = shmq_load_seq(&r->shm->tail);
    if (((tail + 1 - head) & SHMQ_POSITION_MASK) > SHMQ_POSITION_MASK / 2) {
        return "the head is beyond the tail";
    }
    if (shmq_load_seq(&r->shm->floor) > shmq_load_seq(&r->shm->tail)) {
        return "the floor is beyond the tail";
    }
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        uint64_t epoch = shmq_load_seq(&r->shm->epoch);
        uint64_t heads = shmq_load_seq(&r->shm->head) >> SHMQ_POSITION_BITS;
        if (shmq_load_seq(&r->shm->epoch) != epoch) {
            continue;
        }
        return ((heads - epoch) & SHMQ_EPOCH_MASK) > SHMQ_EPOCH_MASK / 2 ? "the head's epoch is behind the ring's"
                                                                         : NULL;
    }
    return NULL;
}

/* A cell names its epoch, or nothing yet. A released position lies before the tail. */
static const char *check_cells(const shmq_ring *r) {
    for (uint64_t i = 0; i < SHMQ_CELLS; i++) {
        uint64_t cell = shmq_load_acquire(&r->shm->cells[i]); /* SYNC ring.cell */
        uint64_t tail = shmq_load_seq(&r->shm->tail);
        if (cell == 0) {
            continue;
        }
        if ((cell >> SHMQ_POSITION_BITS) % SHMQ_CELLS != i) {
            return "a cell of released positions has the epoch of another cell";
        }
        /* A cell of long ago, in a ring with few releases, may hold anything else. */
        uint64_t beyond = (cell - tail) & SHMQ_POSITION_MASK;
        if (beyond > 0 && beyond <= shmq_slot_count(r)) {
            return "a released position is beyond the tail";
        }
    }
    return NULL;
}

const char *shmq_ring_fault(shmq_ring *r, uint64_t *where) {
    *where = SHMQ_NO_SLOT;
    const char *wrong = check_head(r);
    wrong = wrong != NULL ? wrong : check_cells(r);
    wrong = wrong != NULL ? wrong : shmq_due_fault(shmq_load_seq(&r->shm->due));
    wrong = wrong != NULL                         ? wrong
            : shmq_load_seq(&r->shm->joiners) > 1 ? "the joiner flag has a value that no process writes"
                                                  : NULL;
    wrong = wrong == NULL && !shmq_is_front(r) ? shmq_flow_fault(r) : wrong;
    for (uint64_t i = 0; i < shmq_slots_laid(r) && wrong == NULL; i++) {
        wrong = check_slot(r, i);
        *where = wrong != NULL ? i : SHMQ_NO_SLOT;
    }
    return wrong != NULL || r->depth != 0 ? wrong : shmq_count_fault(r->queue); /* counted for all levels together */
}
