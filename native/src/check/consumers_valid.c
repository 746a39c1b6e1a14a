/* Consumer rows and the bitmaps of who sleeps. */
#include "shmq/sleepers.h"
#include "shmq/target.h"

/* Its bit is set: opened after the word, closed before it, so whoever died in between has left no such row FREE. */
static const char *check_row(const shmq_queue *q, const shmq_consumer_shm *consumer) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)&consumer->word); /* SYNC row.owner */
    uint32_t state = shmq_row_state(word), process_row = shmq_row_inner(word);
    if (state == SHMQ_ROW_FREE) {
        return "a consumer row is in use and FREE";
    }
    if (state != SHMQ_ROW_LIVE && state != SHMQ_ROW_CLOSING) {
        return "a consumer row is in a state that there is not";
    }
    /* Its process gives its consumer rows back before its own, and nobody becomes a member under this lock. */
    if (process_row >= SHMQ_PROCESS_ROWS ||
        shmq_row_state(shmq_load_seq(&q->m->rows[process_row].word)) == SHMQ_ROW_FREE) {
        return "a consumer row of nobody";
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->kind) > SHMQ_BROWSER) {
        return "a consumer row of a kind that there is not";
    }
    uint64_t target = shmq_load_relaxed((shmq_a64 *)&consumer->target);
    if (target != 0 && shmq_target_owner(q->m, target) != process_row) {
        return "a consumer row that sleeps on a word that is not its process'";
    }
    if (shmq_load_relaxed((shmq_a32 *)&consumer->sleeps) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->implicit) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->exclusive) > 1 ||
        shmq_load_relaxed((shmq_a32 *)&consumer->live) > SHMQ_PLACE_OFFERED) {
        return "a consumer row with a field that nobody writes";
    }
    return NULL;
}

static const char *check_group(const shmq_queue *q, uint32_t group, uint32_t groups, uint64_t *where) {
    shmq_sleepers_shm *sleepers = &q->page->sleepers[group];
    uint64_t idle = shmq_load_seq(&sleepers->idle), browse = shmq_load_seq(&sleepers->browse);
    uint64_t want = shmq_load_seq(&sleepers->want);
    uint64_t used = shmq_load_seq(&sleepers->used);
    *where = group * 64;
    if (group == 0 && ((used | idle | browse | want) & 1) != 0) {
        return "consumer row 0 is in use";
    }
    if (used == 0 && idle == 0 && browse == 0 && want == 0) {
        return NULL;
    }
    if (group >= groups) {
        return "consumer rows that no notifier looks at";
    }
    uint64_t stray = (idle | browse | want) & ~used;
    if (stray != 0) {
        *where = group * 64 + (uint64_t)__builtin_ctzll(stray);
        return "a sleeper on a consumer row that is not in use";
    }
    for (; used != 0; used &= used - 1) {
        *where = group * 64 + (uint64_t)__builtin_ctzll(used);
        shmq_consumer_shm *consumer = shmq_row_at(q, (uint32_t)*where);
        const char *wrong = consumer == NULL ? "a consumer row without memory" : check_row(q, consumer);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

const char *shmq_consumers_valid(const shmq_queue *q, uint64_t *where) {
    uint32_t groups = shmq_load_seq(&q->page->groups);
    *where = 0;
    if (groups > SHMQ_CHUNKS) {
        return "more groups of consumer rows than there are";
    }
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        const char *wrong = check_group(q, group, groups, where);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}
