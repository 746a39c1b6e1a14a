/* Consumer rows and the bitmaps of who sleeps. */
#include "shmq/sleepers.h"
#include "shmq/target.h"
#include "shmq/verdict.h"

/* Its bit is set: opened after the word, closed before it, so whoever died in between has left no such row FREE. */
static const char *check_row(const shmq_queue *q, uint32_t row, const shmq_consumer_shm *consumer) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)&consumer->word); /* SYNC row.owner */
    uint32_t state = shmq_row_state(word), process_row = shmq_row_inner(word);
    if (state == SHMQ_ROW_FREE) {
        return shmq_verdict("consumer row %u is marked as used, but its state is FREE", row);
    }
    if (state != SHMQ_ROW_LIVE && state != SHMQ_ROW_CLOSING) {
        return shmq_verdict("consumer row %u is in a state that this version does not know: %u", row, state);
    }
    /* Its process gives its consumer rows back before its own, and nobody becomes a member under this lock. */
    if (process_row >= SHMQ_PROCESS_ROWS ||
        shmq_row_state(shmq_load_seq(&q->m->rows[process_row].word)) == SHMQ_ROW_FREE) {
        return shmq_verdict("consumer row %u is in use, but no process owns it", row);
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->kind) > SHMQ_BROWSER) {
        return shmq_verdict("consumer row %u is of a kind that this version does not know", row);
    }
    uint64_t target = shmq_load_relaxed((shmq_a64 *)&consumer->target);
    if (target != 0 && shmq_target_owner(q->m, target) != process_row) {
        return shmq_verdict("consumer row %u sleeps on a word of another process", row);
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->sleeps) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->implicit) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->exclusive) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->live) > SHMQ_PLACE_OFFERED) {
        return shmq_verdict("consumer row %u has a value in a field that no process writes", row);
    }
    return NULL;
}

static const char *check_group(const shmq_queue *q, uint32_t group, uint32_t groups) {
    shmq_sleepers_shm *sleepers = &q->page->sleepers[group];
    uint64_t idle = shmq_load_seq(&sleepers->idle), browse = shmq_load_seq(&sleepers->browse);
    uint64_t want = shmq_load_seq(&sleepers->want);
    uint64_t used = shmq_load_seq(&sleepers->used);
    if (group == 0 && ((used | idle | browse | want) & 1) != 0) {
        return "consumer row 0 is in use, but no consumer can have it";
    }
    if (used == 0 && idle == 0 && browse == 0 && want == 0) {
        return NULL;
    }
    if (group >= groups) {
        return shmq_verdict("consumer rows %u to %u are in use, but producers do not look there for consumers to wake",
                            group * 64, group * 64 + 63);
    }
    uint64_t stray = (idle | browse | want) & ~used;
    if (stray != 0) {
        return shmq_verdict("a consumer sleeps on consumer row %u, which is not in use",
                            group * 64 + (uint32_t)__builtin_ctzll(stray));
    }
    for (; used != 0; used &= used - 1) {
        uint32_t row = group * 64 + (uint32_t)__builtin_ctzll(used);
        shmq_consumer_shm *consumer = shmq_row_at(q, row);
        const char *wrong = consumer == NULL ? shmq_verdict("consumer row %u is in use, but has no memory", row)
                                             : check_row(q, row, consumer);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

const char *shmq_consumers_valid(const shmq_queue *q) {
    uint32_t groups = shmq_load_seq(&q->page->groups);
    if (groups > SHMQ_CHUNKS) {
        return shmq_verdict("the queue counts %u chunks of consumer rows, but there can be only %u", groups,
                            SHMQ_CHUNKS);
    }
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        const char *wrong = check_group(q, group, groups);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}
