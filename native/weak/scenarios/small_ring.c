#include "small_ring.h"

shmq_member *ring_members[WEAK_THREADS];
shmq_queue *ring_queues[WEAK_THREADS];
ring_board board;

static uint64_t echo_of(uint64_t number) { return number * UINT64_C(0x9e3779b97f4a7c15) + 1; }

static void attach_all(void) {
    scratch_create(false);
    ring_members[0] = scratch_attach();
    for (int t = 1; t < WEAK_THREADS; t++) {
        ring_members[t] = scratch_attach_to(ring_members[0]);
    }
    weak_share(ring_members[0]->base, ring_members[0]->size);
}

/* Each scenario has a process of its own image of private memory: the queue is made anew, the old one is left alone. */
void ring_set_up(uint64_t maxsize) {
    static int made;
    char name[16];
    if (ring_members[0] == NULL) {
        attach_all();
    }
    weak_share(ring_members[0]->base, ring_members[0]->size); /* litmus tests have shared something else */
    snprintf(name, sizeof name, "ring%d", made++);
    for (int t = 0; t < WEAK_THREADS; t++) {
        shmq_queue *q = scratch_queue(ring_members[t], name, maxsize, false);
        q->ring->shift = 2; /* so that every few messages turn it */
        q->shift = 2;
        q->mask = RING_SLOTS - 1;
        uint32_t row;
        CHECK_EQUAL(shmq_row_borrow(q, &row), SHMQ_OK);
        shmq_row_return(q, row);
        (void)shmq_new_id(ring_members[t]);
        ring_queues[t] = q;
        weak_keep(ring_members[t], sizeof *ring_members[t]);
        weak_keep(q, sizeof *q);
    }
}

void ring_begin(void) { memset(&board, 0, sizeof board); }

void ring_body(uint64_t *body, uint64_t number) {
    body[0] = number;
    body[1] = echo_of(number);
}

bool ring_put(int t, uint64_t number, uint64_t until) {
    uint64_t body[BODY_WORDS];
    ring_body(body, number);
    struct iovec piece = {.iov_base = body, .iov_len = sizeof body};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = sizeof body};
    shmq_status status;
    do {
        status = shmq_put(ring_queues[t], &o, until);
    } while (status == SHMQ_INTERRUPTED);
    if (status != SHMQ_OK) {
        WEAK_CHECK(status == SHMQ_FULL_COUNT || status == SHMQ_FULL_RING);
        return false;
    }
    board.put_position[number] = o.position + 1;
    board.total++;
    return true;
}

uint64_t ring_number(const uint64_t *body) {
    WEAK_CHECK(body[0] < RING_MESSAGES && body[1] == echo_of(body[0]));
    return body[0];
}

uint64_t ring_read(const shmq_delivery *d) {
    uint64_t body[BODY_WORDS];
    WEAK_CHECK(d->body_len == sizeof body);
    memcpy(body, d->bytes, sizeof body);
    return ring_number(body);
}

void ring_note_got(uint64_t number) { WEAK_CHECK(++board.got[number] == 1); }

uint64_t ring_get(int t) {
    shmq_queue *q = ring_queues[t];
    for (;;) {
        shmq_delivery d;
        uint64_t body[BODY_WORDS];
        shmq_status status = shmq_offer(q, shmq_self(q), &d);
        if (status == SHMQ_EMPTY) {
            return UINT64_MAX;
        }
        if (status != SHMQ_OK) {
            weak_fail("offer: %s, %s", shmq_status_name(status), shmq_trail());
        }
        uint32_t length = d.body_len;
        weak_copy_racing(body, d.bytes, sizeof body);
        if (shmq_offer_finish(q, &d) == SHMQ_OK) {
            WEAK_CHECK(length == sizeof body);
            uint64_t number = ring_number(body);
            ring_note_got(number);
            return number;
        }
    }
}

void ring_check_got(uint64_t first, uint64_t count) {
    for (uint64_t number = first; number < first + count; number++) {
        if (board.got[number] != 1) {
            weak_fail("message %llu was got %u times", (unsigned long long)number, board.got[number]);
        }
    }
}

void ring_check_words(void) {
    uint64_t where = 0;
    const char *fault = shmq_ring_valid(ring_queues[0], &where);
    if (fault != NULL) {
        weak_fail("slot %llu: %s", (unsigned long long)where, fault);
    }
    if (shmq_load_seq(&ring_members[0]->header->damage) != 0) {
        weak_fail("damage was reported: %s", shmq_trail());
    }
}
