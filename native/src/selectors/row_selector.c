#include "selectors/row_selector.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/ring_delivery.h"
#include "ring/version.h"
#include "segment/structure.h"
#include "segment/wall_clock.h"
#include "selectors/program.h"

#include <stdlib.h>

#define WORDS (SHMQ_ROW_SELECTOR_BYTES / 8)
#define TRIES 4 /* looks at one slot: its entry changes hands meanwhile */

/* The selectors of other processes' consumers that this process has loaded, by row. */
typedef struct shmq_row_selectors {
    shmq_a32 busy; /* one thread at a time; others wake without a look */
    struct {
        uint64_t word; /* of the row then: a later consumer has another one */
        shmq_selector *selector;
    } of[SHMQ_CONSUMER_ROWS];
} row_selectors;

bool shmq_delivery_selected(const shmq_selector *s, const shmq_ring *r, const shmq_delivery *d) {
    uint64_t enqueued_ns = shmq_wall_of(r->queue->m, d->enqueued_ns);
    shmq_fields fields = {
        .headers = d->headers,
        .headers_len = d->headers_len,
        .message_id = d->message_id,
        .enqueued_wall_ms = (int64_t)enqueued_ns > 0 ? enqueued_ns / 1000000 : 0,
        .priority = d->priority,
        .redelivered = (d->word & SHMQ_FLAG_REDELIVERED) != 0,
        .delivery_count = (uint32_t)d->delivery + d->deaths + 1,
    };
    return shmq_selects(s, &fields);
}

/* The page of programs of the row's chunk; NULL: there is none. */
static uint64_t *program_of(const shmq_queue *q, uint32_t row) {
    uint64_t offset = shmq_load_acquire(&q->page->selectors[row / SHMQ_ROWS_A_CHUNK]); /* SYNC row.chunk */
    if (offset == 0 || (offset & (SHMQ_PAGE_BYTES - 1)) != 0 || !shmq_inside(q->m, offset, SHMQ_PAGE_BYTES)) {
        return NULL;
    }
    return (uint64_t *)shmq_at(q->m, offset) + (uint64_t)(row % SHMQ_ROWS_A_CHUNK) * WORDS;
}

static uint64_t *make_program(shmq_queue *q, uint32_t row) {
    shmq_a64 *root = &q->page->selectors[row / SHMQ_ROWS_A_CHUNK];
    uint64_t offset;
    if (shmq_load_relaxed(root) == 0) {
        if (shmq_page_take(q->m, &offset) != SHMQ_OK) {
            shmq_trail_clear(); /* the consumer does without: it is woken for what others want, too */
            return NULL;
        }
        shmq_store_release(root, offset); /* SYNC row.chunk */
    }
    return program_of(q, row);
}

void shmq_row_selector_leave(shmq_queue *q, uint32_t row, const shmq_selector *s) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    bool fits = s != NULL && s->bytes <= SHMQ_ROW_SELECTOR_BYTES;
    uint64_t *program = fits ? make_program(q, row) : NULL, words[WORDS] = {0};
    if (program != NULL) {
        memcpy(words, s->program, s->bytes);
        for (uint32_t i = 0; i < WORDS; i++) {
            shmq_write_once(&program[i], words[i]);
        }
    }
    shmq_store_relaxed(&consumer->selector_bytes, program != NULL ? s->bytes : 0);
}

static row_selectors *loaded(const shmq_queue *q) {
    return (row_selectors *)(uintptr_t)shmq_load_seq((shmq_a64 *)(uintptr_t)&q->selectors);
}

/* Until the caller stores 0 in `busy`, no other thread uses the selectors. NULL: another thread does, or there is no
 * memory for them. */
static row_selectors *begin(shmq_queue *q) {
    row_selectors *all = loaded(q);
    if (all == NULL) {
        row_selectors *made = calloc(1, sizeof *made);
        if (made == NULL || !shmq_cas_seq(&q->selectors, 0, (uint64_t)(uintptr_t)made)) {
            free(made);
            return NULL;
        }
        all = made;
    }
    return shmq_cas32_seq(&all->busy, 0, 1) ? all : NULL;
}

void shmq_row_selectors_free(shmq_queue *q) {
    row_selectors *all = loaded(q);
    for (uint32_t row = 0; all != NULL && row < SHMQ_CONSUMER_ROWS; row++) {
        shmq_selector_free(all->of[row].selector);
    }
    free(all);
}

/* A thread of the parent may have been amid a change: what it had is left. */
void shmq_row_selectors_reset(shmq_queue *q) { shmq_store_seq(&q->selectors, 0); }

/* The selector of the consumer that the row has while it has this word. NULL: it cannot be loaded. If the next consumer
 * of the row writes its own meanwhile, the mix is kept under the old word, by which nobody asks again. */
static const shmq_selector *selector_at(const shmq_queue *q, row_selectors *all, uint32_t row, uint64_t word,
                                        uint32_t bytes) {
    if (all->of[row].word != word) {
        const uint64_t *program = program_of(q, row);
        uint64_t words[WORDS];
        if (program == NULL) {
            return NULL;
        }
        for (uint32_t i = 0; i < WORDS; i++) {
            words[i] = shmq_read_once(&program[i]);
        }
        shmq_selector_free(all->of[row].selector);
        all->of[row].word = word;
        if (shmq_selector_load(words, bytes, &all->of[row].selector) != SHMQ_OK) {
            shmq_trail_clear(); /* damaged: nobody is refused anything for it */
        }
    }
    return all->of[row].selector;
}

/* A scan passes p: it does not wait there, nor offer the entry to a consumer with this selector. False where that is in
 * doubt: at a claim, and at a slot that a scan would repair. */
static bool is_passed(const shmq_ring *r, const shmq_selector *s, uint64_t p) {
    shmq_slot_shm *slot = shmq_slot_at(r, p);
    for (int i = 0; i < TRIES; i++) {
        uint64_t word = shmq_load_seq(&slot->word); /* SYNC ring.publish */
        uint32_t state = shmq_word_state(word);
        int32_t ahead = shmq_lap_ahead(word, shmq_lap_of(r, p));
        if (ahead < 0 || (ahead == 0 && state == SHMQ_FREE)) {
            return false;
        }
        if (!shmq_is_here(slot, word, ahead, p)) {
            return true;
        }
        if (state != SHMQ_AVAILABLE && state != SHMQ_OFFERED) {
            return state == SHMQ_HELD || state == SHMQ_ACQUIRED || state == SHMQ_LOCKED;
        }
        shmq_delivery d = {.position = p, .depth = r->depth, .word = word, .tag = shmq_word_tag(word)};
        shmq_delivery_read(r, slot, &d);
        bool passed = shmq_delivery_resolve(r, slot, &d) && !shmq_delivery_selected(s, r, &d);
        shmq_fence_acquire(); /* SYNC ring.browse */
        if (shmq_load_relaxed(&slot->word) == word) {
            return passed;
        }
    }
    return false;
}

/* The queue at one moment. The process reads the version first: an entry that comes later makes another version, and is
 * its own notifier's. */
typedef struct moment {
    uint64_t version, tail, epoch;
} moment;

static moment moment_of(const shmq_queue *q) {
    moment now = {.version = shmq_version(q)};
    now.tail = shmq_load_seq(&q->first.shm->tail);
    now.epoch = shmq_load_seq(&q->first.shm->epoch);
    return now;
}

static uint64_t looked_word(uint64_t position, uint64_t epoch) {
    return epoch << SHMQ_POSITION_BITS | (position & SHMQ_POSITION_MASK);
}

/* How far a row has been looked for, by its words `looked` and `progress`. As much must have come since the one as
 * since the other. Then both are of the same look, and `looked` is not so old that its bits have begun anew. False:
 * they are not. */
static bool looked_to(const moment *now, uint64_t progress, uint64_t looked, uint64_t *position, uint64_t *epoch) {
    *position = shmq_position_near(now->tail, looked);
    *epoch = now->epoch - ((now->epoch - (looked >> SHMQ_POSITION_BITS)) & SHMQ_EPOCH_MASK);
    return looked != 0 && *position <= now->tail &&
           now->version - progress == now->tail - *position + (now->epoch - *epoch);
}

void shmq_row_looked(const shmq_queue *q, shmq_consumer_shm *consumer, shmq_subscription *by) {
    if (shmq_load_relaxed(&consumer->selector_bytes) != 0) {
        shmq_cursor cursor = shmq_cursor_of(by, &q->first);
        shmq_store_seq(&consumer->looked, looked_word(cursor.position, cursor.epoch));
    }
}

static bool look(shmq_queue *q, const shmq_selector *s, shmq_consumer_shm *consumer, uint64_t progress) {
    shmq_ring *r = &q->first;
    uint64_t looked = shmq_load_seq(&consumer->looked), from, since;
    moment now = moment_of(q);
    if (!looked_to(&now, progress, looked, &from, &since)) {
        return false;
    }
    uint64_t released = since != now.epoch ? shmq_lowest_released(r, since, now.epoch) : UINT64_MAX;
    from = released < from ? released : from;
    if (now.tail - from > SHMQ_LOOKED_FOR || now.tail - from > shmq_slot_count(r)) {
        return false;
    }
    for (; from != now.tail; from++) {
        if (!is_passed(r, s, from)) {
            return false;
        }
    }
    /* An entry that was passed as somebody's may have gone to disk. Where the consumer has another opinion by now, it has
     * looked itself. */
    if (shmq_flow_at(r) != 0 || !shmq_cas_seq(&consumer->progress, progress, now.version)) {
        return false;
    }
    (void)shmq_cas_seq(&consumer->looked, looked, looked_word(now.tail, now.epoch));
    return true;
}

/* The row's progress; 0: nobody looks for this row. A reaper's view has no counters, and keeps nothing. */
static uint64_t progress_of(const shmq_queue *q, const shmq_consumer_shm *consumer) {
    bool possible = q->counters != NULL && q->levels == 1 && shmq_flow_at(&q->first) == 0;
    uint64_t progress = possible ? shmq_load_seq((shmq_a64 *)(uintptr_t)&consumer->progress) : 0;
    return (progress & SHMQ_STARVED) == 0 ? progress : 0;
}

void shmq_row_catch_up(shmq_queue *q, shmq_consumer_shm *consumer, shmq_subscription *by) {
    uint64_t progress = shmq_load_relaxed(&consumer->selector_bytes) != 0 ? progress_of(q, consumer) : 0;
    if (progress == 0) {
        return;
    }
    uint64_t looked = shmq_load_seq(&consumer->looked), position, epoch;
    shmq_cursor cursor = shmq_cursor_of(by, &q->first);
    moment now = moment_of(q);
    if (looked_to(&now, progress, looked, &position, &epoch) && position > cursor.position && epoch >= cursor.epoch) {
        shmq_cursor_set(by, &q->first, cursor, position, epoch);
    }
}

bool shmq_look_for(shmq_queue *q, uint32_t row) {
    shmq_consumer_shm *consumer = shmq_row_at(q, row);
    if (consumer == NULL || shmq_load_relaxed(&consumer->selector_bytes) == 0) {
        return false;
    }
    uint64_t word = shmq_load_acquire(&consumer->word); /* SYNC row.owner */
    uint32_t bytes = shmq_load_relaxed(&consumer->selector_bytes);
    uint64_t progress = bytes <= SHMQ_ROW_SELECTOR_BYTES ? progress_of(q, consumer) : 0;
    row_selectors *all = progress != 0 ? begin(q) : NULL;
    if (all == NULL) {
        return false;
    }
    const shmq_selector *s = selector_at(q, all, row, word, bytes);
    bool nothing = s != NULL && look(q, s, consumer, progress);
    shmq_store_seq(&all->busy, 0);
    return nothing;
}
