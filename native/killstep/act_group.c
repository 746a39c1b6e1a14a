#include "lifecycle/declare.h"
#include "settle/settle.h"
#include "act_group.h"

#include <string.h>

void act_declare_groups(act *a, unsigned queue, const char *name, uint32_t grouping, uint64_t maxsize) {
    shmq_declaration d = {.given = 1u << SHMQ_SET_GROUPS | 1u << SHMQ_SET_MAXSIZE,
                          .grouping = grouping,
                          .maxsize = maxsize,
                          .create = true};
    int differs = -1;
    act_begin(a, CALL_OTHER, queue, 0);
    act_end(a, CALL_OTHER, queue, 0,
            shmq_queue_declare(a->m, name, (uint32_t)strlen(name), &d, &a->q[queue], &differs));
}

void act_group_headers(const shmq_queue *q, uint64_t value, shmq_outgoing *o) {
    static const unsigned char all_headers[2][7] = {{1, 0, 0, 3, 1, 0, 'a'}, {1, 0, 0, 3, 1, 0, 'b'}};
    if (q->grouping != SHMQ_GROUPS_NONE) {
        o->headers = all_headers[value / 100 % 10 == 1];
        o->headers_len = sizeof(all_headers[0]);
    }
}

void act_rob(act *a, unsigned queue, uint64_t position) {
    shmq_delivery d;
    act_begin(a, CALL_RECEIVE, queue, 0);
    shmq_status status = shmq_steal(&a->q[queue]->first, position, false, &d);
    if (status == SHMQ_OK) {
        shmq_add_relaxed(&a->q[queue]->counters->received, 1);
    }
    act_received(a, queue, status, &d);
}

void act_rob_self(act *a) {
    unsigned queue = a->held[0].queue;
    act_begin(a, CALL_RELEASE, queue, a->held[0].value);
    SHMQ_ASSERT(a->held_count != 0 && a->held_count < ACT_HELD);
    SHMQ_ASSERT(shmq_steal(&a->q[queue]->first, a->held[0].d.position, false, &a->held[a->held_count].d) == SHMQ_OK);
    a->held[a->held_count].value = a->held[0].value;
    a->held[a->held_count++].queue = queue;
}
