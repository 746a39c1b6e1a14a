#include "take/wait_any.h"
#include "act_peek.h"

#include "stage.h"

void act_peek_and_pass_on(act *a, uint64_t until_ns) {
    shmq_queue *q = a->q[QUEUE_A];
    shmq_queue_wait of = {.q = q, .owner = a->row, .row = a->row};
    uint32_t from = 0;
    shmq_status status;
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    do {
        status = shmq_peek_wait_any(&of, 1, until_ns, &from);
    } while (status == SHMQ_INTERRUPTED);
    if (status == SHMQ_OK) {
        shmq_peek_pass_on(q);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}

void act_peek_any_and_pass_on(act *a, uint64_t until_ns) {
    shmq_queue_wait of[] = {{.q = a->q[QUEUE_LIMITED]}, {.q = a->q[QUEUE_A]}};
    uint32_t from = 0;
    shmq_status status;
    of[0].owner = shmq_self(of[0].q);
    of[1].owner = of[1].row = a->row;
    act_begin(a, CALL_OTHER, QUEUE_A, 0);
    do {
        status = shmq_peek_wait_any(of, 2, until_ns, &from);
    } while (status == SHMQ_INTERRUPTED);
    if (status == SHMQ_OK) {
        shmq_peek_pass_on(of[1].q);
    }
    act_end(a, CALL_OTHER, QUEUE_A, 0, status);
}
