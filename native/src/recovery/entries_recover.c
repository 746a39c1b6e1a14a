/* A ring after a death: the reaper changes each word that names a dead owner as its state says, by one CAS from exactly
 * that word. Several reapers may do this at once, and may die in the middle. */
#include "consumers/sleepers.h"
#include "limits/line.h"
#include "limits/room_wake.h"
#include "limits/slot_free.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "recovery/recover.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "ring/stretch.h"
#include "wake/due.h"

/* The reaper reads the word, then the row that it names, then asks whether the row's process is dead. A consumer row
 * becomes free before its process row does. So a row that was used again in between is not taken for the dead one's.
 * SYNC ring.claim */
static bool is_of_the_dead(const shmq_queue *q, uint64_t word, const shmq_liveness *l, uint32_t *process_row) {
    uint32_t owner = shmq_word_owner(word);
    if (owner == 0 || shmq_word_state(word) == SHMQ_FREE) {
        return false;
    }
    if (owner & SHMQ_OWNER_PROCESS) {
        *process_row = owner & 0xfffu;
        return shmq_is_dead(l, *process_row);
    }
    shmq_consumer_shm *consumer = shmq_row_at(q, owner);
    uint64_t row = consumer != NULL ? shmq_load_acquire(&consumer->word) : 0; /* SYNC row.owner */
    *process_row = shmq_row_inner(row);
    return shmq_row_state(row) != SHMQ_ROW_FREE && shmq_is_dead(l, *process_row);
}

static void repair(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, const shmq_liveness *l, uint32_t process_row) {
    shmq_queue *q = r->queue;
    uint64_t available = shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word));
    bool steals = (shmq_word_owner(word) & SHMQ_OWNER_PROCESS) && shmq_word_state(word) == SHMQ_LOCKED;
    switch (shmq_word_state(word)) {
    case SHMQ_CLAIMED:
    case SHMQ_QUARANTINED:
    case SHMQ_DEQUEUED:
        if (!l->leaving) {
            (void)shmq_claim_end(r, slot, word); /* T3, T6, T16 */
        }
        break;
    case SHMQ_OFFERED:
        shmq_cas_seq(&slot->word, word, available); /* T11 */
        break;
    case SHMQ_ACQUIRED:
    case SHMQ_LOCKED:
        if (!l->leaving && !steals && shmq_death_count(q, slot, word, q->m->rows[process_row].pid) &&
            q->counters != NULL) {
            shmq_add_relaxed(&q->counters->died, 1);
        }
        if (steals && !l->leaving) { /* before the entry is back: the owner's pool asks which of the two happened */
            shmq_death_record_add(q->m, shmq_read_once(&slot->message_id) | SHMQ_DEATH_RECORD_MOVER,
                                  q->m->rows[process_row].pid, 0);
        }
        shmq_cas_seq(&slot->word, word, available | SHMQ_FLAG_REDELIVERED); /* T15 */
        break;
    default:
        break;
    }
}

static uint32_t recover_slot(shmq_ring *r, shmq_slot_shm *slot, const shmq_liveness *l) {
    for (uint32_t repaired = 0;; repaired++) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.claim */
        uint32_t process_row = SHMQ_PROCESS_ROWS;
        if (!is_of_the_dead(r->queue, word, l, &process_row) || process_row >= SHMQ_PROCESS_ROWS) {
            return repaired;
        }
        repair(r, slot, word, l, process_row);
        if (shmq_load_seq(&slot->word) == word) {
            return repaired; /* nothing to repair in this state, or a claim of this process: looping on would not end */
        }
    }
}

static uint32_t recover_level(shmq_ring *r, const shmq_liveness *l) {
    uint32_t freed = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        freed += recover_slot(r, shmq_slot_at(r, i), l);
    }
    shmq_ring_changed(r); /* after the repairs; the dead may have changed a slot and not said so */
    shmq_rewind_all(r); /* always: a process that died in a release after R1 has left no word with its name */
    shmq_due_recover(r);
    return freed;
}

void shmq_ring_recover(shmq_queue *q, const shmq_liveness *l) {
    uint32_t freed = 0;
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        freed += recover_level(&level, l);
    }
    shmq_groups_recover(q, l);
    shmq_sleepers_recover(q, l);
    shmq_line_recover(q, l);
    if (shmq_load_seq(&q->page->shut_down) != SHMQ_OPEN) {
        shmq_notify_all(q); /* the process that shut it down may have died before it woke the sleepers */
    }
    for (uint32_t i = 0; i <= freed && i < SHMQ_CONSUMER_ROWS; i++) {
        shmq_notify(q);
    }
    shmq_store_seq(&q->page->recount_due, 1);
    shmq_wake_producers(q);
    shmq_wake_joiners(q);
}
