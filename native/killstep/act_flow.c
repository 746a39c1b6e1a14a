#include "flow/flow_alert.h"
#include "lifecycle/declare.h"
#include "queue/settings.h"
#include "segment/alert_time.h"
#include "settle/expire.h"
#include "settle/settle.h"
#include "act_flow.h"

#include <setjmp.h>

#include "rows.h"
#include "stage.h"

void act_limit_memory(act *a, unsigned queue, uint64_t most) {
    shmq_declaration d = {0};
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_MAX_MEMORY, most);
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0, shmq_queue_alter(a->q[queue], &d, &differs));
}

void act_make_room(act *a) {
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    act_end(a, CALL_OTHER, QUEUE_A, 0, shmq_purger_make_room(a->q[QUEUE_A], NULL));
}

void act_steal_from_front(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    shmq_ring *front = shmq_level(q, q->levels);
    shmq_delivery d;
    act_begin(a, CALL_GET, QUEUE_A, 0);
    uint64_t position = a->held[0].d.position; /* of the survivor, whose copy this process is */
    shmq_status status = shmq_steal(front, position, false, &d);
    uint64_t value = status == SHMQ_OK ? act_value_of(&d) : 0;
    status = status == SHMQ_OK ? shmq_settle(q, &d) : status;
    act_end(a, CALL_GET, QUEUE_A, value, status);
}

static void steal_at(act *a, uint64_t place) {
    shmq_queue *q = a->q[QUEUE_A];
    shmq_delivery d;
    act_begin(a, CALL_GET, QUEUE_A, 0);
    shmq_status status = shmq_steal_at(&q->first, place, true, &d);
    uint64_t value = status == SHMQ_OK ? act_value_of(&d) : 0;
    status = status == SHMQ_OK ? shmq_settle(q, &d) : status;
    act_end(a, CALL_GET, QUEUE_A, value, status);
}

void act_steal_row(act *a) { steal_at(a, shmq_load_seq(&a->q[QUEUE_A]->first.shm->low) + 1); }

void act_steal_waiting(act *a) { steal_at(a, the_board->first_position + 2); }

void act_steal_rows(act *a) {
    const shmq_ring_shm *ring = a->q[QUEUE_A]->first.shm;
    uint64_t end = shmq_flow_place(shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->flow));
    for (uint64_t place = shmq_load_seq((shmq_a64 *)(uintptr_t)&ring->low); place < end; place++) {
        steal_at(a, place);
    }
}

void act_steal_poisoned(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    shmq_status status = SHMQ_OK;
    while (status == SHMQ_OK) {
        shmq_delivery d;
        uint64_t value = 0;
        act_begin(a, CALL_GET, QUEUE_A, 0);
        status = shmq_steal_poisoned(q, &d);
        if (status == SHMQ_OK) {
            value = act_value_of(&d);
            status = shmq_settle(q, &d);
        }
        if (status == SHMQ_OK) {
            act_end_delivery(a, CALL_GET, QUEUE_A, value, &d);
        } else {
            act_end(a, CALL_GET, QUEUE_A, 0, status);
        }
    }
}

void act_tell_alerts(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    uint64_t used;
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    shmq_store_seq(&q->page->alerts.largest, 1); /* as a put of a large message leaves it */
    shmq_disk_refused(a->m);
    (void)shmq_alert_flow(q);
    (void)shmq_alert_largest(q);
    (void)shmq_alert_look(q);
    (void)shmq_alert_claim(q, SHMQ_ALERT_AGE);
    (void)shmq_disk_alerts(a->m, &used);
    act_end(a, CALL_OTHER, QUEUE_A, 0, SHMQ_OK);
}

static jmp_buf end_of_turn;
static bool dies_behind;

static void stop(bool committed) {
    if (committed == dies_behind) {
        longjmp(end_of_turn, 1);
    }
}

/* The core does no step behind it: nothing is given back, the lock goes with the process. */
static void die_in_write(act *a, bool behind) {
    dies_behind = behind;
    rows_stop = stop;
    if (setjmp(end_of_turn) == 0) {
        (void)shmq_purger_make_room(a->q[QUEUE_A], NULL);
        die("nothing was written");
    }
    rows_stop = NULL;
}

void act_flow_before_commit(act *a) { die_in_write(a, false); }

void act_flow_behind_commit(act *a) { die_in_write(a, true); }

void act_flow_decided(act *a) {
    shmq_queue *q = a->q[QUEUE_A];
    shmq_ring_shm *ring = q->first.shm;
    act_flow_behind_commit(a);
    uint64_t from = shmq_flow_place(shmq_load_seq(&ring->flow)), end = shmq_load_seq(&ring->tail);
    shmq_store_seq(&ring->flushing_count, shmq_load_seq(&ring->flushed) + rows_count(from, end));
    shmq_store_seq(&ring->flushing_bytes, shmq_load_seq(&ring->flushed_bytes) + rows_weight(from, end));
    shmq_store_seq(&ring->flushing_at, end);
    shmq_store_seq(&ring->flow, shmq_flow_word(end, true));
}
