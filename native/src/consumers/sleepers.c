#include "consumers/sleepers.h"
#include "base/futex.h"
#include "consumers/ranks.h"
#include "queue/consumer_row.h"
#include "ring/version.h"
#include "segment/structure.h"
#include "selectors/row_selector.h"
#include "wake/wait.h"
#include "wake/wake_word.h"
#include "wake/watch.h"

static uint32_t chunks_in_use(const shmq_queue *q) {
    uint32_t chunks = shmq_load_relaxed(&q->page->chunk_count);
    return chunks < SHMQ_CHUNKS ? chunks : SHMQ_CHUNKS;
}

/* The caller has cleared the row's idle bit, so it owes the row one wake. False: its process is dead, and nobody was
 * woken. */
static bool wake_row(shmq_queue *q, uint32_t row) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    if (consumer == NULL) {
        return false;
    }
    shmq_a32 *wake = shmq_wake_word(q->m, consumer);
    shmq_add_seq(wake, 1);
    if (shmq_load_seq(&consumer->sleeps) != 0 &&
        shmq_futex_wake_count(wake, wake == &consumer->wake ? 1 : INT32_MAX) > 0) {
        return true;
    }
    /* The kernel has no such sleeper: it is just awake, or about to sleep and will see the word, or dead. */
    uint64_t word = shmq_load_acquire(&consumer->word); /* SYNC row.owner */
    if (shmq_row_state(word) == SHMQ_ROW_FREE) {
        return false;
    }
    bool dead = shmq_process_dead(q->m, shmq_row_inner(word));
    if (SHMQ_UNLIKELY(dead) && q->m->process != NULL) {
        shmq_met_dead(q->m, shmq_row_inner(word));
    }
    return !dead;
}

/* Has this consumer looked at everything, but for what it could not reach, when it last published its progress? */
static bool is_up_to_date(const shmq_queue *q, uint64_t progress) {
    if (SHMQ_LIKELY(progress == 0)) {
        return false;
    }
    uint64_t version = shmq_version(q);
    return (progress & SHMQ_STARVED) == 0
               ? progress == version
               : (progress & ~SHMQ_LOCKED_OUT) == shmq_version_starved(version, shmq_load_seq(&q->page->chances));
}

static uint64_t progress_of(const shmq_queue *q, uint32_t row) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    return consumer != NULL ? shmq_load_seq(&consumer->progress) : 0;
}

/* The consumer has looked at everything and found nothing: a wake would be in vain. It read the version before its last
 * look, so whatever was put after that look makes another version. */
bool shmq_has_looked(shmq_queue *q, uint32_t row) { return is_up_to_date(q, progress_of(q, row)); }

bool shmq_wants_nothing(const shmq_queue *q, uint32_t row) {
    uint64_t progress = progress_of(q, row);
    bool locked_out = (progress & SHMQ_STARVED) != 0 && (progress & SHMQ_LOCKED_OUT) != 0;
    return !locked_out && is_up_to_date(q, progress);
}

bool shmq_wake_idle(shmq_queue *q, uint32_t row) {
    uint64_t bit = UINT64_C(1) << (row & 63);
    return (shmq_and_seq(&q->page->sleepers[row / 64].idle, ~bit) & bit) != 0 && wake_row(q, row);
}

/* Wakes one sleeper of the chunk, of those whose bits are in `of`. */
static bool wake_one(shmq_queue *q, uint32_t chunk, uint64_t of) {
    shmq_a64 *idle = &q->page->sleepers[chunk].idle;
    uint64_t word;
    while ((word = shmq_load_seq(idle) & of) != 0) {
        uint32_t bit = (uint32_t)__builtin_ctzll(word);
        if (shmq_has_looked(q, chunk * 64 + bit) || shmq_look_for(q, chunk * 64 + bit)) {
            of &= ~(UINT64_C(1) << bit);
            continue;
        }
        if (shmq_and_seq(idle, ~(UINT64_C(1) << bit)) >> bit & 1) {
            shmq_store_relaxed(&q->rotation, chunk * 64 + bit + 1);
            if (wake_row(q, chunk * 64 + bit)) {
                return true;
            }
        }
    }
    return false;
}

void shmq_news_raise(shmq_queue *q) {
    shmq_add_seq(&q->m->directory[q->index].news, 1);
    shmq_add_seq(&q->m->directory[shmq_news_group(q->index)].group_news, 1);
}

static void wake_all_of(shmq_queue *q, shmq_a64 *bits, uint32_t chunk) {
    uint64_t word = shmq_swap_seq(bits, 0);
    if (chunk == 0 && (word & SHMQ_NEWS_BIT) != 0) {
        shmq_news_raise(q);
        word &= ~SHMQ_NEWS_BIT;
    }
    for (; word != 0; word &= word - 1) {
        (void)wake_row(q, chunk * 64 + (uint32_t)__builtin_ctzll(word));
    }
}

/* Fair: those behind the sleeper that was woken last come first, in all chunks, then those before it. */
void shmq_notify(shmq_queue *q) {
    uint32_t chunks = chunks_in_use(q);
    uint32_t rotation = shmq_load_relaxed(&q->rotation);
    uint64_t later = ~UINT64_C(0) << (rotation & 63);
    bool woken = false, earlier = false;
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_RANKED)) {
        shmq_notify_ranked(q);
        woken = true;
    }
    for (uint32_t i = 0; i < chunks; i++) {
        uint32_t chunk = (rotation / 64 + i) % chunks;
        shmq_sleepers_shm *sleepers = &q->page->sleepers[chunk];
        if (!woken && SHMQ_UNLIKELY(shmq_load_seq(&sleepers->idle) != 0)) {
            woken = wake_one(q, chunk, i == 0 ? later : ~UINT64_C(0));
            earlier = earlier || i == 0;
        }
        if (SHMQ_UNLIKELY(shmq_load_seq(&sleepers->browse) != 0)) {
            wake_all_of(q, &sleepers->browse, chunk);
        }
    }
    if (SHMQ_UNLIKELY(earlier) && !woken) {
        (void)wake_one(q, rotation / 64 % chunks, ~later);
    }
}

void shmq_notify_starved(shmq_queue *q) {
    shmq_add_seq(&q->page->chances, 1); /* after the end of what they wait for, before the look for sleepers */
    shmq_notify(q);
}

bool shmq_anybody_idle(shmq_queue *q) {
    uint32_t chunks = chunks_in_use(q);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        if (shmq_load_seq(&q->page->sleepers[chunk].idle) != 0) {
            return true;
        }
    }
    return false;
}

void shmq_notify_consumers(shmq_queue *q) {
    uint32_t chunks = chunks_in_use(q);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        wake_all_of(q, &q->page->sleepers[chunk].idle, chunk);
        wake_all_of(q, &q->page->sleepers[chunk].browse, chunk);
    }
}

uint32_t shmq_announce(shmq_queue *q, uint32_t row, bool browsing) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    shmq_sleepers_shm *sleepers = &q->page->sleepers[row / 64];
    if (SHMQ_UNLIKELY(consumer == NULL)) {
        return 0; /* damaged: the caller finds that out when it wants to sleep */
    }
    uint32_t seen =
        shmq_load_seq(shmq_wake_word(q->m, consumer)); /* before the announcement: no later wake is missed */
    shmq_or_seq(browsing ? &sleepers->browse : &sleepers->idle, UINT64_C(1) << (row & 63));
    shmq_swap_seq(&consumer->sleeps, 1);
    return seen;
}

bool shmq_withdraw(shmq_queue *q, uint32_t row, bool browsing) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    shmq_sleepers_shm *sleepers = &q->page->sleepers[row / 64];
    if (SHMQ_LIKELY(consumer != NULL)) {
        shmq_store_seq(&consumer->sleeps, 0);
    }
    uint64_t bit = UINT64_C(1) << (row & 63);
    return (shmq_and_seq(browsing ? &sleepers->browse : &sleepers->idle, ~bit) & bit) == 0;
}

static uint64_t sleepers_of(const shmq_queue *q) {
    uint32_t chunks = chunks_in_use(q);
    uint64_t sleepers = 0;
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        sleepers += (uint64_t)__builtin_popcountll(shmq_load_relaxed(&q->page->sleepers[chunk].idle));
    }
    return sleepers != 0 ? sleepers : 1;
}

uint64_t shmq_sleep_slice(const shmq_queue *q) {
    uint64_t usual = shmq_slice_of(q->m), slice = usual * sleepers_of(q) / SHMQ_SLICE_SLEEPERS;
    slice = slice < SHMQ_LONGEST_SLEEP_NS ? slice : SHMQ_LONGEST_SLEEP_NS;
    return slice > usual ? slice : usual;
}

uint64_t shmq_sleep_limit(shmq_queue *q) {
    uint64_t limit = q->m->patience_ns * sleepers_of(q);
    limit = limit < SHMQ_LONGEST_SLEEP_NS ? limit : SHMQ_LONGEST_SLEEP_NS;
    uint64_t noise =
        shmq_now_ns() * UINT64_C(0x9e3779b97f4a7c15) >> 32; /* spread, so that the sleepers do not all look at once */
    return limit - limit / 4 + limit / 2 * (noise & 0xffff) / 0xffff;
}

/* Finds a free row, with the memory of its chunk. The caller holds the structure lock. */
static shmq_status find_row(shmq_queue *q, uint32_t *row) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t used = shmq_load_relaxed(&q->page->sleepers[chunk].used) | (chunk == 0 ? 1 : 0);
        if (used == UINT64_MAX) {
            continue;
        }
        if (shmq_load_relaxed(&q->page->chunks[chunk]) == 0) {
            uint64_t offset;
            SHMQ_TRY(shmq_page_take(q->m, &offset));
            shmq_store_release(&q->page->chunks[chunk],
                               offset); /* SYNC row.chunk: zeroed rows before their offset, which is the root */
        }
        if (shmq_load_relaxed(&q->page->chunk_count) <= chunk) {
            shmq_store_seq(&q->page->chunk_count, chunk + 1);
        }
        *row = chunk * 64 + (uint32_t)__builtin_ctzll(~used);
        return SHMQ_OK;
    }
    return shmq_fail(
        SHMQ_LIMIT,
        "the queue cannot have another consumer\n%u consumers and waiting threads are all that it can have\n"
        "close consumers, or use more queues",
        SHMQ_CONSUMER_ROWS - 1);
}

shmq_status shmq_row_fill(shmq_queue *q, const shmq_row_terms *terms, uint32_t *row) {
    shmq_member *m = q->m;
    SHMQ_ASSERT(m->structure_locked);
    SHMQ_TRY(find_row(q, row));
    shmq_consumer_shm *consumer = shmq_row_at(q, *row);
    if (consumer == NULL) {
        return shmq_damage(m, "the offset of a chunk of consumer rows makes no sense", *row);
    }
    uint64_t before = shmq_load_relaxed(&consumer->word); /* not FREE: the closer cleared the row's bit and died */
    uint32_t generation = shmq_row_generation(before) + (shmq_row_state(before) != SHMQ_ROW_FREE);
    bool limited = shmq_load_relaxed(&q->page->settings.live_consumers) != 0;
    shmq_store_relaxed(&consumer->sleeps, 0);
    shmq_store_relaxed(&consumer->sleeps_on, 0);
    shmq_store_relaxed(&consumer->kind, terms->kind);
    shmq_store_relaxed(&consumer->implicit, terms->implicit);
    shmq_store_relaxed(&consumer->progress, 0);
    shmq_store_relaxed(&consumer->looked, 0);
    shmq_row_selector_leave(q, *row, terms->selector);
    shmq_store_relaxed(&consumer->priority, (uint32_t)terms->priority);
    shmq_store_relaxed(&consumer->exclusive, terms->exclusive);
    shmq_store_relaxed(&consumer->privileged, 0);
    shmq_store_relaxed(&consumer->awaited, 0);
    shmq_store_relaxed(&consumer->live, limited ? SHMQ_LIVE_NONE : SHMQ_LIVE_TAKEN);
    shmq_store_relaxed(&consumer->order, shmq_add_seq(&q->page->opened, 1));
    shmq_store_release(&consumer->word, shmq_row_word(generation, m->row, SHMQ_ROW_LIVE)); /* SYNC row.owner */
    /* Last: a death before this leaves a row that is not in use; after it the reaper finds whose row it is. */
    shmq_or_seq(&q->page->sleepers[*row / 64].used, UINT64_C(1) << (*row & 63));
    return SHMQ_OK;
}

shmq_status shmq_row_open(shmq_queue *q, uint32_t kind, uint32_t *row) {
    return shmq_row_open_as(q, &(shmq_row_terms){.kind = kind}, row);
}

void shmq_row_closing(shmq_queue *q, uint32_t row) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    uint64_t word = consumer != NULL ? shmq_load_relaxed(&consumer->word) : 0;
    if (consumer != NULL && shmq_row_state(word) == SHMQ_ROW_LIVE && shmq_row_inner(word) == q->m->row) {
        shmq_cas_seq(&consumer->word, word, shmq_row_word(shmq_row_generation(word), q->m->row, SHMQ_ROW_CLOSING));
        shmq_row_wake(q->m, consumer);
    }
}
