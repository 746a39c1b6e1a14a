/* A move. The mover's steps:
 *
 *   M1  it makes the source LOCKED in the name of its process. No consumer row owns it then: that may be closed, or be
 *       another process's
 *   M2  it claims the target, fills it, and publishes it as PENDING; the target's cold record names the source
 *   M3  it settles the source. The move happens here
 *   M4  it makes the target available: PENDING -> AVAILABLE (T7), rewind, notify
 *
 * A mover that dies between M2 and M4 leaves a word that names a dead process. Its record tells the reaper where to
 * look. If the source is still LOCKED by that process, with that tag, M3 has not happened, and the reaper withdraws the
 * target (T8). No other process takes such a source: a deletion of its queue leaves it to the mover. */
#include "put/move.h"
#include "consumers/sleepers.h"
#include "limits/slot_free.h"
#include "put/put.h"
#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"
#include "settle/settle.h"
#include "wake/watch.h"

/* ---- a PENDING entry is shown or withdrawn ------------------------------------------------------------------------- */

static uint64_t pending_word(shmq_slot_shm *slot, uint32_t owner) {
    uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
    return shmq_word_state(word) == SHMQ_PENDING && shmq_word_owner(word) == owner ? word : 0;
}

/* Makes a PENDING entry available, from exactly this word. Scans have passed it, so this is a release: rewind,
 * notify. */
static bool show(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    uint64_t p = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    uint32_t state = (shmq_props(slot) & SHMQ_PROP_NOT_BEFORE) != 0 ? SHMQ_HELD : SHMQ_AVAILABLE;
    if (!shmq_cas_seq(&slot->word, word, shmq_word_to(word, state, 0, shmq_word_tag(word)))) { /* T7 */
        return false;
    }
    shmq_changed(r, slot);
    if (shmq_slot_at(r, p) == slot) {
        shmq_rewind(r, p);
    } else {
        shmq_rewind_all(r); /* the position is damaged */
    }
    shmq_notify(r->queue);
    return true;
}

/* Withdraws a PENDING entry, from exactly this word. An entry with a block becomes DEQUEUED first; a process that finds
 * its owner dead may drop the block's reference. */
static bool withdraw(shmq_ring *r, shmq_slot_shm *slot, uint64_t word) {
    uint32_t owner = shmq_word_owner(word);
    if (shmq_read_once(&slot->body) == 0) {
        return shmq_slot_free(r, slot, word); /* T8 */
    }
    if (!shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, owner, shmq_word_tag(word)))) { /* T8 */
        return false;
    }
    do {
        word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
    } while (shmq_word_state(word) == SHMQ_DEQUEUED && shmq_word_owner(word) == owner &&
             !shmq_claim_end(r, slot, word)); /* T16 */
    return true;
}

/* ---- the mover ----------------------------------------------------------------------------------------------------- */

/* M1 */
static shmq_status take_over(shmq_queue *from, shmq_delivery *d) {
    if (d->owner == shmq_self(from)) {
        return shmq_word_state(d->word) == SHMQ_LOCKED ? SHMQ_OK : shmq_lock(from, d);
    }
    for (uint64_t word = shmq_own_word(from, d); word != 0; word = shmq_own_word(from, d)) {
        shmq_ring *level = shmq_level(from, d->depth);
        shmq_delivery mine = *d;
        if (shmq_seize(level, shmq_slot_at(level, d->position), word, d->position, &mine)) {
            mine.group = d->group; /* its group stays the consumer's until the move is over */
            mine.fate = SHMQ_KEPT;
            d->group = 0;
            shmq_let_go(from, d);
            *d = mine;
            return SHMQ_OK;
        }
    }
    return shmq_taken_away(from, d);
}

/* Takes the steps M3 and M4. The entry belongs to the mover: other processes change nothing but its lap. */
static shmq_status settle_and_show(shmq_queue *from, shmq_delivery *d, shmq_ring *to, shmq_outgoing *o) {
    shmq_slot_shm *slot = shmq_slot_at(to, o->made.position);
    shmq_status status = shmq_queue_usable(to->queue);
    status = status == SHMQ_OK ? shmq_entry_ends(shmq_level(from, d->depth), d, o->source_end) : status;
    bool done = false;
    uint64_t word;
    while (!done && (word = pending_word(slot, shmq_self(to->queue))) != 0) {
        done = status == SHMQ_OK ? show(to, slot, word) : withdraw(to, slot, word);
    }
    if (status == SHMQ_OK) {
        shmq_published(to, o);
        shmq_add_relaxed(&to->queue->counters->put, 1);
    }
    return status;
}

shmq_status shmq_move_held(shmq_queue *from, shmq_delivery *d, shmq_queue *to, shmq_outgoing *o) {
    d->receipt = 0; /* the message stays, in another queue: its put counts that as taken */
    SHMQ_TRY(take_over(from, d));
    o->intent = shmq_intent(from->index, from->incarnation, d->depth, d->tag);
    o->source = d->position;
    shmq_status status = shmq_put(to, o, 0);
    if (status == SHMQ_OK) {
        status = settle_and_show(from, d, shmq_level(to, shmq_depth_of(to, o->priority)), o);
        o->block.offset = 0; /* the block is the entry's now, in each case */
        o->made.prepared = false;
    }
    return status;
}

shmq_status shmq_move(shmq_queue *from, shmq_delivery *d, shmq_queue *to, shmq_outgoing *o) {
    /* The mover counts the entry as held until the entry is there for all: the watcher looks after processes that hold
     * something. */
    shmq_add_unsettled(from->m, 1);
    shmq_status status = shmq_move_held(from, d, to, o);
    shmq_add_unsettled(from->m, -1);
    return status;
}

uint64_t shmq_own_expiry(const shmq_queue *q, const shmq_delivery *d) {
    const shmq_ring *level = shmq_level(q, d->depth);
    shmq_cold_shm *cold =
        (d->props & SHMQ_PROP_EXPIRES) != 0 ? shmq_cold_at(level, shmq_slot_at(level, d->position)) : NULL;
    return cold != NULL ? shmq_load_relaxed(&cold->expires_ns) : 0;
}

void shmq_move_times(const shmq_queue *from, const shmq_delivery *d, shmq_outgoing *o) {
    o->expires_ns = shmq_own_expiry(from, d);
    o->not_before_ns = d->held_until_ns;
}

/* ---- the reaper ---------------------------------------------------------------------------------------------------- */

bool shmq_move_source(const shmq_queue *from, uint64_t intent, uint64_t place, uint32_t owner) {
    shmq_ring level;
    if (shmq_intent_depth(intent) >= from->rings || shmq_level_look(from, shmq_intent_depth(intent), &level) != NULL) {
        return false;
    }
    shmq_slot_shm *slot = shmq_slot_at(&level, place);
    uint64_t word = shmq_load_seq(&slot->word);
    return shmq_word_state(word) == SHMQ_LOCKED && shmq_word_owner(word) == owner &&
           shmq_word_tag(word) == shmq_intent_tag(intent) &&
           shmq_load_acquire(&slot->position) == place; /* SYNC ring.publish */
}

/* The reaper reads the word, then the row that it names, then the source, and then makes its CAS from the word. While
 * the word stands no reaper has decided, and while none has decided, none gives back what the dead mover held. */
static shmq_status decide(shmq_ring *r, shmq_slot_shm *slot, const shmq_liveness *l, shmq_source_look *look,
                          void *context) {
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        uint32_t owner = shmq_word_owner(word), row = owner & 0xfffu;
        if (shmq_word_state(word) != SHMQ_PENDING || (owner & SHMQ_OWNER_PROCESS) == 0 || row >= SHMQ_PROCESS_ROWS ||
            !shmq_is_dead(l, row)) {
            return SHMQ_OK;
        }
        shmq_cold_shm *cold = (shmq_props(slot) & SHMQ_PROP_INTENT) != 0 ? shmq_cold_at(r, slot) : NULL;
        bool there = false; /* without a record, which is damage: better twice than never */
        if (cold != NULL) {
            SHMQ_TRY(look(context, shmq_read_once(&cold->intent), shmq_read_once(&cold->source), owner, &there));
        }
        (void)(there ? withdraw(r, slot, word) : show(r, slot, word));
    }
}

shmq_status shmq_moves_decide(shmq_queue *to, const shmq_liveness *l, shmq_source_look *look, void *context) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < to->rings && shmq_level_look(to, depth, &level) == NULL; depth++) {
        if (shmq_load_acquire(&level.shm->cold) == 0) { /* SYNC ring.cold */
            continue; /* nothing was ever moved to it */
        }
        for (uint64_t i = 0; i < shmq_slots_laid(&level); i++) {
            SHMQ_TRY(decide(&level, shmq_slot_at(&level, i), l, look, context));
        }
    }
    return SHMQ_OK;
}
