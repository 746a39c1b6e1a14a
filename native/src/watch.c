#include "shmq/watch.h"

#include "shmq/reap.h"
#include "shmq/wait.h"

#define TICKING (UINT64_C(1) << 16)
#define QUIET_TICKS 50 /* a second without anything held before the watcher sleeps for long again */

static uint64_t watch_word(const shmq_member *m, uint64_t mode) {
    return (m->row + 1) | mode | ((uint64_t)m->row_generation << 32);
}

static uint32_t row_of(uint64_t word) { return (uint32_t)(word & 0xffff) - 1; }

static bool is_ours(const shmq_member *m, uint64_t word) { return word != 0 && row_of(word) == m->row; }

/* Does a process that this watcher answers for hold something? Place 0: any other one; place 1: that of place 0. */
static bool anybody_holds(const shmq_watcher *w) {
    shmq_member *m = w->m;
    uint32_t high = shmq_load_relaxed(&m->header->process_high);
    if (w->place == 1) {
        uint64_t first = shmq_load_seq(&m->header->watch[0]);
        uint32_t row = row_of(first);
        return first != 0 && row < SHMQ_PROCESS_ROWS && row != m->row && shmq_load_seq(&m->rows[row].held) != 0;
    }
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        if (row != m->row && shmq_load_seq(&m->rows[row].held) != 0) {
            return true;
        }
    }
    return false;
}

static bool vacant(shmq_member *m, uint64_t word) {
    return word == 0 || (!is_ours(m, word) && (row_of(word) >= SHMQ_PROCESS_ROWS || shmq_process_dead(m, row_of(word))));
}

/* Take a place that is vacant, or whose holder is dead. */
static bool take_place(shmq_watcher *w, uint64_t wake) {
    shmq_segment_shm *header = w->m->header;
    for (int place = 0; place < 2; place++) {
        uint64_t seen = shmq_load_seq(&header->watch[place]);
        if (place == 1 && is_ours(w->m, shmq_load_seq(&header->watch[0]))) {
            return false; /* the second one is there for the first one's process: it must be another */
        }
        if (vacant(w->m, seen) && shmq_cas_seq(&header->watch[place], seen, watch_word(w->m, 0))) {
            shmq_store_seq(&header->watch_wake[place], wake);
            w->place = place;
            return true;
        }
    }
    return false;
}

void shmq_watch_enter(shmq_watcher *w, shmq_member *m, shmq_a32 *word) {
    shmq_segment_shm *header = m->header;
    uint64_t wake = (uint64_t)((unsigned char *)word - m->base);
    *w = (shmq_watcher){.m = m, .word = word, .place = -1, .volunteer = -1};
    if (take_place(w, wake)) {
        return;
    }
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS; i++) {
        if (shmq_load_relaxed(&header->volunteers[i]) == 0 && shmq_cas_seq(&header->volunteers[i], 0, wake)) {
            /* Who leaves a place clears it, then looks for volunteers; we stand up, then look at the places again: one of
             * the two sees the other. */
            if (take_place(w, wake)) {
                shmq_cas_seq(&header->volunteers[i], wake, 0);
            } else {
                w->volunteer = i;
            }
            return;
        }
    }
}

uint64_t shmq_watch_slice(shmq_watcher *w, uint64_t limit_ns) {
    if (w->place < 0) {
        return limit_ns;
    }
    /* The mode first, then the look: who begins to hold something raises `held` first, then looks at the mode. One of the
     * two sees the other. */
    shmq_a64 *word = &w->m->header->watch[w->place];
    bool ticking = w->quiet > 0 && w->quiet <= QUIET_TICKS;
    if (!ticking) {
        shmq_cas_seq(word, watch_word(w->m, TICKING), watch_word(w->m, 0));
    }
    if (anybody_holds(w)) {
        w->quiet = 1;
        ticking = true;
    }
    if (!ticking) {
        w->quiet = 0;
        return limit_ns;
    }
    shmq_cas_seq(word, watch_word(w->m, 0), watch_word(w->m, TICKING));
    return limit_ns < SHMQ_TICK_NS ? limit_ns : SHMQ_TICK_NS;
}

static void test_rows(shmq_member *m, bool only_holders) {
    uint32_t high = shmq_load_relaxed(&m->header->process_high);
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        if (row == m->row || shmq_row_state(shmq_load_acquire(&m->rows[row].word)) == SHMQ_ROW_FREE) { /* SYNC row.owner */
            continue;
        }
        if ((!only_holders || shmq_load_seq(&m->rows[row].held) != 0) && shmq_process_dead(m, row)) {
            (void)shmq_reap_row(m, row); /* not done now: the next who looks does it */
        }
    }
}

void shmq_watch_tick(shmq_watcher *w) {
    if (w->place < 0) {
        return;
    }
    if (w->quiet > 0) {
        w->quiet++;
        test_rows(w->m, true);
    } else {
        shmq_look_for_dead(w->m);
    }
}

static bool anybody_volunteers(shmq_member *m) {
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS; i++) {
        if (shmq_load_seq(&m->header->volunteers[i]) != 0) {
            return true;
        }
    }
    return false;
}

static void wake_volunteer(shmq_member *m) {
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS; i++) {
        uint64_t offset = shmq_load_seq(&m->header->volunteers[i]);
        if (offset == 0 || (offset & 3) != 0 || !shmq_inside(m, offset, 4)) {
            continue;
        }
        shmq_a32 *word = shmq_at(m, offset);
        shmq_add_seq(word, 1); /* spurious for its sleeper: it looks, sleeps again, and takes the vacant place */
        if (shmq_futex_wake_count(word, 1) > 0) {
            return;
        }
        shmq_cas_seq(&m->header->volunteers[i], offset, 0); /* nobody sleeps there: a dead one's */
    }
}

void shmq_watch_leave(shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    if (w->volunteer >= 0) {
        shmq_cas_seq(&header->volunteers[w->volunteer], (uint64_t)((unsigned char *)w->word - w->m->base), 0);
        return;
    }
    if (w->place < 0) {
        return;
    }
    uint64_t seen = shmq_load_seq(&header->watch[w->place]);
    if (is_ours(w->m, seen)) {
        shmq_cas_seq(&header->watch[w->place], seen, 0);
    }
    uint32_t high = anybody_volunteers(w->m) ? shmq_load_relaxed(&header->process_high) : 0;
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        if (shmq_load_seq(&w->m->rows[row].held) != 0) {
            wake_volunteer(w->m); /* somebody holds something, and nobody watches it now */
            return;
        }
    }
}

void shmq_hold(shmq_member *m, int32_t change) {
    uint32_t before = shmq_add_seq(&m->process->held, (uint32_t)change);
    if (change < 0 || before != 0) {
        return;
    }
    shmq_segment_shm *header = m->header;
    uint64_t first = shmq_load_seq(&header->watch[0]);
    int place = is_ours(m, first) ? 1 : 0; /* our own watcher cannot watch us: the second one does */
    uint64_t word = place == 0 ? first : shmq_load_seq(&header->watch[1]);
    if (word == 0) {
        wake_volunteer(m);
    } else if ((word & TICKING) == 0) {
        uint64_t offset = shmq_load_seq(&header->watch_wake[place]);
        if (offset != 0 && (offset & 3) == 0 && shmq_inside(m, offset, 4)) {
            shmq_add_seq((shmq_a32 *)shmq_at(m, offset), 1);
            shmq_futex_wake(shmq_at(m, offset), 1);
        }
    }
}

void shmq_look_for_dead(shmq_member *m) {
    uint64_t now = shmq_now_ns(), looked = shmq_load_relaxed(&m->looked_ns);
    if (now - looked >= SHMQ_TICK_NS && shmq_cas_seq(&m->looked_ns, looked, now)) {
        test_rows(m, false);
    }
}
