/* The look at all entries of a ring: holds that end, messages that expire, leases that are over. */
#include "shmq/cold.h"
#include "shmq/group.h"
#include "shmq/ring_time.h"

/* When this state of the entry ends. */
static uint64_t ends_at(const shmq_ring *r, shmq_slot_shm *slot, uint32_t state, uint64_t now) {
    bool leased = state == SHMQ_ACQUIRED && (shmq_props(slot) & SHMQ_PROP_NOT_BEFORE) != 0 &&
                  shmq_load_relaxed(&r->queue->page->settings.lease_ns) != SHMQ_NEVER;
    return state == SHMQ_HELD || leased ? shmq_held_until(r, slot, now) : SHMQ_DUE_NEVER;
}

/* Taken from a consumer that lives: an attempt, unless it is for the dead anyway. */
static void take_back(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, bool attempt) {
    shmq_delivery d = {0};
    if (shmq_seize(r, slot, word, position, &d)) {
        shmq_props_change(slot, 0, SHMQ_PROP_NOT_BEFORE);
        (void)shmq_release(r->queue, &d, attempt);
    }
}

/* Its lease is over. With the message goes a sticky group, if it was the last one in hand. */
static void overrun(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position) {
    shmq_queue *q = r->queue;
    bool sticky = SHMQ_UNLIKELY(q->grouping == SHMQ_GROUPS_STICKY);
    uint32_t group = sticky ? shmq_group_of(r, slot, shmq_props(slot)) : 0;
    if (group == 0) {
        take_back(r, slot, word, position, true);
        return;
    }
    shmq_group_suspect(q, group, shmq_word_owner(word));
    take_back(r, slot, word, position, true);
    /* Once more: who looked at the slots before may have found this message in hand, and the group above doubt. */
    shmq_group_suspect(q, group, shmq_word_owner(word));
    shmq_group_doubt(q, group);
}

/* Past its time to live. Answers when to look again. */
static uint64_t end_life(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, uint64_t now) {
    shmq_queue *q = r->queue;
    uint32_t state = shmq_word_state(word);
    bool buried = shmq_load_relaxed(&q->page->settings.dead_letter_expired) != 0;
    if (state == SHMQ_AVAILABLE && buried) {
        (void)shmq_or_seq(&q->m->chores, SHMQ_CHORE_BURIALS); /* the interpreter's: it has the queue for the dead */
        return now + SHMQ_BURIAL_NS;
    }
    if (state == SHMQ_HELD && buried) {
        (void)shmq_hold_end_now(r, slot, word);
        return now;
    }
    if (state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_ACQUIRED) {
        take_back(r, slot, word, position,
                  false); /* what has expired is not released, but dropped, or left for its burial */
        return buried ? now : SHMQ_DUE_NEVER;
    }
    return now + q->m->patience_ns; /* offered, or being settled: it is the other's for a moment */
}

/* One entry: do what is due; answers when it is due next. */
static uint64_t look_at(shmq_ring *r, shmq_slot_shm *slot, uint64_t now) {
    /* SYNC ring.publish. Seq: the look was announced in the due word, then comes this load. A process that makes something due
     * swaps the slot's word, then looks at the due word: one of the two sees the other. */
    uint64_t word = shmq_load_seq(&slot->word);
    uint32_t state = shmq_word_state(word);
    if (!shmq_state_is_entry(state)) {
        return SHMQ_DUE_NEVER;
    }
    uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    uint64_t ends = ends_at(r, slot, state, now);
    uint64_t expires =
        shmq_may_expire(r->queue, slot) ? shmq_expires_of(r, slot, shmq_props(slot), shmq_peek(&slot->enqueued_ns)) : 0;
    expires = expires == 0 ? SHMQ_DUE_NEVER : expires;
    if (shmq_load_seq(&slot->word) != word) {
        return now; /* it changed under us: looked at again soon */
    }
    if (expires <= now) {
        return end_life(r, slot, word, position, now);
    }
    if (ends <= now && state == SHMQ_HELD) {
        return shmq_hold_end_now(r, slot, word) ? expires : now;
    }
    if (ends <= now) {
        overrun(r, slot, word, position);
        return expires;
    }
    return ends < expires ? ends : expires;
}

/* Every entry between floor and tail, and the carried ones: as a census. */
static uint64_t look_at_all(shmq_ring *r, uint64_t now) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    uint64_t low = shmq_load_seq(&r->shm->floor), earliest = SHMQ_DUE_NEVER;
    if (tail > count && low < tail - count) {
        low = tail - count;
    }
    for (uint64_t p = low; p < tail && p - low < count; p++) {
        uint64_t due = look_at(r, shmq_slot_at(r, p), now);
        earliest = due < earliest ? due : earliest;
    }
    for (uint64_t w = 0; w < (count + 63) / 64; w++) {
        for (uint64_t bits = shmq_load_seq(&r->carried[w]); bits != 0; bits &= bits - 1) {
            uint64_t due = look_at(r, shmq_slot_at(r, w * 64 + (uint64_t)__builtin_ctzll(bits)), now);
            earliest = due < earliest ? due : earliest;
        }
    }
    return earliest;
}

#define SHARE 4 /* looks take at most a fifth of a processor, however many messages are due one after the other */

void shmq_ring_time(shmq_ring *r, uint64_t now) {
    shmq_queue *q = r->queue;
    uint64_t mark;
    if (!shmq_due_begin(&r->shm->due, now, q->m->patience_ns, &mark)) {
        return;
    }
    uint64_t earliest = look_at_all(r, now);
    if (SHMQ_UNLIKELY(q->grouping != SHMQ_GROUPS_NONE) && shmq_groups_doubt(q)) {
        earliest = earliest < now + q->m->patience_ns ? earliest : now + q->m->patience_ns;
    }
    uint64_t after = shmq_now_ns(), rest = after + SHARE * (after - now);
    shmq_due_end(&r->shm->due, mark, earliest < rest ? rest : earliest);
}
