/* The reaper frees consumer rows of dead processes, and wakes sleepers that a dead notifier has not woken. */
#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "consumers/unused.h"
#include "queue/consumer_row.h"
#include "recovery/recover.h"
#include "wake/wake_word.h"

static bool is_of_the_dead(shmq_consumer_shm *consumer, const shmq_liveness *l) {
    uint64_t word = consumer != NULL ? shmq_load_acquire(&consumer->word) : 0; /* SYNC row.owner */
    return shmq_row_state(word) != SHMQ_ROW_FREE && shmq_is_dead(l, shmq_row_inner(word));
}

/* Which of these 64 rows belong to dead processes? */
static uint64_t find_dead(const shmq_queue *q, uint32_t chunk, const shmq_liveness *l) {
    uint64_t found = 0;
    for (uint64_t used = shmq_load_seq(&q->page->sleepers[chunk].used); used != 0; used &= used - 1) {
        uint32_t row = chunk * 64 + (uint32_t)__builtin_ctzll(used);
        if (is_of_the_dead(shmq_row_at(q, row), l)) {
            found |= UINT64_C(1) << (row & 63);
        }
    }
    return found;
}

/* A notifier that died after it cleared an idle bit and before the wake has left a sleeper without a bit: the reaper
 * wakes it. */
static void wake_forgotten(shmq_queue *q) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        shmq_sleepers_shm *sleepers = &q->page->sleepers[chunk];
        uint64_t bits = shmq_load_seq(&sleepers->used);
        for (bits &= ~(shmq_load_seq(&sleepers->idle) | shmq_load_seq(&sleepers->browse)); bits != 0;
             bits &= bits - 1) {
            shmq_consumer_shm *consumer = shmq_row_at(q, chunk * 64 + (uint32_t)__builtin_ctzll(bits));
            if (consumer != NULL && shmq_load_seq(&consumer->sleeps) != 0) {
                shmq_row_wake(q->m, consumer);
            }
        }
    }
}

void shmq_sleepers_recover(shmq_queue *q, const shmq_liveness *l) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t dead = find_dead(q, chunk, l);
        if (dead != 0) {
            shmq_and_seq(&q->page->sleepers[chunk].idle, ~dead);
            shmq_and_seq(&q->page->sleepers[chunk].browse, ~dead);
            shmq_and_seq(&q->page->sleepers[chunk].want, ~dead);
        }
    }
    shmq_news_raise(q); /* a dead notifier may have taken the bit */
    wake_forgotten(q);
}

/* Bits are cleared first: a row whose bit is clear hinders nobody. */
void shmq_consumers_recover(shmq_queue *q, const shmq_liveness *l) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t dead = find_dead(q, chunk, l);
        if (dead != 0) {
            shmq_and_seq(&q->page->sleepers[chunk].used, ~dead);
        }
        for (uint64_t bits = dead; bits != 0; bits &= bits - 1) {
            shmq_consumer_shm *row = shmq_row_at(q, chunk * 64 + (uint32_t)__builtin_ctzll(bits));
            if (row == NULL) {
                continue; /* its chunk was damaged meanwhile */
            }
            if (shmq_load_relaxed(&row->kind) == SHMQ_CONSUMER) {
                shmq_unused_begin(q);
            }
            uint32_t generation = shmq_row_generation(shmq_load_relaxed(&row->word));
            shmq_store_release(&row->word, shmq_row_word(generation + 1, 0, SHMQ_ROW_FREE)); /* SYNC row.owner */
        }
    }
    if (!shmq_ranks_are_plain(q)) {
        shmq_ranks_settle(q);
    }
}
