/* Groups of a queue that flows: which row comes in by itself, and what is taken when no other one can. Shows G5. */
#include <stdlib.h>
#include <string.h>

#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "flow_pair.h"

#define HOT 6000u /* more than comes in, with what is left in memory */

static shmq_queue *changes, *beside;

typedef struct taker {
    shmq_queue *q;
    uint32_t row;
    shmq_subscription by;
} taker;

static shmq_queue *declare(shmq_member *member) {
    shmq_declaration d = {
        .given = 1u << SHMQ_SET_MAX_MEMORY | 1u << SHMQ_SET_GROUPS, .max_memory = MEMORY, .create = true};
    d.grouping = SHMQ_GROUPS_SHARED;
    return scratch_declare(member, "changes", d, 0);
}

static void begin_groups(void) {
    begin();
    changes = declare(m);
    beside = declare(other);
}

static void end_groups(void) {
    check_ring(changes);
    CHECK(shmq_groups_fault(changes) == NULL);
    scratch_examine_queue(changes->index, true);
    shmq_queue_unbind(changes);
    shmq_queue_unbind(beside);
    end();
}

static void open_taker(taker *t, shmq_queue *queue, shmq_wants wants, void *context) {
    t->q = queue;
    CHECK_EQUAL(shmq_row_open(queue, SHMQ_CONSUMER, &t->row), SHMQ_OK);
    shmq_subscription_begin(&t->by, wants, context);
}

static void close_taker(taker *t) {
    CHECK_EQUAL(shmq_row_close(t->q, t->row), SHMQ_OK);
    shmq_subscription_end(&t->by);
}

static void put_of(const char *key, uint64_t number) {
    unsigned char headers[16] = {1, 0, 0, 3, (unsigned char)strlen(key), 0};
    memcpy(headers + 6, key, strlen(key));
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number,
                       .headers = headers,
                       .headers_len = 6 + (uint32_t)strlen(key)};
    CHECK_EQUAL(shmq_put(changes, &o, 0), SHMQ_OK);
}

static void put_many(const char *key, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) {
        put_of(key, i);
    }
}

static uint64_t take(taker *t, shmq_delivery *d) {
    const shmq_taking how = {.owner = t->row, .row = t->row, .by = &t->by};
    shmq_status status = shmq_receive(t->q, &how, d);
    CHECK(status == SHMQ_OK || status == SHMQ_EMPTY);
    return status == SHMQ_OK ? number_of(d) : UINT64_MAX;
}

static uint64_t fetched(void) {
    const shmq_ring *front = shmq_front_of(&changes->first);
    uint64_t count = 0;
    for (uint64_t i = 0; i < shmq_slots_laid(front); i++) {
        const shmq_slot_shm *slot = shmq_slot_at(front, i);
        uint32_t state = shmq_word_state(shmq_load_seq((shmq_a64 *)(uintptr_t)&slot->word));
        count += shmq_state_is_entry(state) && shmq_is_fetched(slot);
    }
    return count;
}

static void take_all(taker *t, uint64_t count) {
    shmq_delivery d;
    while (take(t, &d) != UINT64_MAX) {
        CHECK_EQUAL(shmq_settle(t->q, &d), SHMQ_OK);
        count--;
    }
    CHECK_EQUAL(count, 0);
}

/* ---- */

static taker first_owner;
static shmq_delivery in_its_hands;

/* Its group is free from here on. */
static bool ends_another(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    uint64_t *when = context;
    if (d->body_len == 8 && number_of(d) == *when) {
        *when = UINT64_MAX;
        CHECK_EQUAL(shmq_settle(first_owner.q, &in_its_hands), SHMQ_OK);
    }
    return true;
}

TEST(a_row_of_a_group_that_is_freed_just_then_does_not_come_before_an_earlier_one) {
    begin_groups();
    uint64_t when = 2 * HOT + 1;
    taker hot, other_one;
    shmq_delivery held, d;
    put_of("hot", 0);
    put_of("late", 1);
    put_many("hot", 2, HOT);
    put_many("late", 2 * HOT, 3);
    put_many("hot", 3 * HOT, HOT);
    open_taker(&hot, changes, NULL, NULL);
    open_taker(&first_owner, beside, NULL, NULL);
    open_taker(&other_one, changes, ends_another, &when);
    CHECK_EQUAL(take(&hot, &held), 0);
    CHECK_EQUAL(take(&first_owner, &in_its_hands), 1);
    CHECK_EQUAL(take(&other_one, &d), 2 * HOT);
    CHECK_EQUAL(when, UINT64_MAX);
    CHECK_EQUAL(fetched(), 1);
    CHECK_EQUAL(shmq_settle(changes, &d), SHMQ_OK);
    for (uint64_t i = 1; i < 3; i++) {
        CHECK_EQUAL(take(&other_one, &d), 2 * HOT + i);
        CHECK_EQUAL(shmq_settle(changes, &d), SHMQ_OK);
    }
    CHECK_EQUAL(take(&other_one, &d), UINT64_MAX);
    CHECK_EQUAL(shmq_settle(changes, &held), SHMQ_OK);
    take_all(&other_one, 2 * HOT);
    close_taker(&hot);
    close_taker(&first_owner);
    close_taker(&other_one);
    end_groups();
}

/* All slots for what is fetched have messages of a group that nobody has. */
TEST(what_was_fetched_and_came_back_is_taken_where_an_earlier_row_has_no_slot) {
    begin_groups();
    const uint64_t share = shmq_slot_count(shmq_front_of(&changes->first)) / 4;
    shmq_delivery *many = calloc(share, sizeof *many), held, d;
    taker hot, gone, other_one;
    CHECK(many != NULL);
    put_of("hot", 0);
    put_of("late", 1);
    put_many("hot", 2, HOT);
    put_of("late", 2 * HOT);
    put_many("many", 3 * HOT, share + 2);
    put_many("hot", 4 * HOT, HOT);
    open_taker(&hot, changes, NULL, NULL);
    open_taker(&first_owner, beside, NULL, NULL);
    open_taker(&gone, changes, NULL, NULL);
    open_taker(&other_one, beside, NULL, NULL);
    CHECK_EQUAL(take(&hot, &held), 0);
    CHECK_EQUAL(take(&first_owner, &in_its_hands), 1);
    for (uint64_t i = 0; i < share; i++) {
        CHECK_EQUAL(take(&gone, &many[i]), 3 * HOT + i);
    }
    CHECK_EQUAL(fetched(), share);
    CHECK_EQUAL(take(&gone, &d), UINT64_MAX);
    for (uint64_t i = 0; i < share; i++) {
        CHECK_EQUAL(shmq_release(changes, &many[i], true), SHMQ_OK);
    }
    close_taker(&gone);
    CHECK_EQUAL(shmq_settle(beside, &in_its_hands), SHMQ_OK);
    CHECK_EQUAL(take(&other_one, &d), 3 * HOT);
    CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    CHECK_EQUAL(take(&other_one, &d), 2 * HOT); /* there is a slot for it now */
    CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    for (uint64_t i = 1; i < share + 2; i++) {
        CHECK_EQUAL(take(&other_one, &d), 3 * HOT + i);
        CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    }
    CHECK_EQUAL(take(&other_one, &d), UINT64_MAX);
    CHECK_EQUAL(shmq_settle(changes, &held), SHMQ_OK);
    take_all(&other_one, 2 * HOT);
    close_taker(&hot);
    close_taker(&first_owner);
    close_taker(&other_one);
    free(many);
    end_groups();
}

/* The same where the first one of that group has never left memory: it was in hand when the others went to disk. */
TEST(what_stayed_in_memory_is_taken_before_what_was_fetched_of_its_group) {
    begin_groups();
    const uint64_t share = shmq_slot_count(shmq_front_of(&changes->first)) / 4,
                   slots = shmq_slot_count(&changes->first);
    shmq_delivery *many = calloc(share + 1, sizeof *many), held, d;
    taker hot, gone, other_one;
    CHECK(many != NULL);
    put_of("hot", 0);
    put_of("late", 1);
    put_many("hot", 1000000, slots / 4 * 3); /* the first half stays in memory */
    put_of("late", 2);
    put_of("many", 3);
    CHECK(!shmq_flow_is_on(shmq_flow_at(&changes->first)));
    open_taker(&hot, changes, NULL, NULL);
    open_taker(&first_owner, beside, NULL, NULL);
    open_taker(&gone, changes, NULL, NULL);
    open_taker(&other_one, beside, NULL, NULL);
    CHECK_EQUAL(take(&hot, &held), 0);
    CHECK_EQUAL(take(&first_owner, &in_its_hands), 1);
    CHECK_EQUAL(take(&gone, &many[0]), 3);
    put_many("many", 4, share + 2);
    put_many("hot", 2000000, slots);
    CHECK(shmq_flow_is_on(shmq_flow_at(&changes->first)));
    for (uint64_t i = 1; i <= share; i++) {
        CHECK_EQUAL(take(&gone, &many[i]), 3 + i);
    }
    CHECK_EQUAL(fetched(), share);
    CHECK_EQUAL(take(&gone, &d), UINT64_MAX);
    for (uint64_t i = 0; i <= share; i++) {
        CHECK_EQUAL(shmq_release(changes, &many[i], true), SHMQ_OK);
    }
    close_taker(&gone);
    CHECK_EQUAL(shmq_settle(beside, &in_its_hands), SHMQ_OK);
    for (uint64_t number = 3; number < 5; number++) {
        CHECK_EQUAL(take(&other_one, &d), number);
        CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    }
    CHECK_EQUAL(take(&other_one, &d), 2); /* there is a slot for it now */
    CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    for (uint64_t number = 5; number < share + 6; number++) {
        CHECK_EQUAL(take(&other_one, &d), number);
        CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    }
    CHECK_EQUAL(take(&other_one, &d), UINT64_MAX);
    CHECK_EQUAL(shmq_settle(changes, &held), SHMQ_OK);
    take_all(&other_one, slots / 4 * 3 + slots);
    close_taker(&hot);
    close_taker(&first_owner);
    close_taker(&other_one);
    free(many);
    end_groups();
}

/* A consumer that has refused the first one of a group fetches later ones. For others they are not the next of their group,
 * though no slot is left for the first one. */
TEST(what_a_consumer_fetched_behind_one_that_it_refused_does_not_come_before_that_one) {
    begin_groups();
    const uint64_t share = shmq_slot_count(shmq_front_of(&changes->first)) / 4,
                   slots = shmq_slot_count(&changes->first);
    shmq_delivery *some = calloc(share, sizeof *some), held, d;
    taker hot, choosy, other_one;
    CHECK(some != NULL);
    put_of("hot", 0);
    put_many("hot", 1000000, slots / 4 * 3); /* the first half stays in memory */
    put_of("some", 1);
    open_taker(&hot, changes, NULL, NULL);
    open_taker(&choosy, changes, NULL, NULL);
    open_taker(&other_one, beside, NULL, NULL);
    CHECK_EQUAL(take(&hot, &held), 0);
    CHECK_EQUAL(take(&choosy, &d), 1);
    CHECK(shmq_refuse(&choosy.by, changes, shmq_place_of(changes, &d)));
    CHECK_EQUAL(shmq_release(changes, &d, true), SHMQ_OK);
    put_many("some", 2, share + 1);
    put_many("hot", 2000000, slots);
    CHECK(shmq_flow_is_on(shmq_flow_at(&changes->first)));
    for (uint64_t i = 0; i < share; i++) {
        CHECK_EQUAL(take(&choosy, &some[i]), 2 + i);
    }
    CHECK_EQUAL(fetched(), share);
    for (uint64_t i = 0; i < share; i++) {
        CHECK_EQUAL(shmq_release(changes, &some[i], true), SHMQ_OK);
    }
    close_taker(&choosy);
    CHECK_EQUAL(take(&other_one, &d), UINT64_MAX);
    CHECK_EQUAL(shmq_settle(changes, &held), SHMQ_OK);
    uint64_t next = 1, number, taken = 0;
    for (; (number = take(&other_one, &d)) != UINT64_MAX; taken++) {
        CHECK(number >= 1000000 || number == next++);
        CHECK_EQUAL(shmq_settle(beside, &d), SHMQ_OK);
    }
    CHECK_EQUAL(next, share + 3);
    CHECK_EQUAL(taken, share + 2 + slots / 4 * 3 + slots);
    close_taker(&hot);
    close_taker(&other_one);
    free(some);
    end_groups();
}

int main(void) { return run_tests(); }
