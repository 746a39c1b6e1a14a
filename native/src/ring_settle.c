/* The four outcomes in terms of the ring: settle, release (with or without an attempt), and steals. */
#include "shmq/ring.h"
#include "shmq/sleepers.h"

static uint64_t own_word(const shmq_slot_shm *slot, const shmq_delivery *d) {
    uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
    uint32_t state = shmq_word_state(word);
    bool ours = (state == SHMQ_ACQUIRED || state == SHMQ_LOCKED) && shmq_word_owner(word) == d->owner &&
                shmq_word_tag(word) == d->tag &&
                shmq_load_acquire(&slot->position) == d->position; /* SYNC ring.publish */
    return ours ? word : 0;
}

uint64_t shmq_own_word(const shmq_queue *q, const shmq_delivery *d) {
    return own_word(shmq_slot_at(q, d->position), d);
}

/* T16 by its owner: drop the reference, then FREE. Anyone repeats it after a death. */
static void clean_up(shmq_queue *q, shmq_slot_shm *slot, const shmq_delivery *d) {
    shmq_block_drop(q->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.offer */
        if (shmq_word_state(word) != SHMQ_DEQUEUED || shmq_word_owner(word) != d->owner ||
            shmq_word_tag(word) != d->tag || shmq_slot_free(q, slot, word)) { /* T16 */
            return;
        }
    }
}

shmq_status shmq_settle(shmq_queue *q, const shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word;
    /* A loop over the word as it is now: a carry changes its lap, so the word of the delivery would not do. */
    while ((word = own_word(slot, d)) != 0) {
        if (d->body == 0) {
            if (shmq_slot_free(q, slot, word)) { /* T14: settled here */
                shmq_hold(q->m, -1);
                return SHMQ_OK;
            }
        } else if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, d->owner, d->tag))) { /* T14 */
            clean_up(q, slot, d);
            shmq_hold(q->m, -1);
            return SHMQ_OK;
        }
    }
    return SHMQ_SETTLED;
}

shmq_status shmq_lock(shmq_queue *q, const shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word;
    while ((word = own_word(slot, d)) != 0) {
        if (shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_LOCKED, d->owner, d->tag))) { /* T12 */
            return SHMQ_OK;
        }
    }
    return SHMQ_SETTLED;
}

/* R2 and R3. Answers the new epoch, whose cell says nothing yet: until it does, it reads as "from the beginning". */
static uint64_t rewind_head(shmq_queue *q, uint64_t p) {
    shmq_ring_shm *ring = q->ring;
    uint64_t tail = shmq_load_seq(&ring->tail), count = shmq_slot_count(q);
    if (tail > count && p < tail - count) {
        p = tail - count - 1; /* the old region is looked at whenever the head lies below tail - N */
    }
    uint64_t head, wanted;
    do { /* R2: the epoch rises even if the position stays, so that a late advance over p fails */
        head = shmq_load_seq(&ring->head);
        uint64_t position = shmq_head_position(q, head);
        uint64_t epoch = ((head >> SHMQ_POSITION_BITS) + 1) & SHMQ_EPOCH_MASK;
        wanted = (epoch << SHMQ_POSITION_BITS) | ((position < p ? position : p) & SHMQ_POSITION_MASK);
    } while (!shmq_cas_seq(&ring->head, head, wanted));
    return shmq_add_seq(&ring->epoch, 1) + 1; /* R3 */
}

/* R2 to R4. Whoever walks from now on starts at or before p, or looks at p's cell before it takes a later entry. The cell
 * has p itself, also where it lies in the old region: two entries there have an order, too. */
void shmq_rewind(shmq_queue *q, uint64_t p) {
    uint64_t e = rewind_head(q, p);
    shmq_store_release(&q->ring->cells[e % SHMQ_CELLS], ((e & SHMQ_EPOCH_MASK) << SHMQ_POSITION_BITS) |
                                                            (p & SHMQ_POSITION_MASK)); /* R4, SYNC ring.cell */
}

/* No R4: what was released may lie anywhere, and a cell that was not written says just that. */
void shmq_rewind_all(shmq_queue *q) { (void)rewind_head(q, 0); }

shmq_status shmq_release(shmq_queue *q, const shmq_delivery *d, bool attempt) {
    shmq_slot_shm *slot = shmq_slot_at(q, d->position);
    uint64_t word = own_word(slot, d);
    uint16_t attempts = shmq_peek(&slot->delivery);
    if (word != 0 && attempt && attempts != UINT16_MAX) {
        shmq_poke(&slot->delivery, (uint16_t)(attempts + 1)); /* R0 */
    }
    for (; word != 0; word = own_word(slot, d)) {
        uint64_t available = shmq_word_to(word, SHMQ_AVAILABLE, 0, d->tag) | SHMQ_FLAG_REDELIVERED;
        if (shmq_cas_seq(&slot->word, word, available)) { /* R1, T15 */
            shmq_rewind(q, d->position);
            shmq_hold(q->m, -1); /* after the head: who holds nothing has turned it back for all that it has released */
            shmq_notify(q); /* R5 */
            return SHMQ_OK;
        }
    }
    return SHMQ_SETTLED;
}

/* What was stolen from it is not held by it any more; it finds out late, and may never ask. */
static void let_go(shmq_queue *q, uint32_t owner) {
    uint32_t row = owner & 0xfffu;
    if (!(owner & SHMQ_OWNER_PROCESS)) {
        shmq_consumer_shm *consumer = shmq_row_at(q, owner);
        row = consumer != NULL ? shmq_row_inner(shmq_load_acquire(&consumer->word))
                               : SHMQ_PROCESS_ROWS; /* SYNC row.owner */
    }
    if (row < SHMQ_PROCESS_ROWS) {
        shmq_less(&q->m->rows[row].held, 1);
    }
}

/* An entry that nobody is about to get: purge and delete take it from whoever holds it. */
shmq_status shmq_steal(shmq_queue *q, uint64_t position, bool ready, shmq_delivery *d) {
    shmq_slot_shm *slot = shmq_slot_at(q, position);
    for (;;) {
        uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        bool held = state == SHMQ_OFFERED || state == SHMQ_ACQUIRED || state == SHMQ_LOCKED;
        if (shmq_load_acquire(&slot->position) != position || /* SYNC ring.publish */
            (state != SHMQ_AVAILABLE && (ready || !held))) {
            return SHMQ_EMPTY;
        }
        uint32_t tag = (shmq_word_tag(word) + 1) & SHMQ_TAG_MASK;
        uint64_t locked = shmq_word_to(word, SHMQ_LOCKED, shmq_self(q), tag);
        shmq_hold(q->m, 1);
        if (shmq_cas_seq(&slot->word, word, locked)) { /* T13: the owner's next CAS fails */
            if (state == SHMQ_ACQUIRED || state == SHMQ_LOCKED) {
                let_go(q, shmq_word_owner(word));
            }
            d->position = position;
            d->word = locked;
            d->tag = tag;
            d->owner = shmq_self(q);
            shmq_delivery_read(q, slot, d);
            if (shmq_delivery_resolve(q, slot, d)) {
                return SHMQ_OK;
            }
            shmq_hold(q->m, -1);
            shmq_status status = shmq_mark_broken(q, slot, locked, shmq_word_lap(locked));
            return status != SHMQ_OK ? status : SHMQ_EMPTY;
        }
        shmq_hold(q->m, -1);
    }
}
