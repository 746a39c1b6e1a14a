#include "limits/waiters.h"

#define TRIES 64 /* a thread that joins or leaves is in between for some instructions */

#define JOINED ((UINT64_C(1) << 32) + 1)

/* Lowers the sum, never below 0: a recount may have lowered it before. */
static void lower(shmq_a64 *sum, uint32_t change) {
    uint64_t seen;
    uint32_t count;
    do {
        seen = shmq_load_seq(sum);
        count = shmq_waiters_in(seen);
    } while (count != 0 && !shmq_cas_seq(sum, seen, seen - (count > change ? change : count)));
}

void shmq_join_count(const shmq_waiters *w) {
    shmq_add_seq(w->changing, 1);
    shmq_add_seq(w->sum, JOINED);
    shmq_add_seq(w->part, 1);
    shmq_less(w->changing, 1);
}

void shmq_leave_count(const shmq_waiters *w) {
    shmq_add_seq(w->changing, 1);
    shmq_less(w->part, 1);
    lower(w->sum, 1);
    shmq_less(w->changing, 1);
}

/* Gets the words of one row; false: it has none. */
typedef bool (*words_of)(void *context, uint32_t row, shmq_waiters *w);

static bool of_room(void *context, uint32_t row, shmq_waiters *w) {
    const shmq_queue *q = context;
    shmq_counters_shm *counters = shmq_counters_at(q->m, row, q->index);
    if (counters == NULL || shmq_load_seq(&counters->attached) != (uint64_t)q->incarnation + 1) {
        return false;
    }
    *w = shmq_room_waiters(q, counters);
    return true;
}

static bool of_memory(void *context, uint32_t row, shmq_waiters *w) {
    shmq_member *m = context;
    *w = shmq_memory_waiters(m, &m->rows[row]);
    return true;
}

/* Adds up all parts; false: a process is in between. */
static bool add_up(const shmq_member *m, words_of of, void *context, uint32_t *parts) {
    uint32_t high = shmq_process_high(m);
    shmq_waiters w;
    *parts = 0;
    for (uint32_t row = 0; row < high; row++) {
        if (of(context, row, &w)) {
            uint32_t changing = shmq_load_seq(w.changing);
            *parts += shmq_load_seq(w.part);
            if ((changing | shmq_load_seq(w.changing)) != 0) {
                return false;
            }
        }
    }
    return true;
}

/* Corrects the sum by a CAS from what it was before the parts were added up: its version says that no thread has joined
 * since. A process that had begun to join, or was leaving, shows in `changing` before its part is read or after it. */
static void recount(const shmq_member *m, shmq_a64 *sum, words_of of, void *context) {
    for (int i = 0; i < TRIES; i++) {
        uint64_t seen = shmq_load_seq(sum);
        uint32_t parts;
        if (!add_up(m, of, context, &parts)) {
            shmq_pause();
        } else if (parts >= shmq_waiters_in(seen) || shmq_cas_seq(sum, seen, seen - shmq_waiters_in(seen) + parts)) {
            return;
        }
    }
}

/* Takes the dead process's part off the sum at once, and clears its `changing`, for which the recount would wait. */
static void forget(const shmq_waiters *w) {
    lower(w->sum, shmq_swap_seq(w->part, 0));
    shmq_store_seq(w->changing, 0);
}

void shmq_room_waiters_recover(shmq_queue *q, shmq_counters_shm *counters) {
    shmq_waiters w = shmq_room_waiters(q, counters);
    forget(&w);
    recount(q->m, w.sum, of_room, q);
}

void shmq_memory_waiters_recover(shmq_member *m, shmq_process_shm *row) {
    shmq_waiters w = shmq_memory_waiters(m, row);
    forget(&w);
    recount(m, w.sum, of_memory, m);
}
