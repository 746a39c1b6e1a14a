/* get and receive, as consumers call them: what is copied, what is acquired, what is damaged, what is to be buried. */
#include "consumers/ranks.h"
#include "ring/ring.h"
#include "scratch_queue.h"

static unsigned left, entered, asked;
static bool willing = true, willing_to_take = true;

static void leave(void *self) { (void)self, left++; }
static void enter(void *self) { (void)self, entered++; }
static bool goes_on(void *self, bool offered) {
    (void)self;
    asked++;
    return offered ? willing_to_take : willing;
}
static const shmq_caller caller = {leave, enter, goes_on, NULL};

static shmq_copied answer;
static shmq_copied copy(void *to, const shmq_queue *q, const shmq_delivery *d) {
    if (d->body_len == sizeof(uint64_t)) {
        (void)copy_number(to, q, d);
    }
    return answer;
}

static shmq_status get(shmq_queue *q, uint32_t contents, uint64_t *number, shmq_delivery *d) {
    const shmq_getting g = {.contents = contents, .copy = copy, .to = number, .caller = &caller};
    return shmq_get(q, &g, d);
}

static void a_get_copies_or_leaves_it_acquired(shmq_queue *q) {
    shmq_delivery d;
    uint64_t number = 0;
    answer = SHMQ_COPIED;
    put_number(q, 1);
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_OK);
    CHECK(number == 1 && !d.counted);
    put_number(q, 2);
    CHECK_EQUAL(get(q, 0, &number, &d), SHMQ_OK);
    CHECK(number == 1 && d.counted);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_EMPTY);
    CHECK(left != 0 && left == entered);
}

static void what_cannot_be_copied_stays(shmq_queue *q) {
    shmq_delivery d;
    uint64_t number = 0;
    put_number(q, 3);
    answer = SHMQ_COPIED_NOTHING;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_INTERRUPTED);
    answer = SHMQ_COPIED_DAMAGE;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_CORRUPT);
    answer = SHMQ_COPIED;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_EMPTY);
}

static void a_receive_checks_its_copy(shmq_queue *q) {
    unsigned char place[SHMQ_COPY_BYTES];
    shmq_delivery d;
    const shmq_taking t = {.owner = shmq_self(q), .copy = place, .caller = &caller};
    put_number(q, 4);
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_OK);
    uint64_t number;
    memcpy(&number, place + d.headers_len, sizeof number);
    CHECK_EQUAL(number, 4);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    shmq_slot_at(&q->first, d.position)->inline_area[d.headers_len] ^= 1;
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_CORRUPT);
}

static void a_wait_ends_when_its_caller_does_not_go_on(shmq_queue *q) {
    shmq_delivery d;
    const shmq_taking t = {.owner = shmq_self(q), .until_ns = shmq_now_ns() + 1000 * SECOND, .caller = &caller};
    willing = false;
    asked = 0;
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_INTERRUPTED);
    CHECK_EQUAL(asked, 1);
    willing = true;
}

static void put_large(shmq_queue *q) {
    static unsigned char body[70000];
    struct iovec piece = {body, sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

static void put_soon(shmq_queue *q, uint64_t number) {
    struct iovec piece = {&number, sizeof number};
    shmq_outgoing o = {
        .pieces = &piece, .piece_count = 1, .body_len = sizeof number, .not_before_ns = shmq_now_ns() + SECOND / 4};
    CHECK_EQUAL(shmq_put(q, &o, 0), SHMQ_OK);
}

/* It comes amid a wait. A handler that raises then has prevented the taking. */
static void what_a_wait_has_found_is_taken_or_left(shmq_queue *q, bool any) {
    shmq_delivery d;
    uint32_t from = 0;
    shmq_queue_wait of[1] = {{.q = q, .owner = shmq_self(q)}};
    const shmq_taking t = {.owner = shmq_self(q), .until_ns = shmq_now_ns() + 1000 * SECOND, .caller = &caller};
    const shmq_taking alone = {.owner = shmq_self(q), .until_ns = shmq_now_ns() + 1000 * SECOND};
    put_soon(q, 7);
    willing_to_take = false;
    CHECK_EQUAL(any ? shmq_receive_any(of, 1, 0, &t, &from, &d) : shmq_receive(q, &t, &d), SHMQ_INTERRUPTED);
    willing_to_take = true;
    CHECK_EQUAL(any ? shmq_receive_any(of, 1, 0, &t, &from, &d) : shmq_receive(q, &t, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    put_soon(q, 8);
    CHECK_EQUAL(any ? shmq_receive_any(of, 1, 0, &t, &from, &d) : shmq_receive(q, &alone, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    willing = false;
    CHECK_EQUAL(any ? shmq_receive_any(of, 1, 0, &t, &from, &d) : shmq_receive(q, &t, &d), SHMQ_INTERRUPTED);
    willing = true;
}

static void what_failed_too_often_is_acquired_to_be_buried(shmq_queue *q, bool large) {
    shmq_delivery d;
    uint64_t number;
    uint32_t from = 0;
    unsigned char place[SHMQ_COPY_BYTES];
    shmq_queue_wait of[1] = {{.q = q, .owner = shmq_self(q)}};
    const shmq_taking t = {.owner = shmq_self(q), .copy = place};
    shmq_store_relaxed(&q->page->max_attempts, 1);
    if (large) {
        put_large(q);
    } else {
        put_number(q, 9);
    }
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_OK);
    CHECK(shmq_is_last_attempt(q, &d));
    CHECK_EQUAL(shmq_release(q, &d, true), SHMQ_OK);
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_POISONED);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(shmq_receive_any(of, 1, 0, &t, &from, &d), SHMQ_POISONED);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_POISONED);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    shmq_store_relaxed(&q->page->max_attempts, 0);
}

static void a_queue_that_is_deleted_says_so(shmq_queue *q) {
    shmq_delivery d;
    uint64_t number;
    const shmq_taking t = {.owner = shmq_self(q)};
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_NOT_FOUND);
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_NOT_FOUND);
}

/* In a slot, and in a block. */
static void what_is_strange_is_left_acquired(shmq_queue *q) {
    shmq_delivery d;
    uint64_t number = 0;
    answer = SHMQ_COPIED_STRANGE;
    for (int large = 0; large < 2; large++) {
        if (large) {
            put_large(q);
        } else {
            put_number(q, 7);
        }
        CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_OK);
        CHECK(d.counted);
        CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
        CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    answer = SHMQ_COPIED;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_EMPTY);
}

static void of_several_the_one_that_has_something(shmq_queue *one, shmq_queue *other) {
    shmq_queue_wait of[2] = {{.q = one, .owner = shmq_self(one)}, {.q = other, .owner = shmq_self(other)}};
    shmq_delivery d;
    uint32_t from = 0;
    const shmq_taking t = {.caller = &caller};
    CHECK_EQUAL(shmq_receive_any(of, 2, 0, &t, &from, &d), SHMQ_EMPTY);
    put_number(other, 5);
    CHECK_EQUAL(shmq_receive_any(of, 2, 0, &t, &from, &d), SHMQ_OK);
    CHECK_EQUAL(from, 1);
    CHECK_EQUAL(shmq_settle(other, &d), SHMQ_OK);
}

static void a_large_one_is_checked_without_the_lock_of_its_caller(shmq_queue *q) {
    shmq_delivery d;
    uint64_t number;
    const shmq_taking t = {.owner = shmq_self(q), .caller = &caller}, alone = {.owner = shmq_self(q)};
    put_large(q);
    left = entered = 0;
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_OK);
    CHECK(left == 1 && entered == 1);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    CHECK_EQUAL(shmq_receive(q, &alone, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_release(q, &d, false), SHMQ_OK);
    answer = SHMQ_COPIED_NOTHING;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_INTERRUPTED);
    answer = SHMQ_COPIED_DAMAGE;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_CORRUPT);
    put_large(q);
    answer = SHMQ_COPIED;
    CHECK_EQUAL(get(q, 256, &number, &d), SHMQ_OK);
}

static shmq_queue *robbed; /* as its stealer sees it; NULL: it has been robbed */
static shmq_delivery stolen;

/* While the victim checks what it has: another one takes it away, and its bytes become another's. */
static void rob(void *self) {
    (void)self;
    if (robbed != NULL) {
        CHECK_EQUAL(shmq_steal(&robbed->first, stolen.position, false, &stolen), SHMQ_OK);
        ((unsigned char *)(uintptr_t)stolen.bytes)[0] ^= 1;
        robbed = NULL;
    }
}

static void who_was_robbed_while_it_checked_holds_nothing(shmq_queue *q, shmq_member *stealer) {
    const shmq_caller victim = {rob, enter, goes_on, NULL};
    const shmq_taking t = {.owner = shmq_self(q), .caller = &victim};
    shmq_queue *theirs = scratch_queue(stealer, "one", 0, true);
    shmq_delivery d;
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_EMPTY);
    put_large(q);
    CHECK_EQUAL(shmq_peek_to(q, shmq_self(q), NULL, &stolen), SHMQ_OK);
    uint64_t held = shmq_load_seq(&q->m->process->unsettled), damage = shmq_load_seq(&q->m->header->damage);
    robbed = theirs;
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_EMPTY);
    CHECK(robbed == NULL);
    CHECK_EQUAL(shmq_load_seq(&q->m->process->unsettled), held);
    CHECK_EQUAL(shmq_load_seq(&q->m->header->damage), damage);
    CHECK_EQUAL(shmq_settle(theirs, &stolen), SHMQ_OK);
    shmq_queue_unbind(theirs);
}

static void a_queue_that_is_stopped_gives_nothing(shmq_queue *q) {
    shmq_delivery d;
    const shmq_taking t = {.owner = shmq_self(q)};
    put_number(q, 6);
    CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_STOPPED), SHMQ_OK);
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_SHUT_DOWN);
    CHECK_EQUAL(shmq_queue_shut_down(q, SHMQ_OPEN), SHMQ_OK);
    CHECK_EQUAL(shmq_receive(q, &t, &d), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
}

static void where_consumers_differ_in_priority_it_says_that_it_wants(shmq_queue *q) {
    shmq_delivery d;
    uint32_t from;
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(q, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_queue_wait of[1] = {{.q = q, .owner = row}};
    const shmq_taking t = {.owner = row};
    shmq_store_seq(&q->page->terms, SHMQ_TERM_RANKED);
    (void)shmq_receive(q, &t, &d);
    (void)shmq_receive_any(of, 1, 0, &t, &from, &d);
}

int main(void) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    shmq_queue *q = scratch_queue(m, "one", 0, true), *other = scratch_queue(m, "other", 0, true);
    a_get_copies_or_leaves_it_acquired(q);
    what_cannot_be_copied_stays(q);
    what_is_strange_is_left_acquired(q);
    a_receive_checks_its_copy(q);
    a_wait_ends_when_its_caller_does_not_go_on(q);
    of_several_the_one_that_has_something(q, other);
    a_large_one_is_checked_without_the_lock_of_its_caller(q);
    who_was_robbed_while_it_checked_holds_nothing(q, scratch_attach());
    a_queue_that_is_stopped_gives_nothing(q);
    what_a_wait_has_found_is_taken_or_left(q, false);
    what_a_wait_has_found_is_taken_or_left(other, true);
    what_failed_too_often_is_acquired_to_be_buried(q, false);
    what_failed_too_often_is_acquired_to_be_buried(q, true);
    a_queue_that_is_deleted_says_so(other);
    where_consumers_differ_in_priority_it_says_that_it_wants(q);
    return 0;
}
