#include "shmq/seat.h"

#include "shmq/group.h"
#include "shmq/sleepers.h"
#include "shmq/watch.h"

/* Where it says so. */
static shmq_a32 *seat_of(shmq_queue *q, uint32_t owner) {
    if ((owner & SHMQ_OWNER_PROCESS) != 0) {
        return q->book != NULL ? &q->book->seated : NULL;
    }
    shmq_consumer_shm *row = shmq_row_at(q, owner);
    return row != NULL ? &row->seated : NULL;
}

void shmq_seat_take(shmq_queue *q, uint32_t owner) {
    shmq_a32 *seat = seat_of(q, owner);
    if (seat != NULL && shmq_load_relaxed(seat) == 0 && shmq_cas32_seq(seat, 0, 1)) {
        shmq_sit(q->m, 1);
    }
}

void shmq_seat_leave(shmq_queue *q, uint32_t owner) {
    shmq_a32 *seat = seat_of(q, owner);
    if (seat != NULL && shmq_load_relaxed(seat) != 0 && shmq_cas32_seq(seat, 1, 0)) {
        shmq_sit(q->m, -1);
    }
}
