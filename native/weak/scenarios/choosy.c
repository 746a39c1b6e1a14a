/* Sleepers with selectors: a notifier looks for them, at what has come and at what others take meanwhile, and whoever sleeps
 * while a message is there that it wants is woken. All asleep is a failure. */
#include "consumers/ranks.h"
#include "selectors/row_selector.h"
#include "small_ring.h"

#define EACH 3u

static shmq_selector *selector; /* k IS NULL: true for all that is put here */

static bool wants(void *context, const shmq_ring *level, const shmq_delivery *d) {
    return shmq_delivery_selected(context, level, d);
}

static void set_up(void) {
    static const char program[] = "\1\1\1\0\2\0\10\1\0k\1\0\0\0\0\21\0\0\0";
    ring_set_up(0);
    WEAK_CHECK(shmq_selector_load(program, sizeof program, &selector) == SHMQ_OK);
}

static void begin(void) {
    shmq_queue_shm *page = ring_queues[0]->page;
    ring_begin();
    shmq_store_relaxed(&page->chunks[0], 0);
    shmq_store_relaxed(&page->selectors[0], 0);
    shmq_store_relaxed(&page->chunk_count, 0);
    shmq_store_relaxed(&page->sleepers[0].used, 0);
    for (int t = 0; t < WEAK_THREADS; t++) {
        shmq_row_selectors_free(ring_queues[t]);
        shmq_row_selectors_reset(ring_queues[t]);
    }
}

static void consume(int t) {
    shmq_queue *q = ring_queues[t];
    shmq_subscription by;
    const shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .selector = selector};
    uint32_t row;
    shmq_status status;
    shmq_subscription_begin(&by, wants, selector);
    while ((status = shmq_row_open_as(q, &terms, &row)) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
    WEAK_CHECK(status == SHMQ_OK);
    const shmq_taking taking = {.owner = row, .row = row, .by = &by, .until_ns = SHMQ_FOR_EVER};
    for (uint32_t i = 0; i < EACH; i++) {
        shmq_delivery d;
        WEAK_CHECK(shmq_receive(q, &taking, &d) == SHMQ_OK);
        uint64_t number = ring_read(&d);
        WEAK_CHECK(shmq_settle(q, &d) == SHMQ_OK);
        ring_note_got(number);
    }
    while (shmq_row_close(q, row) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
    shmq_notify(q); /* passes on a wake that was meant for this row */
    shmq_subscription_end(&by);
}

static void thread(int t) {
    if (t >= 2) {
        consume(t);
        return;
    }
    for (uint64_t i = 0; i < EACH; i++) {
        while (!ring_put(t, (uint64_t)t * EACH + i, 0)) {
            weak_yield();
        }
    }
}

static void end(void) {
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_choosy = {
    "choosy", "sleepers with selectors, for whom notifiers look", 4, true, set_up, begin, thread, end};
