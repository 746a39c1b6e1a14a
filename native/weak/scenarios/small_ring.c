#include "small_ring.h"

shmq_member *ring_members[WEAK_THREADS];
shmq_queue *ring_queues[WEAK_THREADS], *ring_others[WEAK_THREADS];
ring_board board;

static uint64_t echo_of(uint64_t number) { return number * UINT64_C(0x9e3779b97f4a7c15) + 1; }

static void attach_all(void) {
    scratch_room = 4 * SCRATCH_MEMORY; /* the queues of all scenarios stay */
    scratch_create(false);
    ring_members[0] = scratch_attach();
    for (int t = 1; t < WEAK_THREADS; t++) {
        ring_members[t] = scratch_attach_to(ring_members[0]);
    }
    for (int t = 0; t < WEAK_THREADS; t++) {
        ring_members[t]->process->start_time = 0; /* nobody finds that the process of a dead one runs on */
    }
}

void ring_set_up_members(void) {
    if (ring_members[0] == NULL) {
        attach_all();
    }
    weak_share(ring_members[0]->base, ring_members[0]->size); /* litmus tests have shared something else */
}

/* Four slots in each level, so that every few messages turn it. */
static void make_small(shmq_queue *q) {
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring *level = shmq_level(q, depth);
        level->shm->shift = level->shift = 2;
        level->mask = RING_SLOTS - 1;
    }
}

/* A process of its own for each thread; each scenario has queues of its own, those of the others are left alone. */
static void make_queues(shmq_queue **queues, uint64_t maxsize, uint32_t levels) {
    static int made;
    char name[16];
    snprintf(name, sizeof name, "ring%d", made++);
    for (int t = 0; t < WEAK_THREADS; t++) {
        shmq_queue *q = levels > 1 ? scratch_levels(ring_members[t], name, maxsize, levels)
                                   : scratch_queue(ring_members[t], name, maxsize, false);
        make_small(q);
        uint32_t row;
        CHECK_EQUAL(shmq_row_borrow(q, &row), SHMQ_OK);
        shmq_row_return(q, row);
        queues[t] = q;
        weak_keep(q, sizeof *q);
        if (levels > 1) {
            weak_keep(q->lower, (levels - 1) * sizeof *q->lower);
        }
    }
}

static void set_up(shmq_queue **others, uint64_t maxsize, uint32_t levels) {
    ring_set_up_members();
    make_queues(ring_queues, maxsize, levels);
    if (others != NULL) {
        make_queues(others, maxsize, levels);
    }
    for (int t = 0; t < WEAK_THREADS; t++) {
        (void)shmq_new_id(ring_members[t]);
        weak_keep(ring_members[t], sizeof *ring_members[t]);
    }
}

void ring_set_up(uint64_t maxsize) { set_up(NULL, maxsize, 1); }
void ring_set_up_levels(uint32_t levels) { set_up(NULL, 0, levels); }
void ring_set_up_two(void) { set_up(ring_others, 0, 1); }

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
    board.put_position[number] = o.made.position + 1;
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

bool ring_receive(shmq_queue *q, uint32_t owner, uint64_t until, shmq_delivery *d) {
    const shmq_taking taking = {.owner = owner, .until_ns = until};
    shmq_status status = shmq_receive(q, &taking, d);
    if (status != SHMQ_OK && status != SHMQ_POISONED && status != SHMQ_EMPTY) {
        weak_fail("receive: %s, %s", shmq_status_name(status), shmq_trail());
    }
    return status != SHMQ_EMPTY;
}

typedef struct copy {
    uint64_t body[BODY_WORDS];
    uint32_t length;
    ring_look *look;
} copy;

static shmq_copied copy_offered(void *to, const shmq_queue *q, const shmq_delivery *d) {
    copy *c = to;
    if (c->look != NULL) {
        c->look((shmq_queue *)(uintptr_t)q, d);
    }
    c->length = d->body_len;
    weak_copy_racing(c->body, d->bytes, sizeof c->body);
    return SHMQ_COPIED;
}

uint64_t ring_get_until(shmq_queue *q, uint64_t until, ring_look *look) {
    copy c = {.look = look};
    const shmq_getting getting = {.until_ns = until, .contents = UINT32_MAX, .copy = copy_offered, .to = &c};
    shmq_delivery d;
    shmq_status status = shmq_get(q, &getting, &d);
    if (status == SHMQ_EMPTY) {
        return UINT64_MAX;
    }
    uint64_t number = UINT64_MAX;
    if (status == SHMQ_POISONED) { /* its deaths are counted: whoever is given it settles it */
        number = ring_read(&d);
        WEAK_CHECK(shmq_settle(q, &d) == SHMQ_OK);
    } else if (status == SHMQ_OK) {
        WEAK_CHECK(c.length == sizeof c.body);
        number = ring_number(c.body);
    } else {
        weak_fail("get: %s, %s", shmq_status_name(status), shmq_trail());
    }
    ring_note_got(number);
    return number;
}

uint64_t ring_get(int t) { return ring_get_until(ring_queues[t], 0, NULL); }

void ring_check_got(uint64_t first, uint64_t count) {
    for (uint64_t number = first; number < first + count; number++) {
        if (board.got[number] != 1) {
            weak_fail("message %llu was got %u times", (unsigned long long)number, board.got[number]);
        }
    }
}

static void check_words_of(shmq_queue *q) {
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        uint64_t where = 0;
        const char *fault = shmq_ring_fault(shmq_level(q, depth), &where);
        if (fault != NULL) {
            weak_fail("level %u, slot %llu: %s", depth, (unsigned long long)where, fault);
        }
    }
}

void ring_check_words(void) {
    check_words_of(ring_queues[0]);
    if (ring_others[0] != NULL) {
        check_words_of(ring_others[0]);
    }
    if (shmq_load_seq(&ring_members[0]->header->damage) != 0) {
        weak_fail("damage was reported: %s", shmq_trail());
    }
}
