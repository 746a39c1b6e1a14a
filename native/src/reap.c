/* The reaper. Order for one dead row (row, g):
 *
 *   1 row word -> REAPING of the same generation              anyone, repeatable
 *   2 every queue that it used: each word that names it       exact CAS, the row's generation looked at after each word
 *     then rewind, wake sleepers without a bit, notify, wake full
 *   3 under the structure lock, if the generation still is g: its temporary queues are deleted, its blocks and pins, its
 *     counter lines' claims, its consumer rows given back; last the row word -> FREE, g + 1
 *
 * Messages are back with others after step 2, which waits for nobody. A death in any step leaves a dead row that the next reaper begins anew. The
 * generation after each word is what makes that safe: with one look before the sweep a reaper that stalls while another
 * finishes would go on to take the entries of the row's next owner. */
#include "shmq/reap.h"

#include "shmq/ring.h"
#include "shmq/sleepers.h"
#include "shmq/structure.h"
#include "shmq/wait.h"

typedef struct sweep {
    shmq_member *m;
    uint32_t row, generation, pid;
    bool own;                          /* our own row at close: nothing died */
    uint64_t consumers[SHMQ_CHUNKS]; /* rows of the queue at hand that belong to the process */
} sweep;

static bool still_dead(const sweep *s) {
    uint64_t word = shmq_load_acquire(&s->m->rows[s->row].word); /* SYNC row.owner */
    return s->own || shmq_row_generation(word) == s->generation;
}

static bool is_own_consumer(const sweep *s, const shmq_consumer_shm *consumer) {
    uint64_t word = consumer != NULL ? shmq_load_acquire((shmq_a64 *)&consumer->word) : 0; /* SYNC row.owner */
    return shmq_row_state(word) != SHMQ_ROW_FREE && shmq_row_inner(word) == s->row;
}

static void find_consumers(sweep *s, shmq_queue *q) {
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        s->consumers[group] = 0;
        for (uint64_t used = shmq_load_seq(&q->page->sleepers[group].used); used != 0; used &= used - 1) {
            uint32_t row = group * 64 + (uint32_t)__builtin_ctzll(used);
            if (is_own_consumer(s, shmq_row_at(q, row))) {
                s->consumers[group] |= UINT64_C(1) << (row & 63);
            }
        }
    }
}

static bool names(const sweep *s, uint32_t owner) {
    if (owner & SHMQ_OWNER_PROCESS) {
        return (owner & 0xfff) == s->row;
    }
    return owner < SHMQ_CONSUMER_ROWS && (s->consumers[owner / 64] >> (owner & 63) & 1) != 0;
}

static void repair(sweep *s, shmq_queue *q, shmq_slot_shm *slot, uint64_t word) {
    uint64_t available = shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word));
    bool thief = (shmq_word_owner(word) & SHMQ_OWNER_PROCESS) && shmq_word_state(word) == SHMQ_LOCKED;
    switch (shmq_word_state(word)) {
    case SHMQ_CLAIMED:
    case SHMQ_QUARANTINED:
    case SHMQ_DEQUEUED:
        (void)shmq_claim_clear(q, slot, word, false); /* T3, T6, T16 */
        break;
    case SHMQ_OFFERED:
        shmq_cas_seq(&slot->word, word, available); /* T11 */
        break;
    case SHMQ_ACQUIRED:
    case SHMQ_LOCKED:
        if (!s->own && !thief && shmq_death_count(q, slot, word, s->pid) && q->counters != NULL) {
            shmq_add_relaxed(&q->counters->died, 1);
        }
        shmq_cas_seq(&slot->word, word, available | SHMQ_FLAG_REDELIVERED); /* T15 */
        break;
    default:
        break;
    }
}

/* A notifier that died between claiming a bit and waking its sleeper leaves a sleeper without a bit. */
static void wake_forgotten(shmq_queue *q) {
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        shmq_sleepers_shm *sleepers = &q->page->sleepers[group];
        uint64_t bits = shmq_load_seq(&sleepers->used);
        for (bits &= ~(shmq_load_seq(&sleepers->idle) | shmq_load_seq(&sleepers->browse)); bits != 0;
             bits &= bits - 1) {
            shmq_consumer_shm *consumer = shmq_row_at(q, group * 64 + (uint32_t)__builtin_ctzll(bits));
            if (consumer != NULL && shmq_load_seq(&consumer->sleeps) != 0) {
                shmq_add_seq(&consumer->wake, 1);
                shmq_futex_wake(&consumer->wake, 1);
            }
        }
    }
}

/* False: somebody else finished the row meanwhile. */
static bool sweep_queue(sweep *s, shmq_queue *q) {
    uint32_t freed = 0;
    find_consumers(s, q);
    for (uint64_t i = 0; i <= q->mask; i++) {
        shmq_slot_shm *slot = shmq_slot_at(q, i);
        for (;;) {
            uint64_t word = shmq_load_acquire(&slot->word); /* SYNC ring.claim */
            if (!names(s, shmq_word_owner(word)) || shmq_word_state(word) == SHMQ_FREE) {
                break;
            }
            /* A consumer row is free before the row of its process is: a reaper that died in between has left us to
             * meet its next owner. */
            if (!still_dead(s) || (!(shmq_word_owner(word) & SHMQ_OWNER_PROCESS) &&
                                   !is_own_consumer(s, shmq_row_at(q, shmq_word_owner(word))))) {
                return false;
            }
            repair(s, q, slot, word);
            freed++;
            if (shmq_load_seq(&slot->word) == word) {
                break; /* nothing to repair in this state (or own claim): not ours to loop on */
            }
        }
    }
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        if (s->consumers[group] != 0 && still_dead(s)) {
            shmq_and_seq(&q->page->sleepers[group].idle, ~s->consumers[group]);
            shmq_and_seq(&q->page->sleepers[group].browse, ~s->consumers[group]);
        }
    }
    shmq_rewind_all(q); /* always: a releaser that died after its R1 left no word with its name */
    wake_forgotten(q);
    for (uint32_t i = 0; i <= freed && i < SHMQ_CONSUMER_ROWS; i++) {
        shmq_notify(q);
    }
    shmq_store_seq(&q->page->recount_due, 1);
    shmq_add_seq(&q->ring->full, 1);
    shmq_futex_wake(&q->ring->full, INT32_MAX);
    shmq_wake_joiners(q);
    return true;
}

static bool used_by(shmq_member *m, uint32_t row, uint32_t index) {
    shmq_counters_shm *line = shmq_counters_at(m, row, index);
    return line != NULL && shmq_load_seq(&line->attached) != 0;
}

/* Step 2. Without a row of our own we cannot say that we use a queue, so the caller holds the structure lock. False: not
 * all of it could be done, or somebody else has done it. */
static bool sweep_queues(sweep *s, bool locked) {
    shmq_member *m = s->m;
    uint32_t high = shmq_load_acquire(&m->header->queue_high); /* SYNC directory.entry */
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        if (!used_by(m, s->row, index)) {
            continue;
        }
        shmq_queue view, *q = &view;
        shmq_status status = locked ? shmq_queue_view(m, index, &view) : shmq_queue_bind(m, index, 0, &q);
        if (status == SHMQ_NOT_FOUND || status == SHMQ_CORRUPT) {
            continue; /* deleted, or damaged: nobody waits there */
        }
        if (status != SHMQ_OK) {
            return false; /* what it holds there must not be forgotten: the row stays, the next reaper begins anew */
        }
        bool swept = sweep_queue(s, q);
        if (!locked) {
            shmq_queue_unbind(q);
        }
        if (!swept) {
            return false;
        }
    }
    return true;
}

static bool is_swept(void *context, uint32_t row) { return row == ((sweep *)context)->row; }

/* Which reference bits of this block do slots name? Called after the block's word was read: names only vanish. */
static uint32_t named(void *context, uint64_t offset, uint32_t generation) {
    shmq_member *m = ((sweep *)context)->m;
    uint32_t bits = 0, high = shmq_load_seq(&m->header->queue_high);
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_FREE ||
            shmq_queue_view(m, index, &q) != SHMQ_OK) {
            continue;
        }
        for (uint64_t i = 0; i <= q.mask; i++) {
            shmq_slot_shm *slot = shmq_slot_at(&q, i);
            uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
            uint64_t body = shmq_peek(&slot->body);
            if ((shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) && shmq_body_offset(body) == offset &&
                shmq_peek(&slot->body_gen) == generation) {
                bits |= UINT32_C(1) << (shmq_body_bit(body) & 31);
            }
        }
    }
    return bits;
}

/* Give back the consumer rows of the process on a queue: the bits first, as a row whose bit is clear is in nobody's way. */
static void free_consumers(sweep *s, shmq_queue *q) {
    find_consumers(s, q);
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        if (s->consumers[group] == 0) {
            continue;
        }
        shmq_and_seq(&q->page->sleepers[group].used, ~s->consumers[group]);
        for (uint64_t bits = s->consumers[group]; bits != 0; bits &= bits - 1) {
            shmq_consumer_shm *row = shmq_row_at(q, group * 64 + (uint32_t)__builtin_ctzll(bits));
            uint32_t generation = shmq_row_generation(shmq_load_relaxed(&row->word));
            shmq_store_release(&row->word, shmq_row_word(generation + 1, 0, SHMQ_ROW_FREE)); /* SYNC row.owner */
        }
    }
}

/* Its rows on every queue, its claims on their memory. Under the structure lock. */
static void close_queues(sweep *s) {
    shmq_member *m = s->m;
    uint32_t high = shmq_load_seq(&m->header->queue_high);
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        shmq_counters_shm *line = shmq_counters_at(m, s->row, index);
        shmq_queue q;
        if (line == NULL) {
            continue;
        }
        bool used = shmq_entry_state(shmq_load_seq(&m->directory[index].word)) != SHMQ_ENTRY_FREE &&
                    shmq_load_seq(&line->attached) != 0 && shmq_queue_view(m, index, &q) == SHMQ_OK;
        if (used) {
            free_consumers(s, &q);
        }
        shmq_store_seq(&line->moving, 0);
        uint32_t waiting = shmq_swap_seq(&line->waiting, 0);
        if (used) { /* after `moving`: who is stopped by the count looks at this first */
            shmq_less(&q.ring->waiters, waiting);
            shmq_store_seq(&q.page->recount_due, 1);
            shmq_add_seq(&q.ring->full, 1);
            shmq_futex_wake(&q.ring->full, INT32_MAX);
        }
        if (!s->own) { /* our own go one by one, with their handles */
            shmq_store_seq(&line->attached, 0);
        }
    }
}

/* Queues that go with the process, or with one that was here before. Under the structure lock. */
static void delete_temporaries(sweep *s) {
    shmq_member *m = s->m;
    uint32_t high = shmq_load_seq(&m->header->queue_high);
    for (uint32_t index = 0; index < high && index < SHMQ_QUEUES; index++) {
        shmq_queue q;
        if (shmq_entry_state(shmq_load_seq(&m->directory[index].word)) == SHMQ_ENTRY_LIVE &&
            shmq_queue_view(m, index, &q) == SHMQ_OK && shmq_load_relaxed(&q.page->temporary) != 0 &&
            q.page->temporary_row == s->row && (int32_t)(q.page->temporary_generation - s->generation) <= 0) {
            shmq_queue_take_out(&q);
        }
    }
}

static void clear_watch(sweep *s) {
    uint64_t name = (uint64_t)(s->row + 1) | (uint64_t)s->generation << 32;
    for (int place = 0; place < 2; place++) {
        uint64_t word = shmq_load_seq(&s->m->header->watch[place]);
        if ((word & ~(UINT64_C(3) << 16)) == name) {
            shmq_cas_seq(&s->m->header->watch[place], word, 0);
        }
    }
}

/* Step 3, under the structure lock. */
static void finish_row(sweep *s) {
    shmq_process_shm *row = &s->m->rows[s->row];
    uint64_t reaping = shmq_row_word(s->generation, 0, SHMQ_ROW_REAPING);
    if (shmq_load_seq(&row->word) != reaping) {
        return;
    }
    delete_temporaries(s);
    shmq_blocks_unpin_dead(s->m, s->row);
    (void)shmq_blocks_sweep(s->m, is_swept, named, s);
    close_queues(s);
    clear_watch(s);
    shmq_store_seq(&row->held, 0);
    shmq_store_seq(&row->inside, 0);
    shmq_store_seq(&row->pinned_bytes, 0);
    shmq_add_relaxed(&s->m->header->deaths, 1);
    shmq_less(&s->m->header->memory_waiters, shmq_swap_seq(&row->memory_waiting, 0));
    shmq_add_seq(&s->m->header->memory_full, 1);
    shmq_futex_wake(&s->m->header->memory_full, INT32_MAX);
    shmq_cas_seq(&row->word, reaping, shmq_row_word(s->generation + 1, 0, SHMQ_ROW_FREE));
}

/* wait: for the structure lock, if somebody has it. Else the row stays as it is: what it held is back with others, and the
 * next who looks does the rest. A sleeper that reaps must not sleep on behind a stopped process. */
static shmq_status reap_row(shmq_member *m, uint32_t row, bool wait) {
    shmq_process_shm *process = &m->rows[row];
    uint64_t word = shmq_load_acquire(&process->word); /* SYNC row.owner */
    if (shmq_row_state(word) == SHMQ_ROW_FREE || !shmq_process_dead(m, row)) {
        return SHMQ_OK;
    }
    sweep s = {.m = m, .row = row, .generation = shmq_row_generation(word), .pid = process->pid};
    if (shmq_row_state(word) != SHMQ_ROW_REAPING &&
        !shmq_cas_seq(&process->word, word, shmq_row_word(s.generation, 0, SHMQ_ROW_REAPING))) {
        return SHMQ_OK; /* somebody else begins */
    }
    bool member = m->process != NULL;
    if (member && !sweep_queues(&s, false)) {
        return SHMQ_OK;
    }
    SHMQ_TRY(wait ? shmq_structure_lock(m) : shmq_structure_try(m));
    if (member || sweep_queues(&s, true)) {
        finish_row(&s);
    }
    shmq_structure_unlock(m);
    return SHMQ_OK;
}

shmq_status shmq_reap_row(shmq_member *m, uint32_t row) {
    return row < SHMQ_PROCESS_ROWS ? reap_row(m, row, false) : SHMQ_OK;
}

shmq_status shmq_reap_dead(shmq_member *m, uint32_t *reaped) {
    uint32_t high = shmq_load_seq(&m->header->process_high);
    *reaped = 0;
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        bool ours = m->process != NULL && row == m->row;
        if (!ours && shmq_row_state(shmq_load_seq(&m->rows[row].word)) != SHMQ_ROW_FREE && shmq_process_dead(m, row)) {
            SHMQ_TRY(reap_row(m, row, true));
            ++*reaped;
        }
    }
    return SHMQ_OK;
}

shmq_status shmq_sweep_own(shmq_member *m) {
    sweep s = {.m = m, .row = m->row, .generation = m->row_generation, .own = true};
    shmq_status status;
    (void)sweep_queues(&s, false);
    do {
        status = shmq_structure_lock(m);
    } while (status == SHMQ_INTERRUPTED); /* leaving cannot be done by halves; signals are seen after it */
    SHMQ_TRY(status);
    delete_temporaries(&s);
    close_queues(&s);
    clear_watch(&s);
    shmq_structure_unlock(m);
    return SHMQ_OK;
}

void shmq_ring_discard(shmq_member *m, shmq_queue_shm *page) {
    shmq_queue q;
    uint64_t offset = (uint64_t)((unsigned char *)page - m->base);
    if (page->index >= SHMQ_QUEUES || shmq_load_seq(&m->directory[page->index].page) != offset ||
        shmq_queue_view(m, page->index, &q) != SHMQ_OK) {
        return;
    }
    for (uint64_t i = 0; i <= q.mask; i++) {
        shmq_slot_shm *slot = shmq_slot_at(&q, i);
        uint32_t state = shmq_word_state(shmq_load_seq(&slot->word));
        uint64_t body = shmq_peek(&slot->body);
        if ((shmq_state_is_entry(state) || state == SHMQ_DEQUEUED) && body != 0) {
            shmq_block_drop(m, shmq_body_offset(body), shmq_peek(&slot->body_gen), shmq_body_bit(body));
        }
    }
}
