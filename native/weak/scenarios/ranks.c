/* Consumers of two priorities: what comes while the higher one wants something is not the lower one's, and when the higher
 * one takes no more, the lower one is woken for the rest. All asleep is a failure. */
#include "consumers/ranks.h"
#include "small_ring.h"

#define EACH 2u
#define HIGH 2

static uint32_t rows[WEAK_THREADS];
static uint64_t put_began[2 * EACH], wants_since; /* 0: it does not */

static void set_up(void) {
    ring_set_up(0);
    for (int t = HIGH; t < 4; t++) {
        shmq_row_terms terms = {.kind = SHMQ_CONSUMER, .priority = t == HIGH ? 5 : 0};
        CHECK_EQUAL(shmq_row_open_as(ring_queues[t], &terms, &rows[t]), SHMQ_OK);
    }
}

static void begin(void) {
    ring_begin();
    wants_since = 0;
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        put_began[i] = 0;
    }
}

/* Around its wait it surely wants something: it has said so before, and says the contrary behind it. */
static void begins_to_wait(void *self) { wants_since = self != NULL ? weak_event() : wants_since; }
static void has_waited(void *self) { wants_since = self != NULL ? 0 : wants_since; }
static bool goes_on(void *self, bool offered) {
    (void)self, (void)offered;
    return true;
}

static bool take_one(int t, uint64_t until_ns) {
    shmq_queue *q = ring_queues[t];
    shmq_delivery d;
    const shmq_caller caller = {begins_to_wait, has_waited, goes_on, t == HIGH ? q : NULL};
    const shmq_taking taking = {.owner = rows[t], .row = rows[t], .until_ns = until_ns, .caller = &caller};
    shmq_status status = shmq_receive(q, &taking, &d);
    WEAK_CHECK(status == SHMQ_OK || (until_ns == 0 && status == SHMQ_EMPTY));
    if (status != SHMQ_OK) {
        return false;
    }
    uint64_t number = ring_read(&d), wanted = wants_since;
    if (t > HIGH && wanted != 0 && put_began[number] > wanted) {
        weak_fail("message %llu came while the higher one wanted it, and still does, and is the lower one's",
                  (unsigned long long)number);
    }
    WEAK_CHECK(shmq_settle(q, &d) == SHMQ_OK);
    ring_note_got(number);
    return true;
}

/* The higher one looks some times, mostly without waiting, and goes; it leaves enough for the lower one. */
static void thread(int t) {
    uint64_t taken = 0;
    for (uint64_t i = 0; t < HIGH && i < EACH; i++) {
        uint64_t number = (uint64_t)t * EACH + i;
        put_began[number] = weak_event() + 1;
        WEAK_CHECK(ring_put(t, number, 0));
    }
    for (int looks = 0; t == HIGH && looks < 4 && taken < EACH; looks++) {
        taken += take_one(t, weak_chance(200) ? 0 : SHMQ_FOR_EVER);
    }
    while (t > HIGH && taken < EACH) {
        taken += take_one(t, SHMQ_FOR_EVER);
    }
}

static void end(void) {
    while (ring_get(0) != UINT64_MAX) {
    }
    ring_check_got(0, 2 * EACH);
    ring_check_words();
}

const weak_scenario weak_ranks = {"ranks", "consumers of two priorities", 4, true, set_up, begin, thread, end};
