/* Takers of a queue that flows which can have nothing now: they sleep until they can. And what a get costs when the flow has ended.
 * Shows G5. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "queue/cold.h"
#include "ring/ring_memory.h"
#include "wake/wake_word.h"
#include "faulty_backing.h"
#include "flow_select.h"

#define SEEKERS 2u

typedef struct seeker {
    pthread_t thread;
    uint64_t rest; /* numbers that leave it when divided by 100 */
    uint32_t row;
    shmq_subscription by;
    shmq_delivery d;
    shmq_status status;
    shmq_a32 done;
} seeker;

static seeker seekers[SEEKERS];

static void *seek(void *argument) {
    seeker *s = argument;
    const shmq_taking t = {.owner = s->row, .row = s->row, .by = &s->by, .until_ns = shmq_now_ns() + 100 * SECOND};
    s->status = shmq_receive(theirs, &t, &s->d);
    shmq_store_seq(&s->done, 1);
    return NULL;
}

static void seekers_begin(void) {
    other->patience_ns = 3600 * SECOND; /* nobody looks again by time */
    for (uint32_t i = 0; i < SEEKERS; i++) {
        seeker *s = &seekers[i];
        *s = (seeker){.rest = 98 + i};
        CHECK_EQUAL(shmq_row_open(theirs, SHMQ_CONSUMER, &s->row), SHMQ_OK);
        shmq_subscription_begin(&s->by, is_of, &s->rest);
        CHECK(pthread_create(&s->thread, NULL, seek, s) == 0);
    }
}

static void seekers_end(void) {
    for (uint32_t i = 0; i < SEEKERS; i++) {
        seeker *s = &seekers[i];
        CHECK(pthread_join(s->thread, NULL) == 0);
        CHECK_EQUAL(s->status, SHMQ_OK);
        CHECK_EQUAL(number_of(&s->d) % 100, s->rest);
        CHECK_EQUAL(shmq_settle(theirs, &s->d), SHMQ_OK);
        CHECK_EQUAL(shmq_row_close(theirs, s->row), SHMQ_OK);
        shmq_subscription_end(&s->by);
    }
}

static uint32_t seekers_done(void) {
    uint32_t done = 0;
    for (uint32_t i = 0; i < SEEKERS; i++) {
        done += shmq_load_seq(&seekers[i].done);
    }
    return done;
}

/* So many sleep, and need not be woken for all that there is now. */
static uint32_t seekers_asleep(void) {
    uint32_t asleep = 0;
    for (uint32_t i = 0; i < SEEKERS; i++) {
        uint32_t row = seekers[i].row;
        bool idle = shmq_load_seq(&q->page->sleepers[row / 64].idle) >> row % 64 & 1;
        asleep += idle && shmq_load_seq(&shmq_row_at(q, row)->sleeps) != 0 && shmq_has_looked(q, row);
    }
    return asleep;
}

/* A bound that tells a hang from a slow machine. */
static void wait_for(uint32_t (*what)(void), uint32_t count) {
    for (uint64_t until = shmq_now_ns() + 60 * SECOND; what() != count;) {
        CHECK(shmq_now_ns() < until);
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void get_what_is_left(uint64_t count) {
    uint64_t left = 0;
    while (get_number(q) != UINT64_MAX) {
        left++;
    }
    CHECK_EQUAL(left, count);
}

static uint32_t wakes(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < SEEKERS; i++) {
        count += shmq_load_seq(shmq_wake_word(m, shmq_row_at(q, seekers[i].row)));
    }
    return count;
}

/* Notified as often as one likes. They look by time, too, and when two collide at the mover's lock, one tells the other. */
static bool none_is_woken(void) {
    uint32_t woken;
    uint64_t chances;
    do {
        wait_for(seekers_asleep, SEEKERS);
        chances = shmq_load_seq(&q->page->chances);
        woken = 0 - wakes();
        for (int i = 0; i < 1000; i++) {
            shmq_notify(q);
        }
        woken += wakes();
    } while (woken != 0 && shmq_load_seq(&q->page->chances) != chances);
    return woken == 0;
}

/* All slots of the front ring are in one's hands. Shows S144. */
TEST(starved_takers_sleep_until_a_slot_is_free) {
    static shmq_delivery held[MANY];
    begin();
    put_numbers(q, 0, MANY);
    uint64_t count = 0;
    const shmq_taking all = {.owner = shmq_self(q)};
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    uint64_t oldest = count - shmq_slot_count(shmq_front_of(&q->first)); /* of those that have come back */
    seekers_begin();
    wait_for(seekers_asleep, SEEKERS);
    put_numbers(q, MANY, 1); /* both look, and find nothing that they can have */
    wait_for(seekers_asleep, SEEKERS);
    CHECK(none_is_woken());
    CHECK_EQUAL(shmq_settle(q, &held[oldest]), SHMQ_OK);
    CHECK(seekers_asleep() < SEEKERS); /* it has woken one */
    wait_for(seekers_done, 1);
    wait_for(seekers_asleep, 1);
    CHECK_EQUAL(shmq_settle(q, &held[oldest + 1]), SHMQ_OK);
    wait_for(seekers_done, 2);
    seekers_end();
    for (uint64_t i = 0; i < count; i++) {
        CHECK(i == oldest || i == oldest + 1 || shmq_settle(q, &held[i]) == SHMQ_OK);
    }
    get_what_is_left(MANY + 1 - count - SEEKERS);
    end();
}

/* It would last for hours if it waited for a mover. */
TEST(a_taker_that_does_not_wait_is_told_at_once_that_no_slot_is_free) {
    static shmq_delivery held[MANY];
    begin();
    put_numbers(q, 0, MANY);
    uint64_t count = 0, patience = m->patience_ns;
    const shmq_taking all = {.owner = shmq_self(q)};
    m->patience_ns = 3600 * SECOND;
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    CHECK(count < MANY);
    m->patience_ns = patience;
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_settle(q, &held[i]), SHMQ_OK);
    }
    get_what_is_left(MANY - count);
    end();
}

/* Also if it had got nothing but the lock. */
TEST(who_found_the_lock_taken_is_told_by_whoever_has_it_next) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t low = shmq_load_seq(&q->first.shm->low); /* number and place are one so far */
    get_numbers(q, 0, low);
    hold_mover_lock(m, q, F_WRLCK);
    seekers_begin();
    wait_for(seekers_asleep, SEEKERS);
    CHECK_EQUAL(shmq_load_seq(&q->page->missed), 1);
    hold_mover_lock(m, q, F_UNLCK);
    faulty_begin(m);
    faulty.openings = 1;
    uint64_t chances = shmq_load_seq(&q->page->chances);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OS);
    CHECK(shmq_load_seq(&q->page->chances) != chances);
    faulty_end(m);
    wait_for(seekers_done, SEEKERS);
    seekers_end();
    get_what_is_left(MANY - low - SEEKERS);
    end();
}

/* The rows that they want are gone, and the messages behind them are theirs. */
TEST(starved_takers_are_told_of_rows_that_are_gone) {
    begin();
    put_numbers(q, 0, MANY);
    static shmq_delivery held[MANY];
    uint64_t count = 0, discarded = 0;
    const shmq_taking all = {.owner = shmq_self(q)};
    while (shmq_receive(q, &all, &held[count]) == SHMQ_OK) {
        count++;
    }
    uint64_t last = place_of(MANY - 100); /* in memory, as all that follows */
    CHECK(last >= shmq_flow_place(shmq_load_seq(&q->first.shm->flow)));
    seekers_begin();
    wait_for(seekers_asleep, SEEKERS);
    shmq_status status;
    while ((status = shmq_discard_below(&q->first, last, &discarded)) == SHMQ_INTERRUPTED) { /* one looks just now */
    }
    CHECK_EQUAL(status, SHMQ_OK);
    CHECK(seekers_asleep() < SEEKERS);
    wait_for(seekers_done, SEEKERS);
    for (uint32_t i = 0; i < SEEKERS; i++) {
        CHECK_EQUAL(number_of(&seekers[i].d), MANY - 100 + seekers[i].rest);
    }
    seekers_end();
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_settle(q, &held[i]), SHMQ_OK);
    }
    get_what_is_left(100 - SEEKERS);
    end();
}

/* ---- when the flow has ended ---------------------------------------------------------------------------------------- */

/* A look at a slot of the front ring ends the test. */
static void protect_front(int how) {
    const shmq_ring *front = shmq_front_of(&q->first);
    uintptr_t page = 4096, from = (uintptr_t)front->slots, to = from + shmq_slots_laid(front) * front->slot_size;
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    CHECK(to - from >= 16 * page);
    CHECK(mprotect((void *)from, to - from, how) == 0);
}

static bool is_other(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    bool other_one = d->body_len == 8 && number_of(d) != 7000;
    *(uint64_t *)context += !other_one;
    return other_one;
}

/* One that came in by itself, and is in somebody's hands, or left for others. */
TEST(what_was_fetched_costs_nobody_a_look_at_all_slots) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = place_of(7000), asked = 0;
    shmq_ring *front = shmq_front_of(&q->first);
    shmq_subscription by;
    shmq_delivery fetched, d;
    CHECK_EQUAL(shmq_steal_at(&q->first, place, true, &fetched), SHMQ_OK);
    CHECK_EQUAL(number_of(&fetched), 7000);
    get_what_is_left(MANY - 1);
    CHECK(!shmq_flows(q) && shmq_load_seq(&front->shm->fetched_end) != 0);
    shmq_subscription_begin(&by, is_other, &asked);
    put_numbers(q, 0, 1002);
    get_numbers(q, 0, 1);
    CHECK_EQUAL(select_now(q, &by, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    protect_front(PROT_NONE);
    for (uint64_t i = 2; i < 502; i++) {
        get_numbers(q, i, 1);
    }
    for (uint64_t i = 502; i < 1002; i++) {
        CHECK_EQUAL(select_now(q, &by, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    protect_front(PROT_READ | PROT_WRITE);
    CHECK_EQUAL(shmq_release(q, &fetched, false), SHMQ_OK);
    put_numbers(q, 0, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        CHECK_EQUAL(select_now(q, &by, &d), SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK(asked < 5);
    get_numbers(theirs, 7000, 1);
    put_numbers(q, 0, 1);
    get_numbers(theirs, 0, 1);
    CHECK_EQUAL(shmq_load_seq(&front->shm->fetched_end), 0); /* nothing was fetched of what is left */
    shmq_subscription_end(&by);
    end();
}

/* ---- damage, and threads -------------------------------------------------------------------------------------------- */

static uint64_t blocks_used(void) {
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    return usage.used;
}

static void put_long(uint64_t count, uint64_t bytes) {
    unsigned char *body = calloc(1, bytes);
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQUAL(put_bytes(q, body, bytes, 0), SHMQ_OK);
    }
    free(body);
}

/* Its slot was changed behind its back. */
TEST(a_row_that_cannot_be_shown_gives_its_block_back) {
    begin();
    put_long(6000, 1000);
    shmq_mover t;
    CHECK_EQUAL(shmq_turn_begin(&t, &q->first), SHMQ_OK);
    uint64_t tail, flow = shmq_load_seq(&q->first.shm->flow), low = shmq_load_seq(&q->first.shm->low);
    uint32_t room = UINT32_MAX, count = 1;
    shmq_row row;
    shmq_coming coming;
    CHECK_EQUAL(shmq_front_room(t.front, &tail, &room), SHMQ_OK);
    CHECK_EQUAL(shmq_cold_need(t.front), SHMQ_OK);
    CHECK_EQUAL(shmq_read_rows(&t, low, shmq_flow_place(flow), 0, &row, &count), SHMQ_OK);
    uint64_t used = blocks_used(), damage = shmq_load_seq(&m->header->damage);
    const shmq_ordinal last = {0};
    CHECK_EQUAL(shmq_front_fill(&t, &row, tail, &last, 0, &coming), SHMQ_OK);
    CHECK_EQUAL(blocks_used(), used + 1);
    shmq_slot_shm *slot = shmq_slot_at(t.front, tail);
    uint64_t word = shmq_load_seq(&slot->word);
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_BROKEN, 0, 0));
    CHECK(!shmq_front_show(&t, tail, &coming));
    CHECK_EQUAL(blocks_used(), used);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), damage + 1);
    shmq_store_seq(&slot->word, word);
    shmq_store_seq(&m->header->damage, damage);
    shmq_turn_end(&t);
    for (int i = 0; i < 6000; i++) {
        shmq_delivery d = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    }
    CHECK_EQUAL(blocks_used(), 0);
    end();
}

static void *look(void *argument) {
    (void)argument;
    shmq_delivery d;
    uint64_t place = 0;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_OK);
    return NULL;
}

static uint64_t memory_in_use(void) {
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

TEST(a_thread_that_has_looked_leaves_no_memory) {
    begin();
    put_long(4500, 30000);
    CHECK(shmq_flow_rows(q) > 0);
    (void)look(NULL);
    uint64_t before = memory_in_use();
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, look, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(memory_in_use() < before + 1000000);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
