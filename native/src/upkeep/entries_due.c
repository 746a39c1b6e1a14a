/* A look at all entries of a ring: a process ends holds, lives and leases that are over. It may look in pieces. */
#include "base/wait_time.h"
#include "groups/group.h"
#include "queue/cold.h"
#include "settle/hold.h"
#include "settle/settle.h"
#include "time/times.h"
#include "upkeep/duty.h"

#define FEW_ENTRIES 1024u

/* When the present state of the entry ends. */
static uint64_t ends_at(const shmq_ring *r, shmq_slot_shm *slot, uint32_t state, uint64_t now) {
    bool leased = state == SHMQ_ACQUIRED && (shmq_props(slot) & SHMQ_PROP_NOT_BEFORE) != 0 &&
                  shmq_load_relaxed(&r->queue->page->settings.lease_ns) != SHMQ_NEVER;
    return state == SHMQ_HELD || leased ? shmq_held_until(r, slot, now) : SHMQ_DUE_NEVER;
}

/* Takes the message back from a living consumer. That counts as an attempt, unless the message becomes a dead letter
 * anyway. */
static void take_back(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, bool attempt) {
    shmq_delivery d = {0};
    if (shmq_seize(r, slot, word, position, &d)) {
        shmq_props_change(slot, 0, SHMQ_PROP_NOT_BEFORE);
        (void)shmq_release(r->queue, &d, attempt);
    }
}

/* The lease is over: takes the message back, and a sticky group with it, if the owner has no other message of the group
 * in hand. */
static void overrun(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, shmq_budget *b) {
    shmq_queue *q = r->queue;
    bool sticky = SHMQ_UNLIKELY(q->grouping == SHMQ_GROUPS_STICKY);
    uint32_t group = sticky ? shmq_group_of(r, slot, shmq_props(slot)) : 0;
    if (group == 0) {
        take_back(r, slot, word, position, true);
        return;
    }
    shmq_budget_spend_all(b); /* a recheck looks at all slots */
    shmq_group_suspect(q, group, shmq_word_owner(word));
    take_back(r, slot, word, position, true);
    /* Once more: another process may have rechecked before, found this message in hand, and cleared suspect. */
    shmq_group_suspect(q, group, shmq_word_owner(word));
    shmq_group_recheck(q, group);
}

/* The entry's life is over. Answers when to look again. */
static uint64_t end_life(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint64_t position, uint64_t now) {
    shmq_queue *q = r->queue;
    uint32_t state = shmq_word_state(word);
    bool dead_letters = shmq_load_relaxed(&q->page->settings.dead_letter_expired) != 0;
    if (state == SHMQ_AVAILABLE && dead_letters) {
        (void)shmq_or_seq(&q->m->upcalls, SHMQ_UPCALL_DEAD_LETTERS); /* for the interpreter: it knows the queue */
        return now + SHMQ_DEAD_LETTER_NS;
    }
    if (state == SHMQ_HELD && dead_letters) {
        (void)shmq_hold_end_now(r, slot, word);
        return now;
    }
    if (state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_ACQUIRED) {
        take_back(r, slot, word, position, false); /* an expired entry is dropped, or left to become a dead letter */
        return dead_letters ? now : SHMQ_DUE_NEVER;
    }
    return now + q->m->patience_ns; /* being offered or settled: another process has it for a moment */
}

/* Does what is due for one entry; answers when to come again. */
static uint64_t look_at(shmq_ring *r, shmq_slot_shm *slot, uint64_t now, shmq_budget *b) {
    shmq_budget_spend(b, SHMQ_PRICE_ENTRY);
    /* SYNC ring.publish. Seq: the look is announced in the due word before this load. A process that makes something
     * due swaps the slot's word, then looks at the due word: one of the two sees the other. */
    uint64_t word = shmq_load_seq(&slot->word);
    uint32_t state = shmq_word_state(word);
    if (!shmq_state_is_entry(state)) {
        return SHMQ_DUE_NEVER;
    }
    uint64_t position = shmq_load_acquire(&slot->position); /* SYNC ring.publish */
    uint64_t ends = ends_at(r, slot, state, now);
    uint64_t expires = shmq_may_expire(r->queue, slot)
                           ? shmq_expires_of(r, slot, shmq_props(slot), shmq_read_once(&slot->enqueued_ns))
                           : 0;
    expires = expires == 0 ? SHMQ_DUE_NEVER : expires;
    if (shmq_load_seq(&slot->word) != word) {
        return now; /* the word has changed meanwhile: look again soon */
    }
    if (expires <= now || ends <= now) {
        shmq_budget_spend(b, SHMQ_PRICE_CHANGE);
    }
    if (expires <= now) {
        return end_life(r, slot, word, position, now);
    }
    if (ends <= now && state == SHMQ_HELD) {
        return shmq_hold_end_now(r, slot, word) ? expires : now;
    }
    if (ends <= now) {
        overrun(r, slot, word, position, b);
        return expires;
    }
    return ends < expires ? ends : expires;
}

/* A new circle begins where the last one ended, so no entry is left out by looks that never come to their end. Every
 * second circle looks at carried entries first. */
static void begin(const shmq_ring *r, shmq_rounds *u, uint64_t mark) {
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r), low = shmq_load_seq(&r->shm->floor);
    if (tail > count && low < tail - count) {
        low = tail - count;
    }
    bool same = u->index == r->queue->index && u->incarnation == r->queue->incarnation && u->depth == r->depth;
    u->index = r->queue->index;
    u->incarnation = r->queue->incarnation;
    u->depth = r->depth;
    u->floor = low;
    u->tail = tail <= low ? low : tail - low < count ? tail : low + count;
    u->carried = count;
    u->looked = 0;
    u->carried_first = same && !u->carried_first;
    u->entries.mark = mark;
    u->entries.earliest = SHMQ_DUE_NEVER;
    u->entries.left = u->tail - low;
    u->entries.next = same && u->entries.next >= low && u->entries.next < u->tail ? u->entries.next : low;
}

static void note(shmq_circle *c, uint64_t due) { c->earliest = due < c->earliest ? due : c->earliest; }

/* Looks at each entry between floor and tail. False: the budget was spent before the end. */
static bool look_at_entries(shmq_ring *r, uint64_t now, shmq_rounds *u, shmq_budget *b) {
    shmq_circle *c = &u->entries;
    for (; c->left != 0; c->left--) {
        if (b->left == 0) {
            return false;
        }
        note(c, look_at(r, shmq_slot_at(r, c->next), now, b));
        u->looked++;
        c->next = c->next + 1 < u->tail ? c->next + 1 : u->floor;
    }
    return true;
}

/* The same for older entries, which the tail has carried. */
static bool look_at_carried(shmq_ring *r, uint64_t now, shmq_rounds *u, shmq_budget *b) {
    while (u->carried != 0) {
        if (b->left == 0) {
            return false;
        }
        uint64_t last = u->carried - 1, w = last / 64;
        uint64_t bits = shmq_load_seq(&r->carried[w]) & UINT64_MAX >> (63 - last % 64);
        u->carried = bits != 0 ? w * 64 + 63 - (uint64_t)__builtin_clzll(bits) : w * 64;
        if (bits == 0 && w % 8 == 0) {
            shmq_budget_spend(b, SHMQ_PRICE_ENTRY); /* a cache line of words, most of them empty */
        } else if (bits != 0) {
            note(&u->entries, look_at(r, shmq_slot_at(r, u->carried), now, b));
            u->looked++;
        }
    }
    return true;
}

/* Carried entries and the others, in the order of this circle. */
static bool look_at_all(shmq_ring *r, uint64_t now, shmq_rounds *u, shmq_budget *b) {
    return u->carried_first ? look_at_carried(r, now, u, b) && look_at_entries(r, now, u, b)
                            : look_at_entries(r, now, u, b) && look_at_carried(r, now, u, b);
}

/* Rechecks groups for which a taker waits: at the end of each look, and at least once in the patience. True: a taker
 * still waits. */
static bool recheck_groups(shmq_queue *q, bool whole, uint64_t now, shmq_rounds *u) {
    if (SHMQ_LIKELY(q->grouping == SHMQ_GROUPS_NONE) || (!whole && now - u->rechecked_ns < q->m->patience_ns)) {
        return false;
    }
    u->rechecked_ns = now;
    return shmq_groups_recheck(q);
}

bool shmq_is_half_looked_at(const shmq_queue *q, uint32_t depth, const shmq_rounds *u) {
    return u->entries.mark != 0 && u->index == q->index && u->incarnation == q->incarnation && u->depth == depth &&
           shmq_due_is_left(shmq_load_seq(&shmq_level_ring(q, depth)->due), u->entries.mark);
}

void shmq_ring_time_step(shmq_ring *r, uint64_t now, shmq_rounds *u, shmq_budget *b) {
    shmq_queue *q = r->queue;
    shmq_a64 *due = &r->shm->due;
    uint64_t mark;
    bool anew = !shmq_is_half_looked_at(q, r->depth, u);
    if (anew ? !shmq_due_begin(due, now, q->m->patience_ns, &mark)
             : !shmq_due_go_on(due, u->entries.mark, now, q->m->patience_ns, &mark, &anew)) {
        return;
    }
    if (anew) {
        begin(r, u, mark);
    }
    bool whole = look_at_all(r, now, u, b);
    if (recheck_groups(q, whole, now, u)) {
        note(&u->entries, now + q->m->patience_ns);
    }
    uint64_t earliest = u->entries.earliest;
    uint64_t rest = shmq_due_rest(now);
    if (whole && u->looked > FEW_ENTRIES && earliest > now && rest < now + SHMQ_LOOK_PAUSE_NS) {
        rest = now + SHMQ_LOOK_PAUSE_NS; /* also takers pass what is held whenever something of it is due */
    }
    bool earlier; /* unused: sleepers know the header's word only, which the caller sets */
    u->entries.mark = whole ? 0 : shmq_due_leave(due, mark, rest, &earlier);
    if (whole) {
        u->entries.next = 0;
        (void)shmq_due_end(due, mark, earliest < rest ? rest : earliest);
    }
}

void shmq_ring_time(shmq_ring *r, uint64_t now) {
    shmq_rounds own = {.row = 0};
    static const shmq_spare_time endless = {.until_ns = UINT64_MAX};
    shmq_budget budget = {.left = SHMQ_ROUND_BUDGET, .spare = &endless};
    shmq_ring_time_step(r, now, &own, &budget);
}
