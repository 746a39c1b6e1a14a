/* An entry that comes into a deleted queue, or comes back to it, goes where the other entries went. */
#include "settle/ending.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "queue/settings.h"
#include "settle/settle.h"
#include "wake/due.h"
#include "wake/watch.h"

bool shmq_has_dead_letter(const shmq_queue *q) {
    char dead_letter[SHMQ_NAME_MAX];
    return shmq_dead_letter(q->page, dead_letter) != 0;
}

/* Settles by a CAS from the word that says that no consumer has the entry: a consumer's CAS wins, or this one. */
void shmq_loose_settle(shmq_ring *r, shmq_slot_shm *slot) {
    uint64_t word = shmq_load_seq(&slot->word);
    while (shmq_is_loose(shmq_word_state(word))) {
        shmq_delivery d = {0};
        if (shmq_seize(r, slot, word, shmq_load_acquire(&slot->position), &d)) { /* SYNC ring.publish */
            (void)shmq_entry_ends(r, &d, SHMQ_END_DELETED);
        }
        word = shmq_load_seq(&slot->word);
    }
}

void shmq_dead_letters_ask(shmq_member *m) {
    (void)shmq_or_seq(&m->upcalls, SHMQ_UPCALL_DEAD_LETTERS);
    if (shmq_due_at(&m->header->due, shmq_now_ns() + SHMQ_DEAD_LETTER_NS)) {
        shmq_watch_hurry(m);
    }
}

void shmq_goes_with_queue(shmq_ring *r, shmq_slot_shm *slot) {
    if (shmq_has_dead_letter(r->queue)) {
        shmq_dead_letters_ask(r->queue->m);
    } else {
        shmq_loose_settle(r, slot);
    }
}

bool shmq_put_in_time(shmq_ring *r, uint64_t position) {
    if (SHMQ_LIKELY(shmq_load_seq(&r->queue->page->state) == SHMQ_QUEUE_LIVE)) {
        return true;
    }
    shmq_slot_shm *slot = shmq_slot_at(r, position);
    uint64_t word = shmq_load_seq(&slot->word);
    while (shmq_is_loose(shmq_word_state(word)) &&
           shmq_load_acquire(&slot->position) == position) { /* SYNC ring.publish */
        shmq_delivery d = {0};
        if (shmq_seize(r, slot, word, position, &d)) {
            return shmq_entry_ends(r, &d, SHMQ_END_DELETED) != SHMQ_OK;
        }
        word = shmq_load_seq(&slot->word);
    }
    return true; /* a consumer has it, or a process has moved it to the dead letters */
}
