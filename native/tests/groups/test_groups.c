/* Groups of messages: who has one, who is passed by, and what deaths, thefts and stopped owners leave. */
#include "groups/group.h"
#include "scratch_queue.h"

static shmq_member *m, *other;
static shmq_queue *q, *theirs;

/* A consumer of one of the two. */
typedef struct taker {
    shmq_queue *q;
    uint32_t row;
    shmq_subscription s;
} taker;

static shmq_queue *declare(shmq_member *member, uint32_t grouping, uint32_t levels) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_GROUPS | 1u << SHMQ_SET_PRIORITIES,
                          .grouping = grouping,
                          .priorities = levels,
                          .create = true};
    return scratch_declare(member, "changes", d, 0);
}

static void begin(uint32_t grouping, uint32_t levels) {
    scratch_create(false);
    m = scratch_attach();
    other = scratch_attach();
    q = declare(m, grouping, levels);
    theirs = declare(other, grouping, levels);
}

static void check_sound(void) {
    check_ring(q);
    CHECK(shmq_groups_fault(q) == NULL);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
}

static void end(void) {
    check_sound();
    scratch_close_unless_dead(other, theirs);
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_load_seq(&m->process->privileges), 0);
    scratch_detach(m);
    scratch_remove();
}

static void open_taker(taker *t, shmq_queue *queue) {
    t->q = queue;
    CHECK_EQUAL(shmq_row_open(queue, SHMQ_CONSUMER, &t->row), SHMQ_OK);
    shmq_subscription_begin(&t->s, NULL, NULL);
}

static void close_taker(taker *t) {
    CHECK_EQUAL(shmq_row_close(t->q, t->row), SHMQ_OK);
    shmq_subscription_end(&t->s);
}

/* No group for an empty key. */
static uint32_t head_of(unsigned char *headers, const char *key) {
    uint32_t length = (uint32_t)strlen(key);
    unsigned char fixed[] = {1, 0, 0, 3, (unsigned char)length, 0};
    memcpy(headers, fixed, sizeof fixed);
    memcpy(headers + sizeof fixed, key, length);
    return length != 0 ? (uint32_t)sizeof fixed + length : 0;
}

static void put_in(const char *key, uint64_t number, uint8_t priority) {
    unsigned char headers[64];
    struct iovec piece = {.iov_base = &number, .iov_len = sizeof number};
    shmq_outgoing o = {.headers = headers,
                       .headers_len = head_of(headers, key),
                       .pieces = &piece,
                       .piece_count = 1,
                       .body_len = sizeof number,
                       .priority = priority};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
    CHECK((o.made.group != 0) == (*key != '\0'));
}

static shmq_status take(taker *t, shmq_delivery *d) {
    shmq_status status = shmq_offer_to(t->q, t->row, &t->s, d);
    return status == SHMQ_OK ? shmq_offer_acquire(t->q, d) : status;
}

static shmq_delivery taken(taker *t, uint64_t number) {
    shmq_delivery d;
    CHECK_EQUAL(take(t, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), number);
    return d;
}

static void takes_nothing(taker *t) {
    shmq_delivery d;
    CHECK_EQUAL(take(t, &d), SHMQ_EMPTY);
}

/* The slot of the table of this key. */
static shmq_group_shm *words_of(const char *key) {
    unsigned char headers[64];
    uint32_t length = head_of(headers, key);
    return shmq_group_at(q, shmq_group_of_headers(q, headers, length));
}

static uint32_t privileges(const shmq_member *member) { return shmq_load_seq(&member->process->privileges); }
static bool is_free(const char *key) { return (shmq_load_seq(&words_of(key)->owner) & 0x1fff) == 0; }
static bool is_refused(const char *key) { return (shmq_load_seq(&words_of(key)->refused) >> 44 & 15) != 0; }

static void a_group_is_with_one_consumer_at_a_time(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, q);
    open_taker(&b, theirs);
    put_in("17", 1, 0);
    put_in("17", 2, 0);
    put_in("42", 3, 0);
    put_in("", 4, 0);
    shmq_delivery one = taken(&a, 1), three = taken(&b, 3), four = taken(&b, 4);
    takes_nothing(&b);
    CHECK(is_refused("17") && !is_free("17") && !is_free("42"));
    CHECK_EQUAL(shmq_settle(q, &one), SHMQ_OK);
    CHECK(is_free("17") && !is_refused("17"));
    shmq_delivery two = taken(&b, 2);
    CHECK_EQUAL(shmq_release(theirs, &two, true), SHMQ_OK);
    CHECK(privileges(m) == 0 && privileges(other) == 0); /* what is in hand says enough */
    two = taken(&a, 2);
    CHECK_EQUAL(shmq_settle(q, &two), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &three), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(theirs, &four), SHMQ_OK);
    CHECK(is_free("17") && is_free("42"));
    close_taker(&a);
    close_taker(&b);
    end();
}

static void its_owner_may_have_several_and_order_holds_after_a_release(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, q);
    open_taker(&b, theirs);
    for (uint64_t i = 1; i <= 4; i++) {
        put_in("g", i, 0);
    }
    shmq_delivery one = taken(&a, 1), two = taken(&a, 2);
    takes_nothing(&b);
    CHECK_EQUAL(shmq_release(q, &one, false), SHMQ_OK);
    takes_nothing(&b); /* a still has the second one */
    CHECK_EQUAL(shmq_settle(q, &two), SHMQ_OK);
    one = taken(&b, 1);
    takes_nothing(&a);
    CHECK_EQUAL(shmq_settle(theirs, &one), SHMQ_OK);
    for (uint64_t i = 3; i <= 4; i++) {
        shmq_delivery d = taken(&a, i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    close_taker(&a);
    close_taker(&b);
    end();
}

static void get_keeps_to_groups_too(void) {
    taker a;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, q);
    put_in("g", 1, 0);
    put_in("g", 2, 0);
    put_in("h", 3, 0);
    shmq_delivery one = taken(&a, 1);
    CHECK_EQUAL(get_number(theirs), 3);
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    CHECK_EQUAL(shmq_settle(q, &one), SHMQ_OK);
    CHECK_EQUAL(get_number(theirs), 2);
    CHECK(is_free("g") && is_free("h"));
    close_taker(&a);
    end();
}

static void a_sticky_group_stays_until_its_consumer_closes(void) {
    taker a, b;
    begin(SHMQ_GROUPS_STICKY, 1);
    open_taker(&a, q);
    open_taker(&b, theirs);
    for (uint64_t i = 1; i <= 3; i++) {
        put_in("g", i, 0);
    }
    shmq_delivery d = taken(&a, 1);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    takes_nothing(&b);
    CHECK(privileges(m) == 1 && privileges(other) == 0);
    d = taken(&a, 2);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    takes_nothing(&b);
    close_taker(&a);
    CHECK(is_free("g") && privileges(m) == 0);
    d = taken(&b, 2);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    close_taker(&b);
    CHECK_EQUAL(get_number(q), 3);
    end();
}

static void what_a_process_that_only_gets_has_goes_with_its_handle(void) {
    begin(SHMQ_GROUPS_STICKY, 1);
    put_in("g", 1, 0);
    put_in("g", 2, 0);
    CHECK_EQUAL(get_number(theirs), 1);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK(privileges(other) == 1 && privileges(m) == 0);
    shmq_queue_unbind(theirs);
    CHECK_EQUAL(privileges(other), 0);
    CHECK_EQUAL(get_number(q), 2);
    theirs = declare(other, SHMQ_GROUPS_STICKY, 1);
    end();
}

/* It dies by losing its lock. */
static void the_groups_of_the_dead_are_free(uint32_t grouping) {
    taker a, b;
    begin(grouping, 1);
    open_taker(&a, theirs);
    open_taker(&b, q);
    put_in("g", 1, 0);
    put_in("g", 2, 0);
    (void)taken(&a, 1);
    takes_nothing(&b);
    scratch_kill(other);
    reap_all(m, 1);
    CHECK(is_free("g") && !is_refused("g"));
    for (uint64_t i = 1; i <= 2; i++) {
        shmq_delivery d = taken(&b, i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    close_taker(&b);
    shmq_subscription_end(&a.s);
    end();
}

static void what_is_stolen_frees_the_group_of_an_owner_that_does_not_know_it(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, theirs);
    open_taker(&b, q);
    for (uint64_t i = 1; i <= 3; i++) {
        put_in("g", i, 0);
    }
    shmq_delivery one = taken(&a, 1), stolen;
    takes_nothing(&b);
    CHECK_EQUAL(shmq_steal(&q->first, one.position, false, &stolen), SHMQ_OK);
    takes_nothing(&b); /* the stealer has it now, and may give it back */
    CHECK_EQUAL(shmq_release(q, &stolen, false), SHMQ_OK);
    CHECK(is_free("g"));
    shmq_delivery again = taken(&b, 1);
    takes_nothing(&a);
    CHECK_EQUAL(shmq_settle(theirs, &one), SHMQ_SETTLED); /* the late one changes nothing */
    takes_nothing(&a);
    CHECK_EQUAL(shmq_settle(q, &again), SHMQ_OK);
    shmq_delivery two = taken(&a, 2);
    takes_nothing(&b);
    CHECK_EQUAL(shmq_settle(theirs, &two), SHMQ_OK);
    CHECK(is_free("g"));
    two = taken(&b, 3);
    CHECK_EQUAL(shmq_settle(q, &two), SHMQ_OK);
    close_taker(&a);
    close_taker(&b);
    end();
}

/* As if its process stood still there: nothing was handed out, so nobody waits for it. */
static void what_was_only_offered_is_taken_back(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, theirs);
    open_taker(&b, q);
    put_in("g", 1, 0);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_to(theirs, a.row, &a.s, &d), SHMQ_OK);
    takes_nothing(&b);
    CHECK(!shmq_groups_recheck(q));
    shmq_delivery one = taken(&b, 1);
    CHECK_EQUAL(shmq_offer_acquire(theirs, &d), SHMQ_SETTLED);
    CHECK(!is_free("g"));
    CHECK_EQUAL(shmq_settle(q, &one), SHMQ_OK);
    CHECK(is_free("g"));
    close_taker(&a);
    close_taker(&b);
    end();
}

/* Its owner stands still between R1 and R2, and is no longer its owner: what it gave back comes before what was refused. */
static void what_is_half_released_goes_first(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 2);
    open_taker(&a, theirs);
    open_taker(&b, q);
    put_in("g", 1, 0);
    put_in("g", 2, 0);
    shmq_delivery one = taken(&a, 1);
    takes_nothing(&b);
    shmq_slot_shm *slot = shmq_slot_at(shmq_level(theirs, one.depth), one.position);
    shmq_store_seq(&slot->word, shmq_word_to(one.word, SHMQ_AVAILABLE, 0, one.tag) | SHMQ_FLAG_REDELIVERED);
    CHECK(!shmq_groups_recheck(q));
    for (uint64_t i = 1; i <= 2; i++) {
        shmq_delivery d = taken(&b, i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_release(theirs, &one, false), SHMQ_SETTLED);
    close_taker(&a);
    close_taker(&b);
    end();
}

/* G2: whoever freed it stands still before it has turned the heads back. */
static void who_was_refused_earlier_goes_first(void) {
    taker a, b;
    begin(SHMQ_GROUPS_SHARED, 3);
    open_taker(&a, theirs);
    open_taker(&b, q);
    put_in("g", 1, 5);
    put_in("g", 2, 4);
    put_in("g", 3, 4);
    shmq_delivery one = taken(&a, 1);
    CHECK_EQUAL(shmq_release(theirs, &one, false), SHMQ_OK);
    one = taken(&a, 1);
    put_in("g", 4, 5);
    takes_nothing(&b);
    uint64_t owner = shmq_load_seq(&words_of("g")->owner);
    CHECK_EQUAL(shmq_settle(theirs, &one), SHMQ_OK);
    /* Again as it was before G4, but for the owner; b's cursor is behind all of them. */
    shmq_subscription_end(&b.s);
    shmq_subscription_begin(&b.s, NULL, NULL);
    for (uint32_t depth = 0; depth < 3; depth++) {
        shmq_ring *level = shmq_level(q, depth);
        shmq_cursor_set(&b.s, level, shmq_cursor_of(&b.s, level), depth == 0 ? 2 : 0,
                        shmq_load_seq(&level->shm->epoch));
    }
    shmq_store_seq(&words_of("g")->refused, (UINT64_C(7) << 48) | (UINT64_C(1) << 44) | 1);
    CHECK((owner & 0x1fff) != 0 && is_free("g"));
    shmq_delivery four = taken(&b, 4);
    CHECK(!is_refused("g"));
    CHECK_EQUAL(shmq_settle(q, &four), SHMQ_OK);
    for (uint64_t i = 2; i <= 3; i++) {
        shmq_delivery d = taken(&b, i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    close_taker(&a);
    close_taker(&b);
    end();
}

static void a_suspect_owner_that_offers_clears_itself(void) {
    taker a;
    begin(SHMQ_GROUPS_SHARED, 1);
    open_taker(&a, q);
    put_in("g", 1, 0);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_to(q, a.row, &a.s, &d), SHMQ_OK);
    uint64_t word = shmq_load_seq(&words_of("g")->owner);
    shmq_store_seq(&words_of("g")->owner, word | UINT64_C(1) << 39);
    CHECK(shmq_group_confirm(q, &d));
    uint64_t now = shmq_load_seq(&words_of("g")->owner);
    CHECK((now >> 39 & 1) == 0 && now >> 40 == (word >> 40) + 1);
    shmq_store_seq(&words_of("g")->owner, 0);
    CHECK(!shmq_group_confirm(q, &d));
    shmq_offer_cancel(q, &d);
    CHECK(is_free("g"));
    close_taker(&a);
    end();
}

static void a_damaged_table_is_found(void) {
    begin(SHMQ_GROUPS_SHARED, 1);
    shmq_store_seq(&words_of("g")->owner, 0xfff);
    CHECK(shmq_groups_fault(q) != NULL);
    shmq_store_seq(&words_of("g")->owner, 0);
    shmq_store_seq(&words_of("g")->refused, UINT64_C(2) << 44);
    CHECK(shmq_groups_fault(q) != NULL);
    shmq_store_seq(&words_of("g")->refused, 0);
    end();
}

/* Only its owner's messages can have been taken from it by time. */
static void a_group_is_suspect_for_its_own_owner_only(void) {
    taker a, b;
    begin(SHMQ_GROUPS_STICKY, 1);
    open_taker(&a, q);
    open_taker(&b, theirs);
    put_in("g", 1, 0);
    put_in("g", 2, 0);
    unsigned char headers[64];
    uint32_t group = shmq_group_of_headers(q, headers, head_of(headers, "g"));
    shmq_group_suspect(q, group, a.row);
    CHECK(is_free("g"));
    shmq_delivery d = taken(&a, 1);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    uint64_t before = shmq_load_seq(&words_of("g")->owner);
    shmq_group_suspect(q, group, b.row);
    CHECK_EQUAL(shmq_load_seq(&words_of("g")->owner), before);
    shmq_group_recheck(theirs, group); /* it is kept: sticky, and nobody doubts */
    takes_nothing(&b);
    shmq_group_suspect(q, group, a.row);
    CHECK(shmq_load_seq(&words_of("g")->owner) != before);
    shmq_group_recheck(theirs, group);
    CHECK(is_free("g"));
    d = taken(&b, 2);
    CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    close_taker(&a);
    close_taker(&b);
    end();
}

int main(void) {
    a_group_is_suspect_for_its_own_owner_only();
    a_group_is_with_one_consumer_at_a_time();
    its_owner_may_have_several_and_order_holds_after_a_release();
    get_keeps_to_groups_too();
    a_sticky_group_stays_until_its_consumer_closes();
    what_a_process_that_only_gets_has_goes_with_its_handle();
    the_groups_of_the_dead_are_free(SHMQ_GROUPS_SHARED);
    the_groups_of_the_dead_are_free(SHMQ_GROUPS_STICKY);
    what_is_stolen_frees_the_group_of_an_owner_that_does_not_know_it();
    what_was_only_offered_is_taken_back();
    what_is_half_released_goes_first();
    who_was_refused_earlier_goes_first();
    a_suspect_owner_that_offers_clears_itself();
    a_damaged_table_is_found();
    return 0;
}
