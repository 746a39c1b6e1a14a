#include "wake/wake_word.h"
#include "base/futex.h"

uint32_t shmq_wake_word_take(shmq_member *m, shmq_a32 **word) {
    uint32_t number = 0;
    for (;;) {
        uint32_t used = shmq_load_seq(&m->wake_words_taken), unused = ~used & ((UINT32_C(1) << SHMQ_WAKE_WORDS) - 1);
        number =
            unused != 0 ? (uint32_t)__builtin_ctz(unused) : SHMQ_WAKE_WORDS; /* all taken: shared, and not given back */
        if (unused == 0 || shmq_cas32_seq(&m->wake_words_taken, used, used | UINT32_C(1) << number)) {
            break;
        }
    }
    *word = &m->process->wake_words[number % SHMQ_WAKE_WORDS];
    return number;
}

void shmq_wake_word_give(shmq_member *m, uint32_t number) {
    for (uint32_t used; number < SHMQ_WAKE_WORDS;) {
        used = shmq_load_seq(&m->wake_words_taken);
        if (shmq_cas32_seq(&m->wake_words_taken, used, used & ~(UINT32_C(1) << number))) {
            break;
        }
    }
}

uint32_t shmq_wake_word_owner(const shmq_member *m, uint64_t offset) {
    uint64_t rows = (uint64_t)((const unsigned char *)m->rows - m->base);
    uint64_t at = offset - rows;
    uint64_t row = at / sizeof(shmq_process_shm), within = at % sizeof(shmq_process_shm);
    uint64_t first = offsetof(shmq_process_shm, wake_words);
    bool good = offset >= rows && row < SHMQ_PROCESS_ROWS && within >= first &&
                within < first + SHMQ_WAKE_WORDS * sizeof(shmq_a32) && within % sizeof(shmq_a32) == 0;
    return good ? (uint32_t)row : UINT32_MAX;
}

/* Does this offset lie in the page of a queue that exists? */
static bool is_of_queue(const shmq_member *m, uint64_t page, uint64_t within) {
    const shmq_queue_shm *q = shmq_at(m, page);
    uint32_t index = shmq_read_once(&q->index);
    return index < SHMQ_QUEUES && shmq_load_seq(&m->directory[index].page) == page &&
           (within == offsetof(shmq_queue_shm, ring.full) || within == offsetof(shmq_queue_shm, ring.drained));
}

/* Does this offset lie in a consumer row in use? Any page that looks like consumer rows passes. */
static bool is_of_consumer(const shmq_member *m, uint64_t page, uint64_t within) {
    shmq_consumer_shm *rows = shmq_at(m, page);
    uint64_t word = shmq_load_seq(&rows[within / sizeof *rows].word);
    return within % sizeof *rows == offsetof(shmq_consumer_shm, wake) && shmq_row_state(word) != SHMQ_ROW_FREE &&
           shmq_row_inner(word) < SHMQ_PROCESS_ROWS;
}

/* Does this offset lie in a ticket that a producer holds? The tickets are at the beginning of the run of a queue's
 * rings. */
static bool is_of_line(const shmq_member *m, uint64_t granule, uint64_t offset) {
    uint64_t from_begin = (offset - m->data) % SHMQ_GRANULE_BYTES, before = from_begin % sizeof(shmq_ticket_shm);
    if (shmq_granule_kind(shmq_load_relaxed(&m->granules[granule])) != SHMQ_GRANULE_RING ||
        from_begin >= SHMQ_LINE_BYTES || before != offsetof(shmq_ticket_shm, wake)) {
        return false;
    }
    shmq_ticket_shm *ticket = shmq_at(m, offset - before);
    uint64_t word = shmq_load_seq(&ticket->word);
    return shmq_ticket_state(word) != SHMQ_TICKET_FREE && shmq_ticket_row(word) < SHMQ_PROCESS_ROWS;
}

bool shmq_is_wake_word(const shmq_member *m, uint64_t offset) {
    if (offset == offsetof(shmq_segment_shm, memory_full) || shmq_wake_word_owner(m, offset) != UINT32_MAX) {
        return true;
    }
    if (offset < m->data || !shmq_inside(m, offset, sizeof(uint32_t))) {
        return false;
    }
    uint64_t granule = (offset - m->data) >> SHMQ_GRANULE_SHIFT;
    uint64_t within = offset % SHMQ_PAGE_BYTES, page = offset - within;
    if (shmq_granule_kind(shmq_load_relaxed(&m->granules[granule])) != SHMQ_GRANULE_PAGES) {
        return is_of_line(m, granule, offset);
    }
    return is_of_queue(m, page, within) || is_of_consumer(m, page, within);
}

void shmq_row_share(shmq_member *m, shmq_consumer_shm *row, shmq_a32 *word) {
    shmq_store_seq(&row->sleeps_on, word != NULL ? (uint64_t)((unsigned char *)word - m->base) : 0);
}

/* The owner of the row sets the target before it announces itself, and a notifier claims the announcement before it
 * reads the target. A damaged target leads nowhere: the owner looks by itself when its time limit is over. */
shmq_a32 *shmq_wake_word(const shmq_member *m, shmq_consumer_shm *row) {
    uint64_t sleeps_on = shmq_load_seq(&row->sleeps_on);
    bool shared = SHMQ_UNLIKELY(sleeps_on != 0) && shmq_wake_word_owner(m, sleeps_on) != UINT32_MAX;
    return shared ? (shmq_a32 *)shmq_at(m, sleeps_on) : &row->wake;
}

void shmq_row_wake(const shmq_member *m, shmq_consumer_shm *row) {
    shmq_a32 *word = shmq_wake_word(m, row);
    shmq_add_seq(word, 1);
    shmq_futex_wake(word, INT32_MAX);
}
