/* Takers that want some entries of a queue that flows, and where these are. */
#ifndef SHMQ_TESTS_FLOW_SELECT_H
#define SHMQ_TESTS_FLOW_SELECT_H

#include "flow_pair.h"

#define MANY 12000

static inline bool is_of(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level;
    return d->body_len == 8 && number_of(d) % 100 == *(uint64_t *)context;
}

static inline shmq_status select_now(shmq_queue *of, shmq_subscription *by, shmq_delivery *d) {
    const shmq_taking t = {.owner = shmq_self(of), .by = by};
    return shmq_receive(of, &t, d);
}

static inline uint64_t place_of(uint64_t number) {
    uint64_t place = 0;
    shmq_delivery d;
    while (shmq_browse_place(&q->first, &place, &d) == SHMQ_OK && number_of(&d) != number) {
        place++;
    }
    return place;
}

static inline bool is_any(void *context, const shmq_ring *level, const shmq_delivery *d) {
    (void)level, (void)d;
    ++*(uint64_t *)context;
    return true;
}

#endif
