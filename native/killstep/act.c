#include "consumers/sleepers.h"
#include "groups/row_close.h"
#include "lifecycle/declare.h"
#include "lifecycle/delete.h"
#include "lifecycle/handle_bind.h"
#include "look/browse.h"
#include "look/census.h"
#include "put/overflow.h"
#include "put/put.h"
#include "queue/settings.h"
#include "recovery/reap.h"
#include "ring/ring.h"
#include "segment/structure.h"
#include "settle/settle.h"
#include "take/take.h"
#include "act.h"

#include "act_group.h"

#include <string.h>

#define BODIES 16u

board *the_board;

typedef struct body {
    uint64_t value;
    uint32_t bytes;
    unsigned char text[BLOCK_BYTES];
} body;

static body bodies[BODIES], kept_bodies[BODIES];

void act_bodies_keep(void) { memcpy(kept_bodies, bodies, sizeof(bodies)); }

void act_bodies_restore(void) { memcpy(bodies, kept_bodies, sizeof(bodies)); }

const unsigned char *act_body_of(uint64_t value, uint32_t bytes) {
    unsigned at = value % BODIES;
    if (bodies[at].value != value || bodies[at].bytes != bytes) {
        act_body(value, bytes);
    }
    return bodies[at].text;
}

void act_body(uint64_t value, uint32_t bytes) {
    unsigned at = value % BODIES;
    bodies[at].value = value;
    bodies[at].bytes = bytes;
    for (uint32_t i = 0; i < bytes; i++) {
        bodies[at].text[i] = (unsigned char)(value * 31 + i);
    }
    memcpy(bodies[at].text, &value, sizeof(value));
}

uint64_t act_value_of(const shmq_delivery *d) {
    uint64_t value;
    if (d->body_len < sizeof(value)) {
        return UINT64_MAX;
    }
    memcpy(&value, d->bytes, sizeof(value));
    return memcmp(act_body_of(value, d->body_len), d->bytes, d->body_len) == 0 ? value : UINT64_MAX;
}

void act_begin(const act *a, uint8_t kind, unsigned queue, uint64_t value) {
    board_mark((call){.kind = kind, .who = a->who, .phase = CALL_BEGUN, .queue = (uint8_t)queue, .value = value});
}

void act_end(act *a, uint8_t kind, unsigned queue, uint64_t value, shmq_status status) {
    a->last = status;
    board_mark((call){.kind = kind,
                      .who = a->who,
                      .phase = status == SHMQ_OK ? CALL_RETURNED : CALL_FAILED,
                      .queue = (uint8_t)queue,
                      .status = (uint8_t)status,
                      .value = value});
}

void act_end_delivery(act *a, uint8_t kind, unsigned queue, uint64_t value, const shmq_delivery *d) {
    a->last = SHMQ_OK;
    a->taken = value;
    board_mark((call){.kind = kind,
                      .who = a->who,
                      .phase = CALL_RETURNED,
                      .queue = (uint8_t)queue,
                      .redelivered = (d->word & SHMQ_FLAG_REDELIVERED) != 0,
                      .deaths = d->deaths,
                      .value = value});
}

static shmq_status put_waiting(shmq_queue *q, shmq_outgoing *o, uint64_t until_ns) {
    shmq_status status;
    do {
        status = shmq_put(q, o, until_ns);
    } while (status == SHMQ_INTERRUPTED);
    if (status != SHMQ_OK) {
        shmq_unprepare(q, o);
    }
    return status;
}

static uint8_t priority_of(const shmq_queue *q, uint64_t value) {
    static const uint8_t priorities[] = {0, 4, 9};
    return q->levels == 1 ? 0 : priorities[value / 100 % 10 % 3];
}

void act_put(act *a, unsigned queue, uint64_t value, uint32_t bytes, uint64_t until_ns) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)act_body_of(value, bytes), .iov_len = bytes};
    shmq_outgoing o = {
        .pieces = &piece, .piece_count = 1, .body_len = bytes, .priority = priority_of(a->q[queue], value)};
    act_group_headers(a->q[queue], value, &o);
    act_begin(a, CALL_PUT, queue, value);
    act_end(a, CALL_PUT, queue, value, put_waiting(a->q[queue], &o, until_ns));
}

void act_put_many(act *a, unsigned queue, uint64_t first, uint32_t count) {
    shmq_outgoing o[ACT_HELD] = {0};
    struct iovec pieces[ACT_HELD];
    shmq_status status = shmq_queue_enter(a->q[queue]);
    uint32_t done = 0;
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (struct iovec){(void *)(uintptr_t)act_body_of(first + i, SMALL_BYTES), SMALL_BYTES};
        o[i] = (shmq_outgoing){.pieces = &pieces[i],
                               .piece_count = 1,
                               .body_len = SMALL_BYTES,
                               .priority = priority_of(a->q[queue], first)};
        act_group_headers(a->q[queue], first + i, &o[i]);
        act_begin(a, CALL_PUT, queue, first + i);
        status = status == SHMQ_OK ? shmq_prepare(a->q[queue], &o[i], 0) : status;
    }
    if (status == SHMQ_OK) {
        status = shmq_put_some(a->q[queue], o, count, &done);
    }
    for (uint32_t i = 0; i < count; i++) {
        act_end(a, CALL_PUT, queue, first + i, i < done ? SHMQ_OK : status);
    }
}

static shmq_copied read_value(void *to, const shmq_queue *q, const shmq_delivery *d) {
    (void)q;
    *(uint64_t *)to = act_value_of(d);
    return SHMQ_COPIED;
}

void act_get(act *a, unsigned queue, uint64_t until_ns) {
    shmq_queue *q = a->q[queue];
    shmq_delivery d;
    uint64_t value = 0;
    const shmq_getting g = {.until_ns = until_ns, .contents = 256, .copy = read_value, .to = &value};
    act_begin(a, CALL_GET, queue, 0);
    shmq_status status = shmq_get(q, &g, &d);
    if (status == SHMQ_POISONED) { /* taken, too; here it is not buried */
        value = act_value_of(&d);
        status = shmq_settle(q, &d);
    }
    if (status == SHMQ_OK) {
        act_end_delivery(a, CALL_GET, queue, value, &d);
    } else {
        act_end(a, CALL_GET, queue, 0, status);
    }
}

void act_receive(act *a, unsigned queue, uint64_t until_ns) { act_receive_by(a, queue, NULL, until_ns); }

void act_receive_by(act *a, unsigned queue, shmq_subscription *by, uint64_t until_ns) {
    shmq_queue *q = a->q[queue];
    const shmq_taking t = {.owner = a->row != 0 ? a->row : shmq_self(q), .row = a->row, .by = by, .until_ns = until_ns};
    shmq_delivery d;
    act_begin(a, CALL_RECEIVE, queue, 0);
    shmq_status status = shmq_receive(q, &t, &d);
    act_received(a, queue, status, &d);
}

void act_received(act *a, unsigned queue, shmq_status status, const shmq_delivery *d) {
    shmq_queue *q = a->q[queue];
    if (status != SHMQ_OK && status != SHMQ_POISONED) { /* poisoned: taken, too; here it is just looked at */
        act_end(a, CALL_RECEIVE, queue, 0, status);
        return;
    }
    uint64_t value = shmq_delivery_intact(q, d) ? act_value_of(d) : UINT64_MAX;
    SHMQ_ASSERT(a->held_count < ACT_HELD);
    a->held[a->held_count].d = *d;
    a->held[a->held_count].value = value;
    a->held[a->held_count].queue = queue;
    a->held_count += 1;
    act_end_delivery(a, CALL_RECEIVE, queue, value, d);
}

void act_forget_oldest(act *a) {
    a->held_count -= 1;
    memmove(&a->held[0], &a->held[1], sizeof(a->held[0]) * a->held_count);
}

static void end_hold(act *a, uint8_t kind, bool attempt) {
    SHMQ_ASSERT(a->held_count != 0);
    unsigned queue = a->held[0].queue;
    uint64_t value = a->held[0].value;
    shmq_queue *q = a->q[queue];
    act_begin(a, kind, queue, value);
    shmq_status status = kind == CALL_SETTLE ? shmq_settle(q, &a->held[0].d) : shmq_release(q, &a->held[0].d, attempt);
    if (kind == CALL_SETTLE && status == SHMQ_OK) {
        shmq_add_relaxed(&q->counters->acked, 1);
    }
    act_end(a, kind, queue, value, status);
    act_forget_oldest(a);
}

void act_settle(act *a) { end_hold(a, CALL_SETTLE, false); }

void act_release(act *a, bool attempt) { end_hold(a, CALL_RELEASE, attempt); }

void act_release_all(act *a) {
    SHMQ_ASSERT(a->held_count != 0);
    shmq_delivery *all[ACT_HELD];
    unsigned queue = a->held[0].queue, count = a->held_count;
    uint64_t values[ACT_HELD];
    for (unsigned i = 0; i < count; i++) {
        SHMQ_ASSERT(a->held[i].queue == queue);
        all[i] = &a->held[i].d;
        values[i] = a->held[i].value;
        act_begin(a, CALL_RELEASE, queue, values[i]);
    }
    shmq_release_all(a->q[queue], all, count);
    for (unsigned i = 0; i < count; i++) {
        act_end(a, CALL_RELEASE, queue, values[i], SHMQ_OK);
    }
    a->held_count = 0;
}

void act_find_out(act *a) {
    for (unsigned i = 0; i < a->held_count; i++) {
        shmq_queue *q = a->q[a->held[i].queue];
        if (shmq_own_word(q, &a->held[i].d) == 0) {
            (void)shmq_lock(q, &a->held[i].d);
        }
    }
}

void act_loan(act *a, uint32_t bytes) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    act_end(a, CALL_OTHER, QUEUE_A, 0, shmq_take_block(a->q[QUEUE_A], bytes, 0, &(shmq_relief){0}, &a->loan));
}

void act_commit(act *a, unsigned queue, uint64_t value) {
    unsigned char *body = shmq_at(a->m, a->loan.offset);
    memcpy(body, act_body_of(value, BLOCK_BYTES), BLOCK_BYTES);
    struct iovec piece = {.iov_base = body, .iov_len = BLOCK_BYTES};
    shmq_outgoing o = {.headers = body, .pieces = &piece, .piece_count = 1, .body_len = BLOCK_BYTES, .block = a->loan};
    act_begin(a, CALL_PUT, queue, value);
    act_end(a, CALL_PUT, queue, value, shmq_put(a->q[queue], &o, 0));
}

void act_abandon(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_block_drop(a->m, a->loan.offset, a->loan.generation, 0);
    act_end(a, CALL_OTHER, QUEUE_A, 0, SHMQ_OK);
}

void act_view(act *a) {
    SHMQ_ASSERT(a->held_count != 0 && a->held[0].d.body != 0);
    const shmq_delivery *d = &a->held[0].d;
    a->pinned_bytes = d->body_len;
    act_begin(a, CALL_OTHER, a->held[0].queue, 0);
    bool pinned = shmq_block_pin(a->m, shmq_body_offset(d->body), d->body_gen, a->pinned_bytes, &a->pin);
    act_end(a, CALL_OTHER, a->held[0].queue, 0, pinned ? SHMQ_OK : SHMQ_LIMIT);
}

void act_view_end(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_block_unpin(a->m, a->pin, a->pinned_bytes);
    act_end(a, CALL_OTHER, QUEUE_A, 0, SHMQ_OK);
}

void act_row_open(act *a, unsigned queue) {
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_row_open(a->q[queue], SHMQ_CONSUMER, &a->row));
}

void act_row_close(act *a, unsigned queue) {
    act_begin(a, CALL_OTHER, queue, 0);
    shmq_row_closing(a->q[queue], a->row);
    act_end(a, CALL_OTHER, queue, 0, shmq_row_close(a->q[queue], a->row));
    a->row = 0;
}

void act_declare(act *a, unsigned queue, const char *name, bool temporary) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_TEMPORARY | 1u << SHMQ_SET_MAXSIZE,
                          .temporary = temporary,
                          .maxsize = 1024, /* so that its ring has 1,024 slots */
                          .create = true};
    int differs = -1;
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0,
            shmq_queue_declare(a->m, name, (uint32_t)strlen(name), &d, &a->q[queue], &differs));
}

void act_declare_levels(act *a, unsigned queue, const char *name, uint32_t levels) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_PRIORITIES | 1u << SHMQ_SET_MAXSIZE,
                          .priorities = levels,
                          .maxsize = 1024,
                          .create = true};
    int differs = -1;
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0,
            shmq_queue_declare(a->m, name, (uint32_t)strlen(name), &d, &a->q[queue], &differs));
}

void act_delete(act *a, unsigned queue) {
    act_begin(a, CALL_DELETE, queue, 0);
    act_end(a, CALL_DELETE, queue, 0, shmq_queue_delete(a->q[queue]));
}

void act_purge(act *a, unsigned queue) {
    shmq_queue *q = a->q[queue];
    act_begin(a, CALL_PURGE, queue, 0);
    uint64_t purged;
    shmq_status status = shmq_purge(q, &purged);
    shmq_add_relaxed(&q->counters->purged, purged);
    act_end(a, CALL_PURGE, queue, 0, status);
}

/* In the history a get: what was stolen is settled at once. */
void act_steal(act *a, unsigned queue, uint64_t position) {
    shmq_queue *q = a->q[queue];
    shmq_delivery d;
    act_begin(a, CALL_GET, queue, 0);
    shmq_status status = shmq_steal(&q->first, position, false, &d);
    uint64_t value = status == SHMQ_OK ? act_value_of(&d) : 0;
    status = status == SHMQ_OK ? shmq_settle(q, &d) : status;
    if (status == SHMQ_OK) {
        act_end_delivery(a, CALL_GET, queue, value, &d);
    } else {
        act_end(a, CALL_GET, queue, 0, status);
    }
}

/* In the history a get: the oldest is gone for good. */
void act_drop_oldest(act *a, unsigned queue) {
    shmq_queue *q = a->q[queue];
    shmq_delivery d;
    uint64_t at = 0;
    act_begin(a, CALL_GET, queue, 0);
    uint64_t value = shmq_browse(&q->first, &at, &d) == SHMQ_OK ? act_value_of(&d) : 0;
    if (shmq_drop_oldest(q, 0, SHMQ_FULL_COUNT, NULL)) {
        act_end_delivery(a, CALL_GET, queue, value, &d);
    } else {
        act_end(a, CALL_GET, queue, 0, SHMQ_EMPTY);
    }
}

void act_browse(act *a, unsigned queue) {
    uint64_t at = 0;
    shmq_delivery d;
    act_begin(a, CALL_OTHER, queue, 0);
    while (shmq_browse(&a->q[queue]->first, &at, &d) == SHMQ_OK) {
        at += 1;
    }
    act_end(a, CALL_OTHER, queue, 0, SHMQ_OK);
}

void act_browse_wait(act *a, unsigned queue, uint64_t until_ns) {
    act_begin(a, CALL_OTHER, queue, 0);
    shmq_status status =
        shmq_browse_wait(a->q[queue], &(uint64_t){shmq_load_seq(&a->q[queue]->first.shm->tail)}, until_ns);
    act_end(a, CALL_OTHER, queue, 0, status);
}

void act_census(act *a, unsigned queue) {
    shmq_census census;
    act_begin(a, CALL_OTHER, queue, 0);
    shmq_ring_census(a->q[queue], &census);
    act_end(a, CALL_OTHER, queue, 0, SHMQ_OK);
}

void act_join(act *a, unsigned queue, uint64_t until_ns) {
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_ring_join(a->q[queue], until_ns));
}

void act_shut_down(act *a, unsigned queue) {
    act_begin(a, CALL_OTHER, queue, 0);
    shmq_status status = shmq_queue_shut_down(a->q[queue], SHMQ_DRAINING);
    status = status == SHMQ_OK ? shmq_queue_shut_down(a->q[queue], SHMQ_OPEN) : status;
    act_end(a, CALL_OTHER, queue, 0, status);
}

void act_limit_bytes(act *a, unsigned queue, uint64_t most) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_MAX_BYTES, most);
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_queue_alter(a->q[queue], &d, &differs));
}

void act_alter(act *a, unsigned queue, uint64_t maxsize) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_DEAD_LETTER, .dead_letter = "elsewhere", .dead_letter_len = 9};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_MAXSIZE, maxsize);
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_queue_alter(a->q[queue], &d, &differs));
}

void act_reap(act *a) {
    uint32_t reaped = 0;
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    act_end(a, CALL_OTHER, QUEUE_A, 0, shmq_reap_dead(a->m, &reaped));
}

static bool nobody(void *context, uint32_t row) {
    (void)context, (void)row;
    return false;
}

void act_sweep_blocks(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_status status = shmq_structure_lock(a->m);
    if (status == SHMQ_OK) {
        (void)shmq_blocks_sweep(a->m, nobody, NULL, NULL);
        (void)shmq_blocks_reclaim(a->m);
        shmq_structure_unlock(a->m);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}

/* A process that locks the structure and finds it dirty rebuilds the map. */
void act_rebuild(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_status status = shmq_structure_lock(a->m);
    if (status == SHMQ_OK) {
        shmq_structure_unlock(a->m);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}

void act_attach(act *a, const char *name) {
    int differs = -1;
    shmq_declaration d = {0};
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_status status = shmq_member_attach(name, NULL, &a->m);
    if (status == SHMQ_OK) {
        status = shmq_queue_declare(a->m, "a", 1, &d, &a->q[QUEUE_A], &differs);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}

void act_leave(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    for (unsigned i = 0; i < a->held_count; i++) { /* what it holds goes back */
        act_begin(a, CALL_RELEASE, a->held[i].queue, a->held[i].value);
    }
    (void)shmq_cas32_seq(&a->m->closed, 0, SHMQ_MEMBER_CLOSING);
    shmq_status status = shmq_sweep_own(a->m);
    shmq_queue_close_handles(a->m);
    if (status == SHMQ_OK) {
        status = shmq_member_leave(a->m, false);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}
