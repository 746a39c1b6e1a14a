/* Faults of consumer rows and of the bitmaps of sleepers. */
#include "base/fault_text.h"
#include "check/faults.h"
#include "queue/consumer_row.h"
#include "wake/wake_word.h"

/* The row's bit is set. It is set after the word and cleared before it, so no death in between leaves such a row
 * FREE. */
static const char *check_row(const shmq_queue *q, uint32_t row, const shmq_consumer_shm *consumer) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)&consumer->word); /* SYNC row.owner */
    uint32_t state = shmq_row_state(word), process_row = shmq_row_inner(word);
    if (state == SHMQ_ROW_FREE) {
        return shmq_fault_text("consumer row %u is marked as used, but its state is FREE", row);
    }
    if (state != SHMQ_ROW_LIVE && state != SHMQ_ROW_CLOSING) {
        return shmq_fault_text("consumer row %u is in a state that this version does not know: %u", row, state);
    }
    /* A process gives its consumer rows back before its own, and no process can join: the checker holds the lock. */
    if (process_row >= SHMQ_PROCESS_ROWS ||
        shmq_row_state(shmq_load_seq(&q->m->rows[process_row].word)) == SHMQ_ROW_FREE) {
        return shmq_fault_text("consumer row %u is in use, but no process owns it", row);
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->kind) > SHMQ_BROWSER) {
        return shmq_fault_text("consumer row %u is of a kind that this version does not know", row);
    }
    uint64_t sleeps_on = shmq_load_relaxed((shmq_a64 *)&consumer->sleeps_on);
    if (sleeps_on != 0 && shmq_wake_word_owner(q->m, sleeps_on) != process_row) {
        return shmq_fault_text("consumer row %u sleeps on a word of another process", row);
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->sleeps) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->implicit) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->exclusive) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->live) > SHMQ_LIVE_OFFERED) {
        return shmq_fault_text("consumer row %u has a value in a field that no process writes", row);
    }
    return NULL;
}

static const char *check_chunk(const shmq_queue *q, uint32_t chunk, uint32_t chunks) {
    shmq_sleepers_shm *sleepers = &q->page->sleepers[chunk];
    uint64_t idle = shmq_load_seq(&sleepers->idle), browse = shmq_load_seq(&sleepers->browse);
    uint64_t want = shmq_load_seq(&sleepers->want);
    uint64_t used = shmq_load_seq(&sleepers->used);
    browse &= chunk == 0 ? ~SHMQ_NEWS_BIT : UINT64_MAX;
    if (chunk == 0 && ((used | idle | browse | want) & 1) != 0) {
        return "consumer row 0 is in use, but no consumer can have it";
    }
    if (used == 0 && idle == 0 && browse == 0 && want == 0) {
        return NULL;
    }
    if (chunk >= chunks) {
        return shmq_fault_text(
            "consumer rows %u to %u are in use, but producers do not look there for consumers to wake", chunk * 64,
            chunk * 64 + 63);
    }
    uint64_t stray = (idle | browse | want) & ~used;
    if (stray != 0) {
        return shmq_fault_text("a consumer sleeps on consumer row %u, which is not in use",
                               chunk * 64 + (uint32_t)__builtin_ctzll(stray));
    }
    for (; used != 0; used &= used - 1) {
        uint32_t row = chunk * 64 + (uint32_t)__builtin_ctzll(used);
        shmq_consumer_shm *consumer = shmq_row_at(q, row);
        const char *wrong = consumer == NULL ? shmq_fault_text("consumer row %u is in use, but has no memory", row)
                                             : check_row(q, row, consumer);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

const char *shmq_consumers_fault(const shmq_queue *q) {
    uint32_t chunks = shmq_load_seq(&q->page->chunk_count);
    if (chunks > SHMQ_CHUNKS) {
        return shmq_fault_text("the queue counts %u chunks of consumer rows, but there can be only %u", chunks,
                               SHMQ_CHUNKS);
    }
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        const char *wrong = check_chunk(q, chunk, chunks);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}
