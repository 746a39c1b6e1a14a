/* Which member is dead, as the kernel says. */
#include "segment/liveness.h"
#include "base/clock.h"
#include "segment/descriptors.h"
#include "segment/proc_stat.h"
#include "segment/process_table.h"

#include <fcntl.h>

#define PF_EXITING UINT64_C(4) /* of the kernel: the process ends, and its memory has gone before its locks */

static bool is_dead_by_lock(void *context, uint32_t row) { return shmq_process_dead(context, row); }

shmq_liveness shmq_liveness_by_lock(shmq_member *m) {
    return (shmq_liveness){.is_dead = is_dead_by_lock, .context = m};
}

bool shmq_rows_locked(const shmq_member *m, uint32_t from, uint32_t to) {
    if (from >= to) {
        return false;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = to - from};
    /* An error counts as locked: only a lock byte that is free proves a death. So does the answer of another file, which
     * has the number of a descriptor that was closed beneath us. */
    return fcntl(m->map_fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK || !shmq_maps_by(m, m->map_fd);
}

/* Does the process that wrote this row still run? One whose descriptors were closed beneath it has lost its lock, and may be
 * in the midst of a write. (One that runs another program by exec, too; its memory is gone, and it is reaped a little
 * later.) A process of another namespace cannot be looked for. */
static bool still_runs(const shmq_process_shm *process) {
    shmq_proc_stat stat;
    uint64_t start_time = shmq_copy_once(&process->start_time);
    return start_time != 0 && shmq_copy_once(&process->pid_namespace) == shmq_own_pid_namespace() &&
           shmq_proc_stat_of(shmq_copy_once(&process->pid), &stat) && stat.start_time == start_time &&
           stat.state != 'Z' && stat.state != 'X' && (stat.flags & PF_EXITING) == 0;
}

static uint64_t lockless_key(uint32_t row, uint64_t word) {
    return (uint64_t)row << 32 | (uint32_t)(shmq_row_generation(word) + 1);
}

/* Another row is waited for. It is not any more when that one has been reaped. */
static bool waits_for_another(const shmq_member *m, uint64_t waited) {
    uint32_t row = (uint32_t)(waited >> 32);
    return waited != 0 && row < SHMQ_PROCESS_ROWS && lockless_key(row, shmq_load_seq(&m->rows[row].word)) == waited;
}

/* The row of a process that runs without its lock becomes REAPING: so its next call finds out, and writes nothing. The call
 * that it may be in gets the patience to end. Each process waits for one such row at a time; a second one waits its
 * turn. */
void shmq_lockless_begin(shmq_member *m, uint32_t row) {
    uint64_t word = shmq_load_seq(&m->rows[row].word), waited = shmq_load_seq(&m->lockless);
    if (shmq_row_state(word) != SHMQ_ROW_REAPING) {
        (void)shmq_cas_seq(&m->rows[row].word, word, shmq_row_word(shmq_row_generation(word), 0, SHMQ_ROW_REAPING));
    }
    uint64_t this = lockless_key(row, word);
    if (waited != this && !waits_for_another(m, waited)) {
        shmq_store_seq(&m->lockless_ns,
                       shmq_now_ns()); /* before the row: a thread that finds it finds a time not before it */
        shmq_store_seq(&m->lockless, this);
    }
}

shmq_life shmq_process_life(const shmq_member *m, uint32_t row) {
    if (row >= SHMQ_PROCESS_ROWS || row == m->row) {
        return SHMQ_ALIVE;
    }
    uint64_t word = shmq_load_seq(&m->rows[row].word);
    if (shmq_row_state(word) == SHMQ_ROW_FREE || shmq_rows_locked(m, row, row + 1)) {
        return SHMQ_ALIVE;
    }
    shmq_after_kernel(&m->rows[row].word);
    /* The process may have left in between, which frees its byte as well. */
    uint64_t now = shmq_load_seq(&m->rows[row].word);
    if (shmq_row_state(now) == SHMQ_ROW_FREE || shmq_row_generation(now) != shmq_row_generation(word)) {
        return SHMQ_ALIVE;
    }
    if (SHMQ_LIKELY(m->read_only || !still_runs(&m->rows[row]))) {
        return SHMQ_DEAD;
    }
    bool had_patience = shmq_row_state(now) == SHMQ_ROW_REAPING &&
                        shmq_load_seq(&m->lockless) == lockless_key(row, now) &&
                        shmq_now_ns() - shmq_load_seq(&m->lockless_ns) >= m->patience_ns;
    return had_patience ? SHMQ_DEAD : SHMQ_LOCKLESS;
}

bool shmq_process_dead(const shmq_member *m, uint32_t row) { return shmq_process_life(m, row) == SHMQ_DEAD; }
